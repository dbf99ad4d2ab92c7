// The table against a plain list of routes. Tests only.
#include "fib/fib.h"

#include "fib/lookup.h"
#include "fib/model.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct model model;

// Built-in routes are routes of the model until an explicit one stands over them.
static const char *const builtin_text[] = {"0.0.0.0/8", "127.0.0.0/8", "240.0.0.0/4",
	"169.254.0.0/16", "224.0.0.0/4", "::/128", "::1/128", "fe80::/10", "ff00::/8"};
static const uint8_t builtin_kind[] = {FIB_MARTIAN, FIB_MARTIAN, FIB_MARTIAN, FIB_LINK_LOCAL,
	FIB_MULTICAST, FIB_MARTIAN, FIB_MARTIAN, FIB_LINK_LOCAL, FIB_MULTICAST};

static struct fib_route builtin_route(size_t i)
{
	struct fib_route route = {.hop = {.link = FIB_NO_LINK, .kind = builtin_kind[i]}};

	assert_int_equal(wire_prefix_parse(builtin_text[i], &route.prefix), 0);
	return route;
}

static int builtin_index(const struct wire_prefix *prefix)
{
	for (size_t i = 0; i < ARRAY_LEN(builtin_text); i++) {
		struct fib_route route = builtin_route(i);
		if (!memcmp(&route.prefix, prefix, sizeof(*prefix)))
			return i;
	}
	return -1;
}

static void reset_model(void)
{
	model.n = 0;
	for (size_t i = 0; i < ARRAY_LEN(builtin_text); i++) {
		struct fib_route route = builtin_route(i);
		model_set(&model, &route);
	}
}

static struct fib_hop random_hop(void)
{
	struct fib_hop hop = {.link = model_random(3), .kind = FIB_PEER};

	if (model_random(2))
		hop = (struct fib_hop){.via = {.bytes = {10, 9, 9, model_random(40)}, .family = 4},
			.link = 1,
			.kind = FIB_VIA};
	return hop;
}

// All variants, the address alone and in a full burst of others.
static void variants_agree(const struct fib *fib, const struct wire_addr *addr, uint16_t hop)
{
	static struct fib_key6 dst[64];
	static uint32_t dst4[64];
	static unsigned at;
	struct wire_prefix whole = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};
	uint16_t other[64];
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);

	at = (at + 1) % 64;
	dst[at] = rib_prefix_of(&whole).key;
	dst4[at] = dst[at].high >> 32;
	for (unsigned i = 0; i < n_variants; i++) {
		for (unsigned n = 1 + at; n <= 64; n += 63 - at ? 63 - at : 1) {
			variants[i].six(&fib->view, dst, other, n);
			assert_true(addr->family == 4 || other[at] == hop);
			if (fib->is_small)
				continue; // its IPv4 went through the variant of the view
			variants[i].near4(&fib->view, dst4, other, n);
			assert_true(addr->family == 6 || other[at] == hop);
			variants[i].far4(&fib->view, dst4, other, n);
			assert_true(addr->family == 6 || other[at] == hop);
		}
	}
}

static void check_addr(const struct fib *fib, const struct wire_addr *addr)
{
	int best = model_longest(&model, addr);
	uint16_t hop = fib_look(fib, 0, addr);
	struct fib_answer answer;
	struct fib_hop_info info;

	variants_agree(fib, addr, hop);
	fib_find(fib, 0, addr, &answer);
	assert_int_equal(answer.found, best >= 0);
	assert_int_equal(answer.hop_id, hop);
	if (best < 0) {
		assert_int_equal(hop, 0);
		return;
	}
	assert_memory_equal(&answer.route, &model.route[best], sizeof(answer.route));
	assert_true(fib_hop_info(fib, hop, &info));
	assert_memory_equal(&info.hop, &model.route[best].hop, sizeof(info.hop));
}

static void check_edges(const struct fib *fib, const struct wire_prefix *prefix)
{
	const model_bits unit = prefix->addr.family == 4 ? (model_bits)1 << 96 : 1;
	const model_bits first = model_number(&prefix->addr), last = model_last(prefix);
	const model_bits edge[] = {first - unit, first, first + unit, last - unit, last,
		last + unit};

	for (size_t i = 0; i < ARRAY_LEN(edge); i++) {
		struct wire_addr addr = model_addr(prefix->addr.family, edge[i]);
		check_addr(fib, &addr);
	}
}

static void check_some(const struct fib *fib, uint8_t family, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct wire_addr addr = model_random_addr(family);
		check_addr(fib, &addr);
		const struct fib_route *route = &model.route[model_random(model.n)];
		if (route->prefix.addr.family == family)
			check_edges(fib, &route->prefix);
	}
}

