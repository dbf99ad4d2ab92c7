// Files of flows: saved and loaded again, damaged in each byte, cut off, changed meanwhile. Tests
// only.
#include "flow/file.h"

#include "flow/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_byteorder.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { N_ACTIONS = 100, ACTION_STEP = 3001 };
static const uint64_t WALL_MS = 1700000000000;

static char folder[] = "/tmp/flow_file_test.XXXXXX", path[64], new_path[64];

static int make_folder(void **state)
{
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/flows", folder);
	snprintf(new_path, sizeof(new_path), "%s/flows.new", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

// An action is described by its number, and is found again by it.
static void describe(void *ctx, uint32_t action, uint8_t record[FLOW_RECORD_BYTES])
{
	memcpy(record, &action, sizeof(action));
	record[FLOW_RECORD_BYTES - 1] = 0xaa;
}

static const struct flow_save_settings save_settings = {.path = path, .describe = describe};

static void save(struct flow_table *table, uint64_t now)
{
	struct error error = {""};
	struct flow_save *saving = flow_save_open(table, &save_settings, &error);
	int more;

	assert_non_null(saving);
	do
		more = flow_save_step(saving, now, WALL_MS, &error);
	while (more > 0);
	assert_int_equal(more, 0);
	flow_save_close(saving);
	assert_int_equal(access(new_path, F_OK), -1);
}

static int check_all(struct flow_load *load, struct error *error)
{
	int more;

	do
		more = flow_load_check(load, error);
	while (more > 0);
	return more;
}

static int apply_all(struct flow_load *load, struct flow_table *table, uint64_t passed_ms,
	struct error *error)
{
	uint32_t n, meaning;
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(load, &n);
	uint32_t *action = calloc(n + 1, sizeof(*action));
	int more;

	assert_non_null(action);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&meaning, record[i], sizeof(meaning));
		action[i] = meaning;
	}
	const struct flow_load_options options = {.action = action,
		.wall_ms = WALL_MS + passed_ms,
		.keeps_counters = true};
	do
		more = flow_load_apply(load, table, &options, TESTING_HZ, error);
	while (more > 0);
	free(action);
	return more;
}

static struct flow_loaded load(struct flow_table *table, uint64_t passed_ms)
{
	struct error error;
	struct flow_load *loading = flow_load_open(open(path, O_RDONLY), path, &error);

	assert_non_null(loading);
	assert_int_equal(check_all(loading, &error), 0);
	assert_int_equal(apply_all(loading, table, passed_ms, &error), 0);
	const struct flow_loaded loaded = flow_load_result(loading);
	flow_load_close(loading);
	return loaded;
}

static struct flow_table *filled(uint32_t n, uint32_t max)
{
	const struct flow_settings settings = testing_settings(max, max, 2);
	struct flow_table *table = testing_table(&settings);

