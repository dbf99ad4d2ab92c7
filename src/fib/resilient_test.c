// Resilient groups: which buckets move after a change of the members, and when. Control thread.
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t SECOND = 1000000000;
static const struct fib_resilience HOUR = {.key = 10, .idle_ms = 3600000};

// A table with a route to 20.0.0.0/8 by the group, and a clock.
struct lab {
	struct fib *fib;
	uint64_t now_ns;
	struct fib_hop group;
	struct fib_member member[4];
	uint32_t before[FIB_GROUP_BUCKETS];
};

static struct fib_member via(unsigned i, uint8_t weight)
{
	return (struct fib_member){.hop = {.via = {.family = 4, .bytes = {10, 0, i, 2}},
					   .iface = i,
					   .kind = FIB_VIA},
		.weight = weight};
}

static void set_route(struct lab *lab)
{
	struct fib_change change = {.op = FIB_REPLACE, .route.hop = lab->group};

	assert_int_equal(wire_prefix_parse("20.0.0.0/8", &change.route.prefix), 0);
	assert_int_equal(fib_change(lab->fib, &change, 1, NULL, NULL), 0);
}

// As the mirror does it: the group, then its routes.
static void set_group(struct lab *lab, const struct fib_resilience *resilience, unsigned n)
{
	assert_int_equal(fib_resilient_group(lab->fib, resilience, lab->member, n, &lab->group,
				 NULL),
		0);
	set_route(lab);
}

static struct lab open_unpolled_lab(const struct fib_resilience *resilience)
{
	struct lab lab = {.fib = fib_create(NULL),
		.now_ns = 40000 * SECOND, // of a machine that has been up for some hours
		.member = {via(1, 1), via(2, 1), via(3, 2)}};

	assert_non_null(lab.fib);
	set_group(&lab, resilience, 2);
	return lab;
}

static struct lab open_lab(const struct fib_resilience *resilience)
{
	struct lab lab = open_unpolled_lab(resilience);

	fib_groups_poll(lab.fib, lab.now_ns);
	return lab;
}

static uint32_t first_bucket(const struct lab *lab)
{
	struct wire_addr dst = {.family = 4, .bytes = {20, 1, 2, 3}};
	uint32_t id = fib_lookup(lab->fib, 0, &dst);

	assert_int_equal(lab->fib->view.hops[id].kind, FIB_HOP_GROUP);
	assert_true(fib_entry_is_resilient(&lab->fib->view.hops[id]));
	return fib_entry_group(&lab->fib->view.hops[id]);
}

// Packets to every `step`th bucket.
static void use(const struct lab *lab, unsigned step)
{
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i += step)
		fib_bucket_use(&lab->fib->view, first_bucket(lab) + i);
}

static void remember(struct lab *lab)
{
	memcpy(lab->before, &lab->fib->view.bucket[first_bucket(lab)], sizeof(lab->before));
}

// Buckets moved since remember(), among every `step`th one.
static unsigned count_moved(const struct lab *lab, unsigned step)
{
	const uint32_t *bucket = &lab->fib->view.bucket[first_bucket(lab)];
	unsigned n = 0;

	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i += step)
		n += bucket[i] != lab->before[i];
	return n;
}

static unsigned count_of(const struct lab *lab, unsigned member)
{
	const uint32_t *bucket = &lab->fib->view.bucket[first_bucket(lab)];
	uint32_t id = hops_find(&lab->fib->hops, &lab->member[member].hop);
	unsigned n = 0;

	for (unsigned i = 0; id && i < FIB_GROUP_BUCKETS; i++)
		n += bucket[i] == id;
	return n;
}

static void pass(struct lab *lab, uint64_t seconds)
{
	lab->now_ns += seconds * SECOND;
	fib_groups_poll(lab->fib, lab->now_ns);
}

