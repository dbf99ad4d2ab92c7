// Measures what changes cost workers: cycles per lookup with counting while a fifth of the flows
// get another action all the time, and while nothing changes. flow_churn_bench [FLOWS [CHANGES]]:
// default 1048576 flows and 1000000 changes a second. Prints only, never fails.
#include "base/bits.h"
#include "base/clock.h"
#include "flow/table.h"
#include "flow/testing.h"
#include "rcu/rcu_fast.h"

#include <pthread.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BURST = FLOW_BURST, UNDER_WAY = 3, CHUNK_BURSTS = 32, KEYS = 1 << 20, EVERY = 5 };
enum { BATCH = 1024, N_ACTIONS = 2, PHASE_S = 5, N_PHASES = 4, MAX_CHUNKS = 1 << 20 };

struct bench {
	struct flow_table *table;
	struct rcu *rcu;
	uint32_t n_flows, next; // the flow that changes next
	struct flow_key4 *key;  // KEYS, in random order
	bool is_over;
	unsigned phase; // odd: flows change
	// Of the worker, by phase.
	uint32_t n_chunks[N_PHASES];
	float *cycles[N_PHASES];
	uint64_t n_lookups[N_PHASES], n_missed, n_wrong;
};

static void end_burst(struct bench *bench, unsigned i, struct flow_lookup *lookup)
{
	const struct flow_view *view = flow_view(bench->table);
	const uint32_t tick = flow_tick(view, rte_rdtsc());

	flow_lookup4_end(view, &bench->key[i * BURST], lookup);
	for (unsigned p = 0; p < BURST; p++) {
		if (unlikely(lookup->flow[p] == FLOW_NONE)) {
			bench->n_missed++;
			continue;
		}
		bench->n_wrong += lookup->action[p] - 1 >= N_ACTIONS;
		flow_count_packet(view->count[0], lookup->flow[p], 64, tick);
	}
}

// Cycles per lookup, of bursts as in the datapath: up to three are under way.
static double measure_chunk(struct bench *bench, unsigned chunk, struct flow_lookup lookup[])
{
	const struct flow_view *view = flow_view(bench->table);
	const unsigned first = chunk * CHUNK_BURSTS;
	const uint64_t start = rte_rdtsc_precise();

	for (unsigned i = 0; i < CHUNK_BURSTS + UNDER_WAY - 1; i++) {
		if (i < CHUNK_BURSTS)
			flow_lookup4_begin(view, &bench->key[(first + i) * BURST],
				&lookup[i % UNDER_WAY]);
		if (i >= 1 && i < CHUNK_BURSTS + 1)
			flow_lookup4_continue(view, &bench->key[(first + i - 1) * BURST],
				&lookup[(i - 1) % UNDER_WAY]);
		if (i >= 2)
			end_burst(bench, first + i - 2, &lookup[(i - 2) % UNDER_WAY]);
	}
	return (double)(rte_rdtsc_precise() - start) / (CHUNK_BURSTS * BURST);
}

static void *work(void *arg)
{
	struct bench *bench = arg;
	struct flow_lookup lookup[UNDER_WAY];
	const unsigned n_chunks = KEYS / (CHUNK_BURSTS * BURST);

	for (unsigned i = 0; i < UNDER_WAY; i++)
		lookup[i] = (struct flow_lookup){.n = BURST,
			.count = flow_view(bench->table)->count[0]};
	rcu_reader_online(rcu_readers(bench->rcu), 0);
	for (unsigned i = 0; !__atomic_load_n(&bench->is_over, __ATOMIC_RELAXED); i++) {
		const unsigned phase = __atomic_load_n(&bench->phase, __ATOMIC_RELAXED);
		const double cycles = measure_chunk(bench, i % n_chunks, lookup);
		if (bench->n_chunks[phase] < MAX_CHUNKS)
			bench->cycles[phase][bench->n_chunks[phase]++] = cycles;
		bench->n_lookups[phase] += CHUNK_BURSTS * BURST;
		rcu_reader_report(rcu_readers(bench->rcu), 0);
	}
	rcu_reader_offline(rcu_readers(bench->rcu), 0);
	return NULL;
}

