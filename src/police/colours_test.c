// Packets with colours in virtual time: sequences of RFC 2697, 2698 and 4115 worked by hand, random
// arrivals beside a model of exact integers, and threads that share the buckets. Tests only.
#include "police/police.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	G = POLICE_GREEN,
	Y = POLICE_YELLOW,
	R = POLICE_RED,
	MTU = 1500,
	STEPS = 20000,
	N_THREADS = 2
};
#define HZ 64000000ull // so that rates by hand are exact
#define US 64ull

struct pair {
	struct police commit, excess;
};

static void start(struct pair *pair, uint64_t bits, uint64_t burst, uint64_t excess_bits,
	uint64_t excess_burst)
{
	const struct police_rate commit = {bits, burst, HZ};
	const struct police_rate excess = {excess_bits, excess_burst, HZ};

	police_start(&pair->commit, &commit, 0);
	police_start(&pair->excess, &excess, 0);
}

static unsigned colour_of(struct police_colours colours, unsigned i)
{
	return colours.green >> i & 1 ? G : colours.yellow >> i & 1 ? Y : R;
}

// `was`: the colour that the packet has already.
static unsigned mark(enum police_marker marker, struct pair *pair, uint64_t now, uint32_t bytes,
	unsigned was)
{
	const struct police_packets one = {&bytes, 1, was == Y, was == R};

	return colour_of(police_mark(marker, &pair->commit, &pair->excess, now, &one), 0);
}

// 8 Mbit/s are one byte a microsecond.
struct row {
	uint64_t us;
	uint32_t bytes;
	uint8_t was, is;
	uint32_t commit, excess; // tokens afterwards
};

static void run_rows(enum police_marker marker, struct pair *pair, const struct row rows[],
	size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t now = rows[i].us * US;

		assert_int_equal(mark(marker, pair, now, rows[i].bytes, rows[i].was), rows[i].is);
		assert_int_equal(police_left(&pair->commit, now), rows[i].commit);
		assert_int_equal(police_left(&pair->excess, now), rows[i].excess);
	}
}

// CIR 1 byte/us, CBS 3000, EBS 2000.
static void rfc2697_by_hand(void **state)
{
	static const struct row rows[] = {
		{0, 1500, G, G, 1500, 2000},
		{0, 1501, G, Y, 1500, 499}, // green has too few tokens, the excess pays
		{0, 1500, G, G, 0, 499},
		{0, 500, G, R, 0, 499},
		{500, 500, G, G, 0, 499},
		{1000, 500, Y, R, 500, 499}, // a yellow packet never takes of the commit bucket
		{1000, 499, Y, Y, 500, 0},
		{3500, 100, R, R, 3000, 0}, // full now; what follows goes to the excess
		{4500, 900, Y, Y, 3000, 100},
		{14500, 3001, G, R, 3000, 2000}, // not more than both bursts after any time
		{14500, 3000, G, G, 0, 2000},
		{14500, 2000, G, Y, 0, 0},
		{14500, 1, G, R, 0, 0},
	};
	struct pair pair;

	(void)state;
	start(&pair, 8000000, 3000, 0, 2000);
	run_rows(POLICE_RFC2697, &pair, rows, sizeof(rows) / sizeof(rows[0]));
}

// CIR 1 byte/us, CBS 2000, PIR 2 bytes/us, PBS 3000.
static void rfc2698_by_hand(void **state)
{
	static const struct row rows[] = {
		{0, 1500, G, G, 500, 1500},
		{0, 1000, G, Y, 500, 500}, // within the peak, above the commit
		{0, 501, G, R, 500, 500},  // above the peak: nothing is taken
		{0, 500, Y, Y, 500, 0},
		{100, 300, G, R, 600, 200},
		{100, 200, G, G, 400, 0}, // green takes of both
		{400, 600, R, R, 700, 600},
		{1600, 700, G, G, 1200, 2300},
		{9000, 3001, G, R, 2000, 3000},
		{9000, 2001, G, Y, 2000, 999},
	};
	struct pair pair;

	(void)state;
	start(&pair, 8000000, 2000, 16000000, 3000);
	run_rows(POLICE_RFC2698, &pair, rows, sizeof(rows) / sizeof(rows[0]));
}

