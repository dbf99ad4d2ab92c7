// Measures when idle flows end: by how much later than their timeout, while a worker looks up.
// flow_age_bench [FLOWS [SECONDS]]: default 1048576 flows, each with a last packet at some moment
// of 5 seconds. Prints only, never fails.
#include "base/bits.h"
#include "base/clock.h"
#include "base/priority.h"
#include "flow/table.h"
#include "flow/testing.h"
#include "rcu/rcu_fast.h"

#include <pthread.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BURST = FLOW_BURST, BINS = 5000, POLL_US = 50000, STRIDE = 0x9E3779B1 };

static const enum flow_life LIFE = 1;

struct bench {
	struct flow_table *table;
	struct rcu *rcu;
	uint64_t hz, start; // cycles
	uint32_t n_flows, spread_s, timeout_ms;
	uint32_t *last; // by flow number: its last packet, in units of 256 us since start
	bool has_passed, is_over;
	uint64_t longest_gap; // of the worker's loop, in cycles
	// How late flows ended, in ms; the last bin has all that were later.
	uint32_t late[BINS];
	uint64_t n_ended, n_early;
};

static uint64_t units(const struct bench *bench, uint64_t cycles)
{
	return (unsigned __int128)(cycles - bench->start) * 1000000 / bench->hz / 256;
}

static void note_ended(void *ctx, const struct flow_info *info)
{
	struct bench *bench = ctx;
	const uint64_t idle = units(bench, rte_rdtsc()) - bench->last[info->number];
	const int64_t late_ms = (int64_t)(idle * 256 / 1000) - bench->timeout_ms;

	bench->n_ended++;
	bench->n_early += late_ms < 0;
	bench->late[late_ms < 0 ? 0 : MIN_OF(late_ms, BINS - 1)]++;
}

static void add_all(struct bench *bench)
{
	enum { BATCH = 1024 };
	static struct flow_change change[BATCH];
	static int result[BATCH];

	for (uint32_t at = 0; at < bench->n_flows; at += BATCH) {
		const unsigned n = MIN_OF(bench->n_flows - at, BATCH);
		for (unsigned i = 0; i < n; i++)
			change[i] = (struct flow_change){.op = FLOW_ADD,
				.life = LIFE,
				.key = testing_key(4, at + i),
				.action = 1};
		if (flow_change(bench->table, change, n, rte_rdtsc(), result) != n)
			printf("  NOT ALL ADDED\n");
	}
}

// Counts the packet of each flow that is due, in an order that is a permutation of the flows.
static uint32_t count_due(struct bench *bench, uint32_t done, uint64_t now)
{
	const struct flow_view *view = flow_view(bench->table);
	const uint64_t per_flow = bench->hz * bench->spread_s / bench->n_flows;
	const uint32_t due =
		MIN_OF((now - bench->start) / MAX_OF(per_flow, 1ull), (uint64_t)bench->n_flows);
	const uint32_t end = MIN_OF(due, done + BURST);

	for (; done < end; done++) {
		const uint32_t flow = 1 + (uint64_t)done * STRIDE % bench->n_flows;
		flow_count_packet(view->count[0], flow, 64, flow_tick(view, now));
		bench->last[flow] = units(bench, now);
	}
	return done;
}

static void look_up(const struct bench *bench, struct flow_key4 key[])
{
	struct flow_lookup lookup = {.n = BURST};

	key[testing_below(BURST)] = testing_key(4, testing_below(bench->n_flows)).four;
	flow_lookup4(flow_view(bench->table), key, &lookup);
}

