// Which messages of a vhost-user peer are refused before DPDK's library has them.
#include "port/vhost_rules.h"

#include "base/bits.h"

#include <fcntl.h>
#include <linux/virtio_net.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20, SLOTS = 256, AVAILABLE = 16 * SLOTS, USED = AVAILABLE + 1024 };
static const uint64_t USER = 0x7f0000000000, MULTIQUEUE = 1ull << VIRTIO_NET_F_MQ;
static const uint64_t MERGEABLE = 1ull << VIRTIO_NET_F_MRG_RXBUF, OFFERED = 1ull << 22 | 1ull << 15;

struct region {
	uint64_t physical, bytes, user, offset;
};

struct ring_at {
	uint32_t ring, flags;
	uint64_t descriptors, used, available, log;
};

static struct vhost_rules rules;
static int memory = -1;

static const char *say(uint32_t request, const void *payload, uint32_t bytes, int file)
{
	const struct vhost_message message = {request, bytes, payload, &file, file >= 0};
	const char *why = vhost_rules_check(&rules, &message);

	if (!why)
		vhost_rules_note(&rules, &message);
	return why;
}

static const char *say_value(uint32_t request, uint64_t value)
{
	return say(request, &value, sizeof(value), -1);
}

static const char *say_number(uint32_t request, uint32_t ring, uint32_t value)
{
	const uint32_t words[2] = {ring, value};

	return say(request, words, sizeof(words), -1);
}

static const char *say_event(uint32_t request, uint64_t ring)
{
	return say(request, &ring, sizeof(ring), memory);
}

static const char *say_memory_at(struct region region, int file)
{
	struct {
		uint32_t n, padding;
		struct region region;
	} table = {1, 0, region};

	return say(VHOST_MSG_SET_MEM_TABLE, &table, sizeof(table), file);
}

static const char *say_memory(void)
{
	return say_memory_at((struct region){0, MIB, USER, 0}, memory);
}

static const char *say_addresses(uint32_t ring, uint64_t at)
{
	const struct ring_at message = {ring, 0, at, at + USED, at + AVAILABLE, 0};

	return say(VHOST_MSG_SET_VRING_ADDR, &message, sizeof(message), -1);
}

static void place(uint32_t ring)
{
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, ring, SLOTS));
	assert_null(say_number(VHOST_MSG_SET_VRING_BASE, ring, 65535));
	assert_null(say_addresses(ring, USER));
}

static int begin(void **state)
{
	if (memory < 0)
		memory = memfd_create("peer", MFD_CLOEXEC);
	vhost_rules_begin(&rules, OFFERED, 9);
	return memory < 0 || ftruncate(memory, MIB) ||
	       say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE) || say_memory();
}

static void expect(const char *why, const char *words)
{
	assert_non_null(why);
	if (!strstr(why, words))
		fail_msg("found \"%s\", expected \"%s\"", why, words);
}

static void a_driver_that_keeps_to_the_order_is_served(void **state)
{
	for (unsigned turn = 0; turn < 3; turn++) {
		for (uint32_t ring = 0; ring < 4; ring++) {
			assert_null(say_number(VHOST_MSG_SET_VRING_ENABLE, ring, 1));
			assert_null(say_event(VHOST_MSG_SET_VRING_CALL, ring));
			place(ring);
			assert_null(say_event(VHOST_MSG_SET_VRING_KICK, ring));
			assert_null(say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE));
		}
		assert_null(say_memory());
		for (uint32_t ring = 0; ring < 4; ring++)
			assert_null(say_number(VHOST_MSG_GET_VRING_BASE, ring, 0));
		assert_null(say_value(VHOST_MSG_SET_FEATURES, 0));
		assert_null(say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE));
	}
	assert_null(say(1, NULL, 0, -1));
	assert_null(say_value(VHOST_MSG_SET_PROTOCOL_FEATURES, 9));
	assert_null(say_value(VHOST_MSG_SET_STATUS, 15));
	assert_null(say_value(VHOST_MSG_NET_SET_MTU, 1500));
}

