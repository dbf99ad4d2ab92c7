// VRFs, compared with lists of routes, and what they share. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct model model[CHURN_VRFS];

static void churn_one_by_one(uint8_t family, unsigned n, size_t wanted)
{
	struct fib *fib = churn_fib(model);

	for (unsigned i = 0; i < n; i++) {
		struct fib_change change = churn_change(&model[1], family, wanted);
		int result = churn_apply(&model[1], &change);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), result);
		churn_check_edges(fib, &model[1], &change.route.prefix);
		churn_check_some(fib, &model[1], family, 2);
	}
	for (unsigned i = 0; i < CHURN_VRFS; i++)
		churn_check_all(fib, &model[i]);
	fib_destroy(fib);
}

static void agrees_with_a_list_after_each_change(void **state)
{
	churn_one_by_one(4, churn_rounds(3000), 60);
	churn_one_by_one(4, churn_rounds(2000), 700);
	churn_one_by_one(6, churn_rounds(1000), 200);
}

// The same few base prefixes in all VRFs, so that prefixes overlap; batches mix VRFs and families.
static void batches_that_mix_vrfs_agree_with_a_list_of_each(void **state)
{
	static struct model before[CHURN_VRFS];
	static struct fib_change batch[600];
	const unsigned n_rounds = churn_rounds(200);
	struct fib *fib = churn_fib(model);

	for (unsigned round = 0; round < n_rounds; round++) {
		size_t n = 1 + model_random(round % 3 ? 15 : 600), first_bad = SIZE_MAX,
		       bad = SIZE_MAX;
		int expected = 0;
		memcpy(before, model, sizeof(before));
		for (size_t i = 0; i < n; i++) {
			struct model *own = &model[model_random(CHURN_VRFS)];
			batch[i] = churn_change(own, model_random(2) ? 4 : 6, 500);
			const struct wire_prefix *prefix = &batch[i].route.prefix;
			bool is_there = model_find(own, prefix) >= 0 && churn_builtin(prefix) < 0;
			if (batch[i].op == FIB_DELETE ? !is_there : model_random(2000))
				batch[i].op = FIB_REPLACE;
			int result = churn_apply(own, &batch[i]);
			if (!expected && result) {
				expected = result;
				first_bad = i;
			}
		}
		assert_int_equal(fib_change(fib, batch, n, &bad, NULL), expected);
		assert_int_equal(bad, first_bad);
		if (expected)
			memcpy(model, before, sizeof(before));
		for (unsigned i = 0; i < CHURN_VRFS; i++) {
			churn_check_some(fib, &model[i], 4, 10);
			churn_check_some(fib, &model[i], 6, 10);
		}
	}
	for (unsigned i = 0; i < CHURN_VRFS; i++)
		churn_check_all(fib, &model[i]);
	fib_destroy(fib);
}

// RFC 1812, 5.3.5.1, whatever the route for the rest of class E.
static void the_limited_broadcast_is_never_forwarded(void **state)
{
	struct fib *fib = churn_fib(model);
	struct fib_answer answer;
	struct wire_addr all, other;

	assert_int_equal(wire_addr_parse("255.255.255.255", &all), 0);
	assert_int_equal(wire_addr_parse("255.255.255.254", &other), 0);
	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		struct fib_change change = {.op = FIB_ADD,
			.route = {.vrf = churn_vrf[i], .hop = {.kind = FIB_PEER, .iface = 1}}};
		assert_int_equal(wire_prefix_parse("255.0.0.0/8", &change.route.prefix), 0);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
		rib_lookup(fib, churn_vrf[i], &other, &answer);
		assert_int_equal(answer.hop.kind, FIB_PEER);
		assert_int_equal(fib_lookup(fib, churn_vrf[i], &other), answer.hop_id);
		rib_lookup(fib, churn_vrf[i], &all, &answer);
		assert_int_equal(answer.verdict, VERDICT_MARTIAN_DESTINATION);
		assert_int_equal(fib_lookup(fib, churn_vrf[i], &all), answer.hop_id);
	}
	fib_destroy(fib);
}

