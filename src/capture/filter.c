// Checks classic BPF programs from outside. libpcap compiles and runs them. Control thread.
#include "capture/capture.h"

#include "base/bits.h"

#include <errno.h>

// What bpf_filter knows: it aborts the program at others, some of which bpf_validate accepts.
static const uint16_t codes[] = {
	BPF_RET | BPF_K,
	BPF_RET | BPF_A,
	BPF_LD | BPF_W | BPF_ABS,
	BPF_LD | BPF_H | BPF_ABS,
	BPF_LD | BPF_B | BPF_ABS,
	BPF_LD | BPF_W | BPF_IND,
	BPF_LD | BPF_H | BPF_IND,
	BPF_LD | BPF_B | BPF_IND,
	BPF_LD | BPF_W | BPF_LEN,
	BPF_LDX | BPF_W | BPF_LEN,
	BPF_LDX | BPF_MSH | BPF_B,
	BPF_LD | BPF_IMM,
	BPF_LDX | BPF_IMM,
	BPF_LD | BPF_MEM,
	BPF_LDX | BPF_MEM,
	BPF_ST,
	BPF_STX,
	BPF_JMP | BPF_JA,
	BPF_JMP | BPF_JGT | BPF_K,
	BPF_JMP | BPF_JGE | BPF_K,
	BPF_JMP | BPF_JEQ | BPF_K,
	BPF_JMP | BPF_JSET | BPF_K,
	BPF_JMP | BPF_JGT | BPF_X,
	BPF_JMP | BPF_JGE | BPF_X,
	BPF_JMP | BPF_JEQ | BPF_X,
	BPF_JMP | BPF_JSET | BPF_X,
	BPF_ALU | BPF_ADD | BPF_X,
	BPF_ALU | BPF_SUB | BPF_X,
	BPF_ALU | BPF_MUL | BPF_X,
	BPF_ALU | BPF_DIV | BPF_X,
	BPF_ALU | BPF_MOD | BPF_X,
	BPF_ALU | BPF_AND | BPF_X,
	BPF_ALU | BPF_OR | BPF_X,
	BPF_ALU | BPF_XOR | BPF_X,
	BPF_ALU | BPF_LSH | BPF_X,
	BPF_ALU | BPF_RSH | BPF_X,
	BPF_ALU | BPF_ADD | BPF_K,
	BPF_ALU | BPF_SUB | BPF_K,
	BPF_ALU | BPF_MUL | BPF_K,
	BPF_ALU | BPF_DIV | BPF_K,
	BPF_ALU | BPF_MOD | BPF_K,
	BPF_ALU | BPF_AND | BPF_K,
	BPF_ALU | BPF_OR | BPF_K,
	BPF_ALU | BPF_XOR | BPF_K,
	BPF_ALU | BPF_LSH | BPF_K,
	BPF_ALU | BPF_RSH | BPF_K,
	BPF_ALU | BPF_NEG,
	BPF_MISC | BPF_TAX,
	BPF_MISC | BPF_TXA,
};

static bool is_known(uint16_t code)
{
	for (unsigned i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

static bool are_known(const struct bpf_insn program[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!is_known(program[i].code))
			return false;
	return true;
}

// bpf_validate checks everything else; in user space it lets a jump wrap around, backwards.
static bool jumps_forward(const struct bpf_insn program[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (program[i].code == (BPF_JMP | BPF_JA) && program[i].k >= n - i - 1)
			return false;
	return true;
}

int capture_check_program(const struct bpf_insn program[], unsigned n, struct error *error)
{
	if (n < 1 || n > CAPTURE_PROGRAM_MOST)
		return error_set(error, -EINVAL,
			"a filter has 1 to %d BPF instructions, not %u; use a simpler expression",
			CAPTURE_PROGRAM_MOST, n);
	if (!are_known(program, n) || !jumps_forward(program, n) || !bpf_validate(program, n))
		return error_set(error, -EINVAL,
			"the filter is not a valid BPF program: compile it with libpcap");
	return 0;
}
