// Compares the sink with a simple model that records every frame: random loss, duplicates, delays,
// corruption and foreign frames, in bursts of random length, with many seeds.
#include "gen/fake_frames.h"

#include "gen/encap.h"
#include "wire/headers.h"

#include <rte_vect.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 60, BURSTS = 60, MAX_BURST = 100, N_STREAMS = 4, NUMBERS = 1 << 16, PORT = 1 };
enum { RUN = 0x5a, NOW_STEP = 30000 };

struct model_stream {
	bool seen[NUMBERS];
	uint64_t flow_next[NUMBERS];
	uint64_t next, last_delay;
	struct sink_counters counters;
	uint64_t due_sum, due_min, due_max, sent_sum;
};

static uint64_t seed;
static struct fake_frame *frames;
static struct model_stream model[N_STREAMS];
static struct sink_port model_port;
static struct gen_stream streams[N_STREAMS];
static uint64_t sequence[N_STREAMS];
static struct sink sink;
static struct sink_port counters;

static uint64_t dice(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

static void begin(void)
{
	static const uint32_t flows[] = {1, 2, 7, 1000, 65536, 1 << 20};

	memset(model, 0, sizeof(model));
	memset(&model_port, 0, sizeof(model_port));
	memset(&counters, 0, sizeof(counters));
	sink = (struct sink){.run = RUN};
	for (unsigned i = 0; i < N_STREAMS; i++) {
		streams[i] = fake_stream(10 * i);
		streams[i].recipe = wire_recipe(dice(3) ? 4 : 6);
		streams[i].recipe.protocol = dice(3) ? WIRE_PROTO_UDP : WIRE_PROTO_TCP;
		streams[i].recipe.has_vlan = !dice(4);
		streams[i].n_flows = flows[dice(ARRAY_LEN(flows))];
		streams[i].to = i == N_STREAMS - 1 ? PORT + 1 : PORT;
		model[i].due_min = UINT64_MAX;
		sequence[i] = dice(40);
		assert_int_equal(sink_stream_create(&sink.by_id[10 * i], &streams[i], NULL), 0);
	}
}

static void end(void)
{
	for (unsigned i = 0; i < N_STREAMS; i++)
		sink_stream_destroy(sink.by_id[10 * i]);
}

// A random number, mostly the next one.
static uint64_t any_number(unsigned i, bool is_calm)
{
	uint64_t next = sequence[i], back = 1 + dice(300);

	if (is_calm || dice(8)) {
		sequence[i]++;
	} else if (dice(2)) {
		next += dice(dice(10) ? 4 : 900);
		sequence[i] = next + 1;
	} else if (back <= next) {
		next -= back;
	}
	return next;
}

// The last missing number below the highest, plus one.
static uint64_t gap_end(const struct model_stream *m)
{
	uint64_t end = m->counters.missing ? m->counters.highest : 0;

	while (end && m->seen[end - 1])
		end--;
	return end;
}

static void take_in_model(unsigned i, const struct stamp *stamp, uint64_t now, unsigned bytes)
{
	struct model_stream *m = &model[i];
	uint32_t n_flows = streams[i].n_flows <= GEN_FLOWS_IN_ORDER ? streams[i].n_flows : 1;
	uint64_t *flow_next = &m->flow_next[stamp->sequence % n_flows];
	uint64_t due = now - stamp->due, sent = now - stamp->sent;
	uint64_t difference = sent > m->last_delay ? sent - m->last_delay : m->last_delay - sent;

	if (m->seen[stamp->sequence]) {
		m->counters.duplicated++;
		return;
	}
	m->seen[stamp->sequence] = true;
	if (stamp->sequence > m->counters.highest && m->counters.received)
		m->counters.longest_outage =
			MAX_OF(m->counters.longest_outage, now - m->counters.last_tsc);
	m->counters.reordered += stamp->sequence < *flow_next;
	*flow_next = MAX_OF(*flow_next, stamp->sequence + 1);
	m->counters.highest = MAX_OF(m->counters.highest, stamp->sequence + 1);
	if (m->counters.received++) {
		m->counters.n_jitter++;
		m->counters.jitter_sum += difference;
		m->counters.jitter_max = MAX_OF(m->counters.jitter_max, difference);
		m->counters.longest_silence =
			MAX_OF(m->counters.longest_silence, now - m->counters.last_tsc);
	} else {
		m->counters.first_tsc = now;
	}
	m->last_delay = sent;
	m->counters.last_tsc = now;
	m->counters.received_bytes += bytes;
	m->counters.missing = m->counters.highest - m->counters.received;
	m->counters.gap_end = gap_end(m);
	m->due_sum += due;
	m->sent_sum += sent;
	m->due_min = MIN_OF(m->due_min, due);
	m->due_max = MAX_OF(m->due_max, due);
}

// A forwarder may have changed the encapsulation of each frame.
static struct gen_stream any_encap(unsigned i)
{
	struct gen_stream stream = streams[i];
	struct gen_encap *encap = &stream.encap;
	struct wire_recipe outer = wire_recipe(dice(2) ? 4 : 6);

	if (dice(2))
		return stream;
	*encap = (struct gen_encap){.type = 1 + dice(GEN_VXLAN), .ttl = 64, .id = dice(1 << 20)};
	encap->has_key = dice(2);
	encap->has_checksum = dice(2);
	encap->dst_port = encap->type == GEN_VXLAN ? 4789 : 6635;
	if (encap->type == GEN_MPLS || encap->type == GEN_MPLS_UDP)
		encap->n_labels = 1 + dice(GEN_MAX_LABELS);
	if (encap->type == GEN_GRE)
		encap->n_labels = dice(GEN_MAX_LABELS + 1);
	for (unsigned k = 0; k < GEN_MAX_LABELS - 1; k++)
		encap->label[k] = dice(1 << 20);
	if (encap->type != GEN_MPLS) {
		encap->src = outer.src;
		encap->dst = outer.dst;
	}
	return stream;
}

// Modifies a frame of stream i and updates the model with the expected result.
static void disturb(struct fake_frame *f, const struct gen_stream *sent, unsigned i)
{
	uint8_t *frame = fake_frame_bytes(f);
	bool is_ours = streams[i].to == PORT;
	unsigned layer3 = (streams[i].recipe.has_vlan ? 18 : 14) + encap_bytes(&sent->encap);
	bool is_ip6 = streams[i].recipe.src.family == 6;

	switch (dice(3)) {
	case 0: // a word of the addresses
		frame[layer3 + (is_ip6 ? 8 : 12) + dice(8)] ^= 1 << dice(8);
		model[i].counters.corrupted += is_ours;
		model_port.misdirected += !is_ours;
		break;
	case 1: // last byte of the payload
		frame[f->mbuf.data_len - 1] ^= 1 << dice(8);
		model[i].counters.corrupted += is_ours;
		model_port.misdirected += !is_ours;
		break;
	case 2: // the EtherType, the outer one
		frame[(streams[i].recipe.has_vlan ? 18 : 14) - 1] ^= 1 << dice(3);
		model_port.foreign++;
		break;
	}
}

static void place(struct fake_frame *f, uint64_t now, bool is_calm)
{
	static unsigned i;
	struct stamp stamp = {.magic = STAMP_MAGIC | RUN};
	struct gen_stream sent;
	unsigned bytes = 96 + (dice(2) ? 0 : dice(1400));

	if (!is_calm || !dice(50))
		i = dice(N_STREAMS);
	stamp.stream = 10 * i;
	stamp.sequence = any_number(i, is_calm);
	stamp.due = now - dice(1 << dice(20));
	stamp.sent = now - dice(1 << dice(20));
	if (!is_calm && !dice(20))
		stamp.magic ^= 1 + dice(255);
	if (streams[i].recipe.src.family == 4 && streams[i].recipe.protocol == WIRE_PROTO_UDP)
		bytes -= dice(3) ? 96 - 68 : 0;
	sent = any_encap(i);
	bytes += encap_bytes(&sent.encap);
	fake_frame_build(f, &sent, &stamp, bytes);
	model_port.rx_bytes += bytes;
	model_port.rx_packets++;
	if (stamp.magic != (STAMP_MAGIC | RUN))
		model_port.stale++;
	else if (!is_calm && !dice(20))
		disturb(f, &sent, i);
	else if (streams[i].to != PORT)
		model_port.misdirected++;
	else
		take_in_model(i, &stamp, now, bytes);
}

static void take_burst(uint64_t now)
{
	uint16_t n = dice(3) ? 1 + dice(MAX_BURST) : 64;
	struct rte_mbuf *mbuf[MAX_BURST];
	bool is_calm = dice(2);

	for (uint16_t i = 0; i < n; i++) {
		place(&frames[i], now, is_calm);
		mbuf[i] = &frames[i].mbuf;
	}
	sink_take(&sink, &counters, mbuf, n, PORT, now);
	for (uint16_t i = 0; i < n; i++)
		assert_int_equal(rte_mbuf_refcnt_read(mbuf[i]), 1);
}

static void expect_like_model(void)
{
	assert_memory_equal(&counters, &model_port, sizeof(counters));
	for (unsigned i = 0; i < N_STREAMS; i++) {
		const struct sink_stream *s = sink.by_id[10 * i];
		const struct model_stream *m = &model[i];
		assert_memory_equal(&s->counters, &m->counters, sizeof(s->counters));
		assert_int_equal(s->due.n, m->counters.received);
		assert_int_equal(s->sent.n, m->counters.received);
		assert_int_equal(s->due.sum, m->due_sum);
		assert_int_equal(s->sent.sum, m->sent_sum);
		assert_int_equal(s->due.min, m->due_min);
		assert_int_equal(s->due.max, m->due_max);
	}
}

static void count_like_the_model(void)
{
	frames = aligned_alloc(64, MAX_BURST * sizeof(*frames));
	for (unsigned round = 0; round < SEEDS; round++) {
		uint64_t now = 1ull << 34;
		seed = 88172645463325252ull + round * 977;
		begin();
		for (unsigned burst = 0; burst < BURSTS; burst++, now += NOW_STEP) {
			take_burst(now);
			expect_like_model();
		}
		end();
	}
	free(frames);
}

static void counts_like_a_model_that_remembers_everything(void **state)
{
	count_like_the_model();
}

static void counts_so_without_wide_vectors_too(void **state)
{
	uint16_t bits = rte_vect_get_max_simd_bitwidth();

	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_128);
	count_like_the_model();
	rte_vect_set_max_simd_bitwidth(bits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_like_a_model_that_remembers_everything),
		cmocka_unit_test(counts_so_without_wide_vectors_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
