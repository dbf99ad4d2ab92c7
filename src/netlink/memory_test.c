// Memory that is short: each allocation fails in turn while the mirror and the fib are opened and
// while they follow changes. Tests only.
#include "netlink/fake_linux.h"
#include "rcu/rcu.h"

#include "base/fail_alloc.h"
#include "netlink/inside.h"
#include "netlink/routes_inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ALLOCATIONS = 1000 };

// Opens and closes something with each allocation failing in turn, until one attempt needs no more.
static unsigned fail_in_turn(int (*open_and_close)(struct error *error))
{
	for (unsigned n = 1; n < MOST_ALLOCATIONS; n++) {
		struct error error = {""};
		size_t n_mapped = fail_alloc_n_mapped();

		fail_alloc_at(n);
		int err = open_and_close(&error);
		bool has_failed = fail_alloc_n_failed();
		fail_alloc_at(0);
		assert_int_equal(fail_alloc_n_mapped(), n_mapped);
		if (!has_failed) {
			assert_int_equal(err, 0);
			return n - 1;
		}
		assert_int_equal(err, -ENOMEM);
		assert_true(strlen(error.text) > 10);
	}
	fail();
	return 0;
}

static int open_fib(struct error *error)
{
	struct fib *fib = fib_create(error);

	fib_destroy(fib);
	return fib ? 0 : -ENOMEM;
}

static void a_fib_without_memory_says_so(void **state)
{
	assert_in_range(fail_in_turn(open_fib), 20, 100);
}

static int open_rcu(struct error *error)
{
	struct rcu *rcu = rcu_create(2, error);

	rcu_destroy(rcu);
	return rcu ? 0 : -ENOMEM;
}

static void an_rcu_without_memory_says_so(void **state)
{
	assert_int_equal(fail_in_turn(open_rcu), 2);
}

static int open_mirror(struct error *error)
{
	struct mirror_settings settings = {.fib = fake.fib, .n_ports = 2};
	struct mirror *mirror;
	int err = mirror_open(&mirror, &settings, error);

	if (!err)
		mirror_close(mirror);
	return err;
}

static void a_mirror_without_memory_says_so(void **state)
{
	assert_in_range(fail_in_turn(open_mirror), 14, 30);
}

static void handle_nothing(void *arg, const struct event *event)
{
}

static void begin_nothing(void *arg)
{
}

static void lack_nothing(void *arg, enum event_kind kind)
{
}

static void end_nothing(void *arg, uint32_t partial)
{
}

static void end_no_filters(void *arg, bool whole)
{
}

static int open_listen(struct error *error)
{
	struct listen_ops ops = {handle_nothing, begin_nothing, lack_nothing, end_nothing,
		end_no_filters, NULL};
	struct listen *listen;
	int err = listen_open(&listen, &ops, 1 << 16, error);

	if (!err)
		listen_close(listen);
	return err;
}

static void a_listener_without_memory_says_so(void **state)
{
	assert_int_equal(fail_in_turn(open_listen), 3);
}

static int open_refresh(struct error *error)
{
	struct netlink netlink = {.mirror = fake.mirror};
	struct neigh_refresh *refresh;
	int err = neigh_refresh_open(&refresh, &netlink, error);

	if (!err)
		neigh_refresh_close(refresh);
	return err;
}

static int open_audit(struct error *error)
{
	struct netlink netlink = {.mirror = fake.mirror};
	struct audit *audit;
	int err = audit_open(&audit, &netlink, error);

	if (!err)
		audit_close(audit);
	return err;
}

static void what_polls_the_kernel_says_that_it_has_no_memory(void **state)
{
	assert_int_equal(fail_in_turn(open_refresh), 1);
	assert_int_equal(fail_in_turn(open_audit), 1);
}

static void add_routes(int n)
{
	struct event_route route = {.table = 254, .type = 1, .n_hops = 1};

	for (int i = 0; i < n; i++) {
		char text[32];

		snprintf(text, sizeof(text), "20.%d.%d.0/24", i / 256, i % 256);
		assert_int_equal(wire_prefix_parse(text, &route.prefix), 0);
		route.hop[0] = (struct event_hop){.ifindex = FAKE_TAP, .weight = 1};
		fake_route(&fake, &route, false);
	}
}

// A batch of changes takes memory; without it the same changes are made in small ones.
static void the_fib_gets_its_routes_without_memory(void **state)
{
	struct netlink_info info = {0};
	struct fib_usage usage;

	add_routes(3000);
	fail_alloc_often(1, 1);
	fake_flush(&fake);
	assert_true(fail_alloc_n_failed() > 0);
	fail_alloc_at(0);
	fib_usage(fake.fib, &usage);
	mirror_info(fake.mirror, &info);
	assert_int_equal(usage.n_routes4, 3000);
	assert_int_equal(info.routes4, 3000);
	assert_int_equal(fake.lost, 0);
	assert_int_equal(fake_unsupported(&fake, "route beyond the capacity of the table", NULL),
		0);
}

// Until then workers would forward what Linux refuses.
static void without_memory_for_a_rule_all_goes_to_linux_until_a_dump(void **state)
{
	struct event_rule rule = {.family = 4, .priority = 5, .has_selector = true};
	const uint8_t both = IFACE_LINUX4 | IFACE_LINUX6;

	for (uint32_t i = 0; !fake.lost; i++) {
		rule.priority = i;
		rule.family = 4;
		fail_alloc_often(1, 1);
		fake_rule(&fake, &rule, false);
		fail_alloc_at(0);
	}
	fake_flush(&fake);
	assert_true(event_kinds_have(fake.lost, EVENT_RULE));
	assert_int_equal(fake_fib_iface(&fake, FAKE_TAP)->flags & both, both);
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	fake_basics(&fake);
	fake_taps(&fake, 2);
	fake.in_dump = false;
	mirror_dump_ends(fake.mirror, 1u << EVENT_RULE); // there was no memory for it again
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, FAKE_TAP)->flags & both, both);
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	fake_basics(&fake);
	fake_taps(&fake, 2);
	fake.in_dump = false;
	mirror_dump_ends(fake.mirror, 0);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, FAKE_TAP)->flags & both, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_fib_without_memory_says_so),
		TEST(an_rcu_without_memory_says_so),
		TEST(a_mirror_without_memory_says_so),
		TEST(a_listener_without_memory_says_so),
		TEST(the_fib_gets_its_routes_without_memory),
		TEST(without_memory_for_a_rule_all_goes_to_linux_until_a_dump),
		TEST(what_polls_the_kernel_says_that_it_has_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
