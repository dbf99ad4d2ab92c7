// The arrival rate converges to what a forwarder handles without loss.
#include "onecore/arrivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
	BURST = 64,
	RING = 16384,
};

static const uint64_t HZ = 2600ULL * 1000 * 1000, SECOND = 2600ULL * 1000 * 1000,
		      BEGIN = 1ULL << 60;

// A forwarder with a simulated clock: a frame takes `ticks`, an empty poll 50; once per `each`
// ticks it stops for `stall` ticks.
struct forwarder {
	struct arrivals arrivals;
	uint64_t now, ticks, each, stall, stalled;
};

static void start(struct forwarder *forwarder, uint64_t ticks)
{
	*forwarder = (struct forwarder){.now = BEGIN, .ticks = ticks, .stalled = BEGIN};
	arrivals_begin(&forwarder->arrivals, RING, HZ, BEGIN);
}

// Frames processed in that time.
static uint64_t forward(struct forwarder *forwarder, uint64_t ticks)
{
	uint64_t end = forwarder->now + ticks, sum = 0;

	while (forwarder->now < end) {
		uint16_t n = arrivals_take(&forwarder->arrivals, forwarder->now, BURST);

		sum += n;
		forwarder->now += n ? n * forwarder->ticks : 50;
		if (forwarder->each && forwarder->now - forwarder->stalled >= forwarder->each) {
			forwarder->stalled = forwarder->now;
			forwarder->now += forwarder->stall;
		}
	}
	return sum;
}

static void check_near(uint64_t found, uint64_t expected)
{
	assert_in_range(found, expected - expected / 50, expected + expected / 50);
}

// Tolerates an excess of a quarter of the ring per trial.
static void check_rate(const struct forwarder *forwarder, uint64_t expected)
{
	uint64_t rate = (forwarder->arrivals.rate * HZ) >> ARRIVALS_RATE_BITS;
	uint64_t more = ARRIVALS_TRIALS_PER_SECOND * RING / ARRIVALS_BEHIND;

	assert_in_range(rate, expected - expected / 50, expected + expected / 50 + more);
}

static void finds_the_rate_that_the_forwarder_takes(void **state)
{
	const uint64_t costs[] = {20, 26, 130, 1040};
	struct forwarder forwarder;

	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		start(&forwarder, costs[i]);
		forward(&forwarder, 2 * SECOND); // to converge
		check_near(forward(&forwarder, 4 * SECOND), 4 * SECOND / costs[i]);
		check_rate(&forwarder, HZ / costs[i]);
	}
}

static void a_stall_that_the_ring_holds_costs_only_its_time(void **state)
{
	struct forwarder forwarder;

	start(&forwarder, 260);
	forwarder.each = HZ / 1000;
	forwarder.stall = HZ / 10000; // a tenth of the time; 1000 frames of the ring's 16,384
	forward(&forwarder, SECOND);
	check_near(forward(&forwarder, 4 * SECOND), 4 * SECOND / 260 * 10 / 11);
	check_rate(&forwarder, HZ / 260 * 10 / 11);
}

static void a_stall_that_the_ring_does_not_hold_sets_the_rate(void **state)
{
	struct forwarder forwarder;

	start(&forwarder, 26); // 100 Mpps, but
	forwarder.each = HZ / 100;
	forwarder.stall = HZ / 1000; // 16,384 frames arrive in a millisecond at 16.4 Mpps
	forward(&forwarder, SECOND);
	check_rate(&forwarder, RING * 1000);
}

static void a_stopped_program_is_not_judged_by_that(void **state)
{
	struct forwarder forwarder;

	start(&forwarder, 26);
	forward(&forwarder, SECOND);
	uint64_t rate = forwarder.arrivals.rate;

	forwarder.now += 3600 * SECOND;
	forward(&forwarder, 1); // one poll
	assert_int_equal(forwarder.arrivals.rate, rate);
	assert_int_equal(forwarder.arrivals.waiting, 0);
}

static void a_poll_never_finds_more_than_it_asks_for(void **state)
{
	struct arrivals arrivals;

	arrivals_begin(&arrivals, RING, HZ, BEGIN);
	assert_int_equal(arrivals_take(&arrivals, BEGIN, BURST), 0);
	uint64_t now = BEGIN + HZ / 100000; // ten frames at one million per second

	assert_in_range(arrivals_take(&arrivals, now, 4), 4, 4);
	assert_in_range(arrivals_take(&arrivals, now, BURST), 5, 6);
	assert_int_equal(arrivals_take(&arrivals, now, BURST), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_rate_that_the_forwarder_takes),
		cmocka_unit_test(a_stall_that_the_ring_holds_costs_only_its_time),
		cmocka_unit_test(a_stall_that_the_ring_does_not_hold_sets_the_rate),
		cmocka_unit_test(a_stopped_program_is_not_judged_by_that),
		cmocka_unit_test(a_poll_never_finds_more_than_it_asks_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