static void check_all(const struct fib *fib)
{
	for (size_t i = 0; i < model.n; i++)
		check_edges(fib, &model.route[i].prefix);
}

// Changes the model, and says what the table must answer.
static int apply_to_model(const struct fib_change *change)
{
	const struct wire_prefix *prefix = &change->route.prefix;
	int at = model_find(&model, prefix), builtin = builtin_index(prefix);
	bool is_builtin =
		builtin >= 0 && at >= 0 && model.route[at].hop.kind == builtin_kind[builtin];
	bool exists = at >= 0 && !is_builtin;

	if (change->op == FIB_ADD && exists)
		return -EEXIST;
	if (change->op == FIB_DELETE && !exists)
		return -ENOENT;
	if (change->op != FIB_DELETE) {
		model_set(&model, &change->route);
	} else if (builtin >= 0) {
		struct fib_route route = builtin_route(builtin);
		model_set(&model, &route);
	} else {
		model_delete(&model, prefix);
	}
	return 0;
}

static struct fib_change random_change(uint8_t family, size_t wanted)
{
	struct fib_change change = {.op = model_random(3),
		.route = {.prefix = model_random_prefix(family), .hop = random_hop()}};

	if (model_random(2) || model.n > wanted + model_random(wanted))
		change.route.prefix = model.route[model_random(model.n)].prefix;
	if (model.n > wanted)
		change.op = FIB_DELETE;
	if (!model_random(100))
		change.route.prefix = builtin_route(model_random(ARRAY_LEN(builtin_text))).prefix;
	return change;
}

static void churn_one_by_one(struct fib *fib, uint8_t family, unsigned n, size_t wanted)
{
	reset_model();
	for (unsigned i = 0; i < n; i++) {
		struct fib_change change = random_change(family, wanted);
		int result = apply_to_model(&change);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), result);
		check_edges(fib, &change.route.prefix);
		check_some(fib, family, 2);
		if (i % 1000 == 999)
			check_all(fib);
	}
	check_all(fib);
	fib_destroy(fib);
}

static void agrees_with_a_list_after_each_ip4_change(void **state)
{
	churn_one_by_one(fib_create(NULL), 4, 3000, 60);
	churn_one_by_one(fib_create(NULL), 4, 2000, 500);
}

static void agrees_with_a_list_after_each_ip6_change(void **state)
{
	churn_one_by_one(fib_create(NULL), 6, 3000, 60);
	churn_one_by_one(fib_create(NULL), 6, 3000, 700);
}

static void a_small_table_agrees_with_a_list_after_each_change(void **state)
{
	churn_one_by_one(fib_create_small(NULL), 4, 3000, 60);
	churn_one_by_one(fib_create_small(NULL), 4, 2000, 700);
	churn_one_by_one(fib_create_small(NULL), 6, 1000, 200);
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

// A further VRF: default routes of both families and eight more.
static void a_small_table_of_ten_routes_takes_less_than_a_mebibyte(void **state)
{
	static const char *const text[] = {"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24",
		"10.1.2.3/32", "::/0", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:1:2::/64",
		"2001:db8:1:2::3/128"};
	struct fib_change change[ARRAY_LEN(text)];
	fib_destroy(fib_create_small(NULL)); // so that code and stack are resident before
	long before = resident_bytes();
	struct fib *fib = fib_create_small(NULL);

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		change[i] = (struct fib_change){.op = FIB_ADD, .route.hop = random_hop()};
		assert_int_equal(wire_prefix_parse(text[i], &change[i].route.prefix), 0);
	}
	assert_int_equal(fib_change(fib, change, ARRAY_LEN(text), NULL, NULL), 0);
	long grown = resident_bytes() - before;

	print_message("%ld KiB resident\n", grown >> 10);
	assert_in_range(grown, 1, 1 << 20);
	fib_destroy(fib);
}

// Batches of both families; some must fail as a whole.
static void agrees_with_a_list_after_each_batch(void **state)
{
	static struct model before;
	static struct fib_change batch[500];
	struct fib *fib = fib_create(NULL);

	reset_model();
	for (unsigned round = 0; round < 150; round++) {
		size_t n = 1 + model_random(round % 3 ? 20 : 500), first_bad = SIZE_MAX,
		       bad = SIZE_MAX;
		int expected = 0;
		before = model;
		for (size_t i = 0; i < n; i++) {
			batch[i] = random_change(model_random(2) ? 4 : 6, 1500);
			if (model_random(1000))
				batch[i].op =
					batch[i].op == FIB_DELETE &&
							model_find(&model,
								&batch[i].route.prefix) >= 0 &&
							builtin_index(&batch[i].route.prefix) < 0
						? FIB_DELETE
						: FIB_REPLACE;
			int result = apply_to_model(&batch[i]);
			if (!expected && result) {
				expected = result;
				first_bad = i;
			}
		}
		assert_int_equal(fib_change(fib, batch, n, &bad, NULL), expected);
		assert_int_equal(bad, first_bad);
		if (expected)
			model = before;
		check_some(fib, 4, 20);
		check_some(fib, 6, 20);
		if (round % 50 == 49)
			check_all(fib);
	}
	check_all(fib);
	fib_destroy(fib);
}