static void change(struct bench *bench, enum flow_op op, unsigned n, uint32_t step)
{
	static struct flow_change changes[BATCH];
	static int result[BATCH];

	for (unsigned i = 0; i < n; i++) {
		changes[i] = (struct flow_change){.op = op,
			.key = testing_key(4, bench->next),
			.action = 1 + testing_below(N_ACTIONS)};
		bench->next = bench->next + step < bench->n_flows ? bench->next + step : 0;
	}
	if (flow_change(bench->table, changes, n, rte_rdtsc(), result) != n)
		printf("  NOT ALL CHANGED\n");
}

// Changes flows at this rate for a while. Returns the number of changes.
static uint64_t churn(struct bench *bench, uint64_t rate)
{
	const uint64_t start_ns = clock_now_ns();
	uint64_t passed_ns = 0, n = 0;

	while (passed_ns < PHASE_S * 1000000000ull) {
		passed_ns = clock_now_ns() - start_ns;
		if (n >= passed_ns * rate / 1000000000) {
			usleep(100);
		} else {
			change(bench, FLOW_REPLACE, BATCH, EVERY);
			n += BATCH;
		}
		rcu_poll(bench->rcu);
	}
	return n;
}

static int by_value(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static void print(struct bench *bench, unsigned phase, uint64_t n_changes, double seconds)
{
	float *cycles = bench->cycles[phase];
	const uint32_t n = bench->n_chunks[phase];

	qsort(cycles, n, sizeof(*cycles), by_value);
	printf("%.2f million changes/s: %.1f cycles per lookup (a quarter below %.1f, a quarter "
	       "above "
	       "%.1f), %.2f million lookups/s\n",
		n_changes / seconds / 1e6, cycles[n / 2], cycles[n / 4], cycles[n * 3 / 4],
		bench->n_lookups[phase] / seconds / 1e6);
}

static void run(struct bench *bench, uint64_t rate)
{
	pthread_t worker;
	double seconds[N_PHASES];
	uint64_t n_changes[N_PHASES];

	pthread_create(&worker, NULL, work, bench);
	for (unsigned phase = 0; phase < N_PHASES; phase++) {
		const uint64_t start_ns = clock_now_ns();
		__atomic_store_n(&bench->phase, phase, __ATOMIC_RELAXED);
		n_changes[phase] = churn(bench, phase % 2 ? rate : 0);
		seconds[phase] = (clock_now_ns() - start_ns) / 1e9;
	}
	__atomic_store_n(&bench->is_over, true, __ATOMIC_RELAXED);
	pthread_join(worker, NULL);
	for (unsigned phase = 0; phase < N_PHASES; phase++)
		print(bench, phase, n_changes[phase], seconds[phase]);
	printf("missed %llu, with an action that no flow has %llu\n",
		(unsigned long long)bench->n_missed, (unsigned long long)bench->n_wrong);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	struct error error;

	bench.n_flows = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20;
	const uint64_t rate = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
	struct flow_settings settings = testing_settings(bench.n_flows, 0, 1);
	bench.table = flow_create(&settings, rte_rdtsc(), &error);
	bench.rcu = rcu_create(1, NULL);
	bench.key = calloc(KEYS, sizeof(*bench.key));
	if (!bench.table || !bench.rcu || !bench.key) {
		printf("%s\n", bench.table ? "not enough memory" : error.text);
		return 1;
	}
	for (unsigned i = 0; i < N_PHASES; i++)
		bench.cycles[i] = calloc(MAX_CHUNKS, sizeof(*bench.cycles[i]));
	flow_attach(bench.table, bench.rcu);
	testing_use_actions(bench.table, N_ACTIONS);
	for (uint32_t left = bench.n_flows; left; left -= MIN_OF(left, BATCH))
		change(&bench, FLOW_ADD, MIN_OF(left, BATCH), 1);
	for (unsigned i = 0; i < KEYS; i++)
		bench.key[i] = testing_key(4, testing_below(bench.n_flows)).four;
	run(&bench, rate);
	flow_detach(bench.table);
	flow_destroy(bench.table);
	rcu_destroy(bench.rcu);
	for (unsigned i = 0; i < N_PHASES; i++)
		free(bench.cycles[i]);
	free(bench.key);
	return 0;
}
