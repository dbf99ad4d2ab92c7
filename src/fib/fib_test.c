// Growing, shrinking and compacting the table, compared with a plain list of routes. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct model model;

// The table before the /24s below are added: other hops, which have taken the first ids, and a
// longer prefix. A node can hold eleven narrow leaves of the first 255 hops, but none together with
// a tail.
static const struct {
	unsigned n_hops, most_inside;
	bool with_tail, with_linux;
} inside[] = {
	{0, FIB_NODE4_NARROW - 1, false, false},
	{0, 3, true, false},
	{0, FIB_NODE4_LEAVES - 1, false, true}, // one of the hops that each table has
	{UINT8_MAX - 2, FIB_NODE4_NARROW - 1, false, false},
	{UINT8_MAX - 1, FIB_NODE4_LEAVES - 1, false, false}, // the second hop's id is one too high
	{UINT8_MAX, FIB_NODE4_LEAVES - 1, false, false},
};

static void change_both(struct fib *fib, const struct fib_change *change)
{
	assert_int_equal(churn_apply(&model, change), 0);
	assert_int_equal(fib_change(fib, change, 1, NULL, NULL), 0);
}

// Adds routes to this many hops, each in a node of its own.
static void take_hops(struct fib *fib, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		change_both(fib,
			&(struct fib_change){
				.route = {.prefix = {{.bytes = {30, i}, .family = 4}, 16},
					.hop = {.iface = 2,
						.via = {.bytes = {10, 0, 0, i}, .family = 4}}}});
}

// The /24s of one node are added one by one, then deleted: together with the rest of the node, n of
// them have n + 1 leaves.
static void keeps_leaves_inside_their_node_while_they_fit(void **state)
{
	enum { N_SLOTS = 20 };

	for (unsigned row = 0; row < ARRAY_LEN(inside); row++) {
		struct fib *fib = fib_create(NULL);
		const uint32_t none = churn_used(fib).leaf4;
		churn_reset(&model, 0);
		take_hops(fib, inside[row].n_hops);
		for (unsigned i = 0; i < 2 * N_SLOTS; i++) {
			unsigned slot = i < N_SLOTS ? i : 2 * N_SLOTS - 1 - i;
			struct fib_change change = {.op = i < N_SLOTS ? FIB_ADD : FIB_DELETE,
				.route = {.prefix = {{.bytes = {20, 1, slot}, .family = 4},
						  slot || !inside[row].with_tail ? 24 : 25},
					.hop = {.iface = slot % 2, .via.family = 4}}};
			if (slot % 2 && inside[row].with_linux)
				change.route.hop =
					(struct fib_hop){.iface = IFACE_NONE, .kind = FIB_LINUX};
			change_both(fib, &change);
			churn_check_all(fib, &model);
			assert_int_equal(churn_used(fib).leaf4 > none,
				(i < N_SLOTS ? slot + 1 : slot) > inside[row].most_inside);
		}
		assert_int_equal(churn_used(fib).leaf4, none);
		fib_destroy(fib);
	}
}

// Adds and deletes 800 /48s and 400 hosts in one /32: lines become wide blocks on two levels, and
// lines again; all their memory is freed.
static void grows_and_shrinks_dense_ip6_subtrees(void **state)
{
	struct fib *fib = fib_create(NULL);
	const struct churn_used used = churn_used(fib);

	churn_reset(&model, 0);
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < 1200; i++) {
			struct fib_change change = {.op = pass ? FIB_DELETE : FIB_ADD,
				.route.hop = churn_hop()};
			change.route.prefix =
				(struct wire_prefix){{.bytes = {0x20, 1, 0xd, 0xb8}, .family = 6},
					i % 3 ? 48 : 128};
			change.route.prefix.addr.bytes[4] = i >> 8;
			change.route.prefix.addr.bytes[5] = i;
			if (i % 3 == 0)
				change.route.prefix.addr.bytes[14] = i * 7;
			assert_int_equal(churn_apply(&model, &change), 0);
			assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
			churn_check_edges(fib, &model, &change.route.prefix);
			if (i % 100 == 0)
				churn_check_all(fib, &model);
		}
		churn_check_all(fib, &model);
		assert_int_equal(churn_used(fib).wide6 - used.wide6, pass ? 0 : 2);
	}
	churn_expect_used(fib, used);
	fib_destroy(fib);
}

// Deleting all routes frees all memory except what the built-in routes need.
static void leaks_no_blocks(void **state)
{
	struct fib *fib = fib_create(NULL);
	const struct churn_used used = churn_used(fib);

	churn_reset(&model, 0);
	for (unsigned i = 0; i < 4000; i++) {
		struct fib_change change = churn_change(&model, i & 1 ? 4 : 6, 1500);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL),
			churn_apply(&model, &change));
	}
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct fib_change change = {.op = FIB_DELETE};
		while (model_next(fib, family, NULL, &change.route))
			assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	churn_expect_used(fib, used);
	struct fib_usage usage;
	fib_usage(fib, &usage);
	assert_int_equal(usage.n_routes4 + usage.n_routes6, 0);
	assert_int_equal(usage.n_hops, 4); // martian, link-local, multicast, Linux
	fib_destroy(fib);
}

