// Encapsulated frames: as they are built, found and judged, with random encapsulations.
#include "gen/encap.h"

#include "gen/fake_frames.h"
#include "gen/flows.h"
#include "gen/frame.h"
#include "gen/per_flow.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 2048, RUN = 0x5a, ROUNDS = 600, OUR_ID = 4, PORT = 1, NOW = 5000000 };

static struct frame_values values, plain_values;
static uint8_t room[GEN_MAX_BURST][ROOM] LINE_ALIGNED, plain_room[GEN_MAX_BURST][ROOM] LINE_ALIGNED;
static const uint8_t no_pick[GEN_MAX_BURST];
static struct fake_frame fake;

static uint64_t dice(uint64_t below)
{
	static uint64_t seed = 88172645463325252ull; // xorshift64

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

static struct gen_stream any_stream(uint8_t type)
{
	struct gen_stream stream = fake_stream(OUR_ID);
	struct wire_recipe outer = wire_recipe(dice(2) ? 4 : 6);
	struct gen_encap *encap = &stream.encap;

	stream.recipe = wire_recipe(dice(2) ? 4 : 6);
	stream.recipe.protocol = dice(2) ? WIRE_PROTO_UDP : WIRE_PROTO_TCP;
	stream.recipe.has_vlan = dice(2);
	stream.recipe.vlan_tag = 0x2005;
	*encap = (struct gen_encap){.type = type,
		.ttl = 1 + dice(255),
		.has_key = type != GEN_MPLS && type != GEN_VXLAN && dice(2),
		.has_checksum = dice(2),
		.hashes_port = dice(2),
		.src_port = dice(65536),
		.dst_port = type == GEN_VXLAN ? 8472 : ENCAP_MPLS_PORT,
		.inner_src = outer.src_mac,
		.inner_dst = outer.dst_mac};
	if (type == GEN_MPLS || type == GEN_MPLS_UDP || (type == GEN_GRE && dice(2)))
		encap->n_labels = 1 + dice(GEN_MAX_LABELS);
	for (unsigned i = 0; i < GEN_MAX_LABELS - 1; i++)
		encap->label[i] = dice(1 << 20);
	if (type > GEN_MPLS) {
		encap->src = outer.src;
		encap->dst = outer.dst;
	}
	return stream;
}

static uint32_t most_id(const struct gen_encap *encap)
{
	return encap->n_labels ? 1u << 20 : encap->type == GEN_VXLAN ? 1u << 24 : UINT32_MAX;
}

static void roll_values(const struct gen_stream *stream)
{
	for (unsigned f = 0; f < GEN_N_FIELDS; f++)
		for (unsigned i = 0; i < GEN_MAX_BURST; i++)
			values.field[f][i] = f == GEN_SRC_PORT || f == GEN_DST_PORT ? dice(65536)
			                     : f == GEN_ENCAP_ID ? dice(most_id(&stream->encap))
			                                         : dice(1ull << 32);
	for (unsigned i = 0; i < GEN_MAX_BURST; i++)
		values.due[i] = dice(1ull << 40);
	values.sent = dice(1ull << 40);
	values.sequence = dice(1ull << 40);
	values.n = 1 + dice(GEN_MAX_BURST);
	values.size = no_pick;
	if (dice(4) == 0) // all ones and zeros: corner cases of checksums
		memset(values.field[GEN_SRC_IP], dice(2) ? 0xff : 0,
			sizeof(values.field[GEN_SRC_IP]));
	plain_values = values;
	for (unsigned i = 0; i < GEN_MAX_BURST; i++) {
		values.to[i] = room[i];
		plain_values.to[i] = plain_room[i];
		memset(room[i], dice(256), ROOM);
	}
}

static unsigned layer2(const struct gen_stream *stream)
{
	return stream->recipe.has_vlan ? 18 : 14;
}

// The same packets without what surrounds them.
static void build_both(const struct gen_stream *stream, unsigned bytes)
{
	struct gen_stream wrapped = *stream, plain = *stream;
	struct frame_form form, plain_form;

	plain.encap = (struct gen_encap){.type = GEN_PLAIN};
	plain.sizes[0].bytes = bytes;
	wrapped.sizes[0].bytes = bytes + encap_bytes(&stream->encap);
	assert_int_equal(frame_form_make(&form, &wrapped, RUN), 0);
	assert_int_equal(frame_form_make(&plain_form, &plain, RUN), 0);
	frame_build(&form, &values);
	frame_build(&plain_form, &plain_values);
	frame_form_free(&form);
	frame_form_free(&plain_form);
}

static uint16_t word(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static uint32_t wide(const uint8_t *at)
{
	return (uint32_t)word(at) << 16 | word(at + 2);
}

// Checks the outer IP header; returns its end.
static unsigned check_outer_ip(const struct gen_encap *e, const uint8_t *ip, unsigned n)
{
	uint8_t protocol = e->type == GEN_MPLS_UDP || e->type == GEN_VXLAN ? 17 : 47;

	if (e->src.family == 4) {
		assert_int_equal(word(ip + 2), n);
		assert_int_equal(ip[8], e->ttl);
		assert_int_equal(ip[9], protocol);
		assert_true(wire_ip4_checksum_good((const void *)ip));
		assert_memory_equal(ip + 12, e->src.bytes, 4);
		assert_memory_equal(ip + 16, e->dst.bytes, 4);
		return 20;
	}
	assert_int_equal(word(ip + 4), n - 40);
	assert_int_equal(ip[6], protocol);
	assert_int_equal(ip[7], e->ttl);
	assert_memory_equal(ip + 8, e->src.bytes, 16);
	assert_memory_equal(ip + 24, e->dst.bytes, 16);
	return 40;
}

static void check_outer_udp(const struct gen_encap *e, const uint8_t *ip, unsigned n)
{
	bool is_ip6 = e->src.family == 6;
	const uint8_t *udp = ip + (is_ip6 ? 40 : 20);
	uint64_t pseudo = is_ip6 ? wire_sum_pseudo6((const void *)ip, 17, n - 40)
	                         : wire_sum_pseudo4((const void *)ip, 17, n - 20);

	assert_int_equal(word(udp + 2), e->dst_port);
	assert_int_equal(word(udp + 4), ip + n - udp);
	if (e->hashes_port)
		assert_in_range(word(udp), 49152, 65535);
	else
		assert_int_equal(word(udp), e->src_port);
	assert_int_equal(!word(udp + 6), !e->has_checksum);
	if (e->has_checksum)
		assert_int_equal(wire_sum_finish_be(wire_sum(pseudo, udp, ip + n - udp)), 0);
}

// Checks labels from the outermost to the last.
static unsigned check_labels(const struct gen_encap *e, const uint8_t *at, uint32_t id)
{
	for (unsigned i = 0; i < e->n_labels; i++) {
		bool is_last = i + 1 == e->n_labels;
		uint32_t label = is_last ? id : e->label[i];

		assert_int_equal(wide(at + 4 * i), label << 12 | is_last << 8 | e->ttl);
	}
	return 4 * e->n_labels;
}

static unsigned check_gre(const struct gen_stream *stream, const uint8_t *at, uint32_t id)
{
	const struct gen_encap *e = &stream->encap;
	unsigned type = e->type == GEN_GRETAP            ? 0x6558
	                : e->n_labels                    ? 0x8847
	                : stream->recipe.src.family == 6 ? 0x86dd
	                                                 : 0x0800;

	assert_int_equal(word(at), e->has_key ? 0x2000 : 0);
	assert_int_equal(word(at + 2), type);
	if (e->has_key)
		assert_int_equal(wide(at + 4), e->n_labels ? e->key : id);
	return e->has_key ? 8 : 4;
}

// Everything from the outer to the inner headers of frame i of n bytes; returns where the packet
// is.
static unsigned check_headers(const struct gen_stream *stream, unsigned i, unsigned n)
{
	const struct gen_encap *e = &stream->encap;
	const uint8_t *frame = room[i];
	unsigned at = layer2(stream);
	uint32_t id = values.field[GEN_ENCAP_ID][i];

	assert_int_equal(word(frame + at - 2), e->type == GEN_MPLS  ? 0x8847
					       : e->src.family == 6 ? 0x86dd
								    : 0x0800);
	if (e->type != GEN_MPLS)
		at += check_outer_ip(e, frame + at, n - at);
	if (e->type == GEN_MPLS_UDP || e->type == GEN_VXLAN) {
		check_outer_udp(e, frame + layer2(stream), n - layer2(stream));
		at += 8;
	}
	if (e->type == GEN_GRE || e->type == GEN_GRETAP)
		at += check_gre(stream, frame + at, id);
	at += check_labels(e, frame + at, id);
	if (e->type == GEN_VXLAN) {
		assert_int_equal(wide(frame + at), 0x08000000);
		assert_int_equal(wide(frame + at + 4), id << 8);
		at += 8;
	}
	if (e->type != GEN_VXLAN && e->type != GEN_GRETAP)
		return at;
	assert_int_equal(word(frame + at), word(e->inner_dst.bytes));
	assert_int_equal(wide(frame + at + 2), values.field[GEN_INNER_DST_MAC][i]);
	assert_int_equal(word(frame + at + 6), word(e->inner_src.bytes));
	assert_int_equal(wide(frame + at + 8), values.field[GEN_INNER_SRC_MAC][i]);
	assert_int_equal(word(frame + at + 12), stream->recipe.src.family == 6 ? 0x86dd : 0x0800);
	return at + 14;
}

static void check_found(const struct gen_stream *stream, unsigned i, unsigned n)
{
	const struct gen_encap *e = &stream->encap;
	struct encap_found found;

	assert_true(encap_find(room[i], n, &found));
	assert_int_equal(found.type, e->type);
	assert_int_equal(found.family, e->src.family);
	assert_int_equal(found.n_labels, e->n_labels);
	assert_int_equal(found.id, e->n_labels || e->has_key || e->type == GEN_VXLAN
					   ? values.field[GEN_ENCAP_ID][i]
					   : 0);
}

static void surrounds_the_packets_of_plain_streams(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct gen_stream stream = any_stream(GEN_MPLS + round % GEN_VXLAN);
		unsigned bytes = 92 + (dice(2) ? dice(1400) : 0), layer3 = layer2(&stream);
		unsigned extra = encap_bytes(&stream.encap), n = bytes - 4 + extra;

		roll_values(&stream);
		build_both(&stream, bytes);
		for (unsigned i = 0; i < values.n; i++) {
			assert_int_equal(check_headers(&stream, i, n), layer3 + extra);
			assert_memory_equal(room[i] + layer3 + extra, plain_room[i] + layer3,
				bytes - 4 - layer3);
			check_found(&stream, i, n);
		}
	}
}

// 2,000 flows in 64 parts: chi-square with 63 degrees of freedom is below 150 but for one in 10^8.
static void gives_flows_even_source_ports_and_each_flow_its_own(void **state)
{
	enum { PARTS = 64, BURSTS = 32 };
	struct gen_stream stream = any_stream(GEN_MPLS_UDP);
	unsigned n_of[PARTS] = {0}, at = layer2(&stream);
	double chi = 0, mean = (double)BURSTS * GEN_MAX_BURST / PARTS;

	stream.encap.hashes_port = true;
	at += stream.encap.src.family == 6 ? 40 : 20;
	for (unsigned burst = 0; burst < BURSTS; burst++) {
		uint16_t port[GEN_MAX_BURST];

		roll_values(&stream);
		values.n = plain_values.n = GEN_MAX_BURST;
		for (unsigned i = 0; i < GEN_MAX_BURST;
			i++) { // flows in order, but for one address
			values.field[GEN_SRC_IP][i] = 0x0a000001;
			values.field[GEN_DST_IP][i] = 0x0a010000 + burst * GEN_MAX_BURST + i;
			values.field[GEN_SRC_PORT][i] = values.field[GEN_DST_PORT][i] = 9;
		}
		build_both(&stream, 200);
		for (unsigned i = 0; i < GEN_MAX_BURST; i++) {
			port[i] = word(room[i] + at);
			n_of[port[i] % PARTS]++;
		}
		values.sequence += 1000;
		values.sent++;
		build_both(&stream, 300);
		for (unsigned i = 0; i < GEN_MAX_BURST; i++)
			assert_int_equal(word(room[i] + at), port[i]);
	}
	for (unsigned i = 0; i < PARTS; i++)
		chi += (n_of[i] - mean) * (n_of[i] - mean) / mean;
	assert_true(chi < 150);
}

static struct stamp stamp_of(uint64_t sequence)
{
	return (struct stamp){.magic = STAMP_MAGIC | RUN, .stream = OUR_ID, .sequence = sequence};
}

static struct gen_stream received;
static struct sink sink;
static struct sink_port counters;

// A sink for a stream with the packets of `stream`, which itself is plain.
static void begin(const struct gen_stream *stream)
{
	struct error error = {""};

	received = *stream;
	received.encap = (struct gen_encap){.type = GEN_PLAIN};
	sink = (struct sink){.run = RUN, .expects = received.expect.n_ports};
	counters = (struct sink_port){0};
	if (sink_stream_create(&sink.by_id[OUR_ID], &received, &error))
		fail_msg("%s", error.text);
}

static struct sink_counters end(void)
{
	struct sink_counters c = sink.by_id[OUR_ID]->counters;

	sink_stream_destroy(sink.by_id[OUR_ID]);
	assert_int_equal(counters.rx_packets, c.received + c.duplicated + c.corrupted + c.too_old +
						      counters.foreign + counters.stale +
						      counters.misdirected + counters.neighbours);
	return c;
}

static void take(void)
{
	struct rte_mbuf *m = &fake.mbuf;

	sink_take(&sink, &counters, &m, 1, PORT, NOW);
	rte_mbuf_refcnt_set(m, 2);
}

static void build(const struct gen_stream *stream, uint64_t sequence)
{
	struct stamp stamp = stamp_of(sequence);

	fake_frame_build(&fake, stream, &stamp, 100 + encap_bytes(&stream->encap));
}

static void accounts_for_a_stream_whatever_it_arrives_in(void **state)
{
	struct gen_stream stream = any_stream(GEN_MPLS);

	begin(&stream);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct gen_stream sent = any_stream(GEN_PLAIN + i % (GEN_VXLAN + 1));

		build(&sent, i);
		take();
	}
	struct sink_counters c = end();

	assert_int_equal(c.received, ROUNDS);
	assert_int_equal(c.missing + c.reordered + c.corrupted + counters.foreign, 0);
}