// CIR 1 byte/us, CBS 2000, EIR 2 bytes/us, EBS 3000: both fill at their own rate.
static void rfc4115_by_hand(void **state)
{
	static const struct row rows[] = {
		{0, 1500, G, G, 500, 3000}, // green does not take of the excess
		{0, 1000, G, Y, 500, 2000},
		{0, 500, Y, Y, 500, 1500},
		{0, 1600, G, R, 500, 1500},
		{0, 500, G, G, 0, 1500},
		{100, 150, G, Y, 100, 1550},
		{100, 1000, R, R, 100, 1550},
		{1000, 3001, Y, R, 1000, 3000},
		{1000, 3000, Y, Y, 1000, 0},
		{1000, 1000, G, G, 0, 0},
		{1000, 1, G, R, 0, 0},
	};
	struct pair pair;

	(void)state;
	start(&pair, 8000000, 2000, 16000000, 3000);
	run_rows(POLICE_RFC4115, &pair, rows, sizeof(rows) / sizeof(rows[0]));
}

// Exact: tokens times 8 times HZ.
typedef __int128 wide;
#define UNIT ((wide)8 * HZ)

struct model {
	wide commit, excess, most_commit, most_excess;
	uint64_t bits, excess_bits, then;
};

static void model_fill(struct model *model, enum police_marker marker, uint64_t now)
{
	const uint64_t passed = now - model->then;

	model->commit += (wide)passed * model->bits;
	if (marker == POLICE_RFC2697 && model->commit > model->most_commit)
		model->excess += model->commit - model->most_commit;
	model->excess += (wide)passed * model->excess_bits;
	model->commit = MIN_OF(model->commit, model->most_commit);
	model->excess = MIN_OF(model->excess, model->most_excess);
	model->then = now;
}

// The text of each RFC, section 3 (RFC 4115: 1).
static unsigned model_mark(struct model *model, enum police_marker marker, wide need, unsigned was)
{
	if (was == R || (marker == POLICE_RFC2698 && need > model->excess))
		return R;
	if (was == G && need <= model->commit) {
		model->commit -= need;
		model->excess -= marker == POLICE_RFC2698 ? need : 0;
		return G;
	}
	if (need > model->excess)
		return R;
	model->excess -= need;
	return Y;
}

static bool is_near(const struct model *model, wide need)
{
	const wide a = need - model->commit, b = need - model->excess;

	return (a < 2 * UNIT && a > -2 * UNIT) || (b < 2 * UNIT && b > -2 * UNIT);
}

// What passed as green and yellow, in any window that ends now, above the rate (Kadane).
struct windows {
	wide excess, worst;
};

static void add(struct windows *windows, wide since, wide passed)
{
	windows->excess = windows->excess > since ? windows->excess - since : 0;
	windows->excess += passed;
	windows->worst = MAX_OF(windows->worst, windows->excess);
}

// Bursts of packets at one time; a burst is judged at once, the model judges one by one. Tokens of
// both differ by rounding of less than a byte, so a packet on the edge ends the comparison.
static void run_random(enum police_marker marker, uint64_t bits)
{
	struct model model = {.bits = bits,
		.most_commit = UNIT * (4 * MTU),
		.most_excess = UNIT * (7 * MTU),
		.excess_bits = marker == POLICE_RFC2697 ? 0 : 2 * bits};
	struct windows green = {0, 0}, all = {0, 0};
	struct pair pair;
	uint64_t now = 0, n_compared = 0;

	model.commit = model.most_commit;
	model.excess = model.most_excess;
	start(&pair, bits, 4 * MTU, model.excess_bits, 7 * MTU);
	for (unsigned step = 0; step < STEPS; step++) {
		const uint64_t gap = (uint64_t)rand() % (16ull * MTU * HZ / bits);
		struct police_packets packets = {.n = 1 + rand() % 8};
		uint32_t cost[8];
		wide passed[2] = {0, 0};

		now += gap;
		model_fill(&model, marker, now);
		for (unsigned i = 0; i < packets.n; i++) {
			cost[i] = 64 + rand() % (MTU - 63);
			packets.yellow |= (uint64_t)(rand() % 4 == 0) << i;
			packets.red |= (uint64_t)(rand() % 8 == 0) << i;
		}
		packets.yellow &= ~packets.red;
		packets.cost = cost;
		const struct police_colours colours =
			police_mark(marker, &pair.commit, &pair.excess, now, &packets);

		for (unsigned i = 0; i < packets.n; i++) {
			const unsigned is = colour_of(colours, i);
			const wide need = UNIT * cost[i];

			passed[0] += is == G ? need : 0;
			passed[1] += is != R ? need : 0;
			if (is_near(&model, need)) { // goes on from what the buckets have
				model.commit = UNIT * police_left(&pair.commit, now);
				model.excess = UNIT * police_left(&pair.excess, now);
				for (unsigned k = i + 1; k < packets.n; k++) {
					passed[0] +=
						colour_of(colours, k) == G ? UNIT * cost[k] : 0;
					passed[1] +=
						colour_of(colours, k) != R ? UNIT * cost[k] : 0;
				}
				break;
			}
			assert_int_equal(is, model_mark(&model, marker, need,
						     packets.red >> i & 1      ? R
						     : packets.yellow >> i & 1 ? Y
									       : G));
			n_compared++;
		}
		add(&green, (wide)gap * bits, passed[0]);
		add(&all,
			(wide)gap * (marker == POLICE_RFC2697          ? bits
					    : marker == POLICE_RFC2698 ? 2 * bits
								       : 3 * bits),
			passed[1]);
	}
	assert_true(n_compared > STEPS);
	assert_true(green.worst <= UNIT * (4 * MTU + 1));
	assert_true(all.worst <= UNIT * ((marker == POLICE_RFC2698 ? 7 : 11) * MTU + 2));
}