	for (uint32_t i = 0; i < N_ACTIONS; i++)
		testing_use_action(table, 1 + i * ACTION_STEP);
	for (uint32_t i = 0; i < n; i++) {
		struct flow_change change = {.op = FLOW_ADD,
			.key = testing_key(i % 3 ? 4 : 6, i),
			.action = 1 + testing_below(N_ACTIONS) * ACTION_STEP,
			.life = testing_below(FLOW_LIVES),
			.lasts_ms = testing_below(100000),
			.packets = i % 5 ? testing_random() >> (i % 40) : 0};
		change.bytes = change.packets ? testing_random() : 0;
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
	return table;
}

// Everything that is in one table is in the other, too.
static void expect_same(const struct flow_table *wanted, const struct flow_table *found,
	uint64_t later_ms)
{
	struct flow_usage usage[2];
	struct flow_info a = {.number = 0}, b;

	flow_usage(wanted, &usage[0]);
	flow_usage(found, &usage[1]);
	assert_int_equal(usage[0].four.n, usage[1].four.n);
	assert_int_equal(usage[0].six.n, usage[1].six.n);
	while (flow_next(wanted, a.number + 1, TESTING_HZ, &a)) {
		assert_true(flow_find(found, &a.key, TESTING_HZ, &b));
		assert_int_equal(a.action, b.action);
		assert_int_equal(a.life, b.life);
		assert_int_equal(a.packets, b.packets);
		assert_int_equal(a.bytes, b.bytes);
		if (a.life != FLOW_FIXED_END)
			assert_in_range(b.idle_ms + 200, a.idle_ms + later_ms,
				a.idle_ms + later_ms + 400);
		else if (a.left_ms > later_ms + 200)
			assert_in_range(b.left_ms + later_ms + 200, a.left_ms, a.left_ms + 400);
	}
}

static void what_was_saved_is_loaded_again(void **state)
{
	struct flow_table *table = filled(20000, 20000), *other = filled(0, 20000);

	save(table, TESTING_HZ);
	struct flow_loaded loaded = load(other, 0);
	assert_int_equal(loaded.n_applied, 20000);
	assert_int_equal(loaded.n6, 20000 / 3 + 1);
	assert_int_equal(loaded.n4, 20000 - 20000 / 3 - 1);
	assert_int_equal(loaded.n_refused, 0);
	expect_same(table, other, 0);
	flow_destroy(other);
	other = filled(0, 20000);
	load(other, 30000);
	expect_same(table, other, 30000);
	// Once more: they are replaced, and their counters go on.
	assert_int_equal(load(other, 0).n_applied, 20000);
	flow_destroy(table);
	flow_destroy(other);
}

static void no_flow_is_lost_or_saved_twice_while_others_change(void **state)
{
	struct flow_table *table = filled(20000, 30000), *other = filled(0, 40000);
	struct flow_save *saving = flow_save_open(table, &save_settings, NULL);
	struct flow_change change = {.action = 1};
	struct flow_info info;

	for (uint32_t i = 0; flow_save_step(saving, TESTING_HZ, WALL_MS, NULL) > 0; i++)
		for (uint32_t k = 0; k < 1000; k++) {
			change.op = k % 2 ? FLOW_ADD : FLOW_DELETE;
			change.key = testing_key(4, k % 2 ? 100000 + i * 1000 + k : k * 3 + 1);
			testing_change(table, &change, TESTING_HZ);
		}
	const uint64_t n = flow_save_n(saving);
	flow_save_close(saving);
	const struct flow_loaded loaded = load(other, 0);
	struct flow_usage usage;
	flow_usage(other, &usage);
	assert_int_equal(loaded.n4 + loaded.n6, n);
	assert_int_equal(usage.four.n + usage.six.n, n); // none twice
	for (uint32_t i = 3000; i < 20000; i++) {        // none of the others lost
		struct flow_key key = testing_key(i % 3 ? 4 : 6, i);
		assert_true(flow_find(other, &key, TESTING_HZ, &info));
	}
	flow_destroy(table);
	flow_destroy(other);
}

// Loaded at the moment at which a save of a minute ended.
static void flows_do_not_age_by_the_time_that_saving_took(void **state)
{
	struct flow_table *table = filled(10000, 10000), *other = filled(0, 10000);
	struct flow_save *saving = flow_save_open(table, &save_settings, NULL);
	uint64_t wall_ms = WALL_MS - 60000;

	while (flow_save_step(saving, TESTING_HZ, wall_ms, NULL) > 0)
		wall_ms = MIN_OF(wall_ms + 20000, WALL_MS);
	flow_save_close(saving);
	load(other, 0);
	expect_same(table, other, 0);
	flow_destroy(table);
	flow_destroy(other);
}

static void an_empty_table_is_saved_and_loaded(void **state)
{
	struct flow_table *table = filled(0, 10);

	save(table, TESTING_HZ);
	assert_int_equal(load(table, 0).n_applied, 0);
	flow_destroy(table);
}

static void what_does_not_fit_is_refused_and_counted(void **state)
{
	struct flow_table *table = filled(3000, 3000), *other = filled(0, 500);

	save(table, TESTING_HZ);
	const struct flow_loaded loaded = load(other, 0);
	assert_int_equal(loaded.n_applied, 1000);
	assert_int_equal(loaded.n_refused, 2000);
	assert_int_equal(loaded.first_error, -ENOSPC);
	assert_in_range(loaded.first_refused, 501, 3000);
	flow_destroy(table);
	flow_destroy(other);
}

static void flows_without_an_action_here_are_refused_one_by_one(void **state)
{
	struct flow_table *table = filled(3000, 3000), *other = filled(0, 3000);
	struct error error;
	uint32_t n;

	save(table, TESTING_HZ);
	struct flow_load *loading = flow_load_open(open(path, O_RDONLY), path, &error);
	assert_int_equal(check_all(loading, &error), 0);
	uint8_t(*record)[FLOW_RECORD_BYTES] = (void *)flow_load_actions(loading, &n);
	memset(record[1], 0, sizeof(record[1])); // as the caller would: apply_all gives it 0
	assert_int_equal(apply_all(loading, other, 0, &error), 0);
	const struct flow_loaded loaded = flow_load_result(loading);
	assert_int_equal(loaded.n_applied + loaded.n_refused, 3000);
	assert_in_range(loaded.n_refused, 3000 / N_ACTIONS / 2, 3000 / N_ACTIONS * 2);
	assert_int_equal(loaded.first_error, -ENODEV);
	assert_int_equal(loaded.refused_action, 1);
	assert_in_range(loaded.first_refused, 2, 3000);
	flow_load_close(loading);
	flow_destroy(table);
	flow_destroy(other);
}

// A file of three flows and two actions in memory.
enum { SMALL_FLOWS = 3, SMALL_ACTIONS = 2 };
struct small {
	struct file_header header;
	struct file_flow flow[SMALL_FLOWS];
	uint8_t action[SMALL_ACTIONS][FILE_RECORD_BYTES];
};

static struct small small_file(void)
{
	struct small file = {.header = {.n_flows = rte_cpu_to_le_64(SMALL_FLOWS),
				     .n_actions = rte_cpu_to_le_32(SMALL_ACTIONS),
				     .saved_ms = rte_cpu_to_le_64(WALL_MS)}};