static void features_change_only_while_there_are_no_rings(void **state)
{
	expect(say_value(VHOST_MSG_SET_FEATURES, 1ull << 34), "was not offered");
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0, SLOTS));
	expect(say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE | MERGEABLE), "changed its features");
	assert_null(say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE));
	assert_null(say_number(VHOST_MSG_GET_VRING_BASE, 0, 0));
	assert_null(say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE | MERGEABLE));
	expect(say_value(VHOST_MSG_SET_PROTOCOL_FEATURES, 1ull << 12), "protocol features");
}

static void sizes_of_rings_have_limits(void **state)
{
	static const uint32_t bad[] = {0, 1, 16, 33, 300, 32768, 65536, 1u << 31, UINT32_MAX};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		expect(say_number(VHOST_MSG_SET_VRING_NUM, 0, bad[i]), "power of two from 32");
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0, 32));
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0, 16384));
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0, 4096));
	for (uint32_t ring = 1; ring < 32; ring++)
		assert_null(say_number(VHOST_MSG_SET_VRING_NUM, ring, 4096));
	expect(say_number(VHOST_MSG_SET_VRING_NUM, 32, 32), "131072 slots");
	expect(say_number(VHOST_MSG_SET_VRING_NUM, 256, 32), "above 255");
	assert_int_equal(begin(NULL), 0);
	assert_null(say_value(VHOST_MSG_SET_FEATURES, MULTIQUEUE | MERGEABLE));
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0, 1024));
	expect(say_number(VHOST_MSG_SET_VRING_NUM, 1, 2048), "more than 1024");
	assert_int_equal(begin(NULL), 0);
	assert_null(say_value(VHOST_MSG_SET_FEATURES, 0));
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 1, 256));
	expect(say_number(VHOST_MSG_SET_VRING_NUM, 2, 256), "without multiqueue");
}

static void rings_are_within_memory(void **state)
{
	const uint64_t last = USER + MIB - USED - 6 - 8 * SLOTS;

	expect(say_addresses(0, USER), "before it told its size");
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0, SLOTS));
	expect(say_addresses(0, USER - 4096), "not in its memory");
	expect(say_addresses(0, USER + MIB), "not in its memory");
	expect(say_addresses(0, round_up(last, 16)), "not in its memory");
	expect(say_addresses(0, UINT64_MAX - 15), "not in its memory");
	expect(say_addresses(0, USER + 2), "not aligned");
	assert_null(say_addresses(0, last / 16 * 16));
	assert_null(say_number(VHOST_MSG_SET_VRING_NUM, 0,
		2 * SLOTS)); // its addresses are not known now
	expect(say_event(VHOST_MSG_SET_VRING_KICK, 0), "before it was set up");
	expect(say_number(VHOST_MSG_SET_VRING_BASE, 0, 65536), "above 65535");
}

static void rings_in_use_do_not_change(void **state)
{
	place(3);
	assert_null(say_event(VHOST_MSG_SET_VRING_KICK, 3));
	expect(say_number(VHOST_MSG_SET_VRING_NUM, 3, SLOTS), "in use");
	expect(say_number(VHOST_MSG_SET_VRING_BASE, 3, 0), "in use");
	expect(say_addresses(3, USER), "in use");
	expect(say_memory_at((struct region){0, MIB / 2, USER + MIB, 0}, memory),
		"not in its new memory");
	assert_int_equal(begin(NULL), 0);
	place(3);
	assert_null(say_event(VHOST_MSG_SET_VRING_KICK, 3));
	assert_null(say_number(VHOST_MSG_GET_VRING_BASE, 3, 0));
	expect(say_event(VHOST_MSG_SET_VRING_KICK, 3), "before it was set up");
	expect(say_event(VHOST_MSG_SET_VRING_KICK, 4), "before it was set up");
}

// What the library has not done, such as a message for which it had no memory.
static void what_is_not_noted_is_not_known(void **state)
{
	const uint32_t words[2] = {0, SLOTS};
	const struct vhost_message size = {VHOST_MSG_SET_VRING_NUM, sizeof(words), words, NULL, 0};

	place(0);
	assert_null(vhost_rules_check(&rules, &size));
	expect(say_event(VHOST_MSG_SET_VRING_KICK, 0), "before it was set up");
	expect(say_addresses(0, USER), "before it told its size");
}