static void random_packets_have_the_colours_of_the_model(void **state)
{
	static const uint64_t bits[] = {64000, 1000000, 333333333, 10000000000};

	(void)state;
	srand(29);
	for (unsigned marker = POLICE_RFC2697; marker <= POLICE_RFC4115; marker++)
		for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
			run_random(marker, bits[i]);
}

// What one bucket spills is given to the other once, whoever comes first.
struct shared {
	struct pair pair;
	enum police_marker marker;
	uint64_t passed[N_THREADS][POLICE_COLOURS];
};

struct taker {
	struct shared *shared;
	unsigned number;
};

// Half of the rounds offer nothing that the first bucket would take, so that it spills.
static void *take_all(void *taker_)
{
	const struct taker *taker = taker_;
	struct shared *shared = taker->shared;
	const uint32_t cost[] = {400, 100, 800, 1200};

	for (uint64_t round = 1; round <= STEPS; round++) {
		const struct police_packets packets = {cost, 4, round % 64 < 32 ? 15 : 0, 0};
		const struct police_colours colours = police_mark(shared->marker,
			&shared->pair.commit, &shared->pair.excess, round * US, &packets);

		for (unsigned i = 0; i < 4; i++)
			shared->passed[taker->number][colour_of(colours, i)] += cost[i];
	}
	return NULL;
}

static void threads_get_no_more_than_one_would(void **state)
{
	const uint64_t a_round = 500, rates[POLICE_MARKERS] = {1, 1, 2, 3},
		       bursts[] = {6, 11, 7, 11};

	(void)state;
	for (unsigned marker = POLICE_RFC2697; marker <= POLICE_RFC4115; marker++) {
		struct shared shared = {.marker = marker};
		struct taker taker[N_THREADS];
		pthread_t thread[N_THREADS];
		uint64_t green = 0, yellow = 0;

		start(&shared.pair, 4000000000, 4 * MTU, marker == POLICE_RFC2697 ? 0 : 8000000000,
			7 * MTU);
		for (unsigned i = 0; i < N_THREADS; i++) {
			taker[i] = (struct taker){&shared, i};
			assert_int_equal(pthread_create(&thread[i], NULL, take_all, &taker[i]), 0);
		}
		for (unsigned i = 0; i < N_THREADS; i++) {
			pthread_join(thread[i], NULL);
			green += shared.passed[i][G];
			yellow += shared.passed[i][Y];
		}
		assert_in_range(green, MTU, a_round * STEPS + 4 * MTU + 1);
		assert_in_range(green + yellow, a_round * STEPS / 2,
			a_round * rates[marker] * STEPS + bursts[marker] * MTU + 2);
	}
}

// As a session that ends and comes again at once: the excess is not filled by it.
static void toggling_the_marker_gives_no_tokens(void **state)
{
	const struct police_rate none = {0, 0, HZ}, excess = {8000000, 3000, HZ};
	struct pair pair;

	(void)state;
	start(&pair, 8000000, 2000, 8000000, 3000);
	assert_int_equal(mark(POLICE_RFC4115, &pair, 0, 2000, G), G);
	assert_int_equal(mark(POLICE_RFC4115, &pair, 0, 3000, G), Y);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(police_change(&pair.excess, i & 1 ? &excess : &none, 0));
		assert_int_equal(mark(POLICE_RFC4115, &pair, 0, 1, G), R);
	}
	assert_int_equal(mark(POLICE_RFC4115, &pair, 10 * US, 11, G), R);
	assert_int_equal(mark(POLICE_RFC4115, &pair, 10 * US, 10, Y), Y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc2697_by_hand),
		cmocka_unit_test(rfc2698_by_hand),
		cmocka_unit_test(rfc4115_by_hand),
		cmocka_unit_test(random_packets_have_the_colours_of_the_model),
		cmocka_unit_test(threads_get_no_more_than_one_would),
		cmocka_unit_test(toggling_the_marker_gives_no_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