	for (unsigned i = 0; i < SMALL_FLOWS; i++) {
		struct flow_info info = {.key = testing_key(i ? 4 : 6, i),
			.life = i,
			.packets = i * 1000,
			.bytes = i * 100000};
		file_flow_write(&file.flow[i], &info, i % SMALL_ACTIONS);
	}
	return file;
}

static void seal(struct small *file)
{
	const size_t n = sizeof(*file) - sizeof(file->header);

	file->header.records_crc = rte_cpu_to_le_32(file_crc(0, file->flow, n));
	file_header_seal(&file->header);
}

// Loads from memory. 0, or what was answered; the table is as before then.
static int load_bytes(const void *bytes, size_t n, struct flow_table *table, struct error *error)
{
	int fd = memfd_create("flows", 0), err = -1;
	struct flow_usage before, after;

	flow_usage(table, &before);
	assert_int_equal(write(fd, bytes, n), n);
	struct flow_load *loading = flow_load_open(fd, "it", error);
	if (loading)
		err = check_all(loading, error);
	if (!err)
		err = apply_all(loading, table, 0, error);
	flow_load_close(loading);
	flow_usage(table, &after);
	if (err)
		assert_memory_equal(&before, &after, sizeof(before));
	return err;
}

static void a_file_that_is_damaged_in_any_byte_is_refused(void **state)
{
	struct flow_table *table = filled(5, 100);
	struct small file = small_file();
	struct error error;

	seal(&file);
	for (size_t at = 0; at < sizeof(file); at++)
		for (unsigned flip = 1; flip < 256; flip *= 16) {
			struct small damaged = file;
			((uint8_t *)&damaged)[at] ^= flip;
			error.text[0] = '\0';
			assert_int_not_equal(load_bytes(&damaged, sizeof(damaged), table, &error),
				0);
			assert_int_equal(strncmp(error.text, "it", 2), 0);
		}
	assert_int_equal(load_bytes(&file, sizeof(file), table, &error), 0);
	flow_destroy(table);
}

static void a_file_that_is_cut_off_or_longer_is_refused(void **state)
{
	struct flow_table *table = filled(5, 100);
	uint8_t bytes[sizeof(struct small) + 64] = {0};
	struct small file = small_file();
	struct error error;

	seal(&file);
	memcpy(bytes, &file, sizeof(file));
	for (size_t n = 0; n < sizeof(bytes); n++)
		if (n != sizeof(file))
			assert_int_not_equal(load_bytes(bytes, n, table, &error), 0);
	assert_string_equal(error.text,
		"it has 447 bytes: expected 384, for 3 flows and 2 actions");
	flow_destroy(table);
}

static void flows_that_cannot_be_are_refused(void **state)
{
	static const struct {
		size_t offset; // in the record of flow 3, an IPv4 flow
		uint8_t byte;
		const char *text;
	} row[] = {
		{offsetof(struct file_flow, src) + 4, 1,
			"it: flow 3: bytes after an IPv4 address are not 0"},
		{offsetof(struct file_flow, dst) + 15, 1,
			"it: flow 3: bytes after an IPv4 address are not 0"},
		{offsetof(struct file_flow, vrf) + 1, 0x10,
			"it: flow 3: VRF 4306 of a flow: expected 0 to 4095"},
		{offsetof(struct file_flow, kind), 10, "it: flow 3: kind 0x0a"},
		{offsetof(struct file_flow, kind), 0x82, "it: flow 3: kind 0x82"},
		{offsetof(struct file_flow, proto), 47, "it: flow 3: protocol 47 has no ports"},
		{offsetof(struct file_flow, action), 2, "it: flow 3: action 2 of 2"},
		{offsetof(struct file_flow, time_ms) + 3, 0xff,
			"it: flow 3: a time of 4278190080 ms"},
		{offsetof(struct file_flow, packets) + 7, 0x80,
			"it: flow 3: 9223372036854777808 packets with 200000 bytes"},
	};
	struct flow_table *table = filled(5, 100);
	struct error error;

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct small file = small_file();
		((uint8_t *)&file.flow[2])[row[i].offset] = row[i].byte;
		seal(&file);
		assert_int_equal(load_bytes(&file, sizeof(file), table, &error), -EINVAL);
		assert_string_equal(error.text, row[i].text);
	}
	struct small file = small_file();
	seal(&file);
	file.header.version = rte_cpu_to_le_32(2);
	file.header.header_crc =
		rte_cpu_to_le_32(file_crc(0, &file, offsetof(struct file_header, header_crc)));
	assert_int_not_equal(load_bytes(&file, sizeof(file), table, &error), 0);
	assert_string_equal(error.text, "it has version 2: expected 1");
	flow_destroy(table);
}

