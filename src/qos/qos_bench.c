// What policing subscribers costs: qos_bench [SUBSCRIBERS] prints the time per packet for bursts of
// 64 packets to uniformly random subscribers (default: a million), who are found by address; beside
// it rte_meter with as many meters of one profile, to which packets come with their number.
// qos_bench SUBSCRIBERS dl3d|rte_meter polices with one of the two until SIGINT, and writes
// samples.
#include "qos/qos.h"

#include "base/clock.h"
#include "stats/samples.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_meter.h>
#include <stdlib.h>
#include <string.h>

enum {
	N_BURSTS = 20000,
	N_ROUNDS = 7,
	BYTES = 64,
	SAMPLED_BURSTS = 256, // after which a sample may be taken
};

// How many bursts, and which subscribers are next.
struct part {
	unsigned n_bursts;
	uint64_t seed;
};

static struct rte_meter_srtcm meter[QOS_MAX];
static struct rte_meter_srtcm_profile meter_profile;

static const char *no_name(void *ctx, unsigned iface)
{
	(void)ctx;
	(void)iface;
	return NULL;
}

static struct qos *fill(uint32_t n, uint64_t hz)
{
	const struct qos_settings settings = {.n_workers = 1,
		.hz = hz,
		.n_ifaces = 1,
		.iface_name = no_name};
	struct error error = {""};
	struct qos *qos;
	char text[96];

	if (qos_open(&qos, &settings, &error))
		abort();
	qos_begin(qos);
	int err = qos_stage(qos, "profile p rate 1Gbit/s burst 100MB", false, &error);

	for (uint32_t i = 0; i < n && !err; i++) {
		snprintf(text, sizeof(text), "add s%u number %u down p address 10.%u.%u.%u", i,
			i + 1, i >> 16, i >> 8 & 255, i & 255);
		err = qos_stage(qos, text, false, &error);
	}
	if (err || qos_prepare(qos, &error)) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	qos_commit(qos, rte_rdtsc());
	return qos;
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static double run_qos(const struct qos *qos, uint32_t n, struct part *part)
{
	const struct qos_live *live = qos_live(qos);
	const uint64_t began_ns = clock_now_ns();
	struct qos_packets packets;
	struct qos_verdicts out;
	uint64_t addr[POLICE_BURST], dropped = 0;

	for (unsigned i = 0; i < POLICE_BURST; i++) {
		packets.ip_bytes[i] = BYTES;
		packets.frames[i] = 1;
		packets.dscp[i] = 0;
	}
	for (unsigned burst = 0; burst < part->n_bursts; burst++) {
		const struct qos_basis basis = {live, 0, QOS_DOWN, false, rte_rdtsc()};

		for (unsigned i = 0; i < POLICE_BURST; i++)
			addr[i] = (uint64_t)(10u << 24 | next_random(&part->seed) % n) << 32;
		packets.mask = qos_find(&live->view, QOS_IP4, addr, UINT64_MAX, packets.subscriber);
		qos_prefetch(live, 0, QOS_DOWN, packets.subscriber, packets.mask);
		qos_police(&basis, &packets, &out);
		dropped += __builtin_popcountll(out.dropped) + !packets.mask;
	}
	if (dropped == (uint64_t)part->n_bursts * POLICE_BURST)
		abort();
	return (double)(clock_now_ns() - began_ns) / part->n_bursts / POLICE_BURST;
}

// Meters are prefetched as well.
static double run_meter(uint32_t n, struct part *part)
{
	const uint64_t began_ns = clock_now_ns();
	uint32_t which[POLICE_BURST];
	uint64_t green = 0;

	for (unsigned burst = 0; burst < part->n_bursts; burst++) {
		const uint64_t now = rte_rdtsc();

		for (unsigned i = 0; i < POLICE_BURST; i++) {
			which[i] = next_random(&part->seed) % n;
			__builtin_prefetch(&meter[which[i]], 1);
		}
		for (unsigned i = 0; i < POLICE_BURST; i++)
			green += rte_meter_srtcm_color_blind_check(&meter[which[i]], &meter_profile,
					 now, BYTES) == RTE_COLOR_GREEN;
	}
	if (!green)
		abort();
	return (double)(clock_now_ns() - began_ns) / part->n_bursts / POLICE_BURST;
}

// Both, in turns.
static void compare(const struct qos *qos, uint32_t n)
{
	double of_qos = 1e9, of_meter = 1e9;

	for (unsigned round = 0; round < N_ROUNDS; round++) {
		struct part ours = {N_BURSTS, 1}, peers = ours;
		const double a = run_qos(qos, n, &ours), b = run_meter(n, &peers);

		of_qos = MIN_OF(of_qos, a);
		of_meter = MIN_OF(of_meter, b);
	}
	printf("%u subscribers, found by address, counted: %.1f ns per packet\n", n, of_qos);
	printf("%u meters of rte_meter (srTCM), by number:  %.1f ns per packet\n", n, of_meter);
}

static int run_one(const struct qos *qos, uint32_t n)
{
	static struct samples samples;
	struct part part = {SAMPLED_BURSTS, 1};

	if (samples_start(&samples))
		return 1;
	while (!__atomic_load_n(&samples_stop, __ATOMIC_RELAXED)) {
		qos ? run_qos(qos, n, &part) : run_meter(n, &part);
		stats_add(&samples.done, (uint64_t)SAMPLED_BURSTS * POLICE_BURST);
	}
	samples_end(&samples);
	return 0;
}

int main(int argc, char **argv)
{
	const uint32_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : QOS_MAX;
	const char *side = argc > 2 ? argv[2] : "";
	const bool is_qos = !strcmp(side, "dl3d"), is_meter = !strcmp(side, "rte_meter");
	struct rte_meter_srtcm_params params = {125000000, 100000000, 100000000};
	char *args[] = {"qos_bench", "--no-huge", "-m64", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=error"};
	int err = 0;

	// rte_meter takes the frequency of the TSC from EAL.
	if (!n || n > QOS_MAX || (side[0] && !is_qos && !is_meter) ||
		rte_eal_init(ARRAY_LEN(args), args) < 0 ||
		rte_meter_srtcm_profile_config(&meter_profile, &params)) {
		fprintf(stderr, "expected 1 to %d subscribers, and dl3d or rte_meter\n", QOS_MAX);
		return 1;
	}
	struct qos *qos = is_meter ? NULL : fill(n, rte_get_tsc_hz());

	for (uint32_t i = 0; i < n && !is_qos; i++)
		rte_meter_srtcm_config(&meter[i], &meter_profile);
	if (side[0])
		err = run_one(qos, n);
	else
		compare(qos, n);
	qos_close(qos);
	return err;
}
