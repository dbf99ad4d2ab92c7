// Frames that a guest on port 0 leaves open: what leaves dl3d, byte for byte, and what is refused.
#include "datapath/vlans.h"

#include "wire/checksum.h"
#include "wire/segment.h"

enum { OUT = 1, SIZE = 300, LONG = 1000, HALF = 700, TCP_FLAGS = 0x99 };
#define OPEN RTE_MBUF_F_RX_L4_CKSUM_NONE
#define TO_CUT (RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE)

static const struct way {
	const char *dst;
	uint16_t in, out;
} ways[] = {{"10.1.2.3", PLAIN_IN, PLAIN_OUT}, {"2001:db8:1::3", PLAIN_IN, PLAIN_OUT},
	{"10.20.2.3", TAGGED_IN, TAGGED_OUT}, {"10.21.2.3", QINQ_IN, QINQ_OUT},
	{"2001:db8:15::3", QINQ_IN, QINQ_OUT}};

static void reset(unsigned variant)
{
	fake_reset(fake_variants[variant]);
	fake.states[0].has_offloads = true;
	fake.states[OUT].tx_multi_segment = true;
	fake.states[OUT].takes = 0;
}

static struct wire_layout layout_of(const struct bytes *frame)
{
	struct wire_layout layout;

	assert_true(wire_layout_read(&layout, frame->at, frame->n, frame->n));
	return layout;
}

static uint16_t *checksum_of(struct bytes *frame)
{
	const struct wire_layout layout = layout_of(frame);

	return (void *)(frame->at + wire_layout_checksum_at(&layout));
}

static void write_lengths(struct bytes *frame, uint16_t l4_bytes)
{
	struct wire_ip4 *ip4 = (void *)(frame->at + WIRE_ETHER_BYTES);
	struct wire_ip6 *ip6 = (void *)ip4;

	if (frame->at[12] != 0x08) {
		ip6->payload_length_be = htobe16(l4_bytes);
		return;
	}
	ip4->total_length_be = htobe16(WIRE_IP4_BYTES + l4_bytes);
	ip4->fragment_be = 0;
	frame_mend(frame);
}

// A packet with the sum of its pseudo header in place of its checksum, without tags.
static struct bytes open_packet(const char *dst, uint8_t proto, uint16_t payload)
{
	struct bytes frame = frame_to(0, dst);
	const uint16_t l4_at = frame.at[12] == 0x08 ? 34 : 54;
	const uint16_t header = proto == WIRE_PROTO_TCP ? WIRE_TCP_BYTES : WIRE_UDP_BYTES;

	frame.at[frame.at[12] == 0x08 ? 23 : 20] = proto;
	for (unsigned i = 0; i < header + payload; i++)
		frame.at[l4_at + i] = i * 7 + i / 256;
	if (proto == WIRE_PROTO_TCP) {
		frame.at[l4_at + 12] = WIRE_TCP_BYTES / 4 << 4;
		frame.at[l4_at + 13] = TCP_FLAGS;
	}
	frame.n = l4_at + header + payload;
	write_lengths(&frame, header + payload);
	const struct wire_layout layout = layout_of(&frame);

	*checksum_of(&frame) = ~wire_sum_finish_be(wire_layout_pseudo_sum(&layout, frame.at));
	return frame;
}

static void close_checksum(struct bytes *frame)
{
	const struct wire_layout layout = layout_of(frame);

	*checksum_of(frame) = 0;
	*checksum_of(frame) =
		wire_sum_finish_be(wire_sum(wire_layout_pseudo_sum(&layout, frame->at),
			frame->at + layout.l4_at, layout.end - layout.l4_at));
}

static struct bytes segment_of(const struct bytes *frame, unsigned i, uint16_t size)
{
	const struct wire_layout layout = layout_of(frame);
	const uint8_t *payload = frame->at + layout.payload_at + i * size;
	struct wire_segments plan;
	struct bytes made;

	wire_segments_plan(&plan, &layout, size);
	const uint16_t bytes = wire_segment_bytes(&plan, i);

	made.n = layout.payload_at + bytes;
	memcpy(made.at + layout.payload_at, payload, bytes);
	wire_segment_headers(&layout, &plan, i, frame->at, made.at, wire_sum(0, payload, bytes));
	return made;
}

static struct rte_mbuf *receive(const struct way *way, struct bytes frame, uint64_t flags)
{
	struct rte_mbuf *m;