static int by_prefix(const void *a, const void *b)
{
	const struct wire_prefix *x = &((const struct fib_route *)a)->prefix,
				 *y = &((const struct fib_route *)b)->prefix;
	int order = memcmp(x->addr.bytes, y->addr.bytes, 16);

	return order ? order : x->len - y->len;
}

// The caller removes the reported change and retries with the rest.
static void names_a_change_of_a_batch_that_finds_no_memory(void **state)
{
	struct fib *fib = fib_create(NULL);
	const struct fib_change change = {.op = FIB_ADD};
	struct error error = {""};
	size_t bad = 77;

	assert_int_equal(fib_change(fib, &change, 1ul << 33, &bad, &error), -ENOMEM);
	assert_int_equal(bad, 0);
	fib_destroy(fib);
}

static void lists_routes_in_order_without_built_in_ones(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_route route;

	assert_false(model_next(fib, 4, NULL, &route));
	assert_false(model_next(fib, 6, NULL, &route));
	model.n = 0;
	for (unsigned i = 0; i < 1000; i++) {
		struct fib_change change = {.op = FIB_REPLACE,
			.route = {.prefix = model_random_prefix(6), .hop = churn_hop()}};
		model_set(&model, &change.route);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	qsort(model.route, model.n, sizeof(model.route[0]), by_prefix);
	for (size_t i = 0; i < model.n; i++) {
		assert_true(model_next(fib, 6, i ? &model.route[i - 1].prefix : NULL, &route));
		assert_memory_equal(&route, &model.route[i], sizeof(route));
	}
	assert_false(model_next(fib, 6, &model.route[model.n - 1].prefix, &route));
	for (unsigned i = 0; i < 1000; i++) { // also after prefixes without routes
		struct fib_route after = {.prefix = model_random_prefix(6)};
		size_t at = 0;
		while (at < model.n && by_prefix(&model.route[at], &after) <= 0)
			at++;
		assert_int_equal(model_next(fib, 6, &after.prefix, &route), at < model.n);
		if (at < model.n)
			assert_memory_equal(&route, &model.route[at], sizeof(route));
	}
	fib_destroy(fib);
}

// Consecutive /24s from 1.0.0.0 on, the last `n` of `all`.
static void change_many(struct fib *fib, enum fib_op op, unsigned all, unsigned n)
{
	struct fib_change change = {.op = op, .route.hop = churn_hop()};

	change.route.prefix = (struct wire_prefix){{.family = 4}, 24};
	for (unsigned i = all - n; i < all; i++) {
		change.route.prefix.addr.bytes[0] = 1 + (i >> 16);
		change.route.prefix.addr.bytes[1] = i >> 8;
		change.route.prefix.addr.bytes[2] = i;
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
}

static void expect_waits(const struct fib *fib, bool expected)
{
	assert_int_equal(fib_waits4(&fib->view), expected);
	assert_int_equal(fib_waits4(&fib->view.vrfs[0]), expected);
}

static void lookups_wait_while_there_are_so_many_ip4_routes(void **state)
{
	enum { MANY = 65536 };
	struct fib *fib = fib_create(NULL);
	unsigned before = fib->n_routes[RIB4]; // the built-in ones

	change_many(fib, FIB_ADD, MANY - before - 1, MANY - before - 1);
	expect_waits(fib, false);
	change_many(fib, FIB_ADD, MANY - before, 1);
	expect_waits(fib, true);
	change_many(fib, FIB_DELETE, MANY - before, 1);
	expect_waits(fib, false);
	fib_destroy(fib);
}

static void tidies_up_once_changes_have_ended(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct churn_used before;

	churn_reset(&model, 0);
	for (unsigned i = 0; i < 12000; i++) {
		struct fib_change change = churn_change(&model, 4, 900);
		if (change.route.prefix.len < 8)
			continue; // rewrites many nodes, which takes long; churn_test.c has these
		churn_apply(&model, &change);
		fib_change(fib, &change, 1, NULL, NULL);
	}
	before = churn_used(fib);
	assert_int_not_equal(fib->publish4.leaf.n_free, 0);
	for (unsigned i = 0; i < 50; i++)
		fib_tidy(fib);
	churn_expect_used(fib, before);
	assert_int_equal(fib->publish4.leaf.n_free, 0);
	assert_int_equal(fib->publish4.tail.n_free, 0);
	churn_check_all(fib, &model);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_leaves_inside_their_node_while_they_fit),
		cmocka_unit_test(grows_and_shrinks_dense_ip6_subtrees),
		cmocka_unit_test(leaks_no_blocks),
		cmocka_unit_test(names_a_change_of_a_batch_that_finds_no_memory),
		cmocka_unit_test(lists_routes_in_order_without_built_in_ones),
		cmocka_unit_test(lookups_wait_while_there_are_so_many_ip4_routes),
		cmocka_unit_test(tidies_up_once_changes_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