static void memory_has_whole_files(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	int other = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(other >= 0);
	expect(say_memory_at((struct region){0, MIB, USER, 0}, other), "not to be written to");
	close(other);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	expect(say_memory_at((struct region){0, MIB, USER, 0}, other), "too short");
	close(other);
	expect(say_memory_at((struct region){0, MIB, USER, 0}, -1), "more or fewer files");
	expect(say_memory_at((struct region){0, MIB, USER, 4096}, memory), "too short");
	expect(say_memory_at((struct region){0, 0, USER, 0}, memory), "valid size");
	expect(say_memory_at((struct region){0, 1ull << 43, USER, 0}, memory), "valid size");
	expect(say_memory_at((struct region){0, MIB, USER, UINT64_MAX - MIB}, memory),
		"valid size");
	expect(say_memory_at((struct region){0, MIB, UINT64_MAX - 4096, 0}, memory), "valid size");
	expect(say_memory_at((struct region){UINT64_MAX - 4096, MIB, USER, 0}, memory),
		"valid size");
}

static void tables_of_memory_are_whole(void **state)
{
	struct {
		uint32_t n, padding;
		struct region regions[9];
	} table = {2, 0, {{0, MIB / 2, USER, 0}, {MIB, MIB / 2, USER + MIB / 2 - 1, MIB / 2}}};
	const int files[9] = {memory, memory};
	struct vhost_message message = {VHOST_MSG_SET_MEM_TABLE, 8 + 64, &table, files, 2};

	expect(vhost_rules_check(&rules, &message), "overlap");
	table.regions[1].user++;
	assert_null(vhost_rules_check(&rules, &message));
	table.regions[1].physical = MIB / 2 - 1;
	expect(vhost_rules_check(&rules, &message), "overlap");
	message.n_bytes--;
	expect(vhost_rules_check(&rules, &message), "too short");
	message.n_bytes = 4;
	expect(vhost_rules_check(&rules, &message), "too short");
	message.n_bytes = sizeof(table);
	expect(vhost_rules_check(&rules, &message), "too long");
	table.n = UINT32_MAX;
	message.n_bytes = 8 + 8 * 32;
	expect(vhost_rules_check(&rules, &message), "too short");
}

static void other_messages_have_their_length_and_range(void **state)
{
	const uint32_t short_one[1] = {0};

	expect(say(VHOST_MSG_SET_VRING_NUM, short_one, sizeof(short_one), -1), "its length");
	expect(say(VHOST_MSG_SET_VRING_ADDR, short_one, 0, -1), "its length");
	expect(say(VHOST_MSG_RESET_OWNER, NULL, 0, -1), "obsolete");
	expect(say_value(VHOST_MSG_SET_STATUS, 256), "above 255");
	expect(say_value(VHOST_MSG_NET_SET_MTU, 67), "MTU");
	expect(say_value(VHOST_MSG_NET_SET_MTU, 65536), "MTU");
	expect(say_value(VHOST_MSG_SET_VRING_CALL, 0), "one file for its events");
	expect(say_event(VHOST_MSG_SET_VRING_ERR, 1 << 8), "one file for its events");
	assert_null(say_value(VHOST_MSG_SET_VRING_ERR, 1 << 8));
	expect(say_number(VHOST_MSG_SET_VRING_ENABLE, 1u << 31, 1), "above 255");
	expect(say_number(VHOST_MSG_GET_VRING_BASE, 256, 0), "above 255");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_driver_that_keeps_to_the_order_is_served, begin),
		cmocka_unit_test_setup(features_change_only_while_there_are_no_rings, begin),
		cmocka_unit_test_setup(sizes_of_rings_have_limits, begin),
		cmocka_unit_test_setup(rings_are_within_memory, begin),
		cmocka_unit_test_setup(rings_in_use_do_not_change, begin),
		cmocka_unit_test_setup(what_is_not_noted_is_not_known, begin),
		cmocka_unit_test_setup(memory_has_whole_files, begin),
		cmocka_unit_test_setup(tables_of_memory_are_whole, begin),
		cmocka_unit_test_setup(other_messages_have_their_length_and_range, begin),
	};

	return cmocka_run_group_tests_name("vhost_rules", tests, NULL, NULL);
}
