// What follows a mapping of a peer's memory may be written to, and a mapping that fails is zeros.
#include "port/vhost_bounds.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 1 << 20, BEHIND = 128 * 1024 };

static uint8_t *map(int file)
{
	vhost_bounds_begin_mapping();
	return mmap64(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void bytes_behind_a_mapping_belong_to_it(void **state)
{
	int file = memfd_create("peer", MFD_CLOEXEC);
	uint8_t byte;

	assert_int_equal(ftruncate(file, BYTES), 0);
	uint8_t *memory = map(file);

	assert_false(vhost_bounds_end_mapping());
	assert_true(memory != MAP_FAILED);
	memory[BYTES - 1] = 7;
	memory[BYTES] = memory[BYTES + BEHIND - 1] = 8;
	assert_int_equal(pread(file, &byte, 1, BYTES - 1), 1);
	assert_int_equal(byte, 7);
	assert_int_equal(munmap(memory, BYTES), 0);
	assert_int_not_equal(msync(memory + BYTES, 4096, MS_ASYNC), 0); // no mapping any more
	close(file);
}

static void memory_that_cannot_be_mapped_is_zeros(void **state)
{
	char path[64];
	int file = memfd_create("peer", MFD_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	int other = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *memory = map(other);

	assert_true(vhost_bounds_end_mapping());
	assert_true(memory != MAP_FAILED);
	memory[BYTES - 1] = memory[BYTES] = 7;
	assert_int_equal(memory[0], 0);
	assert_int_equal(munmap(memory, BYTES), 0);
	close(other);
	close(file);
}

static void other_mappings_are_as_usual(void **state)
{
	int file = memfd_create("ours", MFD_CLOEXEC);

	vhost_bounds_begin_mapping();
	vhost_bounds_end_mapping();
	assert_ptr_equal(mmap64(NULL, BYTES, PROT_WRITE, MAP_SHARED, -1, 0), MAP_FAILED);
	uint8_t *memory = mmap64(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);

	assert_true(memory != MAP_FAILED);
	assert_int_equal(munmap(memory, 4096), 0);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_behind_a_mapping_belong_to_it),
		cmocka_unit_test(memory_that_cannot_be_mapped_is_zeros),
		cmocka_unit_test(other_mappings_are_as_usual),
	};

	return cmocka_run_group_tests_name("vhost_bounds", tests, NULL, NULL);
}