	if (way->in != PLAIN_IN)
		frame_tag_for(&frame, way->in);
	m = fake_receive(0, &frame);
	m->ol_flags = flags;
	m->tso_segsz = flags & RTE_MBUF_F_RX_LRO ? SIZE : 0;
	return m;
}

// Moves what follows the first HALF bytes into a second buffer.
static void halve(struct rte_mbuf *m)
{
	struct bytes rest = {.n = m->data_len - HALF};

	memcpy(rest.at, rte_pktmbuf_mtod_offset(m, uint8_t *, HALF), rest.n);
	m->data_len = HALF;
	m->next = fake_mbuf(&rest);
	fake.n_made--; // one packet
	m->next->refcnt++;
	m->nb_segs = 2;
}

static void expect_segments(const struct bytes *left)
{
	const unsigned n = (LONG + SIZE - 1) / SIZE;

	assert_int_equal(fake.device[OUT].n_sent, n);
	assert_int_equal(fake.stat.port[OUT].copied_packets, n - 1);
	for (unsigned i = 0; i < n; i++) {
		const struct bytes segment = segment_of(left, i, SIZE);

		expect_bytes(fake.device[OUT].sent[i], &segment);
		assert_false(offload_is_open(fake.device[OUT].sent[i]));
	}
}

static void long_packets_leave_in_segments(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < 2 * ARRAY_LEN(ways); i++) {
			const struct way *way = &ways[i / 2];
			const struct bytes frame = open_packet(way->dst, WIRE_PROTO_TCP, LONG);
			const struct bytes left = frame_forwarded(&frame, way->out);

			reset(v);
			struct rte_mbuf *m = receive(way, frame, TO_CUT);

			if (i % 2)
				halve(m);
			// The device of the segments need not take several buffers.
			fake.states[OUT].tx_multi_segment = false;
			fake_run();
			expect_segments(&left);
		}
}

static void open_checksums_are_finished(void **state)
{
	static const uint8_t protos[] = {WIRE_PROTO_TCP, WIRE_PROTO_UDP};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < 2 * ARRAY_LEN(ways); i++) {
			const struct way *way = &ways[i / 2];
			const struct bytes frame = open_packet(way->dst, protos[i % 2], 501);
			struct bytes left = frame_forwarded(&frame, way->out);

			close_checksum(&left);
			reset(v);
			receive(way, frame, OPEN);
			fake_run();
			expect_sent(OUT, &left);
			// Its guest may also call something to be cut that fits.
			reset(v);
			struct rte_mbuf *m = receive(way, frame, i % 2 ? OPEN : TO_CUT);

			m->tso_segsz = 501;
			fake_run();
			expect_sent(OUT, &left);
		}
}

static void expect_lengths(const struct rte_mbuf *m, const struct bytes *left)
{
	const struct wire_layout layout = layout_of(left);

	assert_int_equal(m->l2_len, layout.l3_at);
	assert_int_equal(m->l3_len, layout.l4_at - layout.l3_at);
	assert_int_equal(m->l4_len, layout.payload_at - layout.l4_at);
	assert_int_equal(!!(m->ol_flags & RTE_MBUF_F_TX_IPV6), layout.is_ip6);
	assert_int_equal(!!(m->ol_flags & RTE_MBUF_F_TX_IPV4), !layout.is_ip6);
}

// The header that DPDK writes for the peer follows from flags and lengths.
static void a_peer_gets_what_it_takes(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(ways); i++) {
			struct bytes frame = open_packet(ways[i].dst, WIRE_PROTO_TCP, LONG), made;
			struct bytes left;

			frame.at[layout_of(&frame).l4_at + 13] = WIRE_TCP_ACK;
			left = frame_forwarded(&frame, ways[i].out);
			reset(v);
			fake.states[OUT].takes =
				PORT_TAKES_CHECKSUM | PORT_TAKES_TSO4 | PORT_TAKES_TSO6;
			fake.n_split = 1;
			receive(&ways[i], frame, TO_CUT);
			fake_run();
			assert_int_equal(fake.device[OUT].n_sent, 1);
			const struct rte_mbuf *m = fake.device[OUT].sent[0];

			assert_true(offload_is_long(m));
			assert_int_equal(m->tso_segsz, SIZE);
			expect_lengths(m, &left);
			made.n = m->pkt_len;
			assert_int_equal(made.n, left.n);
			assert_ptr_equal(rte_pktmbuf_read(m, 0, made.n, made.at), made.at);
			assert_memory_equal(made.at, left.at, left.n);
			assert_true(m->data_len < m->l2_len + m->l3_len + m->l4_len);
			assert_int_equal(fake.stat.port[OUT].tx_bytes, left.n);
		}
}

