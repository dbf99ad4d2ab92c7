// Measures the flow table: cycles per lookup and per lookup with counting, changes per second,
// bytes per flow, seconds for a turn of the hand. flow_bench [FLOWS...]: default 65536 and 1048576.
// Uniformly random keys, all found. Prints only, never fails.
#include "base/clock.h"
#include "flow/lookup.h"
#include "flow/table.h"
#include "flow/testing.h"

#include <fcntl.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// As the datapath does it: up to three bursts are under way.
enum { BURST = FLOW_BURST, UNDER_WAY = 3, N_ROUNDS = 7, CHUNK_BURSTS = 32, N_CHUNKS = 512 };
enum { MAX_BOTH = 1 << 22 }; // larger tables: IPv4 only
enum { N_LOOKUPS = BURST * CHUNK_BURSTS * N_CHUNKS };

// So far, of this thread: of the clock, and of the CPU, which others may use, too.
struct moment {
	double s, cpu_s;
};

static struct moment moment_now(void)
{
	struct timespec cpu;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (struct moment){clock_now_ns() / 1e9, cpu.tv_sec + cpu.tv_nsec / 1e9};
}

static struct moment since(struct moment start)
{
	const struct moment now = moment_now();

	return (struct moment){now.s - start.s, now.cpu_s - start.cpu_s};
}

struct bench {
	struct flow_table *table;
	struct flow_key4 *key;  // N_LOOKUPS, in random order
	struct flow_key6 *key6; // the same, if the table is of IPv6
	struct flow_view view;
	struct flow_lookup lookup[UNDER_WAY];
	bool counts, is6;
	uint64_t sum;
};

static void begin(struct bench *bench, unsigned burst)
{
	struct flow_lookup *lookup = &bench->lookup[burst % UNDER_WAY];

	if (bench->is6)
		flow_lookup6_begin(&bench->view, bench->key6 + burst * BURST, lookup);
	else
		flow_lookup4_begin(&bench->view, bench->key + burst * BURST, lookup);
}

static void go_on(struct bench *bench, unsigned burst)
{
	struct flow_lookup *lookup = &bench->lookup[burst % UNDER_WAY];

	if (bench->is6)
		flow_lookup6_continue(&bench->view, bench->key6 + burst * BURST, lookup);
	else
		flow_lookup4_continue(&bench->view, bench->key + burst * BURST, lookup);
}

static void end(struct bench *bench, unsigned burst)
{
	struct flow_lookup *lookup = &bench->lookup[burst % UNDER_WAY];

	if (bench->is6)
		flow_lookup6_end(&bench->view, bench->key6 + burst * BURST, lookup);
	else
		flow_lookup4_end(&bench->view, bench->key + burst * BURST, lookup);
	for (unsigned i = 0; bench->counts && i < BURST; i++)
		flow_count_packet(bench->view.count[0], lookup->flow[i], 64, 1);
	for (unsigned i = 0; i < BURST; i++)
		bench->sum += lookup->flow[i] != FLOW_NONE;
}

