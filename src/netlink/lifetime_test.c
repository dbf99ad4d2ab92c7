// IPv6 routes with a lifetime: they are unused after it ends, even if the kernel still has them.
#include "netlink/fake_ifaces.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_S = 20, PAUSE_US = 10000 };

static void wait_for_dumps(unsigned n)
{
	const uint64_t end_ns = clock_now_ns() + PATIENCE_S * 1000000000ull;

	while (fake.n_dumps < n && clock_now_ns() < end_ns) {
		usleep(PAUSE_US);
		routes_poll(fake.routes);
	}
	assert_int_equal(fake.n_dumps, n);
}

static void dump(const char *words)
{
	routes_dump_begins(fake.routes);
	fake_say(words);
	routes_dump_ends(fake.routes, 0);
}

static void a_route_counts_until_its_lifetime_is_over(void **state)
{
	fake_say("2001:db8::/32 via fe80::2 dev 2 metric 2048");
	fake_say("2001:db8::/32 via fe80::2 dev 1 expires 1");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	wait_for_dumps(1);
	routes_dump_begins(fake.routes);
	fake_say("dump 2001:db8::/32 via fe80::2 dev 1 expires -5");
	fake_say("dump 2001:db8::/32 via fe80::2 dev 2 metric 2048");
	routes_dump_ends(fake.routes, 0);
	ASK("2001:db8::1", "via fe80::2 dev 2");
	fake_say("deleted 2001:db8::/32 via fe80::2 dev 1");
	ASK("2001:db8::1", "via fe80::2 dev 2");
}

static void a_lifetime_may_become_longer_without_a_word(void **state)
{
	fake_say("2001:db8::/32 via fe80::2 dev 1 proto 9 expires 1");
	wait_for_dumps(1);
	dump("dump 2001:db8::/32 via fe80::2 dev 1 proto 9 expires 1");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	wait_for_dumps(2);
	dump("dump 2001:db8::/32 via fe80::2 dev 1 proto 9");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	assert_int_equal(fake.routes->look_again_ns, 0);
}

static void the_first_lifetime_to_end_counts(void **state)
{
	fake_say("2001:db8:1::/48 via fe80::2 dev 1 expires 1000000");
	const uint64_t late_ns = fake.routes->look_again_ns;
	fake_say("2001:db8:2::/48 via fe80::2 dev 1 expires 500000");
	const uint64_t soon_ns = fake.routes->look_again_ns;
	fake_say("2001:db8:3::/48 via fe80::2 dev 1 expires 1000000");
	fake_say("2001:db8:4::/48 via fe80::2 dev 1");
	assert_true(soon_ns < late_ns);
	assert_true(fake.routes->look_again_ns == soon_ns);
	routes_poll(fake.routes);
	assert_int_equal(fake.n_dumps, 0);
}

static void no_dump_is_wished_during_a_dump(void **state)
{
	fake_say("2001:db8::/32 via fe80::2 dev 1 expires 1");
	fake.routes->look_again_ns = 1; // in the past
	routes_dump_begins(fake.routes);
	routes_poll(fake.routes);
	assert_int_equal(fake.n_dumps, 0);
	routes_dump_ends(fake.routes, 0);
	routes_poll(fake.routes);
	assert_int_equal(fake.n_dumps, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_route_counts_until_its_lifetime_is_over),
		TEST(a_lifetime_may_become_longer_without_a_word),
		TEST(the_first_lifetime_to_end_counts),
		TEST(no_dump_is_wished_during_a_dump),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