static void a_file_that_changes_while_it_is_loaded_is_noticed(void **state)
{
	struct flow_table *table = filled(5000, 5000), *other = filled(0, 5000);
	struct error error;
	uint32_t action[N_ACTIONS];
	const struct flow_load_options options = {.action = action};

	for (unsigned i = 0; i < N_ACTIONS; i++)
		action[i] = 1;
	save(table, TESTING_HZ);
	int fd = open(path, O_RDWR);
	struct flow_load *loading = flow_load_open(fd, path, &error);
	assert_int_equal(flow_load_apply(loading, other, &options, 0, &error), -EINVAL);
	assert_int_equal(check_all(loading, &error), 0);
	assert_int_equal(flow_load_apply(loading, other, &options, 0, &error), 1);
	assert_int_equal(pwrite(fd, "\x11", 1, 64 * 3000), 1);
	assert_int_equal(flow_load_apply(loading, other, &options, 0, &error), -EINVAL);
	assert_non_null(
		strstr(error.text, "has changed while it was loaded; 2048 flows were applied"));
	flow_load_close(loading);
	flow_destroy(table);
	flow_destroy(other);
}

static void a_disk_that_is_full_leaves_the_old_file(void **state)
{
	struct flow_table *table = filled(100, 5000), *full = filled(5000, 5000);
	const struct rlimit narrow = {.rlim_cur = 64 * 2500, .rlim_max = RLIM_INFINITY};
	struct rlimit before;
	struct error error;
	int more;

	save(table, TESTING_HZ);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &narrow), 0);
	struct flow_save *saving = flow_save_open(full, &save_settings, &error);
	do
		more = flow_save_step(saving, TESTING_HZ, WALL_MS, &error);
	while (more > 0);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(more, -EFBIG);
	assert_non_null(strstr(error.text, "flows.new: File too large"));
	flow_save_close(saving);
	assert_int_equal(access(new_path, F_OK), -1);
	assert_int_equal(load(full, 0).n_applied, 100);
	flow_destroy(table);
	flow_destroy(full);
}