// Labels like these begin as a stamp of the same run and stream, and all checksums are right. The
// class of the first label has the last bits of the id.
static void takes_no_labels_for_a_stamp(void **state)
{
	enum { FRAMES = 32 };
	struct gen_stream stream = any_stream(GEN_MPLS_UDP);
	static struct fake_frame burst[FRAMES];
	struct rte_mbuf *mbuf[FRAMES];

	stream.encap.has_checksum = true;
	stream.encap.n_labels = 2;
	stream.encap.label[0] = 0xd3 << 12 | RUN << 4;
	stream.encap.src = wire_recipe(4).src;
	stream.encap.dst = wire_recipe(4).dst;
	stream.recipe.has_vlan = false;
	begin(&stream);
	for (unsigned i = 0; i < FRAMES; i++) {
		struct stamp stamp = stamp_of(i);
		uint8_t *frame = fake_frame_bytes(&burst[i]);

		fake_frame_build(&burst[i], &stream, &stamp, 200);
		frame[44] = OUR_ID;
		fake_repair(frame, burst[i].mbuf.pkt_len);
		mbuf[i] = &burst[i].mbuf;
	}
	sink_take(&sink, &counters, mbuf, FRAMES, PORT, NOW);
	struct sink_counters c = end();

	assert_int_equal(c.received, FRAMES);
	assert_int_equal(c.highest, FRAMES);
}