static void lists_each_vrf_by_itself(void **state)
{
	struct fib *fib = churn_fib(model);

	for (unsigned i = 0; i < 600; i++) {
		struct model *own = &model[i % CHURN_VRFS];
		struct fib_change change = {.op = FIB_REPLACE,
			.route = {.prefix = model_random_prefix(i & 1 ? 4 : 6),
				.vrf = own->vrf,
				.hop = churn_hop()}};
		churn_apply(own, &change);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	struct fib_usage usage;
	size_t n_all = 0;
	for (unsigned i = 0; i < CHURN_VRFS; i++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			struct fib_walk walk = {.family = family, .vrf = churn_vrf[i]};
			struct fib_route route;
			size_t n = 0, wanted = 0;
			for (; fib_next(fib, &walk, &route); n++) {
				int at = model_find(&model[i], &route.prefix);
				assert_true(at >= 0);
				assert_memory_equal(&route, &model[i].route[at], sizeof(route));
				walk.after = &route.prefix;
			}
			for (size_t at = 0; at < model[i].n; at++) {
				const struct fib_route *own = &model[i].route[at];
				wanted += own->prefix.addr.family == family &&
				          own->hop.kind <= FIB_PEER;
			}
			assert_int_equal(n, wanted);
			n_all += n;
		}
	fib_usage(fib, &usage);
	assert_int_equal(usage.n_routes4 + usage.n_routes6, n_all);
	fib_destroy(fib);
}

static long resident_bytes(void)
{
	long total, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
	fclose(file);
	return resident * sysconf(_SC_PAGESIZE);
}

static void fill_ten(struct fib *fib, uint16_t vrf)
{
	// Default routes of both families and eight more.
	static const char *const text[] = {"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24",
		"10.1.2.3/32", "::/0", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:1:2::/64",
		"2001:db8:1:2::3/128"};
	struct fib_change change[ARRAY_LEN(text)];

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		change[i] = (struct fib_change){.op = FIB_ADD, .route.hop = churn_hop()};
		change[i].route.vrf = vrf;
		assert_int_equal(wire_prefix_parse(text[i], &change[i].route.prefix), 0);
	}
	assert_int_equal(fib_change(fib, change, ARRAY_LEN(text), NULL, NULL), 0);
}

static void ten_routes_take_less_than_a_mebibyte_and_a_closed_vrf_little(void **state)
{
	struct fib *fib = fib_create(NULL);

	fib_vrf_open(fib, 2, NULL); // makes code and stack resident first
	fill_ten(fib, 2);
	long before = resident_bytes();
	assert_int_equal(fib_vrf_open(fib, 1, NULL), 0);
	fill_ten(fib, 1);
	long grown = resident_bytes() - before;
	fib_vrf_close(fib, 1);
	long left = resident_bytes() - before;
	print_message("%ld KiB resident, %ld KiB when closed\n", grown >> 10, left >> 10);
	assert_in_range(grown, 1, 1 << 20);
	assert_in_range(left, 0, grown / 2); // blocks below the roots are kept for reuse
	fib_destroy(fib);
}

static uint32_t held(const struct blocks *blocks)
{
	return blocks->kept + blocks->top - blocks->origin - blocks->n_free;
}

// A closed VRF returns no routes and keeps nothing: no memory, no hop, no group.
static void a_closed_vrf_leaves_nothing_behind(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_usage before, after;
	const struct blocks *pools[] = {&fib->rib.nodes, &fib->publish4.leaf, &fib->publish6.wide,
		&fib->publish6.leaf, &fib->publish6.line};
	uint32_t n[ARRAY_LEN(pools)], n_pages = 0;
	struct wire_addr addr;

	fib_usage(fib, &before);
	for (size_t i = 0; i < ARRAY_LEN(pools); i++)
		n[i] = held(pools[i]);
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(fib_vrf_open(fib, 7, NULL), 0);
		churn_reset(&model[1], 7);
		for (unsigned i = 0; i < 3000; i++) {
			struct fib_change change =
				churn_change(&model[1], model_random(2) ? 4 : 6, 1500);
			assert_int_equal(fib_change(fib, &change, 1, NULL, NULL),
				churn_apply(&model[1], &change));
		}
		fib_vrf_close(fib, 7);
		for (unsigned slot = 0; slot < 1 << ROOT6_BITS; slot++)
			assert_int_equal(publish6_root(&fib->publish6, 7)[slot], 0);
		for (unsigned slot = 0; slot < ROOT4_SLOTS; slot++)
			assert_int_equal(publish4_root(&fib->publish4, 7)[slot],
				PAGE4_EMPTY * PAGE4_NODES);
		wire_addr_parse("127.0.0.1", &addr);
		assert_int_equal(fib_lookup(fib, 7, &addr), 0);
		fib_usage(fib, &after);
		assert_memory_equal(&before.n_routes4, &after.n_routes4, 4 * sizeof(uint32_t));
		for (size_t i = 0; i < ARRAY_LEN(pools); i++)
			assert_int_equal(held(pools[i]), n[i]);
		// Those of the built-in routes, which the main table has, too, are kept.
		if (!round)
			n_pages = held(&fib->publish4.page);
		assert_int_equal(held(&fib->publish4.page), n_pages);
	}
	fib_destroy(fib);
}