// It has to be told of CWR, and of what it does not take.
static void a_peer_gets_segments_of_what_it_does_not_take(void **state)
{
	for (unsigned i = 0; i < 2 * ARRAY_LEN(ways); i++) {
		const struct way *way = &ways[i / 2];
		struct bytes frame = open_packet(way->dst, WIRE_PROTO_TCP, LONG);
		const bool is_ip6 = frame.at[12] != 0x08, has_cwr = i % 2;
		struct bytes left;

		if (!has_cwr)
			frame.at[layout_of(&frame).l4_at + 13] = WIRE_TCP_ACK;
		left = frame_forwarded(&frame, way->out);
		reset(0);
		fake.states[OUT].takes = PORT_TAKES_CHECKSUM |
		                         (is_ip6 == has_cwr ? PORT_TAKES_TSO6 : PORT_TAKES_TSO4);
		receive(way, frame, TO_CUT);
		fake_run();
		expect_segments(&left);
	}
}

static void a_peer_gets_open_checksums(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(ways); i++) {
		const struct bytes frame = open_packet(ways[i].dst, WIRE_PROTO_UDP, LONG);
		const struct bytes left = frame_forwarded(&frame, ways[i].out);

		reset(0);
		fake.states[OUT].takes = PORT_TAKES_CHECKSUM;
		receive(&ways[i], frame, OPEN);
		fake_run();
		expect_sent(OUT, &left);
		const struct rte_mbuf *m = fake.device[OUT].sent[0];

		assert_int_equal(m->ol_flags & RTE_MBUF_F_TX_L4_MASK, RTE_MBUF_F_TX_UDP_CKSUM);
		expect_lengths(m, &left);
	}
}

static void set_mtu(uint16_t iface, uint16_t mtu)
{
	struct iface settings = *fib_iface(fake.fib, iface);

	settings.mtu = mtu;
	fake_set(iface, &settings);
}

static void an_mtu_is_that_of_segments(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(ways); i++)
			for (unsigned less = 0; less < 2; less++) {
				const struct bytes frame =
					open_packet(ways[i].dst, WIRE_PROTO_TCP, LONG);
				const struct wire_layout layout = layout_of(&frame);
				const uint16_t longest =
					layout.payload_at - WIRE_ETHER_BYTES + SIZE;
				const struct bytes left = frame_forwarded(&frame, ways[i].out);

				reset(v);
				set_mtu(ways[i].out, longest - less);
				receive(&ways[i], frame, TO_CUT);
				fake_run();
				if (!less)
					expect_segments(&left);
				else
					assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], 4);
				set_mtu(ways[i].out, 1500);
			}
}

static void linux_gets_finished_frames(void **state)
{
	static const struct way to_linux = {"10.1.2.3", PLAIN_IN, PLAIN_OUT};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned is_long = 0; is_long < 2; is_long++) {
			struct bytes frame =
				open_packet(to_linux.dst, WIRE_PROTO_TCP, is_long ? LONG : SIZE);

			frame.at[22] = 1; // TTL
			frame_mend(&frame);
			reset(v);
			receive(&to_linux, frame, is_long ? TO_CUT : OPEN);
			fake_run();
			for (unsigned i = 0; i < (is_long ? 4 : 1); i++) {
				struct bytes one = frame;

				if (is_long)
					one = segment_of(&frame, i, SIZE);
				else
					close_checksum(&one);
				expect_bytes(fake_punted(CLASS_TTL), &one);
			}
			assert_null(fake_punted(CLASS_TTL));
			assert_int_equal(fake.stat.port[0].copied_packets, is_long ? 3 : 0);
		}
}

