// The filter of our own addresses, compared with a list of routes. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FEW = 20, ADDRESSES = 200000 };
static struct model model[CHURN_VRFS];

static void change(struct fib *fib, enum fib_op op, const char *prefix, uint16_t vrf)
{
	struct fib_change one = {.op = op,
		.route = {.vrf = vrf, .hop = {.kind = FIB_LOCAL, .iface = IFACE_NONE}}};

	assert_int_equal(wire_prefix_parse(prefix, &one.route.prefix), 0);
	assert_int_equal(fib_change(fib, &one, 1, NULL, NULL), 0);
}

static bool may_be_ours(const struct fib *fib, const char *addr)
{
	const struct fib_view *views[] = {&fib->view, &fib->view.vrfs[0], &fib->view.vrfs[4095]};
	struct wire_addr parsed;

	assert_int_equal(wire_addr_parse(addr, &parsed), 0);
	uint32_t number = model_number(&parsed) >> 96;
	bool may_be = fib_source_may_be_ours(views[0]->sources, number);
	for (unsigned i = 0; i < ARRAY_LEN(views); i++)
		assert_int_equal(fib_source_may_be_ours(views[i]->sources, number), may_be);
	return may_be;
}

static unsigned count_suspects(const struct fib *fib)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ADDRESSES; i++)
		n += fib_source_may_be_ours(fib->view.sources, model_random(UINT32_MAX));
	return n;
}

static bool is_empty(const struct fib *fib)
{
	uint32_t any = 0;

	for (unsigned i = 0; i < FIB_SOURCE_WORDS; i++)
		any |= fib->view.sources->word[i];
	return !any;
}

static void an_address_is_in_it_while_it_is_ours(void **state)
{
	struct fib *fib = churn_fib(model);

	assert_true(is_empty(fib));
	change(fib, FIB_ADD, "192.0.2.1/32", 0);
	change(fib, FIB_ADD, "192.0.2.1/32", 4095);
	assert_true(may_be_ours(fib, "192.0.2.1"));
	assert_false(may_be_ours(fib, "192.0.2.2"));
	change(fib, FIB_REPLACE, "192.0.2.1/32", 0);
	change(fib, FIB_DELETE, "192.0.2.1/32", 0);
	assert_true(may_be_ours(fib, "192.0.2.1"));
	fib_vrf_close(fib, 4095);
	assert_true(is_empty(fib));
	fib_destroy(fib);
}

static void neither_ip6_nor_loopback_counts(void **state)
{
	struct fib *fib = churn_fib(model);

	change(fib, FIB_ADD, "2001:db8::1/128", 0);
	change(fib, FIB_REPLACE, "127.0.0.0/8", 0);
	change(fib, FIB_ADD, "127.0.0.1/32", 0);
	assert_true(is_empty(fib));
	fib_destroy(fib);
}

static void a_broad_local_route_makes_all_addresses_suspect(void **state)
{
	struct fib *fib = churn_fib(model);

	change(fib, FIB_ADD, "192.0.2.1/32", 0);
	change(fib, FIB_ADD, "198.18.0.0/15", 1);
	assert_int_equal(count_suspects(fib), ADDRESSES);
	change(fib, FIB_ADD, "192.0.2.2/32", 0);
	change(fib, FIB_DELETE, "198.18.0.0/15", 1);
	assert_true(may_be_ours(fib, "192.0.2.1") && may_be_ours(fib, "192.0.2.2"));
	assert_in_range(count_suspects(fib), 0, ADDRESSES / 200);
	fib_destroy(fib);
}

static void few_addresses_leave_few_others_suspect(void **state)
{
	struct fib *fib = churn_fib(model);
	char text[WIRE_PREFIX_TEXT];

	for (unsigned i = 0; i < FEW; i++) {
		snprintf(text, sizeof(text), "10.0.%u.1/32", i);
		change(fib, FIB_ADD, text, 0);
	}
	assert_in_range(count_suspects(fib), 1, ADDRESSES / 100);
	fib_destroy(fib);
}

static void expect_all_in(const struct fib *fib, const struct model *own)
{
	for (size_t i = 0; i < own->n; i++) {
		const struct fib_route *route = &own->route[i];
		uint32_t addr = model_number(&route->prefix.addr) >> 96;

		if (route->hop.kind == FIB_LOCAL && addr >> 24 != 127)
			assert_true(fib_source_may_be_ours(fib->view.sources, addr));
	}
}

static void delete_all(struct fib *fib, const struct model *own)
{
	for (size_t i = 0; i < own->n; i++) {
		struct fib_change gone = {.op = FIB_DELETE, .route = own->route[i]};

		if (churn_builtin(&gone.route.prefix) < 0)
			assert_int_equal(fib_change(fib, &gone, 1, NULL, NULL), 0);
	}
}

// Whatever sequence of kinds a prefix gets, in batches too, the filter ends as it began.
static void nothing_is_left_of_many_changes(void **state)
{
	struct fib *fib = churn_fib(model);

	for (unsigned i = 0; i < 20000; i++) {
		struct model *own = &model[model_random(CHURN_VRFS)];
		struct fib_change some = churn_change(own, 4, 100);

		some.route.prefix.len = 32 - 8 * !model_random(50);
		wire_prefix_mask(&some.route.prefix);
		if (churn_builtin(&some.route.prefix) >= 0 || some.op == FIB_DELETE)
			continue;
		if (model_find(own, &some.route.prefix) >= 0 && model_random(2))
			some.op = FIB_DELETE;
		else
			some.op = FIB_REPLACE;
		some.route.hop.kind = model_random(2) ? FIB_LOCAL : FIB_BLACKHOLE;
		some.route.hop.iface = IFACE_NONE;
		int result = churn_apply(own, &some);
		assert_int_equal(fib_change(fib, &some, 1, NULL, NULL), result);
		if (i % 100 == 0)
			expect_all_in(fib, own);
	}
	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		expect_all_in(fib, &model[i]);
		delete_all(fib, &model[i]);
	}
	assert_true(is_empty(fib));
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_in_it_while_it_is_ours),
		cmocka_unit_test(neither_ip6_nor_loopback_counts),
		cmocka_unit_test(a_broad_local_route_makes_all_addresses_suspect),
		cmocka_unit_test(few_addresses_leave_few_others_suspect),
		cmocka_unit_test(nothing_is_left_of_many_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