// Every VRF has a default route and a network of its own; all of them are open at the same time.
static void all_vrfs_hold_routes_of_their_own(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct wire_addr addr, far;
	struct error error;

	wire_addr_parse("10.1.2.3", &addr);
	wire_addr_parse("200.1.2.3", &far);
	long before = resident_bytes();
	for (uint16_t vrf = 1; vrf < FIB_MAX_VRFS; vrf++) {
		struct fib_change change[2] = {{.op = FIB_ADD}, {.op = FIB_ADD}};

		assert_int_equal(fib_vrf_open(fib, vrf, &error), 0);
		for (unsigned i = 0; i < 2; i++) {
			change[i].route.vrf = vrf;
			change[i].route.hop =
				(struct fib_hop){.kind = FIB_VIA, .iface = i, .via.family = 4};
			memcpy(change[i].route.hop.via.bytes, &vrf, sizeof(vrf));
		}
		wire_prefix_parse("0.0.0.0/0", &change[0].route.prefix);
		wire_prefix_parse("10.1.2.0/24", &change[1].route.prefix);
		assert_int_equal(fib_change(fib, change, 2, NULL, &error), 0);
	}
	long each = (resident_bytes() - before) / (FIB_MAX_VRFS - 1);
	print_message("%ld KiB resident for each of 4,095 VRFs\n", each >> 10);
	assert_in_range(each, 1, 128 << 10);
	for (uint16_t vrf = 1; vrf < FIB_MAX_VRFS; vrf++) {
		struct fib_hop_info near_info, far_info;

		assert_true(fib_hop_info(fib, fib_lookup(fib, vrf, &addr), &near_info));
		assert_true(fib_hop_info(fib, fib_lookup(fib, vrf, &far), &far_info));
		assert_memory_equal(near_info.hop.via.bytes, &vrf, sizeof(vrf));
		assert_memory_equal(far_info.hop.via.bytes, &vrf, sizeof(vrf));
		assert_int_equal(near_info.hop.iface, 1);
		assert_int_equal(far_info.hop.iface, 0);
	}
	assert_int_equal(fib_lookup(fib, 0, &addr), 0);
	fib_destroy(fib);
}

// Two halves instead of a default route, as VPN clients add, and routes in each of many blocks.
static void routes_shorter_than_a_page_take_no_page_of_their_own(void **state)
{
	static const char *const text[] = {"0.0.0.0/1", "128.0.0.0/1", "64.0.0.0/2", "10.0.0.0/8",
		"20.32.0.0/11"};
	struct fib *fib = fib_create(NULL);
	struct fib_change change[ARRAY_LEN(text)];

	assert_int_equal(fib_vrf_open(fib, 1, NULL), 0);
	const uint32_t n = held(&fib->publish4.page);
	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		change[i] = (struct fib_change){.op = FIB_ADD, .route.vrf = 1};
		change[i].route.hop = (struct fib_hop){.kind = FIB_PEER, .iface = i};
		wire_prefix_parse(text[i], &change[i].route.prefix);
	}
	assert_int_equal(fib_change(fib, change, ARRAY_LEN(text), NULL, NULL), 0);
	assert_int_equal(held(&fib->publish4.page), n + ARRAY_LEN(text)); // one for each hop
	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		change[i].op = FIB_DELETE;
	assert_int_equal(fib_change(fib, change, ARRAY_LEN(text), NULL, NULL), 0);
	assert_int_equal(held(&fib->publish4.page), n);
	fib_destroy(fib);
}