static void fragments_have_the_whole_checksum(void **state)
{
	const struct bytes frame = open_packet("10.1.2.3", WIRE_PROTO_UDP, LONG);
	struct bytes left = frame_forwarded(&frame, PLAIN_OUT);
	unsigned at = WIRE_ETHER_BYTES + WIRE_IP4_BYTES;

	close_checksum(&left);
	reset(0);
	set_mtu(PLAIN_OUT, 576);
	receive(&ways[0], frame, OPEN);
	fake_run();
	set_mtu(PLAIN_OUT, 1500);
	assert_int_equal(fake.device[OUT].n_sent, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct rte_mbuf *m = fake.device[OUT].sent[i];
		const unsigned n = m->data_len - WIRE_ETHER_BYTES - WIRE_IP4_BYTES;

		assert_memory_equal(rte_pktmbuf_mtod_offset(m, uint8_t *, 34), left.at + at, n);
		at += n;
	}
	assert_int_equal(at, left.n);
}

static void wrong_ip_length(struct bytes *frame)
{
	frame->at[16] = 0xff;
}

static void no_tcp(struct bytes *frame)
{
	frame->at[23] = WIRE_PROTO_UDP; // of which there are no segments
}

static void sctp(struct bytes *frame)
{
	frame->at[23] = WIRE_PROTO_SCTP;
}

static void arp(struct bytes *frame)
{
	frame->at[13] = 6;
}

static void no_header(struct bytes *frame)
{
	frame->n = 50;
}

static void fragment(struct bytes *frame)
{
	frame->at[20] = 0x20;
}

static void as_it_is(struct bytes *frame)
{
}

static void what_a_guest_says_has_to_be_true(void **state)
{
	static const struct {
		void (*change)(struct bytes *frame);
		uint64_t flags;
		uint16_t size;
	} rows[] = {
		{wrong_ip_length, OPEN, 0}, {wrong_ip_length, TO_CUT, SIZE}, {no_tcp, TO_CUT, SIZE},
		{sctp, OPEN, 0}, {arp, OPEN, 0}, {no_header, OPEN, 0}, {fragment, OPEN, 0},
		{as_it_is, TO_CUT, 0}, {as_it_is, TO_CUT, 3}, // 334 segments
	};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
			struct bytes frame = open_packet("10.1.2.3", WIRE_PROTO_TCP, LONG);
			const struct bytes good = frame_to(0, "10.1.2.3");
			const struct bytes left = frame_forwarded(&good, PLAIN_OUT);

			rows[i].change(&frame);
			reset(v);
			fake_receive(0, &frame)->ol_flags = rows[i].flags;
			fake.device[0].waiting[0]->tso_segsz = rows[i].size;
			fake_receive(0, &good);
			fake_run();
			expect_sent(OUT, &left);
			assert_int_equal(fake.stat.verdict[VERDICT_OFFLOAD_BAD], 1);
			assert_int_equal(fake.stat.port[0].rx_bytes, frame.n + good.n);
		}
}

static void without_buffers_no_segment_leaves(void **state)
{
	const struct bytes frame = open_packet("10.1.2.3", WIRE_PROTO_TCP, LONG);

	reset(0);
	fake.n_buffers = 3;
	receive(&ways[0], frame, TO_CUT);
	fake_run();
	assert_int_equal(fake.device[OUT].n_sent, 0);
	assert_int_equal(fake.stat.verdict[VERDICT_SEGMENT_FAILED], 1);
}

static void a_cross_connect_sends_segments(void **state)
{
	const struct bytes frame = open_packet("10.1.2.3", WIRE_PROTO_TCP, LONG);

	reset(0);
	fake.states[0].is_xconnect = true;
	fake.states[0].xconnect = OUT;
	halve(receive(&ways[0], frame, TO_CUT));
	fake.states[OUT].tx_multi_segment = false;
	fake_run();
	fake.states[0].is_xconnect = false;
	expect_segments(&frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_packets_leave_in_segments),
		cmocka_unit_test(open_checksums_are_finished),
		cmocka_unit_test(a_peer_gets_what_it_takes),
		cmocka_unit_test(a_peer_gets_segments_of_what_it_does_not_take),
		cmocka_unit_test(a_peer_gets_open_checksums),
		cmocka_unit_test(an_mtu_is_that_of_segments),
		cmocka_unit_test(linux_gets_finished_frames),
		cmocka_unit_test(fragments_have_the_whole_checksum),
		cmocka_unit_test(what_a_guest_says_has_to_be_true),
		cmocka_unit_test(without_buffers_no_segment_leaves),
		cmocka_unit_test(a_cross_connect_sends_segments),
	};

	return cmocka_run_group_tests_name("offload", tests, vlans_open, fake_close);
}
