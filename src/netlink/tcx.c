// Control thread.
#include "netlink/tcx.h"

#include "netlink/event.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

// As of linux/bpf.h, which may be older than the kernel.
enum { TCX_INGRESS = 46, TCX_EGRESS = 47 };

struct question {
	int ifindex;
	uint8_t sides;
};

static bool has_programs(int ifindex, uint32_t attach_type)
{
	union bpf_attr attr = {
		.query = {.target_fd = (uint32_t)ifindex, .attach_type = attach_type}};

	return syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr)) == 0 && attr.query.prog_cnt;
}

static int ask_here(void *arg)
{
	struct question *question = arg;

	if (has_programs(question->ifindex, TCX_INGRESS))
		question->sides |= EVENT_INGRESS;
	if (has_programs(question->ifindex, TCX_EGRESS))
		question->sides |= EVENT_EGRESS;
	return 0;
}

uint8_t tcx_sides(const struct tap_table *taps, int ifindex)
{
	struct question question = {.ifindex = ifindex};

	return tap_inside(taps, ask_here, &question) ? 0 : question.sides;
}