static void the_flows_of_a_file_are_deleted(void **state)
{
	struct flow_table *table = filled(3000, 3000), *other = filled(3100, 4000);
	const struct flow_load_options options = {.deletes = true};
	struct flow_usage usage;
	struct error error;
	int more;

	save(table, TESTING_HZ);
	struct flow_load *loading = flow_load_open(open(path, O_RDONLY), path, &error);
	assert_int_equal(check_all(loading, &error), 0);
	do
		more = flow_load_apply(loading, other, &options, TESTING_HZ, &error);
	while (more > 0);
	assert_int_equal(flow_load_result(loading).n_applied, 3000);
	flow_usage(other, &usage);
	assert_int_equal(usage.four.n + usage.six.n, 100);
	flow_load_close(loading);
	flow_destroy(table);
	flow_destroy(other);
}

static void describe_vrf(void *ctx, uint16_t vrf, uint8_t record[FLOW_RECORD_BYTES])
{
	record[0] = 0x80;
	memcpy(record + 4, &vrf, sizeof(vrf));
}

// VRF 7 has another number when the file is loaded.
static void flows_follow_their_vrf(void **state)
{
	static const struct flow_save_settings settings = {.path = path,
		.describe = describe,
		.describe_vrf = describe_vrf};
	struct flow_table *table = filled(0, 10), *other = filled(0, 10);
	const uint32_t action[] = {1, 0};
	uint16_t vrf[4096] = {[7] = 300};
	const struct flow_load_options options = {.action = action, .vrf = vrf};
	struct error error;
	struct flow_info info;
	uint32_t n;

	for (unsigned i = 0; i < 4; i++) {
		struct flow_change change = {.key = testing_key(i % 2 ? 4 : 6, i), .action = 1};
		struct flow_tuple tuple;
		flow_key_tuple(&change.key, &tuple);
		tuple.vrf = i < 2 ? 7 : 0;
		assert_int_equal(flow_key_set(&change.key, &tuple, NULL), 0);
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
	struct flow_save *saving = flow_save_open(table, &settings, NULL);
	while (flow_save_step(saving, TESTING_HZ, WALL_MS, NULL) > 0)
		continue;
	flow_save_close(saving);
	struct flow_load *loading = flow_load_open(open(path, O_RDONLY), path, &error);
	assert_int_equal(check_all(loading, &error), 0);
	assert_true(flow_load_has_vrf(loading, 7) && flow_load_has_vrf(loading, 0));
	assert_false(flow_load_has_vrf(loading, 6));
	assert_int_equal(flow_load_result(loading).max_action, 0);
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(loading, &n);
	assert_int_equal(n, 2);
	assert_int_equal(record[1][0], 0x80);
	assert_int_equal(record[1][4], 7);
	assert_int_equal(flow_load_apply(loading, other, &options, TESTING_HZ, &error), 0);
	flow_load_close(loading);
	unsigned n_moved = 0;
	for (info.number = 0; flow_next(other, info.number + 1, TESTING_HZ, &info);) {
		struct flow_tuple tuple;
		flow_key_tuple(&info.key, &tuple);
		n_moved += tuple.vrf == 300;
		assert_true(tuple.vrf == 300 || tuple.vrf == 0);
	}
	assert_int_equal(n_moved, 2);
	assert_true(flow_vrf_used(other, 300) && flow_vrf_used(other, 0));
	assert_false(flow_vrf_used(other, 7));
	while (flow_next(other, 1, TESTING_HZ, &info)) {
		const struct flow_change change = {.op = FLOW_DELETE, .key = info.key};
		assert_int_equal(testing_change(other, &change, TESTING_HZ), 0);
	}
	assert_false(flow_vrf_used(other, 300) || flow_vrf_used(other, 0));
	flow_destroy(table);
	flow_destroy(other);
}

static void saving_to_a_pipe_that_nobody_reads_is_refused(void **state)
{
	struct flow_table *table = filled(5, 100);
	struct error error;

	assert_int_equal(mkfifo(new_path, 0600), 0);
	assert_null(flow_save_open(table, &save_settings, &error));
	assert_non_null(strstr(error.text, "cannot create "));
	assert_int_equal(unlink(new_path), 0); // it is still there
	flow_destroy(table);
}

static void write_file(const char *name, const char *text, size_t n)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

static void expect_file(const char *name, const char *wanted)
{
	char text[16] = "";
	const int fd = open(name, O_RDONLY);

	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(wanted));
	assert_string_equal(text, wanted);
	close(fd);
}