// Changes one bit of all that a checksum covers, outside and inside.
static void finds_a_changed_bit(void **state)
{
	unsigned n_changed = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct gen_stream stream = any_stream(round % 2 ? GEN_VXLAN : GEN_MPLS_UDP);
		uint8_t *frame = fake_frame_bytes(&fake);
		unsigned ip_at = layer2(&stream), at;

		stream.encap.has_checksum = true;
		begin(&stream);
		build(&stream, 0);
		at = ip_at + dice(fake.mbuf.pkt_len - ip_at);
		// IPv6 has no checksum of its own header.
		if (stream.encap.src.family == 6)
			at = MAX_OF(at, ip_at + 8);
		frame[at] ^= 1 << dice(8);
		take();
		struct sink_counters c = end();

		assert_int_equal(c.received, 0);
		n_changed += c.corrupted;
	}
	assert_true(n_changed > ROUNDS / 2); // the others are not found at all
}

// Options of GRE and IPv6, and more labels than are sent.
static void finds_what_other_programs_send(void **state)
{
	static const uint8_t options[8] = {WIRE_PROTO_UDP, 0, 4, 1, 4, 1, 0, 0};
	struct gen_stream stream = any_stream(GEN_GRE);
	uint8_t *frame = fake_frame_bytes(&fake);
	struct encap_found found;

	stream.recipe.has_vlan = false;
	stream.encap.has_key = false;
	stream.encap.n_labels = 0;
	stream.encap.src = stream.encap.dst = wire_recipe(4).src;
	build(&stream, 0);
	memmove(frame + 38 + 12, frame + 38, 100);
	frame[34] = 0xb0; // checksum, key and sequence number
	memcpy(frame + 42, "\x01\x02\x03\x04", 4);
	assert_true(encap_find(frame, 150, &found));
	assert_int_equal(found.id, 0x01020304);
	assert_int_equal(found.inner, 50);
	for (unsigned n = 0; n < 50; n++)
		assert_false(encap_find(frame, n, &found));

	stream = any_stream(GEN_VXLAN);
	stream.recipe.has_vlan = false;
	stream.encap.src = stream.encap.dst = wire_recipe(6).src;
	build(&stream, 0);
	memmove(frame + 62, frame + 54, 100);
	memcpy(frame + 54, options, sizeof(options));
	frame[20] = WIRE_PROTO_DESTINATION;
	assert_true(encap_find(frame, 150, &found));
	assert_int_equal(found.inner, 62 + 16);

	memset(frame + 12, 0, 100);
	frame[12] = 0x88;
	frame[13] = 0x47;
	frame[14 + 4 * ENCAP_LABELS - 2] = 1;
	frame[14 + 4 * ENCAP_LABELS] = 0x45;
	assert_true(encap_find(frame, 150, &found));
	assert_int_equal(found.n_labels, ENCAP_LABELS);
	frame[14 + 4 * ENCAP_LABELS - 2] = 0;
	frame[14 + 4 * ENCAP_LABELS + 2] = 1;
	frame[14 + 4 * ENCAP_LABELS + 4] = 0x45;
	assert_false(encap_find(frame, 150, &found));
}