// Addresses that Linux forwards to, although the RFCs forbid it, and others of the same ranges.
static const struct {
	const char *address;
	uint8_t before, after; // verdicts without and with fib_follow_linux, under a default route
} reserved[] = {
	{"0.0.0.0", VERDICT_MARTIAN_DESTINATION, VERDICT_MARTIAN_DESTINATION},
	{"0.0.0.1", VERDICT_MARTIAN_DESTINATION, VERDICT_BLACKHOLE},
	{"127.0.0.1", VERDICT_MARTIAN_DESTINATION, VERDICT_MARTIAN_DESTINATION},
	{"169.254.1.1", VERDICT_LINK_LOCAL_DESTINATION, VERDICT_BLACKHOLE},
	{"224.0.0.5", VERDICT_MULTICAST, VERDICT_MULTICAST},
	{"240.0.0.1", VERDICT_MARTIAN_DESTINATION, VERDICT_BLACKHOLE},
	{"255.255.255.254", VERDICT_MARTIAN_DESTINATION, VERDICT_BLACKHOLE},
	{"255.255.255.255", VERDICT_MARTIAN_DESTINATION, VERDICT_MARTIAN_DESTINATION},
	{"::", VERDICT_MARTIAN_DESTINATION, VERDICT_BLACKHOLE},
	{"::1", VERDICT_MARTIAN_DESTINATION, VERDICT_MARTIAN_DESTINATION},
	{"fe80::1", VERDICT_LINK_LOCAL_DESTINATION, VERDICT_LINK_LOCAL_DESTINATION},
	{"ff02::1", VERDICT_MULTICAST, VERDICT_MULTICAST},
};

static void expect_reserved(struct fib *fib, uint16_t vrf, bool follows_linux)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		struct fib_answer answer;
		struct wire_addr addr;

		wire_addr_parse(reserved[i].address, &addr);
		rib_lookup(fib, vrf, &addr, &answer);
		assert_int_equal(answer.verdict,
			follows_linux ? reserved[i].after : reserved[i].before);
		assert_int_equal(fib_lookup(fib, vrf, &addr) != 0, true);
	}
}

static void add_defaults(struct fib *fib, uint16_t vrf)
{
	static const char *const text[] = {"0.0.0.0/0", "::/0"};

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		struct fib_change change = {.op = FIB_ADD,
			.route = {.vrf = vrf, .hop = {.kind = FIB_BLACKHOLE, .iface = IFACE_NONE}}};

		wire_prefix_parse(text[i], &change.route.prefix);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
}

static void tables_that_follow_linux_have_its_reserved_ranges(void **state)
{
	for (unsigned follows_linux = 0; follows_linux < 2; follows_linux++) {
		struct fib *fib = fib_create(NULL);

		if (follows_linux)
			fib_follow_linux(fib);
		for (unsigned round = 0; round < 2; round++) {
			assert_int_equal(fib_vrf_open(fib, 3, NULL), 0);
			add_defaults(fib, 3);
			expect_reserved(fib, 3, follows_linux);
			fib_vrf_close(fib, 3);
		}
		add_defaults(fib, 0);
		expect_reserved(fib, 0, follows_linux);
		fib_destroy(fib);
	}
}

static void refuses_vrfs_that_are_not_open(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_change change = {.op = FIB_ADD, .route = {.vrf = 5}};
	struct fib_route route;
	struct fib_answer answer;
	struct error error;
	struct wire_addr addr;

	wire_prefix_parse("10.0.0.0/8", &change.route.prefix);
	wire_addr_parse("127.0.0.1", &addr);
	change.route.hop = churn_hop();
	assert_int_equal(fib_change(fib, &change, 1, NULL, &error), -EINVAL);
	assert_string_equal(error.text,
		"cannot apply 10.0.0.0/8 in VRF 5: no such VRF; open it first");
	change.route.vrf = FIB_MAX_VRFS;
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), -EINVAL);
	assert_int_equal(fib_lookup(fib, 5, &addr) | fib_lookup(fib, 200, &addr), 0);
	rib_lookup(fib, 200, &addr, &answer);
	assert_int_equal(answer.verdict, VERDICT_NO_ROUTE);
	assert_false(fib_next(fib, &(struct fib_walk){.family = 4, .vrf = 200}, &route));
	assert_int_equal(fib_vrf_open(fib, FIB_MAX_VRFS, &error), -EINVAL);
	assert_string_equal(error.text, "invalid VRF 4096: expected 1 to 4095");
	assert_int_equal(fib_vrf_open(fib, 0, NULL), -EEXIST);
	assert_int_equal(fib_vrf_open(fib, 5, NULL), 0);
	assert_int_equal(fib_vrf_open(fib, 5, NULL), -EEXIST);
	assert_true(fib_vrf_is_open(fib, 5));
	fib_vrf_close(fib, 5);
	assert_false(fib_vrf_is_open(fib, 5));
	fib_vrf_close(fib, 5);
	fib_vrf_close(fib, 200);
	fib_vrf_close(fib, 0);
	assert_true(fib_vrf_is_open(fib, 0)); // the main one stays open
	fib_destroy(fib);
}