static void *work(void *arg)
{
	struct bench *bench = arg;
	struct flow_key4 key[BURST] = {0};
	uint64_t before = rte_rdtsc();

	rcu_reader_online(rcu_readers(bench->rcu), 0);
	for (uint32_t done = 0; !__atomic_load_n(&bench->is_over, __ATOMIC_RELAXED);) {
		const uint64_t now = rte_rdtsc();
		bench->longest_gap = MAX_OF(bench->longest_gap, now - before);
		before = now;
		if (done < bench->n_flows)
			done = count_due(bench, done, now);
		// Pairs with the acquire load of the main thread, which then reads `last`.
		__atomic_store_n(&bench->has_passed, done == bench->n_flows, __ATOMIC_RELEASE);
		look_up(bench, key);
		rcu_reader_report(rcu_readers(bench->rcu), 0);
	}
	rcu_reader_offline(rcu_readers(bench->rcu), 0);
	return NULL;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct slices {
	uint64_t longest_ns, longest_cpu_ns, cpu_ns;
};

// A turn of the control loop; true: the next one is due at once.
static bool age(struct bench *bench, struct slices *slices)
{
	const uint64_t start_ns = clock_now_ns(), start_cpu_ns = cpu_ns();
	const bool is_behind = flow_age(bench->table, rte_rdtsc());
	const uint64_t used_ns = cpu_ns() - start_cpu_ns;

	slices->longest_ns = MAX_OF(slices->longest_ns, clock_now_ns() - start_ns);
	slices->longest_cpu_ns = MAX_OF(slices->longest_cpu_ns, used_ns);
	slices->cpu_ns += used_ns;
	rcu_poll(bench->rcu);
	return is_behind;
}

// The lateness in ms that this share of the flows does not exceed.
static unsigned quantile(const struct bench *bench, double share)
{
	uint64_t n = 0;
	unsigned ms = 0;

	while (ms < BINS - 1 && (n += bench->late[ms]) < share * bench->n_ended)
		ms++;
	return ms;
}

static void print(const struct bench *bench, const struct slices *slices, double seconds)
{
	printf("%llu flows ended in %.1f s, %llu of them early; late by ms: 1%% %u, 50%% %u, 90%% "
	       "%u, 99%% %u, 99.9%% %u, all %u\n",
		(unsigned long long)bench->n_ended, seconds, (unsigned long long)bench->n_early,
		quantile(bench, 0.01), quantile(bench, 0.5), quantile(bench, 0.9),
		quantile(bench, 0.99), quantile(bench, 0.999), quantile(bench, 1));
	printf("ageing: CPU %.2f s, the longest slice took %.2f ms (CPU %.2f); the worker's "
	       "longest "
	       "loop %.2f ms\n",
		slices->cpu_ns / 1e9, slices->longest_ns / 1e6, slices->longest_cpu_ns / 1e6,
		bench->longest_gap * 1e3 / bench->hz);
}

static uint64_t measure_hz(void)
{
	const struct clock_pair first = clock_pair_take(rte_rdtsc);

	usleep(200000);
	const struct clock_pair last = clock_pair_take(rte_rdtsc);
	return (last.cycles - first.cycles) * 1000000000.0 / (last.ns - first.ns);
}

// All flows have had their last packet: they end from now on.
static void end_all(struct bench *bench)
{
	const uint64_t start_ns = clock_now_ns();
	struct slices slices = {0};

	bench->timeout_ms = units(bench, rte_rdtsc()) * 256 / 1000 + 1000;
	flow_set_timeout(bench->table, LIFE, bench->timeout_ms);
	bench->longest_gap = 0;
	while (bench->n_ended < bench->n_flows)
		if (!age(bench, &slices))
			usleep(POLL_US);
	print(bench, &slices, (clock_now_ns() - start_ns) / 1e9);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	pthread_t worker;
	struct error error;

	bench.n_flows = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20;
	bench.spread_s = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	bench.hz = measure_hz();
	struct flow_settings settings = testing_settings(bench.n_flows, 0, 1);
	settings.timeout_ms[LIFE - 1] = FLOW_MAX_LASTS_MS;
	settings.hz = bench.hz;
	settings.ended = note_ended;
	settings.ctx = &bench;
	bench.table = flow_create(&settings, rte_rdtsc(), &error);
	bench.last = calloc(bench.n_flows + 1, sizeof(*bench.last));
	bench.rcu = rcu_create(1, NULL);
	if (!bench.table || !bench.last || !bench.rcu) {
		printf("%s\n", bench.table ? "not enough memory" : error.text);
		return 1;
	}
	flow_attach(bench.table, bench.rcu);
	testing_use_actions(bench.table, 1);
	add_all(&bench);
	bench.start = rte_rdtsc();
	pthread_create(&worker, NULL, work, &bench);
	priority_raise(); // as the control thread of dl3d
	// Pairs with the release store of the worker.
	while (!__atomic_load_n(&bench.has_passed, __ATOMIC_ACQUIRE))
		if (!age(&bench, &(struct slices){0}))
			usleep(POLL_US);
	end_all(&bench);
	__atomic_store_n(&bench.is_over, true, __ATOMIC_RELAXED);
	pthread_join(worker, NULL);
	flow_detach(bench.table);
	flow_destroy(bench.table);
	rcu_destroy(bench.rcu);
	free(bench.last);
	return 0;
}