// Units of memory that something holds.
struct used {
	uint32_t nodes, leaf4, tail4, wide6, leaf6, line6;
};

static uint32_t held(const struct blocks *blocks)
{
	return blocks->top - blocks->n_free;
}

static struct used count_used(const struct fib *fib)
{
	return (struct used){held(&fib->rib.nodes), held(&fib->publish4.leaf),
		held(&fib->publish4.tail), held(&fib->publish6.wide), held(&fib->publish6.leaf),
		held(&fib->publish6.line)};
}

static void assert_used(const struct fib *fib, struct used wanted)
{
	struct used found = count_used(fib);

	assert_memory_equal(&found, &wanted, sizeof(found));
}

// 800 /48 and 400 hosts in one /32 come and go: lines become wide blocks, two levels of them, and
// lines again; all they took is given back.
static void grows_and_shrinks_dense_ip6_subtrees(void **state)
{
	struct fib *fib = fib_create(NULL);
	const struct used used = count_used(fib);

	reset_model();
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < 1200; i++) {
			struct fib_change change = {.op = pass ? FIB_DELETE : FIB_ADD,
				.route.hop = random_hop()};
			change.route.prefix =
				(struct wire_prefix){{.bytes = {0x20, 1, 0xd, 0xb8}, .family = 6},
					i % 3 ? 48 : 128};
			change.route.prefix.addr.bytes[4] = i >> 8;
			change.route.prefix.addr.bytes[5] = i;
			if (i % 3 == 0)
				change.route.prefix.addr.bytes[14] = i * 7;
			assert_int_equal(apply_to_model(&change), 0);
			assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
			check_edges(fib, &change.route.prefix);
			if (i % 100 == 0)
				check_all(fib);
		}
		check_all(fib);
		assert_int_equal(count_used(fib).wide6 - used.wide6, pass ? 0 : 2);
	}
	assert_used(fib, used);
	fib_destroy(fib);
}

// Deleting all gives all memory back but what the built-in routes need.
static void leaks_no_blocks(void **state)
{
	struct fib *fib = fib_create(NULL);
	const struct used used = count_used(fib);

	reset_model();
	for (unsigned i = 0; i < 4000; i++) {
		struct fib_change change = random_change(i & 1 ? 4 : 6, 1500);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), apply_to_model(&change));
	}
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct fib_change change = {.op = FIB_DELETE};
		while (model_next(fib, family, NULL, &change.route))
			assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	assert_used(fib, used);
	struct fib_usage usage;
	fib_usage(fib, &usage);
	assert_int_equal(usage.n_routes4 + usage.n_routes6, 0);
	assert_int_equal(usage.n_hops, 3); // martian, link-local, multicast
	fib_destroy(fib);
}

static int by_prefix(const void *a, const void *b)
{
	const struct wire_prefix *x = &((const struct fib_route *)a)->prefix,
				 *y = &((const struct fib_route *)b)->prefix;
	int order = memcmp(x->addr.bytes, y->addr.bytes, 16);

	return order ? order : x->len - y->len;
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
			.route = {.prefix = model_random_prefix(6), .hop = random_hop()}};
		model_set(&model, &change.route);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	qsort(model.route, model.n, sizeof(model.route[0]), by_prefix);
	for (size_t i = 0; i < model.n; i++) {
		assert_true(model_next(fib, 6, i ? &model.route[i - 1].prefix : NULL, &route));
		assert_memory_equal(&route, &model.route[i], sizeof(route));
	}
	assert_false(model_next(fib, 6, &model.route[model.n - 1].prefix, &route));
	for (unsigned i = 0; i < 1000; i++) { // also after prefixes that are no routes
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_table_of_ten_routes_takes_less_than_a_mebibyte),
		cmocka_unit_test(agrees_with_a_list_after_each_ip4_change),
		cmocka_unit_test(agrees_with_a_list_after_each_ip6_change),
		cmocka_unit_test(a_small_table_agrees_with_a_list_after_each_change),
		cmocka_unit_test(agrees_with_a_list_after_each_batch),
		cmocka_unit_test(grows_and_shrinks_dense_ip6_subtrees),
		cmocka_unit_test(leaks_no_blocks),
		cmocka_unit_test(lists_routes_in_order_without_built_in_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
