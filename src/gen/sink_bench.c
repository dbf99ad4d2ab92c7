// Cost of the sink: cycles per frame of sink_take, including freeing, for frames in the core's own
// cache (near) or beyond it (far). Prints results without judging them. sink_bench [ROW]
#include "gen/encap.h"
#include "gen/fake_frames.h"
#include "gen/timeline.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 64, N_FAR = 4096, N_NEAR = 512, N_ROUNDS = 3000, N_STREAMS = 4, BENCH_PORT = 1 };
enum { BUFFER_BYTES = 2368 - sizeof(struct rte_mbuf) }; // an odd number of cache lines

// One row: what is received, and how it is disturbed. A full ring refuses the end of each burst.
struct row {
	const char *what;
	unsigned frame_bytes; // 0: IMIX
	uint8_t family, protocol;
	uint32_t n_flows;
	unsigned n_streams;
	unsigned lost_in_1000, swapped_in_1000;
	unsigned refused; // frames at the end of each burst
	uint8_t encap;    // enum gen_encap_type
};

static const struct row rows[] = {
	{"64 bytes", 64, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_PLAIN},
	{"64 bytes, 65,536 flows", 64, 4, WIRE_PROTO_UDP, 65536, 1, 0, 0, 0, GEN_PLAIN},
	{"64 bytes, 1,000,000 flows", 64, 4, WIRE_PROTO_UDP, 1000000, 1, 0, 0, 0, GEN_PLAIN},
	{"64 bytes, 4 streams in turn", 64, 4, WIRE_PROTO_UDP, 1, 4, 0, 0, 0, GEN_PLAIN},
	{"64 bytes, 10 of 64 refused", 64, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 10, GEN_PLAIN},
	{"64 bytes, 1 % lost", 64, 4, WIRE_PROTO_UDP, 1000, 1, 10, 0, 0, GEN_PLAIN},
	{"64 bytes, 1 % swapped", 64, 4, WIRE_PROTO_UDP, 1000, 1, 0, 10, 0, GEN_PLAIN},
	{"72 bytes, TCP", 72, 4, WIRE_PROTO_TCP, 1, 1, 0, 0, 0, GEN_PLAIN},
	{"84 bytes, IPv6", 84, 6, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_PLAIN},
	{"128 bytes", 128, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_PLAIN},
	{"IMIX", 0, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_PLAIN},
	{"72 bytes, MPLS", 72, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_MPLS},
	{"128 bytes, MPLS over UDP", 128, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_MPLS_UDP},
	{"128 bytes, VXLAN", 128, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_VXLAN},
	{"512 bytes", 512, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_PLAIN},
	{"1518 bytes", 1518, 4, WIRE_PROTO_UDP, 1, 1, 0, 0, 0, GEN_PLAIN},
};

struct bench {
	const struct row *row;
	struct rte_mempool *pool;
	struct rte_mbuf *mbuf[N_FAR];
	unsigned n_mbufs;
	struct gen_stream stream[N_STREAMS];
	struct sink sink;
	struct sink_port counters;
	struct timeline timeline;
	uint64_t sequence[N_STREAMS];
	unsigned turn;
	double cycles[N_ROUNDS];
};

static struct bench bench;

static uint32_t dice(uint32_t below)
{
	static uint64_t seed = 88172645463325252ull;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % below;
}

static unsigned imix_bytes(void)
{
	unsigned at = dice(200);

	return at < 90 ? 64 : at < 137 ? 128 : at < 167 ? 256 : at < 189 ? 512 : 1024;
}

static void write_frame(struct bench *b, struct rte_mbuf *m)
{
	static struct fake_frame frame;
	unsigned id = b->turn++ % b->row->n_streams;
	uint64_t now = rte_rdtsc();
	struct stamp stamp = {.magic = STAMP_MAGIC, .stream = id, .sequence = b->sequence[id]++};

	stamp.due = now - 40000 - dice(2000);
	stamp.sent = now - 39000;
	fake_frame_build(&frame, &b->stream[id], &stamp,
		b->row->frame_bytes ? b->row->frame_bytes : imix_bytes());
	m->data_len = m->pkt_len = frame.mbuf.pkt_len;
	memcpy(rte_pktmbuf_mtod(m, void *), fake_frame_bytes(&frame), m->data_len);
	if (dice(1000) < b->row->lost_in_1000)
		b->sequence[id]++;
	if (b->row->refused && b->sequence[id] % BURST == BURST - b->row->refused)
		b->sequence[id] += b->row->refused;
}

static void write_frames(struct bench *b)
{
	if (rte_pktmbuf_alloc_bulk(b->pool, b->mbuf, b->n_mbufs))
		abort();
	for (unsigned i = 0; i < b->n_mbufs; i++)
		write_frame(b, b->mbuf[i]);
	for (unsigned i = 1; i < b->n_mbufs; i++)
		if (dice(1000) < b->row->swapped_in_1000) {
			struct rte_mbuf *m = b->mbuf[i];
			b->mbuf[i] = b->mbuf[i - 1];
			b->mbuf[i - 1] = m;
		}
}

