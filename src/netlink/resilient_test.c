// Routes by resilient next-hop objects: what the kernel reports, and which buckets move then.
#include "netlink/fake_ifaces.h"

#include "fib/fib_fast.h"
#include "rcu/rcu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct rcu *rcu;
static struct fib_live live;
static const struct fib_view *view; // as a worker reads it

static int setup(void **state)
{
	fake_setup(state);
	rcu = rcu_create(1, NULL);
	assert_non_null(rcu);
	live = (struct fib_live){.rcu = rcu};
	fib_live_swap(&live, fake.fib);
	view = fib_live_view(&live);
	return 0;
}

static int teardown(void **state)
{
	fib_live_swap(&live, NULL);
	rcu_destroy(rcu);
	return fake_teardown(state);
}

// The bucket table of a resilient group's route, and how many of its buckets lead elsewhere than
// before.
static uint32_t buckets_of(const char *text)
{
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	const struct fib_hop_entry *entry = &view->hops[fib_lookup(fake.fib, 0, &addr)];
	assert_int_equal(entry->kind, FIB_HOP_GROUP);
	assert_true(fib_entry_is_resilient(entry));
	return fib_entry_group(entry);
}

// Packets to all buckets, and where they go.
static uint32_t use_all(const char *text, uint32_t hop[])
{
	const uint32_t first = buckets_of(text);

	fib_groups_poll(fake.fib, 0);
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++)
		hop[i] = fib_bucket_use(view, first + i);
	return first;
}

static unsigned count_moved(const char *text, const uint32_t before[])
{
	const uint32_t first = buckets_of(text);
	unsigned n = 0;

	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++)
		n += view->bucket[first + i] != before[i];
	return n;
}

static void a_resilient_group_moves_no_bucket_in_use(void **state)
{
	uint32_t before[FIB_GROUP_BUCKETS];

	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("id 2 via 10.2.0.2 dev 2");
	fake_say("id 3 via 10.3.0.2 dev 3");
	fake_say("id 10 group 1/2 type resilient idle_timer 3600 unbalanced_timer 7200");
	fake_say("20.0.0.0/8 nhid 10");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	const uint32_t first = use_all("20.0.0.1", before);
	fake_say("id 10 group 1,1/2,9 type resilient idle_timer 3600 unbalanced_timer 7200");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 9");
	assert_int_equal(count_moved("20.0.0.1", before), 0);
	fake_say("id 10 group 1/2/3 type resilient idle_timer 3600 unbalanced_timer 7200");
	ASK("20.0.0.1",
		"10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1, 10.3.0.2 dev 3 weight 1");
	assert_int_equal(count_moved("20.0.0.1", before), 0);
	fake_say("21.0.0.0/8 nhid 10 metric 9"); // another set with the same object
	ASK("21.0.0.1",
		"10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1, 10.3.0.2 dev 3 weight 1");
	assert_int_equal(buckets_of("21.0.0.1"), first);
	fib_groups_poll(fake.fib, 3700ull * 1000000000); // all idle
	assert_in_range(count_moved("20.0.0.1", before), 340, 343);
}

// The group was in use with one member, so it has a table then, too.
static void a_resilient_group_keeps_its_buckets_with_one_member(void **state)
{
	uint32_t before[FIB_GROUP_BUCKETS];

	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("id 2 via 10.2.0.2 dev 2");
	fake_say("id 10 group 1 type resilient idle_timer 60");
	fake_say("20.0.0.0/8 nhid 10");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 1");
	use_all("20.0.0.1", before);
	fake_say("id 10 group 1/2 type resilient idle_timer 60");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	assert_int_equal(count_moved("20.0.0.1", before), 0);
	fake_say("deleted id 1"); // its buckets lead nowhere
	ASK("20.0.0.1", "10.2.0.2 dev 2 weight 1");
	assert_int_equal(count_moved("20.0.0.1", before), FIB_GROUP_BUCKETS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_resilient_group_moves_no_bucket_in_use),
		TEST(a_resilient_group_keeps_its_buckets_with_one_member),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