static void shares_next_hops_between_vrfs(void **state)
{
	struct fib *fib = churn_fib(model);
	struct fib_change change[CHURN_VRFS];
	struct fib_hop_info info;
	struct wire_addr addr;
	uint32_t id = 0;

	wire_addr_parse("10.1.2.3", &addr);
	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		change[i] = (struct fib_change){.op = FIB_ADD, .route.vrf = churn_vrf[i]};
		change[i].route.hop = (struct fib_hop){.kind = FIB_PEER, .iface = 1};
		wire_prefix_parse("10.0.0.0/8", &change[i].route.prefix);
	}
	assert_int_equal(fib_change(fib, change, CHURN_VRFS, NULL, NULL), 0);
	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		assert_true(!i || id == fib_lookup(fib, churn_vrf[i], &addr));
		id = fib_lookup(fib, churn_vrf[i], &addr);
	}
	assert_true(fib_hop_info(fib, id, &info));
	assert_int_equal(info.n_routes, CHURN_VRFS);
	fib_vrf_close(fib, 1);
	assert_true(fib_hop_info(fib, id, &info));
	assert_int_equal(info.n_routes, CHURN_VRFS - 1);
	fib_destroy(fib);
}

// Neighbours.

static void tell_iface(struct fib *fib, uint8_t port, uint16_t vrf)
{
	struct iface settings = {.port = port, .vrf = vrf, .mtu = 1500, .mac.bytes = {2}};

	assert_int_equal(fib_iface_set(fib, port, &settings), 0);
}

static void connect_link(struct fib *fib, uint8_t port, uint16_t vrf)
{
	struct fib_change change = {.op = FIB_REPLACE,
		.route = {.vrf = vrf, .hop = {.kind = FIB_CONNECTED, .iface = port}}};

	wire_prefix_parse("10.0.0.0/24", &change.route.prefix);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
}

// The last byte of the destination MAC of packets to an address in a VRF; -1: they are not
// forwarded.
static int mac_to(const struct fib *fib, uint16_t vrf, const char *text)
{
	struct fib_answer answer;
	struct wire_addr addr;

	wire_addr_parse(text, &addr);
	rib_lookup(fib, vrf, &addr, &answer);
	struct fib_hop_entry entry = fib_hop_load(&fib->view.hops[answer.hop_id]);
	assert_int_equal(fib_lookup(fib, vrf, &addr), answer.hop_id);
	assert_int_equal(fib_entry_verdict(&entry), answer.verdict);
	return entry.kind == FIB_HOP_PLAIN ? entry.macs[5] : -1;
}

static void set_neighbour(struct fib *fib, uint16_t iface, const char *text, uint8_t last)
{
	const struct wire_mac mac = {{2, 0, 0, 0, 0, last}};
	struct wire_addr addr;

	wire_addr_parse(text, &addr);
	assert_int_equal(fib_neighbour_set(fib, iface, &addr, &mac, NULL), 0);
}

static void unset_neighbour(struct fib *fib, uint16_t iface, const char *text)
{
	struct wire_addr addr;

	wire_addr_parse(text, &addr);
	assert_int_equal(fib_neighbour_delete(fib, iface, &addr), 0);
}