// Sends one frame; returns whether it came as expected.
static bool is_expected(const struct gen_stream *sent, const struct gen_expect_encap *encap,
	uint32_t flow)
{
	struct gen_stream stream = *sent;

	stream.fields[GEN_DST_IP].count = stream.n_flows = 10;
	stream.expect = (struct gen_expect){.n_ports = 1, .n_dscps = 1, .port = {PORT}};
	stream.expect.encap = *encap;
	begin(&stream);
	stream.recipe.dst.bytes[stream.recipe.dst.family == 6 ? 15 : 3] += flow;
	build(&stream, flow);
	take();
	struct per_flow_counters c = sink.by_id[OUR_ID]->per_flow->counters;

	assert_int_equal(end().received, 1);
	assert_int_equal(c.checked, 1);
	assert_int_equal(c.wrong_port + c.wrong_dscp + c.wrong_tuple, 0);
	return !c.wrong_encap;
}

static struct gen_expect_encap expect_of(const struct gen_encap *e)
{
	struct gen_expect_encap expect = {.is_checked = true,
		.type = e->type,
		.n_labels = e->n_labels,
		.id = e->id,
		.n_ids = e->n_labels || e->has_key || e->type == GEN_VXLAN,
		.src = e->src,
		.dst = e->dst};

	if (e->type == GEN_MPLS_UDP || e->type == GEN_VXLAN) {
		expect.has_checksum = e->has_checksum;
		expect.has_no_checksum = !e->has_checksum;
	}
	memcpy(expect.label, e->label, sizeof(expect.label));
	return expect;
}

