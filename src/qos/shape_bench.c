// What shaping costs: shape_bench prints nanoseconds of CPU time per packet, in and out, for 64,000
// active of 1,048,576 configured subscribers, and the same with 1,000 active. Virtual time runs at
// the pace of the packets, so that queues stay as long as they are. The time of others on the core
// does not count. One thread. shape_bench dl3d holds 64,000 active of 1,048,576 below 64 aggregates
// until SIGINT, and writes samples: all are due, as those of sched_bench are.
#include "qos/shape.h"

#include "base/bits.h"
#include "base/pages.h"
#include "stats/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HZ 1000000000ull
enum {
	N = 1 << 20,
	AGGREGATES = 1000,
	ROW_AGGREGATES = 64, // as the subports of sched_bench
	ROW_ACTIVE = 64000,
	ROW_LOAD = 10,
	ROW_ROUNDS = 256, // after which a sample may be taken
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

static struct shape *open_with(const struct shape_config *config, uint64_t bits, uint32_t n)
{
	const struct shape_profile profile = {.strict_percent = 50,
		.weight = {0, 1, 2, 4},
		.target_us = 10000000,
		.interval_us = 10000000,
		.limit_us = 10000000,
		.limit_bytes = 1 << 30};
	const struct shape_setting wide = {400000000000, 2000000, 0, 16, 0};
	struct shape_setting each = {bits, 20000, 0, 16, 0};
	struct shape *s;
	struct error error;

	each.burst = MAX_OF(each.burst, bits / 8 / 20000);
	if (shape_open(&s, config, 0, &error) || shape_set_profile(s, 0, &profile, &error))
		abort();
	set(s, config, SHAPE_PORT, 0, &wide);
	for (uint32_t i = 0; i < n; i++)
		set(s, config, SHAPE_AGGREGATE, i, &wide);
	for (uint32_t i = 0; i < N; i++) {
		each.parent = i % n;
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

// A shaper whose `active` subscribers hold EACH packets. `load`: ninths of what one burst per gap
// can send that the rates allow. With less than 9, most subscribers wait in the wheel; with more,
// all are due, and wait in their rings.
struct loaded {
	struct shape *shape;
	struct buffer *buffer;
	uint32_t active;
	uint64_t now, gap; // gap: ticks per burst of 64 packets at the rate of all
};

static void load_all(struct loaded *l, uint32_t aggregates, uint64_t bits, unsigned load)
{
	const struct shape_config config = {HZ, 1, AGGREGATES, N, 1 << 20, 1518};

	l->buffer = pages_alloc((size_t)l->active * EACH * BUFFER);
	if (!l->buffer)
		abort();
	l->shape = open_with(&config, bits, aggregates);
	l->gap = (uint64_t)SHAPE_BURST * BYTES * 8 * HZ / (l->active * bits) * load / 9;
	l->now = 1000000;
	for (uint32_t i = 0; i < l->active * EACH; i++) {
		struct shape_packet *packet = &l->buffer[i].packet;

		*packet = (struct shape_packet){.bytes = BYTES,
			.class = 1,
			.for_caller = (uint32_t)((uint64_t)(i % l->active) * 2654435761u % N)};
		enqueue(l->shape, l->now + (uint64_t)i / SHAPE_BURST, &packet, 1);
	}
	l->now += (uint64_t)l->active * EACH;
}

// What leaves comes in again. Returns how many packets have left.
static uint64_t run(struct loaded *l, unsigned rounds)
{
	static struct shape_drops drops;
	struct shape_packet *sent[SHAPE_BURST];
	uint64_t n_sent = 0;

	for (unsigned i = 0; i < rounds; i++, l->now += l->gap) {
		const unsigned n = shape_dequeue(l->shape,
			&(struct shape_round){l->now, 0, SHAPE_BURST}, sent, &drops);

		n_sent += n;
		enqueue(l->shape, l->now, sent, n);
	}
	return n_sent;
}

static void unload(struct loaded *l)
{
	shape_close(l->shape);
	pages_free(l->buffer, (size_t)l->active * EACH * BUFFER);
}

static void measure(uint32_t active, uint64_t bits, unsigned load)
{
	struct loaded l = {.active = active};
	double best = 1e9;

	load_all(&l, AGGREGATES, bits, load);
	for (unsigned i = 0; i < TRIALS; i++) {
		const uint64_t began = cpu_ns(), n = run(&l, ROUNDS);
		const double ns = (double)(cpu_ns() - began) / (double)MAX_OF(n, 1);

		best = MIN_OF(best, ns);
	}
	printf("%6u active of %u, rates allow %u/9: %.1f ns per packet, %.2f Mpps, %.1f MiB of "
	       "tables\n",
		active, N, load, best, 1e3 / best, (double)shape_memory(l.shape) / (1 << 20));
	unload(&l);
}

static int run_row(void)
{
	static struct samples samples;
	struct loaded l = {.active = ROW_ACTIVE};

	load_all(&l, ROW_AGGREGATES, 2000000, ROW_LOAD);
	if (samples_start(&samples))
		return 1;
	while (!__atomic_load_n(&samples_stop, __ATOMIC_RELAXED)) {
		const uint64_t n = run(&l, ROW_ROUNDS);

		stats_add(&samples.done, n);
	}
	samples_end(&samples);
	unload(&l);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "dl3d") != 0) {
		fprintf(stderr, "expected dl3d, or no argument\n");
		return 1;
	}
	if (argc > 1)
		return run_row();
	measure(1000, 100000000, 8);
	measure(64000, 2000000, 8);
	measure(64000, 2000000, 10);
	return 0;
}