static void no_bucket_in_use_moves_when_weights_change(void **state)
{
	struct lab lab = open_lab(&HOUR);

	use(&lab, 1);
	remember(&lab);
	lab.member[1].weight = 9;
	set_group(&lab, &HOUR, 2);
	pass(&lab, 3000);
	assert_int_equal(count_moved(&lab, 1), 0);
	fib_destroy(lab.fib);
}

static void a_use_before_the_first_poll_is_a_recent_one(void **state)
{
	struct lab lab = open_unpolled_lab(&HOUR);

	use(&lab, 1);
	remember(&lab);
	pass(&lab, 0);
	lab.member[1].weight = 9;
	set_group(&lab, &HOUR, 2);
	assert_int_equal(count_moved(&lab, 1), 0);
	fib_destroy(lab.fib);
}

static void idle_buckets_move_at_once_up_to_the_new_share(void **state)
{
	struct lab lab = open_lab(&HOUR);

	use(&lab, 8);
	remember(&lab);
	lab.member[1].weight = 3;
	set_group(&lab, &HOUR, 2);
	assert_int_equal(count_of(&lab, 0), 256);
	assert_int_equal(count_of(&lab, 1), 768);
	assert_int_equal(count_moved(&lab, 8), 0);
	assert_int_equal(count_moved(&lab, 1), 256);
	fib_destroy(lab.fib);
}

static void a_third_member_gets_the_buckets_that_become_idle(void **state)
{
	struct lab lab = open_lab(&HOUR);

	use(&lab, 1);
	remember(&lab);
	set_group(&lab, &HOUR, 3);
	assert_int_equal(count_of(&lab, 2), 0);
	pass(&lab, 3000);
	use(&lab, 2);
	pass(&lab, 601); // the others have been idle for an hour
	assert_int_equal(count_of(&lab, 2), 512);
	assert_int_equal(count_moved(&lab, 2), 0);
	fib_destroy(lab.fib);
}

static void an_idle_timer_of_zero_moves_all_buckets_at_once(void **state)
{
	const struct fib_resilience none = {.key = 10};
	struct lab lab = open_lab(&none);

	use(&lab, 1);
	lab.member[1].weight = 3;
	set_group(&lab, &none, 2);
	assert_int_equal(count_of(&lab, 1), 768);
	fib_destroy(lab.fib);
}

static void a_removed_members_buckets_move_at_once_and_no_others(void **state)
{
	struct lab lab = open_lab(&HOUR);

	set_group(&lab, &HOUR, 3);
	use(&lab, 1);
	remember(&lab);
	assert_int_equal(count_of(&lab, 2), 512);
	set_group(&lab, &HOUR, 2);
	assert_int_equal(count_moved(&lab, 1), 512);
	assert_int_equal(count_of(&lab, 0), 512);
	assert_int_equal(count_of(&lab, 1), 512);
	assert_int_equal(hops_find(&lab.fib->hops, &lab.member[2].hop), 0);
	fib_destroy(lab.fib);
}

static void moves_are_forced_when_the_group_was_unbalanced_for_too_long(void **state)
{
	const struct fib_resilience forced = {.key = 10,
		.idle_ms = 3600000,
		.unbalanced_ms = 60000};
	struct lab lab = open_lab(&forced);

	use(&lab, 1);
	remember(&lab);
	lab.member[1].weight = 3;
	set_group(&lab, &forced, 2);
	pass(&lab, 50);
	lab.member[1].weight = 7; // still unbalanced: the timer goes on
	set_group(&lab, &forced, 2);
	assert_int_equal(count_moved(&lab, 1), 0);
	pass(&lab, 11);
	assert_int_equal(count_of(&lab, 0), 128);
	assert_int_equal(count_of(&lab, 1), 896);
	fib_destroy(lab.fib);
}