static void judges_each_part_of_the_outer_headers(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct gen_stream stream = any_stream(GEN_MPLS + round % GEN_VXLAN);
		const struct gen_expect_encap right = expect_of(&stream.encap);
		struct gen_expect_encap any = {.is_checked = true, .type = right.type}, wrong;

		any.n_labels = right.type == GEN_GRE ? right.n_labels : 0;
		memcpy(any.label, right.label, sizeof(any.label));

		assert_true(is_expected(&stream, &right, dice(10)));
		assert_true(is_expected(&stream, &any, dice(10)));
		wrong = right;
		wrong.type = wrong.type == GEN_VXLAN ? GEN_MPLS : wrong.type + 1;
		assert_false(is_expected(&stream, &wrong, 0));
		wrong = (struct gen_expect_encap){.is_checked = true};
		assert_false(is_expected(&stream, &wrong, 0));
		wrong = right;
		wrong.id++;
		assert_int_equal(is_expected(&stream, &wrong, 0), !right.n_ids);
		wrong = right;
		wrong.src.bytes[3]++;
		assert_int_equal(is_expected(&stream, &wrong, 0), !right.src.family);
		wrong = right;
		wrong.dst.bytes[3]++;
		assert_int_equal(is_expected(&stream, &wrong, 0), !right.dst.family);
		wrong = right;
		wrong.label[0]++;
		assert_int_equal(is_expected(&stream, &wrong, 0), right.n_labels < 2);
		wrong = right;
		wrong.has_checksum = right.has_no_checksum;
		wrong.has_no_checksum = right.has_checksum;
		assert_int_equal(is_expected(&stream, &wrong, 0),
			!right.has_checksum && !right.has_no_checksum);
	}
}

