// Pipelined IPv4 lookups, with changes of the table between the stages. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/lookup.h"
#include "fib/model.h"
#include "fib/table.h"
#include "rcu/rcu_fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t UNTOUCHED = UINT32_MAX;

static struct fib *fib;
static struct rcu *rcu;

// All within two nodes, so that leaves move in and out of them and tails are added and deleted.
static uint32_t random_addr(void)
{
	return 0x14010000 | model_random(0x3fff);
}

static void change(void)
{
	unsigned len = model_random(3) ? 20 + model_random(5) : 25 + model_random(8);
	uint32_t addr = random_addr() >> (32 - len) << (32 - len);
	struct fib_change change = {.op = model_random(2) ? FIB_REPLACE : FIB_DELETE,
		.route = {.prefix = {model_addr(4, (model_bits)addr << 96), len},
			.hop = {.iface = 1,
				.via = {.bytes = {10, 0, model_random(2), model_random(200)},
					.family = 4}}}};

	fib_change(fib, &change, 1, NULL, NULL); // fails if the prefix is absent
}

static void change_some(void)
{
	for (unsigned n = model_random(8); n; n--)
		change();
}

static void look(const uint32_t dst[], uint32_t hop[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct wire_addr addr = model_addr(4, (model_bits)dst[i] << 96);

		hop[i] = fib_lookup(fib, 0, &addr);
	}
}

// n lookups with changes in between; returns how many results would differ at their end.
static unsigned look_in_parts(const struct lookups *lookups, const struct fib_view *view,
	unsigned n)
{
	uint32_t *dst = calloc(n, sizeof(*dst)); // ASan checks accesses past its end
	uint32_t first[FIB_BURST4], last[FIB_BURST4], hop[FIB_BURST4 + 1];
	struct fib_lookup4_state lookup = {.n = n};
	unsigned n_changed = 0;

	for (unsigned i = 0; i < n; i++)
		dst[i] = random_addr();
	memset(hop, 0xff, sizeof(hop));
	look(dst, first, n);
	lookups->begin4(view, dst, hop, &lookup);
	change_some();
	fib_lookup4_continue(view, hop, &lookup);
	change_some();
	fib_lookup4_end(view, dst, hop, &lookup);
	look(dst, last, n);
	assert_memory_equal(hop, first, n * sizeof(*hop));
	for (unsigned i = 0; i < n; i++)
		n_changed += last[i] != first[i];
	assert_int_equal(hop[n], UNTOUCHED);
	free(dst);
	return n_changed;
}

static void look_while_routes_change(bool has_wide_ids)
{
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);
	const struct rcu_readers *workers;
	const unsigned n_rounds = churn_rounds(6000);
	struct fib_live live = {0};

	rcu = rcu_create(1, NULL);
	live.rcu = rcu;
	workers = rcu_readers(rcu);
	fib = fib_create(NULL);
	assert_null(fib_live_swap(&live, fib));
	rcu_reader_online(workers, 0);
	for (unsigned i = 0; i < 100; i++)
		change();
	if (has_wide_ids)
		churn_take_narrow_ids(fib);
	for (unsigned k = 0; k < n_variants; k++) {
		unsigned n_changed = 0;

		for (unsigned i = 0; i < n_rounds; i++) {
			n_changed += look_in_parts(&variants[k], fib_live_view(&live),
				i % 2 ? FIB_BURST4 : 1 + model_random(FIB_BURST4));
			rcu_reader_report(workers, 0);
			rcu_poll(rcu);
		}
		assert_int_not_equal(n_changed, 0);
	}
	rcu_reader_offline(workers, 0);
	assert_ptr_equal(fib_live_swap(&live, NULL), fib);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

static void an_answer_is_of_the_moment_its_lookup_began(void **state)
{
	look_while_routes_change(false);
}

static void an_answer_with_wide_ids_is_of_the_moment_its_lookup_began(void **state)
{
	look_while_routes_change(true);
}

// A single packet, whose node has a tail, and then also leaves outside. The places that fill the
// burst up to a vector are neither read nor written.
static void a_burst_of_one_touches_nothing_else(void **state)
{
	static const uint32_t alone = 5;
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);
	struct fib_change change = {.route.hop = {.iface = 1, .via.family = 4}};

	fib = fib_create(NULL);
	for (unsigned n = 0; n < 8; n++) {
		change.route.prefix =
			(struct wire_prefix){model_addr(4, (model_bits)n << 104), n ? 24 : 25};
		change.route.hop.via.bytes[0] = n;
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
		for (unsigned k = 0; k < n_variants; k++) {
			uint32_t *dst = malloc(sizeof(*dst)); // ASan checks accesses past its end
			uint32_t expected, hop[2] = {0, UNTOUCHED};

			*dst = alone;
			look(dst, &expected, 1);
			assert_int_not_equal(expected, 0);
			variants[k].far4(&fib->view, dst, hop, 1);
			assert_int_equal(hop[0], expected);
			struct fib_lookup4_state lookup = {.n = 1};
			variants[k].begin4(&fib->view, dst, hop, &lookup);
			assert_true((lookup.outside | lookup.tails) <= 1);
			fib_lookup4_continue(&fib->view, hop, &lookup);
			fib_lookup4_end(&fib->view, dst, hop, &lookup);
			assert_int_equal(hop[0], expected);
			assert_int_equal(hop[1], UNTOUCHED);
			free(dst);
		}
	}
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_of_the_moment_its_lookup_began),
		cmocka_unit_test(an_answer_with_wide_ids_is_of_the_moment_its_lookup_began),
		cmocka_unit_test(a_burst_of_one_touches_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