// The same subnet on three interfaces in three VRFs.
static void knows_neighbours_in_the_vrf_of_their_iface_alone(void **state)
{
	struct fib *fib = churn_fib(model);

	for (uint8_t port = 0; port < CHURN_VRFS; port++) {
		tell_iface(fib, port, churn_vrf[port]);
		connect_link(fib, port, churn_vrf[port]);
		set_neighbour(fib, port, "10.0.0.7", 7 + port);
	}
	set_neighbour(fib, 1, "10.0.0.8", 20);
	assert_int_equal(mac_to(fib, 0, "10.0.0.7"), 7);
	assert_int_equal(mac_to(fib, 1, "10.0.0.7"), 8);
	assert_int_equal(mac_to(fib, 4095, "10.0.0.7"), 9);
	assert_int_equal(mac_to(fib, 1, "10.0.0.8"), 20);
	assert_int_equal(mac_to(fib, 0, "10.0.0.8"), -1);
	unset_neighbour(fib, 1, "10.0.0.7");
	assert_int_equal(mac_to(fib, 0, "10.0.0.7"), 7);
	assert_int_equal(mac_to(fib, 1, "10.0.0.7"), -1);
	connect_link(fib, 0, 4095); // a route leaked from another VRF: Linux resolves it
	assert_int_equal(mac_to(fib, 4095, "10.0.0.7"), -1);
	fib_destroy(fib);
}

static void takes_neighbours_along_when_a_iface_changes_vrf(void **state)
{
	struct fib *fib = churn_fib(model);
	const uint32_t n_nodes = held(&fib->rib.nodes);

	tell_iface(fib, 2, 0);
	connect_link(fib, 2, 0);
	connect_link(fib, 2, 1);
	set_neighbour(fib, 2, "10.0.0.7", 7);
	set_neighbour(fib, 2, "10.0.0.8", 8);
	set_neighbour(fib, 2, "fe80::1", 9);
	assert_int_equal(mac_to(fib, 0, "10.0.0.8"), 8);
	assert_int_equal(mac_to(fib, 1, "10.0.0.8"), -1);
	tell_iface(fib, 2, 1);
	assert_int_equal(mac_to(fib, 0, "10.0.0.8"), -1);
	assert_int_equal(mac_to(fib, 1, "10.0.0.7"), 7);
	assert_int_equal(mac_to(fib, 1, "10.0.0.8"), 8);
	unset_neighbour(fib, 2, "10.0.0.8");
	assert_int_equal(mac_to(fib, 1, "10.0.0.8"), -1);
	fib_vrf_close(fib, 1);
	assert_int_equal(mac_to(fib, 1, "10.0.0.7"), -1);
	assert_int_equal(fib_vrf_open(fib, 1, NULL), 0);
	connect_link(fib, 2, 1);
	assert_int_equal(mac_to(fib, 1, "10.0.0.7"), 7); // reachable again
	fib_vrf_close(fib, 1);
	tell_iface(fib, 2, 4095); // out of a closed VRF
	unset_neighbour(fib, 2, "10.0.0.7");
	unset_neighbour(fib, 2, "fe80::1");
	struct fib_change change = {.op = FIB_DELETE};
	wire_prefix_parse("10.0.0.0/24", &change.route.prefix);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	assert_int_equal(fib_vrf_open(fib, 1, NULL), 0);
	assert_int_equal(held(&fib->rib.nodes), n_nodes);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_routes_take_less_than_a_mebibyte_and_a_closed_vrf_little),
		cmocka_unit_test(agrees_with_a_list_after_each_change),
		cmocka_unit_test(batches_that_mix_vrfs_agree_with_a_list_of_each),
		cmocka_unit_test(the_limited_broadcast_is_never_forwarded),
		cmocka_unit_test(lists_each_vrf_by_itself),
		cmocka_unit_test(a_closed_vrf_leaves_nothing_behind),
		cmocka_unit_test(all_vrfs_hold_routes_of_their_own),
		cmocka_unit_test(routes_shorter_than_a_page_take_no_page_of_their_own),
		cmocka_unit_test(tables_that_follow_linux_have_its_reserved_ranges),
		cmocka_unit_test(refuses_vrfs_that_are_not_open),
		cmocka_unit_test(shares_next_hops_between_vrfs),
		cmocka_unit_test(knows_neighbours_in_the_vrf_of_their_iface_alone),
		cmocka_unit_test(takes_neighbours_along_when_a_iface_changes_vrf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