static void what_has_the_name_of_an_incomplete_file_stays(void **state)
{
	struct flow_table *table = filled(5, 100);
	struct error error;
	char other[80];

	snprintf(other, sizeof(other), "%s/other", folder);
	write_file(other, "mine", 4);
	assert_int_equal(symlink(other, new_path), 0);
	assert_null(flow_save_open(table, &save_settings, &error));
	assert_non_null(strstr(error.text, "flows.new: it exists; if nothing else needs it"));
	expect_file(other, "mine");
	assert_int_equal(unlink(new_path), 0); // it is still there
	assert_int_equal(rename(other, new_path), 0);
	assert_null(flow_save_open(table, &save_settings, &error));
	expect_file(new_path, "mine");
	assert_int_equal(unlink(new_path), 0);
	// One that is being written is not removed, but one whose program was killed.
	struct flow_save *saving = flow_save_open(table, &save_settings, &error);
	assert_non_null(saving);
	assert_null(flow_save_open(table, &save_settings, &error));
	flow_save_close(saving);
	assert_int_equal(access(new_path, F_OK), -1);
	write_file(new_path, (char[100]){[99] = 1}, 100);
	save(table, TESTING_HZ);
	flow_destroy(table);
}

static void a_file_that_was_replaced_meanwhile_is_not_removed(void **state)
{
	struct flow_table *table = filled(5, 100);
	struct error error;
	struct flow_save *saving = flow_save_open(table, &save_settings, &error);
	int more;

	assert_int_equal(unlink(new_path), 0);
	write_file(new_path, "mine", 4);
	do
		more = flow_save_step(saving, TESTING_HZ, WALL_MS, &error);
	while (more > 0);
	assert_int_equal(more, -EEXIST);
	assert_non_null(strstr(error.text, "flows.new has been replaced by another file"));
	flow_save_close(saving);
	expect_file(new_path, "mine");
	assert_int_equal(unlink(new_path), 0);
	flow_destroy(table);
}

