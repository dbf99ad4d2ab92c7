// What happens to the tokens of rules when lists are built again, and rules that share a bucket.
// Time stands still.
#include "acl/testing.h"

#include <errno.h>
#include <rte_cycles.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { EAL_MIB = 256, MOST_RULES = 4 };
#define STANDSTILL (1ull << 62) // ticks a second: no rate has tokens for the time of this test

static struct acl_table *table;

static const char *iface_name(void *ctx, unsigned iface)
{
	(void)ctx;
	return iface ? "west" : "east";
}

static int open_table(void **state)
{
	const struct acl_settings settings = {.n_workers = 1,
		.iface_name = iface_name,
		.n_ifaces = 2,
		.hz = STANDSTILL};

	(void)state;
	return acl_open(&table, &settings, NULL);
}

static int close_table(void **state)
{
	(void)state;
	acl_close(table);
	return 0;
}

// A list for `east`, and one for `west`.
static int apply(const char *const east[], const char *const west[], struct error *error)
{
	const char *const *text[] = {east, west};
	struct acl_rule rule[2][MOST_RULES];
	struct acl_source source[] = {{"east", rule[0], 0, false}, {"west", rule[1], 0, false}};
	struct acl_use use[] = {{"east", "east", ACL_IN}, {"west", "west", ACL_IN}};
	const struct acl_set set = {source, use, 2, 2};

	for (unsigned i = 0; i < 2; i++)
		for (; text[i] && text[i][source[i].n]; source[i].n++)
			if (acl_rule_parse(&rule[i][source[i].n], text[i][source[i].n], error))
				fail_msg("%s", error->text);
	int err = acl_set_check_buckets(&set, error);

	return err ? err : acl_apply(table, &set, error);
}

#define RULES(...) ((const char *[MOST_RULES + 1]){__VA_ARGS__})

static const struct acl_policer *policer_of(unsigned iface, size_t rule)
{
	const struct acl_view *view = acl_live_view(acl_live(table));
	const struct acl_policer *policer = acl_view_list(view, ACL_IN, iface)->policer;

	return policer ? &policer[rule] : NULL;
}

static uint64_t left(unsigned iface, size_t rule)
{
	return police_left(policer_of(iface, rule)->police, rte_rdtsc());
}

static void take(unsigned iface, size_t rule, uint32_t bytes)
{
	assert_int_equal(police_take(policer_of(iface, rule)->police, rte_rdtsc(), &bytes, 1), 1);
	acl_count_packet(acl_live(table)->count[0], policer_of(iface, rule)->red, 100);
}

static void lists_without_rates_have_no_policers(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(apply(RULES("permit udp", "deny"), NULL, &error), 0);
	assert_null(policer_of(0, 1));
	assert_int_equal(acl_rule_red(table, "east", 1).packets, 0);
}

static void tokens_and_counters_survive_a_rebuild_by_name(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(apply(RULES("permit udp name a police.rate 1Mbit/s police.burst 9kB"),
				 NULL, &error),
		0);
	take(0, 1, 4000);
	assert_int_equal(apply(RULES("deny tcp",
				       "permit udp name a police.rate 1Mbit/s police.burst 9kB"),
				 NULL, &error),
		0);
	assert_null(policer_of(0, 1)->police);
	assert_int_equal(left(0, 2), 5000);
	assert_int_equal(acl_rule_red(table, "east", 2).packets, 1);
	assert_int_equal(acl_rule_red(table, "east", 2).bytes, 100);
	assert_int_equal(apply(RULES("permit udp name b police.rate 1Mbit/s police.burst 9kB"),
				 NULL, &error),
		0);
	assert_int_equal(left(0, 1), 9000);
	assert_int_equal(acl_rule_red(table, "east", 1).packets, 0);
}

static void another_rate_or_burst_gives_no_tokens(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(apply(RULES("permit police.rate 1Mbit/s police.burst 9kB"), NULL, &error),
		0);
	take(0, 1, 4000);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(
			apply(i & 1 ? RULES("permit police.rate 1Mbit/s police.burst 9kB")
				    : RULES("permit police.rate 9Gbit/s police.burst 90kB"),
				NULL, &error),
			0);
		assert_int_equal(left(0, 1), 5000);
	}
	assert_int_equal(apply(RULES("permit police.rate 1Mbit/s police.burst 2kB"), NULL, &error),
		0);
	assert_int_equal(left(0, 1), 2000);
	assert_int_equal(apply(RULES("permit police.rate 1Mbit/s police.burst 9kB"), NULL, &error),
		0);
	assert_int_equal(left(0, 1), 2000);
}

static void what_is_not_applied_changes_no_rate(void **state)
{
	struct acl_rule rule;
	struct acl_source source = {"east", &rule, 1, false};
	struct acl_use use = {"east", "east", ACL_IN};
	struct acl_pending *pending;
	struct error error;

	(void)state;
	assert_int_equal(apply(RULES("permit police.rate 1Mbit/s police.burst 9kB"), NULL, &error),
		0);
	assert_int_equal(acl_rule_parse(&rule, "permit police.rate 1Mbit/s police.burst 2kB",
				 &error),
		0);
	assert_int_equal(acl_prepare(table, &(struct acl_set){&source, &use, 1, 1}, &pending,
				 &error),
		0);
	assert_int_equal(left(0, 1), 9000);
	acl_drop(table, pending);
	assert_int_equal(left(0, 1), 9000);
}

static void a_named_bucket_is_one_for_all_lists(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(
		apply(RULES("permit udp police.rate 1Mbit/s police.burst 9kB police.bucket x",
			      "permit tcp police.rate 1Mbit/s police.burst 9kB police.bucket y"),
			RULES("permit police.rate 1Mbit/s police.burst 9kB police.bucket x"),
			&error),
		0);
	assert_ptr_equal(policer_of(0, 1)->police, policer_of(1, 1)->police);
	assert_ptr_not_equal(policer_of(0, 2)->police, policer_of(1, 1)->police);
	take(0, 1, 4000);
	assert_int_equal(left(1, 1), 5000);
	assert_int_equal(left(0, 2), 9000);
	assert_int_equal(
		apply(NULL, RULES("permit police.rate 1Mbit/s police.burst 9kB police.bucket x"),
			&error),
		0);
	assert_int_equal(left(1, 1), 5000);
}

static void a_bucket_with_two_rates_is_refused(void **state)
{
	struct error error = {""};

	(void)state;
	assert_int_equal(apply(RULES("permit police.rate 1Mbit/s police.bucket x"),
				 RULES("deny tcp", "permit police.rate 2Mbit/s police.bucket x"),
				 &error),
		-EINVAL);
	assert_string_equal(error.text,
		"police.bucket 'x': list 'east', rule 1 and list 'west', rule 2 have different "
		"rates or bursts; give them the same");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_without_rates_have_no_policers, open_table,
			close_table),
		cmocka_unit_test_setup_teardown(tokens_and_counters_survive_a_rebuild_by_name,
			open_table, close_table),
		cmocka_unit_test_setup_teardown(another_rate_or_burst_gives_no_tokens, open_table,
			close_table),
		cmocka_unit_test_setup_teardown(what_is_not_applied_changes_no_rate, open_table,
			close_table),
		cmocka_unit_test_setup_teardown(a_named_bucket_is_one_for_all_lists, open_table,
			close_table),
		cmocka_unit_test_setup_teardown(a_bucket_with_two_rates_is_refused, open_table,
			close_table),
	};

	if (!testing_start_eal(EAL_MIB))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
