// How messages are grouped into bursts, and when bursts are discarded.
#include "netlink/listen_inside.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct bursts bursts;
static struct netlink_burst known[NETLINK_BURSTS];

static int forget(void **state)
{
	bursts = (struct bursts){0};
	return 0;
}

static void expect(unsigned i, uint64_t begin_ns, uint64_t end_ns, uint64_t messages)
{
	assert_int_equal(known[i].begin_ns, begin_ns);
	assert_int_equal(known[i].end_ns, end_ns);
	assert_int_equal(known[i].messages, messages);
}

static void silence_is_no_burst(void **state)
{
	bursts_note(&bursts, 10, 20, 0);
	assert_int_equal(bursts_read(&bursts, known), 0);
}

static void what_comes_soon_is_of_the_same_burst(void **state)
{
	uint64_t late = 100 + 2 * BURSTS_APART_NS;

	bursts_note(&bursts, 10, 20, 3);
	bursts_note(&bursts, 30, 50, 4);
	bursts_note(&bursts, 50 + BURSTS_APART_NS, 70 + BURSTS_APART_NS, 5);
	bursts_note(&bursts, late, late + 9, 1);
	assert_int_equal(bursts_read(&bursts, known), 2);
	expect(0, 10, 70 + BURSTS_APART_NS, 12);
	expect(1, late, late + 9, 1);
}

static void the_oldest_are_forgotten_first(void **state)
{
	for (uint64_t i = 0; i < NETLINK_BURSTS + 7; i++)
		bursts_note(&bursts, 2 * i * BURSTS_APART_NS, 2 * i * BURSTS_APART_NS + 1, i + 1);
	assert_int_equal(bursts_read(&bursts, known), NETLINK_BURSTS);
	assert_int_equal(known[0].messages, 8);
	assert_int_equal(known[NETLINK_BURSTS - 1].messages, NETLINK_BURSTS + 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(silence_is_no_burst, forget),
		cmocka_unit_test_setup(what_comes_soon_is_of_the_same_burst, forget),
		cmocka_unit_test_setup(the_oldest_are_forgotten_first, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
