// VXLAN devices as members of bridges: remote ends, flood lists, addresses behind them, also while
// a worker reads them (for ThreadSanitizer).
#include "mac/testing.h"

#include "rcu/rcu_fast.h"

#include <errno.h>
#include <pthread.h>

enum { HZ = 1 << 30, DEVICE = 7, MEMBER = MAC_FIRST_TUNNEL + DEVICE, PORT = 3 };
#ifdef __SANITIZE_THREAD__
enum { CHANGES = 200 };
#else
enum { CHANGES = 5000 };
#endif

static struct mac_table *table;
static struct rcu *rcu;
static uint32_t known_end, other_end; // 10.0.0.1 and 10.0.0.3
static struct mac_info told_linux;

static uint32_t end_of(void *ctx, uint16_t member, const struct wire_addr *end)
{
	assert_int_equal(member, MEMBER);
	assert_int_equal(end->family, 4);
	return end->bytes[3] == 1 ? known_end : end->bytes[3] == 3 ? other_end : 0;
}

static void note_unknown(void *ctx, const struct mac_info *info)
{
	told_linux = *info;
}

static struct mac_member members[] = {
	{.port = PORT, .flags = MAC_LEARNS | MAC_FLOODS},
	{.port = MEMBER, .flags = MAC_LEARNS | MAC_FLOODS},
};

static void commit(const struct mac_bridge *bridge, unsigned n)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, bridge, n, &pending, NULL), 0);
	mac_commit(table, pending, HZ);
}

static struct mac_bridge bridge_of(unsigned flag)
{
	members[0].flags = members[1].flags = MAC_LEARNS | MAC_FLOODS | flag;
	return (struct mac_bridge){.name = "br0",
		.linux_id = flag ? 1 : 0,
		.ageing_s = 300,
		.max = 100,
		.member = members,
		.n_members = 2};
}

static int open_table(void **state)
{
	rcu = rcu_create(1, NULL);
	const struct mac_settings settings = {.hz = HZ,
		.n_workers = 1,
		.rcu = rcu,
		.unknown = note_unknown,
		.remote = end_of};
	const struct mac_bridge bridge = bridge_of(0);

	assert_int_equal(mac_open(&table, &settings, NULL), 0);
	commit(&bridge, 1);
	return 0;
}

static int close_table(void **state)
{
	mac_close(table);
	rcu_destroy(rcu);
	return 0;
}

static uint32_t hold(uint32_t vtep)
{
	const struct mac_remote remote = {.vtep = vtep, .member = MEMBER};
	uint32_t number;

	assert_int_equal(mac_remote_hold(table, &remote, &number, NULL), 0);
	assert_int_equal(mac_live(table)->remote[number].vtep, vtep);
	return number;
}

static struct mac_found look_up(unsigned number)
{
	const struct mac_view *view = mac_live_view(mac_live(table));
	const uint64_t key = number ? testing_key(1, number) : (uint64_t)1 << 48;
	struct mac_found found;

	mac_lookup(view->slots, &key, 1, &found);
	return found;
}

static void tell(unsigned number, uint8_t end)
{
	const struct mac_told told = {.key = testing_key(1, number),
		.port = MEMBER,
		.tick = 1,
		.family = 4,
		.end = {10, 0, 0, end}};

	assert_true(mac_tell(mac_live(table), 0, &told));
	mac_poll(table, HZ);
}

static void one_remote_end_has_one_number(void **state)
{
	const uint32_t a = hold(5), b = hold(6);
	struct mac_remote is = {.vtep = 5, .member = MEMBER};

	assert_int_not_equal(a, b);
	assert_int_equal(hold(5), a);
	assert_int_equal(mac_remote_find(table, &is), a);
	is.has_vni = true;
	assert_int_equal(mac_remote_find(table, &is), 0);
	mac_remote_release(table, a);
	assert_true(mac_remote_at(table, a, &is));
	assert_int_equal(is.vtep, 5);
	mac_remote_release(table, a);
	assert_false(mac_remote_at(table, a, &is));
	assert_int_not_equal(hold(8), a); // a worker may have it
}