// Writes to each mbuf like a driver does: their first cache lines are then cached.
static void touch(struct rte_mbuf *mbuf[])
{
	for (unsigned i = 0; i < BURST; i++) {
		mbuf[i]->data_off = RTE_PKTMBUF_HEADROOM;
		mbuf[i]->ol_flags = 0;
	}
	rte_compiler_barrier();
}

// Cost of reading the clock twice.
static uint64_t clock_cycles(void)
{
	static uint64_t least = UINT64_MAX;

	uint64_t start = rte_rdtsc_precise(), took = rte_rdtsc_precise() - start;

	least = MIN_OF(least, took);
	return least;
}

static double measure_round(struct bench *b)
{
	uint64_t cycles = 0, clock = clock_cycles();

	for (unsigned at = 0; at < b->n_mbufs; at += BURST) {
		touch(b->mbuf + at);
		uint64_t start = rte_rdtsc_precise();
		sink_take(&b->sink, &b->counters, b->mbuf + at, BURST, BENCH_PORT, start);
		cycles += rte_rdtsc_precise() - start - clock;
	}
	return (double)cycles / b->n_mbufs;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

// Two labels, or a VNI; outer checksums.
static struct gen_encap encap_of(uint8_t type)
{
	const struct wire_recipe outer = wire_recipe(4);
	struct gen_encap encap = {.type = type, .ttl = 64, .has_checksum = true};

	encap.n_labels = type == GEN_MPLS || type == GEN_MPLS_UDP ? 2 : 0;
	encap.dst_port = type == GEN_VXLAN ? ENCAP_VXLAN_PORT : ENCAP_MPLS_PORT;
	if (type > GEN_MPLS) {
		encap.src = outer.src;
		encap.dst = outer.dst;
	}
	return encap;
}

static void begin(struct bench *b)
{
	b->turn = 0;
	timeline_begin(&b->timeline, rte_rdtsc(), rte_get_tsc_hz());
	memset(b->sequence, 0, sizeof(b->sequence));
	for (unsigned i = 0; i < b->row->n_streams; i++) {
		b->stream[i] = fake_stream(i);
		b->stream[i].recipe = wire_recipe(b->row->family);
		b->stream[i].recipe.protocol = b->row->protocol;
		b->stream[i].encap = encap_of(b->row->encap);
		b->stream[i].n_flows = b->row->n_flows;
		if (sink_stream_create(&b->sink.by_id[i], &b->stream[i], NULL))
			abort();
		b->sink.by_id[i]->timeline = &b->timeline;
	}
}

static void end(struct bench *b, uint64_t n)
{
	uint64_t received = 0;

	for (unsigned i = 0; i < b->row->n_streams; i++) {
		received += b->sink.by_id[i]->counters.received;
		sink_stream_destroy(b->sink.by_id[i]);
		b->sink.by_id[i] = NULL;
	}
	if (received != n)
		printf("  only %lu of %lu frames were received\n", received, n);
}

static void measure(struct bench *b, const char *where)
{
	unsigned n_rounds = N_ROUNDS * N_NEAR / b->n_mbufs;

	begin(b);
	for (unsigned i = 0; i < n_rounds; i++) {
		write_frames(b);
		b->cycles[i] = measure_round(b);
	}
	end(b, (uint64_t)n_rounds * b->n_mbufs);
	qsort(b->cycles, n_rounds, sizeof(double), by_value);
	printf("%-28s %s: %5.1f cycles per frame (a quarter below %.1f, a quarter above %.1f)\n",
		b->row->what, where, b->cycles[n_rounds / 2], b->cycles[n_rounds / 4],
		b->cycles[n_rounds * 3 / 4]);
}

// Cost of freeing alone, which is included in all the other rows.
static void measure_free(struct bench *b)
{
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		write_frames(b);
		uint64_t start = rte_rdtsc_precise();
		for (unsigned at = 0; at < b->n_mbufs; at += BURST)
			rte_pktmbuf_free_bulk(b->mbuf + at, BURST);
		b->cycles[i] = (double)(rte_rdtsc_precise() - start) / b->n_mbufs;
	}
	qsort(b->cycles, N_ROUNDS, sizeof(double), by_value);
	printf("%-28s near: %5.1f cycles per frame\n", "rte_pktmbuf_free_bulk alone",
		b->cycles[N_ROUNDS / 2]);
}

int main(int argc, char **argv)
{
	char *eal[] = {"sink_bench", "--no-huge", "-m", "256", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "-l", "1"};
	struct bench *b = &bench;

	if (rte_eal_init(ARRAY_LEN(eal), eal) < 0)
		return 1;
	b->pool = rte_pktmbuf_pool_create("bench", 2 * N_FAR, 512, 0, BUFFER_BYTES, 0);
	if (!b->pool)
		return 1;
	b->row = rows;
	b->n_mbufs = N_NEAR;
	begin(b);
	measure_free(b);
	end(b, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		b->row = &rows[i];
		if (argc > 1 && strcmp(argv[1], b->row->what))
			continue;
		b->n_mbufs = N_NEAR;
		measure(b, "near");
		b->n_mbufs = N_FAR;
		measure(b, " far");
	}
	rte_eal_cleanup();
	return 0;
}