// One flow with a high number: a step looks at a bounded number of others.
static void a_table_that_is_nearly_empty_is_saved_in_slices(void **state)
{
	struct flow_table *table = filled(0, 300000);
	struct flow_change change = {.op = FLOW_ADD, .action = 1};
	uint32_t from = 1;
	struct flow_info info;
	unsigned n = 0;

	for (uint32_t i = 0; i < 300000; i++) {
		change.key = testing_key(4, i);
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
	change.op = FLOW_DELETE;
	for (uint32_t i = 0; i < 299999; i++) {
		change.key = testing_key(4, i);
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
	assert_false(flow_next_within(table, &from, 1000, TESTING_HZ, &info));
	assert_int_equal(from, 1001);
	while (from)
		n += flow_next_within(table, &from, 1000, TESTING_HZ, &info);
	assert_int_equal(n, 1);
	save(table, TESTING_HZ);
	assert_int_equal(load(table, 0).n_applied, 1);
	flow_destroy(table);
}

// Each step of the check reads a bounded number of actions; each step of saving gives some back;
// what a load holds is freed in parts.
static void a_file_of_many_actions_takes_many_steps(void **state)
{
	enum { N = 150000, LEAST_STEPS = N / 2048 };
	const struct flow_settings settings = testing_settings(N, 0, 1);
	struct flow_table *table = testing_table(&settings);
	struct error error;
	unsigned n_steps = 0, n_parts = 0;
	int more;

	testing_use_actions(table, N);
	for (uint32_t i = 0; i < N; i++) {
		struct flow_change change = {.key = testing_key(4, i), .action = 1 + i};
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
	save(table, TESTING_HZ);
	struct flow_load *loading = flow_load_open(open(path, O_RDONLY), path, &error);
	assert_non_null(loading);
	do
		more = flow_load_check(loading, &error);
	while (more > 0 && ++n_steps);
	assert_int_equal(more, 0);
	assert_in_range(n_steps, 2 * LEAST_STEPS, 2 * LEAST_STEPS + 2); // flows, and actions
	assert_int_equal(apply_all(loading, table, 0, &error), 0);
	while (flow_load_free_some(loading))
		n_parts++;
	assert_in_range(n_parts, 2, 4); // of 4 MiB
	assert_int_equal(flow_load_result(loading).n_applied, N);
	flow_load_close(loading);
	flow_destroy(table);
}

static void the_checksum_is_crc32c(void **state)
{
	assert_int_equal(file_crc(0, "123456789", 9), 0xe3069283);
	assert_int_equal(file_crc(file_crc(0, "1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_saved_is_loaded_again),
		cmocka_unit_test(no_flow_is_lost_or_saved_twice_while_others_change),
		cmocka_unit_test(flows_do_not_age_by_the_time_that_saving_took),
		cmocka_unit_test(an_empty_table_is_saved_and_loaded),
		cmocka_unit_test(what_does_not_fit_is_refused_and_counted),
		cmocka_unit_test(flows_without_an_action_here_are_refused_one_by_one),
		cmocka_unit_test(a_file_that_is_damaged_in_any_byte_is_refused),
		cmocka_unit_test(a_file_that_is_cut_off_or_longer_is_refused),
		cmocka_unit_test(flows_that_cannot_be_are_refused),
		cmocka_unit_test(a_file_that_changes_while_it_is_loaded_is_noticed),
		cmocka_unit_test(a_disk_that_is_full_leaves_the_old_file),
		cmocka_unit_test(the_flows_of_a_file_are_deleted),
		cmocka_unit_test(flows_follow_their_vrf),
		cmocka_unit_test(saving_to_a_pipe_that_nobody_reads_is_refused),
		cmocka_unit_test(what_has_the_name_of_an_incomplete_file_stays),
		cmocka_unit_test(a_file_that_was_replaced_meanwhile_is_not_removed),
		cmocka_unit_test(a_table_that_is_nearly_empty_is_saved_in_slices),
		cmocka_unit_test(a_file_of_many_actions_takes_many_steps),
		cmocka_unit_test(the_checksum_is_crc32c),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