static void floods_find_the_device_of_their_bridge(void **state)
{
	const uint32_t remotes[] = {hold(5), hold(6)};
	const struct mac_found found = look_up(0);

	assert_non_null(found.slot);
	assert_int_equal(found.flags, MAC_STATIC | MAC_TUNNEL);
	assert_int_equal(found.port, MEMBER);
	assert_null(mac_live_flood(mac_live(table), MEMBER));
	assert_int_equal(mac_set_flood(table, MEMBER, remotes, 2, NULL), 0);
	assert_int_equal(mac_live_flood(mac_live(table), MEMBER)->n, 2);
	assert_int_equal(mac_live_flood(mac_live(table), MEMBER)->remote[1], remotes[1]);
	assert_int_equal(mac_set_flood(table, MEMBER, NULL, 0, NULL), 0);
	assert_null(mac_live_flood(mac_live(table), MEMBER));
	// No port gets its copy as a port.
	assert_int_equal(mac_live_view(mac_live(table))->port[PORT].copies[MAC_UNKNOWN][0], 0);
	assert_int_equal(mac_live_view(mac_live(table))->port[MEMBER].copies[MAC_UNKNOWN][0],
		1 << PORT);
}

static void addresses_are_learnt_behind_the_ends_they_come_from(void **state)
{
	const struct mac_choice all = {1, MAC_PORTS}, here = {1, MEMBER}, port = {1, PORT};
	struct mac_info info;
	uint32_t place = 0;

	known_end = hold(5);
	assert_int_equal(mac_set_flood(table, MEMBER, &known_end, 1, NULL), 0);
	tell(1, 1);
	tell(2, 2); // of which nobody knows
	assert_int_equal(mac_page(table, &all, HZ, &place, &info, 1), 1);
	assert_int_equal(info.port, MEMBER);
	assert_int_equal(info.remote, known_end);
	assert_null(look_up(2).slot);
	assert_int_equal(look_up(1).flags, MAC_REMOTE);
	assert_int_equal(look_up(1).port, known_end);
	other_end = hold(6);
	tell(1, 3); // it moves
	assert_int_equal(look_up(1).port, other_end);
	assert_int_equal(mac_flush(table, &port), 0);
	assert_int_equal(mac_flush(table, &here), 1);
	assert_non_null(look_up(0).slot);
}

static void what_is_learnt_goes_with_its_remote_end(void **state)
{
	const struct mac_bridge bridge = bridge_of(0);

	known_end = hold(5);
	assert_int_equal(mac_set_flood(table, MEMBER, &known_end, 1, NULL), 0);
	tell(1, 1);
	commit(&bridge, 1);
	assert_non_null(look_up(1).slot);
	assert_int_equal(mac_set_flood(table, MEMBER, NULL, 0, NULL), 0);
	commit(&bridge, 1);
	assert_null(look_up(1).slot);
}

static void linux_is_told_of_the_end_and_moves_addresses(void **state)
{
	const struct mac_bridge bridge = bridge_of(MAC_OF_LINUX);
	struct mac_fixed at = {.mac = {{2, 0, 0, 0, 0, 1}}};
	uint16_t domain;
	uint32_t n;
	struct mac_member member;

	commit(&bridge, 1);
	tell(1, 9);
	assert_int_equal(told_linux.port, MEMBER);
	assert_int_equal(told_linux.end.family, 4);
	assert_int_equal(told_linux.end.bytes[3], 9);
	at.port = MAC_AT_REMOTE + hold(5);
	assert_true(mac_follow(table, 1, &at, HZ));
	assert_int_equal(look_up(1).flags, MAC_REMOTE | MAC_LINUX);
	at.port = MAC_AT_REMOTE + hold(6);
	assert_true(mac_follow(table, 1, &at, HZ));
	assert_int_equal(look_up(1).port, at.port - MAC_AT_REMOTE);
	assert_true(mac_member(table, MEMBER, &member, &domain, &n));
	assert_int_equal(n, 1);
	at = (struct mac_fixed){.mac = at.mac, .port = PORT};
	assert_true(mac_follow(table, 1, &at, HZ));
	assert_int_equal(look_up(1).flags, MAC_LINUX);
	assert_true(mac_member(table, MEMBER, &member, &domain, &n));
	assert_int_equal(n, 0);
	mac_unfollow(table, 1, &(struct mac_fixed){.mac = {{0}}}); // hostile: not an address
	assert_non_null(look_up(0).slot);
}

