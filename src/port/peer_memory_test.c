// Memory that a peer has taken away reads as zeros, and the rest of the program goes on.
#include "port/peer_memory.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, BYTES = 4 * PAGE };

static volatile uint8_t *map(int file, int flags)
{
	uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, file, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static int make_file(void)
{
	int file = memfd_create("peer", MFD_CLOEXEC);

	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, BYTES), 0);
	return file;
}

static void memory_that_was_taken_away_is_zeros(void **state)
{
	int file = make_file(), other = make_file();
	volatile uint8_t *memory = map(file, MAP_SHARED), *rest = map(other, MAP_SHARED);
	uintptr_t begin = (uintptr_t)memory;
	unsigned since = peer_memory_n_lost();
	struct rlimit usual, none;

	getrlimit(RLIMIT_NOFILE, &usual);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = usual.rlim_max}; // no more descriptors
	assert_true(peer_memory_guard()); // cmocka has a handler of its own during each test
	memory[0] = memory[3 * PAGE] = rest[0] = 7;
	assert_false(peer_memory_is_lost(begin, begin + BYTES, since));
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(ftruncate(file, PAGE), 0);
	assert_int_equal(memory[0], 7);
	assert_int_equal(memory[3 * PAGE], 0);
	memory[2 * PAGE] = 9;
	assert_int_equal(memory[2 * PAGE], 9);
	assert_int_equal(memory[0], 0); // the whole mapping was replaced
	assert_int_equal(rest[0], 7);
	setrlimit(RLIMIT_NOFILE, &usual);
	assert_int_equal(peer_memory_n_lost(), since + 1);
	assert_true(peer_memory_is_lost(begin, begin + BYTES, since));
	assert_true(peer_memory_is_lost(begin + BYTES - 1, begin + BYTES, since));
	assert_false(peer_memory_is_lost(begin + BYTES, begin + 2 * BYTES, since));
	assert_false(peer_memory_is_lost(begin, begin + BYTES, since + 1));
	assert_false(peer_memory_is_lost((uintptr_t)rest, (uintptr_t)rest + BYTES, since));
	munmap((void *)memory, BYTES);
	munmap((void *)rest, BYTES);
	close(file);
	close(other);
}

static void read_after_the_end(int file, int flags)
{
	volatile uint8_t *memory = map(file, flags);

	ftruncate(file, 0);
	_exit(memory[0]);
}

// A file of our own that we have mapped for us alone is no peer's. The child must be the first to
// guard: its list of mappings is not its parent's.
static void other_bus_errors_still_end_the_program(void **state)
{
	int status, file = make_file();
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		signal(SIGBUS, SIG_DFL);
		if (!peer_memory_guard())
			_exit(0);
		read_after_the_end(file, MAP_PRIVATE);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_bus_errors_still_end_the_program),
		cmocka_unit_test(memory_that_was_taken_away_is_zeros),
	};

	return cmocka_run_group_tests_name("peer memory", tests, NULL, NULL);
}
