// Hop ids that do not fit into a leaf of IPv4 or a narrow line of IPv6, among others that do. Tests
// only. Takes about 6 s of CPU time: four tables of a million next hops are filled and emptied;
// with a sanitizer, they are smaller.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { N_ROUTES = 64000 };
#else
enum { N_ROUTES = 1000000 };
#endif

static struct model models[CHURN_VRFS];

static struct fib_hop hop_number(uint32_t number)
{
	return (struct fib_hop){.via = model_addr(4, (model_bits)(0x0b000000 + number) << 96),
		.iface = 1};
}

static struct fib_change add(const char *prefix, uint32_t number)
{
	struct fib_change change = {.op = FIB_REPLACE, .route.hop = hop_number(number)};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	return change;
}

static void apply(struct fib *fib, const struct fib_change *change)
{
	const uint16_t vrf = change->route.vrf;
	struct model *model = &models[vrf == churn_vrf[1] ? 1 : vrf == churn_vrf[2] ? 2 : 0];

	assert_int_equal(fib_change(fib, change, 1, NULL, NULL), churn_apply(model, change));
}

static void clear(struct fib *fib, unsigned i)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		const struct fib_walk walk = {.family = family, .vrf = churn_vrf[i]};
		struct fib_change change = {.op = FIB_DELETE};

		while (fib_next(fib, &walk, &change.route))
			apply(fib, &change);
	}
}

// Random changes in several VRFs: after each one, all variants of the lookup agree with a list.
static void agrees_with_a_list_where_ids_are_wide(void **state)
{
	const unsigned n_changes = churn_rounds(8000);
	struct fib *fib = churn_fib(models);

	churn_take_narrow_ids(fib);
	const struct churn_used used = churn_used(fib);
	for (unsigned i = 0; i < n_changes; i++) {
		struct model *model = &models[i % 4 ? 0 : 1 + model_random(CHURN_VRFS - 1)];
		const uint8_t family = i / (n_changes / 8) % 2 ? 4 : 6;
		struct fib_change change =
			churn_change(model, family, i < n_changes / 2 ? 60 : 500);

		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL),
			churn_apply(model, &change));
		churn_check_edges(fib, model, &change.route.prefix);
		churn_check_some(fib, model, family, 1);
		if (i % 200 == 199)
			assert_true(publish4_tidy(fib));
	}
	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		churn_check_all(fib, &models[i]);
		clear(fib, i);
		churn_check_all(fib, &models[i]);
	}
	churn_expect_used(fib, used);
	fib_destroy(fib);
}

// Hops of 14 and more hosts in one /24, one by one: a line, then flat ones; with the ids of the
// hosts narrow, wide and mixed, over a route of either kind.
static void makes_a_tail_wide_for_one_wide_id(void **state)
{
	for (unsigned row = 0; row < 6; row++) {
		struct fib *fib = churn_fib(models);
		const bool is_wide_below = row % 2;
		struct fib_change cover = add("20.0.0.0/16", is_wide_below ? 1u << 20 : 1);

		churn_take_narrow_ids(fib);
		if (!is_wide_below)
			cover.route.hop = (struct fib_hop){.iface = 1, .kind = FIB_PEER};
		apply(fib, &cover);
		for (unsigned i = 0; i < 80; i++) {
			const unsigned host = i < 40 ? i : 79 - i;
			struct fib_change change = add("20.0.5.0/32", (1 << 20) + 1 + host);
			change.op = i < 40 ? FIB_ADD : FIB_DELETE;
			change.route.prefix.addr.bytes[3] = 3 + 2 * host;
			if (row / 2 == 0 || (row / 2 == 1 && host % 5))
				change.route.hop.via =
					(struct wire_addr){.bytes = {10, 9, 9, host / 5 * 3 % 39},
						.family = 4};
			apply(fib, &change);
			churn_check_all(fib, &models[0]);
		}
		fib_destroy(fib);
	}
}