// 4096 devices, and 64,000 remote ends and addresses behind them, in less than 8 MiB.
static void many_take_little_memory(void **state)
{
	enum { ADDRESSES = 64000, DEVICES = MAC_TUNNELS };
	const size_t bytes = mac_bytes(ADDRESSES + DEVICES) +
	                     (ADDRESSES + 1) * sizeof(struct mac_remote) +
	                     MAC_MEMBERS * sizeof(struct mac_port) +
	                     DEVICES * sizeof(struct mac_flood) + ADDRESSES * sizeof(uint32_t);

	assert_true(bytes < 8 << 20);
	for (uint32_t i = 1; i <= ADDRESSES; i++)
		assert_int_equal(hold(i), i);
	assert_true(mac_worker_bytes(table) > ADDRESSES * sizeof(struct mac_remote));
	assert_true(mac_worker_bytes(table) < 8 << 20);
}

struct reader {
	const struct rcu_readers *readers;
	uint64_t n_read, n_wrong;
	int stop;
};

// As a worker floods and forwards.
static void *read_all(void *arg)
{
	struct reader *reader = arg;

	rcu_reader_online(reader->readers, 0);
	while (!__atomic_load_n(&reader->stop, __ATOMIC_RELAXED)) {
		const struct mac_flood *flood = mac_live_flood(mac_live(table), MEMBER);
		const struct mac_found found = look_up(1);

		for (uint32_t i = 0; flood && i < flood->n; i++)
			reader->n_wrong +=
				mac_live_remote(mac_live(table), flood->remote[i])->vtep == 0;
		if (found.slot && found.flags & MAC_REMOTE)
			reader->n_wrong +=
				mac_live_remote(mac_live(table), found.port)->member != MEMBER;
		__atomic_store_n(&reader->n_read, reader->n_read + 1, __ATOMIC_RELAXED);
		rcu_reader_report(reader->readers, 0);
	}
	rcu_reader_offline(reader->readers, 0);
	return NULL;
}

static void change(unsigned i)
{
	struct mac_fixed at = {.mac = {{2, 0, 0, 0, 0, 1}}, .port = MAC_AT_REMOTE + hold(i)};

	assert_true(mac_follow(table, 1, &at, HZ));
	const uint32_t number = at.port - MAC_AT_REMOTE;

	assert_int_equal(mac_set_flood(table, MEMBER, &number, 1, NULL), 0);
	if (i > 1)
		mac_remote_release(table, mac_remote_find(table, &(struct mac_remote){.vtep = i - 1,
									 .member = MEMBER}));
}

static void workers_read_while_ends_change(void **state)
{
	const struct mac_bridge bridge = bridge_of(MAC_OF_LINUX);
	struct reader reader = {.readers = rcu_readers(rcu)};
	pthread_t thread;

	commit(&bridge, 1);
	assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
	for (unsigned i = 1; i <= CHANGES || !__atomic_load_n(&reader.n_read, __ATOMIC_RELAXED);
		i++)
		change(i);
	__atomic_store_n(&reader.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(reader.n_wrong, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_table, close_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_remote_end_has_one_number),
		TEST(floods_find_the_device_of_their_bridge),
		TEST(addresses_are_learnt_behind_the_ends_they_come_from),
		TEST(what_is_learnt_goes_with_its_remote_end),
		TEST(linux_is_told_of_the_end_and_moves_addresses),
		TEST(many_take_little_memory),
		TEST(workers_read_while_ends_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