static void ids_correspond_to_destinations_if_there_are_as_many(void **state)
{
	struct gen_stream stream = any_stream(GEN_MPLS);
	struct gen_expect_encap expect = expect_of(&stream.encap);

	expect.id = 1000;
	for (expect.n_ids = 9; expect.n_ids <= 11; expect.n_ids++)
		for (uint32_t flow = 0; flow < 10; flow++)
			for (uint32_t id = 999; id <= 1000 + expect.n_ids; id++) {
				bool is_in = id >= 1000 && id < 1000 + expect.n_ids;

				stream.encap.id = id;
				assert_int_equal(is_expected(&stream, &expect, flow),
					expect.n_ids == 10 ? id == 1000 + flow : is_in);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(surrounds_the_packets_of_plain_streams),
		cmocka_unit_test(gives_flows_even_source_ports_and_each_flow_its_own),
		cmocka_unit_test(accounts_for_a_stream_whatever_it_arrives_in),
		cmocka_unit_test(takes_no_labels_for_a_stamp),
		cmocka_unit_test(finds_a_changed_bit),
		cmocka_unit_test(finds_what_other_programs_send),
		cmocka_unit_test(judges_each_part_of_the_outer_headers),
		cmocka_unit_test(ids_correspond_to_destinations_if_there_are_as_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