static void a_bucket_is_idle_again_after_it_was_moved(void **state)
{
	struct lab lab = open_lab(&HOUR);

	pass(&lab, 1);
	lab.member[1].weight = 3;
	set_group(&lab, &HOUR, 2);
	use(&lab, 1);
	lab.member[1].weight = 1;
	set_group(&lab, &HOUR, 2);
	assert_int_equal(count_of(&lab, 1), 768);
	pass(&lab, 3601);
	assert_int_equal(count_of(&lab, 1), 512);
	lab.member[1].weight = 3; // those that moved were not used since; the others are idle too
	set_group(&lab, &HOUR, 2);
	assert_int_equal(count_of(&lab, 1), 768);
	fib_destroy(lab.fib);
}

static void the_hop_of_a_group_stays_the_same_whatever_its_members(void **state)
{
	struct lab lab = open_lab(&HOUR);
	struct fib_resilience other = HOUR;
	struct fib_member seen[4];
	struct fib_hop before = lab.group, second;
	uint32_t first = first_bucket(&lab);

	set_group(&lab, &HOUR, 3);
	assert_memory_equal(&lab.group, &before, sizeof(before));
	assert_int_equal(first_bucket(&lab), first);
	assert_int_equal(fib_group_members(lab.fib, &lab.group, seen, 4), 3);
	other.key = 11;
	assert_int_equal(fib_resilient_group(lab.fib, &other, lab.member, 3, &second, NULL), 0);
	assert_memory_not_equal(&second, &before, sizeof(before));
	assert_int_equal(fib_group(lab.fib, lab.member, 3, &second, NULL), 0);
	assert_memory_not_equal(&second, &before, sizeof(before));
	fib_destroy(lab.fib);
}

static void two_members_with_one_gateway_share_their_buckets(void **state)
{
	struct lab lab = open_lab(&HOUR);

	use(&lab, 1);
	remember(&lab);
	lab.member[2] = lab.member[0];
	lab.member[3] = lab.member[1];
	set_group(&lab, &HOUR, 4);
	assert_int_equal(count_moved(&lab, 1), 0);
	assert_int_equal(count_of(&lab, 0), 512);
	pass(&lab, 7200);
	assert_int_equal(count_moved(&lab, 1), 0);
	fib_destroy(lab.fib);
}

static void nothing_is_left_when_a_resilient_group_has_changed_and_gone(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct lab lab = {.fib = fib};
	struct fib_usage before, after;

	fib_usage(fib, &before);
	for (unsigned i = 0; i < 5000; i++) {
		for (unsigned m = 0; m < 4; m++)
			lab.member[m] = via((i + m * 7) % 40, 1 + i % 5);
		set_group(&lab, &HOUR, 1 + i % 4);
	}
	struct fib_change del = {.op = FIB_DELETE};
	assert_int_equal(wire_prefix_parse("20.0.0.0/8", &del.route.prefix), 0);
	assert_int_equal(fib_change(fib, &del, 1, NULL, NULL), 0);
	fib_change(fib, NULL, 0, NULL, NULL); // the members are swept after their group
	fib_usage(fib, &after);
	assert_int_equal(after.n_hops, before.n_hops);
	assert_int_equal(fib->groups.n_groups, 1);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_bucket_in_use_moves_when_weights_change),
		cmocka_unit_test(a_use_before_the_first_poll_is_a_recent_one),
		cmocka_unit_test(idle_buckets_move_at_once_up_to_the_new_share),
		cmocka_unit_test(a_third_member_gets_the_buckets_that_become_idle),
		cmocka_unit_test(an_idle_timer_of_zero_moves_all_buckets_at_once),
		cmocka_unit_test(a_removed_members_buckets_move_at_once_and_no_others),
		cmocka_unit_test(moves_are_forced_when_the_group_was_unbalanced_for_too_long),
		cmocka_unit_test(a_bucket_is_idle_again_after_it_was_moved),
		cmocka_unit_test(the_hop_of_a_group_stays_the_same_whatever_its_members),
		cmocka_unit_test(two_members_with_one_gateway_share_their_buckets),
		cmocka_unit_test(nothing_is_left_when_a_resilient_group_has_changed_and_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