// Blocks of addresses with one wide hop share a line, in all VRFs.
static void takes_one_line_for_a_default_route(void **state)
{
	struct fib *fib = churn_fib(models);
	struct fib_usage before, after;

	churn_take_narrow_ids(fib);
	fib_usage(fib, &before);
	const struct churn_used used = churn_used(fib);
	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		struct fib_change change = add("0.0.0.0/0", 1 << 20);
		change.route.vrf = churn_vrf[i];
		apply(fib, &change);
		churn_check_all(fib, &models[i]);
	}
	fib_usage(fib, &after);
	assert_int_equal(fib->publish4.n_shared_tails, 1);
	assert_in_range(after.worker_bytes4 - before.worker_bytes4, 64, 64 << 10);
	for (unsigned i = 0; i < CHURN_VRFS;
		i++) { // another wide hop: the same leaves, other lines
		struct fib_change change = add("0.0.0.0/0", (1 << 20) + 1);
		change.route.vrf = churn_vrf[i];
		apply(fib, &change);
		churn_check_all(fib, &models[i]);
		clear(fib, i);
		churn_check_all(fib, &models[i]);
	}
	assert_int_equal(churn_used(fib).tail4, used.tail4);
	fib_destroy(fib);
}

// A host whose route repeats what a shorter prefix says has no line of its own, but the narrow line
// above it cannot hold its wide id.
static void finds_a_wide_hop_below_a_narrow_line(void **state)
{
	struct fib *fib = churn_fib(models);
	static const char *const texts[] = {"2001:db8:1::/48", "2001:db8:1:1::/64",
		"2001:db8:1:1::/80", "2001:db8:1:1::5/128"};

	churn_take_narrow_ids(fib);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		struct fib_change change = add(texts[i], 1 << 20);
		if (i == 0)
			change.route.hop = (struct fib_hop){.iface = 1, .kind = FIB_PEER};
		apply(fib, &change);
		churn_check_all(fib, &models[0]);
	}
	fib_destroy(fib);
}

static void takes_narrow_ids_first(void **state)
{
	struct fib *fib = churn_fib(models);
	struct fib_change change = add("20.1.0.0/16", 1 << 20);
	struct wire_addr addr = change.route.prefix.addr;

	apply(fib, &change);
	assert_in_range(fib_lookup(fib, 0, &addr), 1, HOP_WIDE - 1);
	churn_take_narrow_ids(fib);
	struct fib_change other = add("20.2.0.0/16", (1 << 20) + 1);
	struct wire_addr other_addr = other.route.prefix.addr;
	apply(fib, &other);
	assert_int_equal(fib_lookup(fib, 0, &other_addr), HOP_WIDE);
	change.op = other.op = FIB_DELETE;
	apply(fib, &change);
	apply(fib, &other); // its id is the last one to become unused
	other.op = FIB_ADD;
	apply(fib, &other);
	assert_in_range(fib_lookup(fib, 0, &other_addr), 1, HOP_WIDE - 1);
	fib_destroy(fib);
}

static void distributes_flows_over_wide_members(void **state)
{
	struct fib *fib = churn_fib(models);
	struct fib_member members[4], found[4];
	struct fib_change change = add("20.0.0.0/8", 0);
	struct wire_addr addr = change.route.prefix.addr;
	unsigned n_of[ARRAY_LEN(members)] = {0};

	churn_take_narrow_ids(fib);
	for (unsigned i = 0; i < ARRAY_LEN(members); i++)
		members[i] = (struct fib_member){hop_number((1 << 20) + i), 1};
	assert_int_equal(fib_group(fib, members, 4, &change.route.hop, NULL), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	assert_int_equal(fib_group_members(fib, &change.route.hop, found, 4), 4);
	const uint32_t group = fib_lookup(fib, 0, &addr);
	const struct fib_hop_entry entry = fib_hop_load(&fib->view.hops[group]);
	assert_true(group >= HOP_WIDE);
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++) {
		const uint32_t id = fib->view.bucket[fib_entry_group(&entry) + i];
		struct fib_hop_info info;
		assert_true(id >= HOP_WIDE && fib_hop_info(fib, id, &info));
		for (unsigned k = 0; k < ARRAY_LEN(members); k++)
			n_of[k] += !memcmp(&info.hop, &members[k].hop, sizeof(info.hop));
	}
	for (unsigned k = 0; k < ARRAY_LEN(members); k++)
		assert_int_equal(n_of[k], FIB_GROUP_BUCKETS / ARRAY_LEN(members));
	fib_destroy(fib);
}