static double measure_chunk(struct bench *bench, unsigned chunk)
{
	const unsigned first = chunk * CHUNK_BURSTS;
	const uint64_t start = rte_rdtsc_precise();

	for (unsigned i = 0; i < CHUNK_BURSTS + UNDER_WAY - 1; i++) {
		if (i < CHUNK_BURSTS)
			begin(bench, first + i);
		if (i >= 1 && i < CHUNK_BURSTS + 1)
			go_on(bench, first + i - 1);
		if (i >= 2)
			end(bench, first + i - 2);
	}
	return (double)(rte_rdtsc_precise() - start) / (CHUNK_BURSTS * BURST);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_cycles(struct bench *bench, unsigned variant, bool counts)
{
	static double cycles[N_ROUNDS * N_CHUNKS];
	const unsigned n = ARRAY_LEN(cycles);
	unsigned n_variants;
	const struct lookups *variants = flow_lookup_variants(&n_variants);

	testing_use_variant(&bench->view, variant);
	bench->counts = counts;
	bench->sum = 0;
	for (unsigned i = 0; i < UNDER_WAY; i++)
		bench->lookup[i] = (struct flow_lookup){.n = BURST,
			.count = counts ? bench->view.count[0] : NULL};
	for (unsigned i = 0; i < n; i++)
		cycles[i] = measure_chunk(bench, i % N_CHUNKS);
	qsort(cycles, n, sizeof(*cycles), by_value);
	printf("  %s%s: %.1f cycles per lookup (a quarter below %.1f, a quarter above %.1f)%s\n",
		variants[variant].name, counts ? ", counted" : "", cycles[n / 2], cycles[n / 4],
		cycles[n * 3 / 4],
		bench->sum == (uint64_t)N_ROUNDS * N_LOOKUPS ? "" : "; NOT ALL FOUND");
}

static void add_all(struct bench *bench, uint32_t n_flows)
{
	enum { BATCH = 1024 };
	static struct flow_change change[BATCH];
	static int result[BATCH];
	const struct moment start = moment_now();

	for (uint32_t at = 0; at < n_flows; at += BATCH) {
		const unsigned n = MIN_OF(n_flows - at, BATCH);
		for (unsigned i = 0; i < n; i++)
			change[i] = (struct flow_change){.op = FLOW_ADD,
				.life = 4,
				.key = testing_key(bench->is6 ? 6 : 4, at + i),
				.action = 1};
		if (flow_change(bench->table, change, n, rte_rdtsc(), result) != n)
			printf("  NOT ALL ADDED\n");
	}
	const struct moment took = since(start);
	struct flow_usage usage;
	flow_usage(bench->table, &usage);
	printf("  added in %.2f s (CPU %.2f), %.2f M/s of CPU; %.1f bytes per flow, %.2f M entries "
	       "moved\n",
		took.s, took.cpu_s, n_flows / took.cpu_s / 1e6, (double)usage.bytes / n_flows,
		(usage.four.n_moves + usage.six.n_moves) / 1e6);
}

// Runs the hand once round; returns the longest slice, in ms of the clock.
static double turn(struct bench *bench, uint64_t now, unsigned *n_slices)
{
	uint64_t longest_ns = 0;
	bool is_behind = true;

	for (*n_slices = 0; is_behind; ++*n_slices) {
		const uint64_t slice_ns = clock_now_ns();
		is_behind = flow_age(bench->table, now);
		longest_ns = MAX_OF(longest_ns, clock_now_ns() - slice_ns);
	}
	return longest_ns / 1e6;
}

// With all blocks to visit, and with all flows to end.
static void print_turn(struct bench *bench)
{
	const uint64_t hz = bench->table->settings.hz;
	struct flow_usage usage;
	unsigned n_slices;
	struct moment start = moment_now();

	flow_set_timeout(bench->table, 4, FLOW_MAX_LASTS_MS);
	double longest_ms = turn(bench, rte_rdtsc() + hz, &n_slices);
	printf("  a full turn of the hand: CPU %.1f ms in %u slices, the longest took %.2f ms\n",
		since(start).cpu_s * 1e3, n_slices, longest_ms);
	start = moment_now();
	flow_set_timeout(bench->table, 4, 1);
	longest_ms = turn(bench, rte_rdtsc() + 3 * hz, &n_slices);
	const struct moment took = since(start);
	flow_usage(bench->table, &usage);
	printf("  %.2f M flows end at once in %.2f s (CPU %.2f), %.2f M/s of CPU; the longest "
	       "slice "
	       "took %.2f ms\n",
		usage.n_idle / 1e6, took.s, took.cpu_s, usage.n_idle / took.cpu_s / 1e6,
		longest_ms);
}

static void describe(void *ctx, uint32_t action, uint8_t record[FLOW_RECORD_BYTES])
{
}

static int load_all(struct flow_load *load, struct flow_table *table, uint64_t *longest_ns)
{
	const uint32_t action[1] = {1};
	const struct flow_load_options options = {.action = action};
	int more;

	do
		more = flow_load_check(load, NULL);
	while (more > 0);
	while (!more) {
		const uint64_t slice_ns = clock_now_ns();
		more = flow_load_apply(load, table, &options, rte_rdtsc(), NULL) - 1;
		*longest_ns = MAX_OF(*longest_ns, clock_now_ns() - slice_ns);
	}
	return more + 1;
}

// Saves the flows, and loads them into an empty table.
static void print_file(struct bench *bench)
{
	static const char path[] = "flow_bench.flows";
	uint64_t longest_ns[2] = {0};
	struct moment start = moment_now();
	struct flow_table *other = flow_create(&bench->table->settings, rte_rdtsc(), NULL);
	struct flow_save *save = flow_save_open(bench->table,
		&(struct flow_save_settings){.path = path, .describe = describe}, NULL);
	int more = save && other ? 1 : -1;

	if (other)
		testing_use_actions(other, 1);

	while (more > 0) {
		const uint64_t slice_ns = clock_now_ns();
		more = flow_save_step(save, rte_rdtsc(), 1, NULL);
		longest_ns[0] = MAX_OF(longest_ns[0], clock_now_ns() - slice_ns);
	}
	flow_save_close(save);
	const struct moment save_took = since(start);
	start = moment_now();
	struct flow_load *load = more ? NULL : flow_load_open(open(path, O_RDONLY), path, NULL);
	if (!load || load_all(load, other, &longest_ns[1]))
		printf("  NOT SAVED AND LOADED\n");
	const struct moment load_took = since(start);
	printf("  saved in %.2f s (CPU %.2f), the longest slice took %.1f ms; loaded in %.2f s "
	       "(CPU "
	       "%.2f), %.1f ms\n",
		save_took.s, save_took.cpu_s, longest_ns[0] / 1e6, load_took.s, load_took.cpu_s,
		longest_ns[1] / 1e6);
	flow_load_close(load);
	unlink(path);
	flow_destroy(other);
}

static void measure(uint32_t n_flows, bool is6)
{
	static struct bench bench;
	struct flow_settings settings = testing_settings(is6 ? 0 : n_flows, is6 ? n_flows : 0, 1);
	unsigned n_variants;
	struct error error;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%u IPv%u flows\n", n_flows, is6 ? 6 : 4);
	bench.is6 = is6;
	settings.hz = rte_get_tsc_hz() ? rte_get_tsc_hz() : TESTING_HZ;
	bench.table = flow_create(&settings, rte_rdtsc(), &error);
	if (!bench.table) {
		printf("  %s\n", error.text);
		return;
	}
	testing_use_actions(bench.table, 1);
	flow_lookup_variants(&n_variants);
	add_all(&bench, n_flows);
	bench.view = *flow_view(bench.table);
	bench.key = calloc(N_LOOKUPS, sizeof(*bench.key));
	bench.key6 = calloc(N_LOOKUPS, sizeof(*bench.key6));
	for (uint32_t i = 0; i < N_LOOKUPS; i++) {
		const uint32_t number = testing_below(n_flows);
		bench.key[i] = testing_key(4, number).four;
		bench.key6[i] = testing_key(6, number).six;
	}
	for (unsigned i = 0; i < n_variants; i++) {
		print_cycles(&bench, i, false);
		print_cycles(&bench, i, true);
	}
	print_file(&bench);
	print_turn(&bench);
	free(bench.key);
	free(bench.key6);
	flow_destroy(bench.table);
}

int main(int argc, char **argv)
{
	static char *standard[] = {"", "65536", "1048576"};
	char **size = argc > 1 ? argv : standard;

	for (int i = 1; i < (argc > 1 ? argc : (int)ARRAY_LEN(standard)); i++) {
		measure(strtoul(size[i], NULL, 10), false);
		if (strtoul(size[i], NULL, 10) <= MAX_BOTH)
			measure(strtoul(size[i], NULL, 10), true);
	}
	return 0;
}
