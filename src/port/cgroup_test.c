// Cgroups of either version in a temporary directory. Tests only.
#include "port/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[32]; // recreated for each test

// Writes a file and creates its parent directories.
static void put(const char *name, const char *text)
{
	char path[256];

	assert_true(snprintf(path, sizeof(path), "%s/%s", root, name) < (int)sizeof(path));
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int open_it(void **state)
{
	strcpy(root, "/tmp/cgroup_test.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int close_it(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static struct cgroup_limits read_it(void)
{
	struct cgroup_limits room;
	char list[64], mount[64];

	snprintf(list, sizeof(list), "%s/list", root);
	snprintf(mount, sizeof(mount), "%s/mount", root);
	cgroup_read(&room, list, mount);
	return room;
}

static void expect(uint64_t limit, uint64_t available)
{
	struct cgroup_limits room = read_it();

	assert_int_equal(room.limit_bytes, limit);
	assert_int_equal(room.available_bytes, available);
}

static void version_2_counts_cache_as_free(void **state)
{
	put("list", "0::/pod/one\n");
	put("mount/pod/one/memory.max", "1000000\n");
	put("mount/pod/one/memory.current", "400000\n");
	put("mount/pod/one/memory.stat", "anon 5\nfile 9\ninactive_file 150000\n");
	expect(1000000, 750000);
}

static void the_lowest_limit_on_the_way_up_is_taken(void **state)
{
	put("list", "0::/pod/one\n");
	put("mount/pod/one/memory.max", "max\n");
	put("mount/pod/one/memory.current", "5\n");
	put("mount/pod/memory.max", "900\n");
	put("mount/pod/memory.current", "100\n");
	put("mount/memory.max", "1000\n");
	put("mount/memory.current", "700\n");
	expect(900, 300);
}

static void version_1_writes_no_limit_as_a_large_number(void **state)
{
	put("list", "12:cpu,cpuacct:/x\n4:memory:/a/b\n0::/c\n");
	put("mount/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("mount/memory/a/b/memory.usage_in_bytes", "77\n");
	expect(UINT64_MAX, UINT64_MAX);
	put("mount/memory/a/memory.limit_in_bytes", "5000\n");
	put("mount/memory/a/memory.usage_in_bytes", "4000\n");
	put("mount/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
	expect(5000, 1500);
}

static void a_path_of_the_host_is_the_mounts_own(void **state)
{
	put("list", "9:memory:/docker/0123\n");
	put("mount/memory/memory.limit_in_bytes", "600\n");
	put("mount/memory/memory.usage_in_bytes", "700\n");
	expect(600, 0);
}

static void nothing_to_read_is_no_limit(void **state)
{
	expect(UINT64_MAX, UINT64_MAX);
	put("list", "garbage\n::\n0::\n0::/\n3:memory\n1:memory:relative\n:::::\n");
	expect(UINT64_MAX, UINT64_MAX);
	put("mount/memory.max", "many\n");
	expect(UINT64_MAX, UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(version_2_counts_cache_as_free),
		TEST(the_lowest_limit_on_the_way_up_is_taken),
		TEST(version_1_writes_no_limit_as_a_large_number),
		TEST(a_path_of_the_host_is_the_mounts_own),
		TEST(nothing_to_read_is_no_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