// A million routes, each to a next hop of its own: hosts of a LAN, prefixes of /24 or shorter, or
// IPv6 networks.

enum { AT_ONCE = 64 };

static struct wire_prefix prefix_number(uint8_t family, uint8_t len, uint32_t i)
{
	const model_bits base =
		family == 4 ? (model_bits)0x14000000 << 96 : (model_bits)0x20010db8 << 96;
	const unsigned shift = family == 4 ? 128 - len : 64;

	return (struct wire_prefix){model_addr(family, base + ((model_bits)i << shift)), len};
}

static void expect_hops(const struct fib *fib, const uint32_t hop[], uint32_t first)
{
	for (unsigned i = 0; i < AT_ONCE; i++) {
		const struct fib_hop wanted = hop_number(first + i);
		if (memcmp(&fib->hops.hop[hop[i]].key, &wanted, sizeof(wanted)))
			fail_msg("route %u leads to hop %u", first + i, hop[i]);
	}
}

static void look_at_all(const struct fib *fib, const struct lookups *lookups, uint8_t family,
	uint8_t len)
{
	uint32_t dst4[AT_ONCE], hop[AT_ONCE];
	struct fib_key6 dst6[AT_ONCE];

	for (uint32_t i = 0; i < N_ROUTES; i += AT_ONCE) {
		for (unsigned k = 0; k < AT_ONCE; k++) {
			struct wire_prefix prefix = prefix_number(family, len, i + k);
			dst6[k] = rib_prefix_of(&prefix).key;
			dst4[k] = dst6[k].high >> 32;
		}
		if (family == 4)
			lookups->far4(&fib->view, dst4, hop, AT_ONCE);
		else
			lookups->six(&fib->view, dst6, hop, AT_ONCE);
		expect_hops(fib, hop, i);
	}
}
static_assert(N_ROUTES % AT_ONCE == 0, "full bursts");

static void reaches_a_million_next_hops(void **state)
{
	static const struct {
		uint8_t family, len;
	} rows[] = {{4, 32}, {4, 24}, {4, 23}, {6, 64}};
	struct fib_change *batch = calloc(N_ROUTES, sizeof(*batch));
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);

	assert_non_null(batch);
	for (unsigned row = 0; row < ARRAY_LEN(rows); row++) {
		struct fib *fib = fib_create(NULL);
		struct fib_usage usage;

		for (uint32_t i = 0; i < N_ROUTES; i++) {
			const struct wire_prefix prefix =
				prefix_number(rows[row].family, rows[row].len, i);
			batch[i] = (struct fib_change){.op = FIB_ADD,
				.route = {.prefix = prefix, .hop = hop_number(i)}};
		}
		assert_int_equal(fib_change(fib, batch, N_ROUTES, NULL, NULL), 0);
		for (unsigned i = 0; i < n_variants; i++)
			look_at_all(fib, &variants[i], rows[row].family, rows[row].len);
		fib_usage(fib, &usage);
		print_message("IPv%u /%u: %zu KiB IPv4, %zu IPv6, %zu hops, %zu control\n",
			rows[row].family, rows[row].len, usage.worker_bytes4 >> 10,
			usage.worker_bytes6 >> 10, usage.worker_bytes_hops >> 10,
			usage.control_bytes >> 10);
		for (uint32_t i = 0; i < N_ROUTES; i++)
			batch[i].op = FIB_DELETE;
		assert_int_equal(fib_change(fib, batch, N_ROUTES, NULL, NULL), 0);
		fib_usage(fib, &usage);
		assert_int_equal(usage.n_hops, 4);
		fib_destroy(fib);
	}
	free(batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list_where_ids_are_wide),
		cmocka_unit_test(makes_a_tail_wide_for_one_wide_id),
		cmocka_unit_test(takes_one_line_for_a_default_route),
		cmocka_unit_test(finds_a_wide_hop_below_a_narrow_line),
		cmocka_unit_test(takes_narrow_ids_first),
		cmocka_unit_test(distributes_flows_over_wide_members),
		cmocka_unit_test(reaches_a_million_next_hops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
