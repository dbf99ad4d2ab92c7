// What shaping costs: shape_bench prints nanoseconds of CPU time per packet, in and out, for 64,000
// active of 1,048,576 configured subscribers, and the same with 1,000 active. Virtual time runs at
// the pace of the packets, so that queues stay as long as they are. The time of others on the core
// does not count. One thread.
#include "qos/shape.h"

#include "base/bits.h"
#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HZ 1000000000ull
enum {
	N = 1 << 20,
	AGGREGATES = 1000,
	EACH = 4,
	BYTES = 1000,
	ROUNDS = 20000,
	TRIALS = 3,
	BUFFER = 128
};

// Where a packet lies in its buffer.
struct buffer {
	uint8_t before[BUFFER - sizeof(struct shape_packet)];
	struct shape_packet packet;
};
_Static_assert(sizeof(struct buffer) == BUFFER, "as an mbuf's header");

// Of this thread: the time of others on its core does not count.
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set(struct shape *s, const struct shape_config *config, enum shape_level level,
	uint32_t number, const struct shape_setting *setting)
{
	struct shape_terms terms;
	struct error error;

	if (shape_terms_of(config, setting, level, &terms, &error) ||
		shape_set(s, level, number, &terms, 0))
		abort();
}

static struct shape *open_with(const struct shape_config *config, uint64_t bits)
{
	const struct shape_profile profile = {50, {0, 1, 2, 4}, false, 10000000, 10000000, 10000000,
		1 << 30};
	const struct shape_setting wide = {400000000000, 2000000, 0, 16, 0};
	struct shape_setting each = {bits, 20000, 0, 16, 0};
	struct shape *s;
	struct error error;

	each.burst = MAX_OF(each.burst, bits / 8 / 20000);
	if (shape_open(&s, config, 0, &error) || shape_set_profile(s, 0, &profile, &error))
		abort();
	set(s, config, SHAPE_PORT, 0, &wide);
	for (uint32_t i = 0; i < AGGREGATES; i++)
		set(s, config, SHAPE_AGGREGATE, i, &wide);
	for (uint32_t i = 0; i < N; i++) {
		each.parent = i % AGGREGATES;
		set(s, config, SHAPE_SUBSCRIBER, i, &each);
	}
	return s;
}

static void enqueue(struct shape *s, uint64_t now, struct shape_packet *packet[], unsigned n)
{
	static struct shape_drops drops;
	uint32_t subscriber[SHAPE_BURST];

	drops.n = 0;
	for (unsigned i = 0; i < n; i++)
		subscriber[i] = packet[i]->for_caller;
	shape_enqueue(s, now, subscriber, packet, n, &drops);
	if (drops.n)
		abort();
}

// What leaves comes in again. `gap`: ticks per burst of 64 packets at the rate of all.
static double run(struct shape *s, uint64_t *now, uint64_t gap)
{
	static struct shape_drops drops;
	struct shape_packet *sent[SHAPE_BURST];
	uint64_t n_sent = 0;
	const uint64_t began = cpu_ns();

	for (unsigned i = 0; i < ROUNDS; i++, *now += gap) {
		const unsigned n =
			shape_dequeue(s, &(struct shape_round){*now, 0, SHAPE_BURST}, sent, &drops);

		n_sent += n;
		enqueue(s, *now, sent, n);
	}
	return (double)(cpu_ns() - began) / (double)MAX_OF(n_sent, 1);
}

// `load`: ninths of what one burst per gap can send that the rates allow. With less than 9, most
// subscribers wait in the wheel; with more, all are due, and wait in their rings.
static void measure(uint32_t active, uint64_t bits, unsigned load)
{
	const struct shape_config config = {HZ, 1, AGGREGATES, N, 1 << 20, 1518};
	const uint64_t gap = (uint64_t)SHAPE_BURST * BYTES * 8 * HZ / (active * bits) * load / 9;
	struct buffer *buffer = pages_alloc((size_t)active * EACH * BUFFER);
	struct shape *s = open_with(&config, bits);
	uint64_t now = 1000000;
	double best = 1e9;

	if (!buffer)
		abort();
	for (uint32_t i = 0; i < active * EACH; i++) {
		struct shape_packet *packet = &buffer[i].packet;

		*packet = (struct shape_packet){.bytes = BYTES,
			.class = 1,
			.for_caller = (uint32_t)((uint64_t)(i % active) * 2654435761u % N)};
		enqueue(s, now + (uint64_t)i / SHAPE_BURST, &packet, 1);
	}
	now += (uint64_t)active * EACH;
	for (unsigned i = 0; i < TRIALS; i++) {
		const double ns = run(s, &now, gap);

		best = MIN_OF(best, ns);
	}
	printf("%6u active of %u, rates allow %u/9: %.1f ns per packet, %.2f Mpps, %.1f MiB of "
	       "tables\n",
		active, N, load, best, 1e3 / best, (double)shape_memory(s) / (1 << 20));
	shape_close(s);
	pages_free(buffer, (size_t)active * EACH * BUFFER);
}

int main(void)
{
	measure(1000, 100000000, 8);
	measure(64000, 2000000, 8);
	measure(64000, 2000000, 10);
	return 0;
}
