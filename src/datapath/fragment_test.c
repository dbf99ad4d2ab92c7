// Long packets: their fragments, in order, and what happens if these cannot be made or sent.
#include "datapath/dice.h"
#include "datapath/vlans.h"

#include "wire/build.h"
#include "wire/fragment.h"

enum { FLAGS_AT = 20, MTU = 576, PIECES = 512 };

static void set_mtu(uint16_t iface, uint16_t mtu)
{
	struct iface settings = *fib_iface(fake.fib, iface);

	settings.mtu = mtu;
	fake_set(iface, &settings);
}

static void reset(unsigned variant)
{
	fake_reset(fake_variants[variant]);
	set_mtu(PLAIN_OUT, MTU);
	set_mtu(TAGGED_OUT, MTU);
	set_mtu(QINQ_OUT, MTU);
}

// A packet of `length` bytes without DF, without tags.
static struct bytes packet(const char *dst, uint16_t length)
{
	struct wire_recipe recipe = wire_recipe(strchr(dst, ':') ? 6 : 4);
	struct bytes frame = {.n = WIRE_ETHER_BYTES + length};

	memcpy(recipe.dst_mac.bytes, fake.states[0].mac, sizeof(recipe.dst_mac.bytes));
	assert_int_equal(wire_addr_parse(dst, &recipe.dst), 0);
	recipe.frame_bytes = frame.n;
	assert_int_equal(wire_build(&recipe, frame.at, sizeof(frame.at)), 0);
	if (!strchr(dst, ':')) {
		frame.at[FLAGS_AT] = 0;
		frame_mend(&frame);
	}
	return frame;
}

// The frames that leave on an interface.
struct pieces {
	unsigned n;
	struct bytes at[PIECES];
};

static void add_pieces(struct pieces *pieces, const struct bytes *frame, uint16_t iface)
{
	const struct bytes left = frame_forwarded(frame, iface);
	const uint16_t ether = left.n - (frame->n - WIRE_ETHER_BYTES); // frame has no tags
	const struct wire_ip4 *ip = (const void *)(left.at + ether);
	struct wire_fragments plan;

	if (be16toh(ip->total_length_be) <= MTU) {
		pieces->at[pieces->n++] = left;
		return;
	}
	assert_true(wire_fragment_plan(&plan, ip, MTU));
	for (unsigned i = 0; i < plan.n; i++) {
		const uint16_t headers = ether + plan.header_bytes;
		const uint16_t bytes = wire_fragment_bytes(&plan, i);
		struct bytes *piece = &pieces->at[pieces->n++];

		memcpy(piece->at, left.at, ether);
		wire_fragment_header(&plan, i, ip, (void *)(piece->at + ether));
		memcpy(piece->at + headers, left.at + headers + wire_fragment_start(&plan, i),
			bytes);
		piece->n = headers + bytes;
	}
}

static void expect_pieces(uint8_t port, const struct pieces *pieces)
{
	const struct fake_device *d = &fake.device[port];
	uint64_t bytes = 0;

	assert_int_equal(d->n_sent, pieces->n);
	for (unsigned i = 0; i < pieces->n; i++) {
		expect_bytes(d->sent[i], &pieces->at[i]);
		bytes += pieces->at[i].n;
	}
	assert_int_equal(fake.stat.port[port].tx_packets, pieces->n);
	assert_int_equal(fake.stat.port[port].tx_bytes, bytes);
}

static const struct way {
	const char *dst;
	uint16_t iface;
} ways[] = {{"10.1.2.3", PLAIN_OUT}, {"10.20.2.3", TAGGED_OUT}, {"10.21.2.3", QINQ_OUT}};

static void long_packets_leave_in_fragments(void **state)
{
	static const uint16_t lengths[] = {576, 577, 1100, 1132, 1133, 1500};
	static const uint32_t tags[] = {0, CUSTOMER | 10};
	static struct pieces pieces;

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned w = 0; w < ARRAY_LEN(ways); w++)
			for (unsigned i = 0; i < ARRAY_LEN(tags) * ARRAY_LEN(lengths); i++) {
				struct bytes frame = packet(ways[w].dst, lengths[i / 2]);

				reset(v);
				pieces.n = 0;
				add_pieces(&pieces, &frame, ways[w].iface);
				if (tags[i % 2])
					frame_tag(&frame, tags[i % 2]);
				fake_receive(0, &frame);
				fake_run();
				expect_pieces(1, &pieces);
				assert_int_equal(fake.stat.port[1].copied_packets, pieces.n - 1);
			}
}

static void what_a_burst_makes_may_exceed_a_burst(void **state)
{
	static struct pieces pieces;

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned round = 0; round < 40; round++) {
			unsigned n = 1 + dice(2 * BURST_MAX);

			reset(v);
			pieces.n = 0;
			for (unsigned i = 0; i < n; i++) {
				const struct way *way = &ways[dice(ARRAY_LEN(ways))];
				struct bytes frame = packet(way->dst, 100 + dice(1400));

				frame.at[18] = i;
				frame_mend(&frame);
				add_pieces(&pieces, &frame, way->iface);
				fake_receive(0, &frame);
			}
			fake_run();
			expect_pieces(1, &pieces);
		}
}

static void linux_answers_those_that_may_not_be_fragmented(void **state)
{
	struct bytes frame[] = {packet("10.1.2.3", 1000), packet("2001:db8:1::3", 1000)};

	frame[0].at[FLAGS_AT] = WIRE_IP4_DONT_FRAGMENT >> 8;
	frame_mend(&frame[0]);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(frame); i++) {
			reset(v);
			struct rte_mbuf *m = fake_receive(0, &frame[i]);
			fake_run();
			assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], 1);
			expect_bytes(m, &frame[i]);
		}
}

static void ttl_comes_first(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1000);

	frame.at[22] = 1;
	frame_mend(&frame);
	reset(1);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_TTL_EXPIRED], 1);
}

static void a_packet_may_have_many_fragments(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1500);

	reset(1);
	set_mtu(PLAIN_OUT, 68);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.port[1].copied_packets, 30);
	assert_int_equal(fake.device[1].n_sent, 31);
}

// Nothing of a packet is sent if not all of its fragments get a buffer.
static void without_buffers_a_packet_is_dropped_as_a_whole(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1500), small = packet("10.1.2.3", 100);

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned n_buffers = 0; n_buffers < 8; n_buffers++) {
			unsigned n_cut = n_buffers / 3;

			reset(v);
			fake.n_buffers = n_buffers;
			for (unsigned i = 0; i < 3; i++)
				fake_receive(0, &frame);
			fake_receive(0, &small);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FRAGMENT_FAILED], 3 - n_cut);
			assert_int_equal(fake.device[1].n_sent, 3 * n_cut + 1);
			assert_int_equal(fake.stat.port[1].copied_packets, 2 * n_cut);
		}
}

static void fragments_that_a_device_refuses_are_counted(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1500);

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(v);
		fake.device[1].takes = 100;
		for (unsigned i = 0; i < BURST_MAX; i++)
			fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.device[1].n_sent, 100);
		assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], 3 * BURST_MAX - 100);
		assert_int_equal(fake.n_returned, 3 * BURST_MAX - 100);
	}
}

static void a_port_without_link_drops_all_fragments(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1500);

	reset(1);
	fake.states[1].up = false;
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DOWN], 3);
}

// Cuts a frame in two after `first` bytes.
static void split(struct rte_mbuf *m, const struct bytes *frame, uint16_t first)
{
	struct bytes rest = {.n = frame->n - first};

	memcpy(rest.at, frame->at + first, rest.n);
	m->next = fake_mbuf(&rest);
	fake.n_made--; // one packet
	m->next->refcnt++;
	m->nb_segs = 2;
	m->data_len = first;
}

// A packet in two segments becomes fragments in one each.
static void segments_are_put_together(void **state)
{
	static struct pieces pieces;
	struct bytes frame = packet("10.1.2.3", 1500);

	for (unsigned first = 34; first < 1500; first += 97) {
		reset(0);
		pieces.n = 0;
		add_pieces(&pieces, &frame, PLAIN_OUT);
		split(fake_receive(0, &frame), &frame, first);
		fake_run();
		expect_pieces(1, &pieces);
	}
}

// Also after as many fragments as a burst has packets.
static void segments_beside_fragments_are_judged_by_the_device(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1500), small = packet("10.1.2.3", 500);

	for (unsigned can = 0; can < 2; can++) {
		reset(0);
		fake.states[1].tx_multi_segment = can;
		for (unsigned i = 0; i < 40; i++)
			fake_receive(0, &frame);
		split(fake_receive(0, &small), &small, 100);
		fake_run();
		assert_int_equal(fake.device[1].n_sent, 3 * 40 + can);
		assert_int_equal(fake.stat.verdict[VERDICT_MULTI_SEGMENT], !can);
	}
}

// Other polls of a batch may have dropped all of their packets before.
static void dropped_packets_have_space_while_a_port_is_down(void **state)
{
	struct bytes frame = packet("10.1.2.3", 1500);
	struct worker *w = &fake.worker;
	static struct burst b;

	reset(0);
	fake.states[1].up = false;
	while (w->n_dropped < (PIPELINE_DEPTH - 1) * BURST_MAX)
		w->dropped[w->n_dropped++] = fake_mbuf(&frame);
	b = (struct burst){.n = BURST_MAX,
		.has = BURST_PACKETS | BURST_FRAGMENTS,
		.view = fib_live_view(&fake.live),
		.has_one_port = true,
		.fragment_mask = UINT64_MAX,
		.port[0] = 1};
	for (unsigned i = 0; i < b.n; i++) {
		b.mbuf[i] = fake_mbuf(&frame);
		b.frame[i] = rte_pktmbuf_mtod(b.mbuf[i], uint8_t *);
		b.length[i] = frame.n;
		b.hop[i] = fib_lookup(fake.fib, 0,
			&(struct wire_addr){.family = 4, .bytes = {10, 1, 2, 3}});
	}
	w->injection.n = 0x5a;
	datapath_fragment(w, &b);
	assert_int_equal(w->injection.n, 0x5a); // what follows in memory
	w->injection.n = 0;
	assert_int_equal(w->n_dropped, 0);
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DOWN], 3 * BURST_MAX);
	assert_int_equal(fake.n_returned, 3 * BURST_MAX);
}

// A packet of 3700 bytes in two segments.
static struct rte_mbuf *receive_jumbo(void)
{
	struct bytes frame = packet("10.1.2.3", 1800), rest = {.n = 1900};
	struct rte_mbuf *m = fake_receive(0, &frame);
	struct wire_ip4 *ip = (void *)(rte_pktmbuf_mtod(m, uint8_t *) + WIRE_ETHER_BYTES);

	m->next = fake_mbuf(&rest);
	fake.n_made--;
	m->next->refcnt++;
	m->nb_segs = 2;
	m->pkt_len += rest.n;
	ip->total_length_be = htobe16(3700);
	m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	return m;
}

static void linux_gets_what_does_not_fit_into_buffers_or_bursts(void **state)
{
	static const struct {
		uint16_t mtu;
		unsigned n_sent;
	} rows[] = {{68, 0}, {77, 0}, {84, 58}, {1500, 3}, {1906, 2}, {1907, 0}, {3699, 0}};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		reset(0);
		set_mtu(PLAIN_OUT, rows[i].mtu);
		receive_jumbo();
		fake_run();
		assert_int_equal(fake.device[1].n_sent, rows[i].n_sent);
		assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], !rows[i].n_sent);
	}
}

// The MTU may be raised after the packet was checked, beyond what a buffer holds.
static void fragments_fit_into_buffers_whatever_the_mtu_is_by_then(void **state)
{
	static struct burst b;
	const struct wire_addr dst = {.family = 4, .bytes = {10, 1, 2, 3}};

	reset(0);
	struct rte_mbuf *m = receive_jumbo();
	set_mtu(PLAIN_OUT, 3000);
	b = (struct burst){.n = 1,
		.has = BURST_PACKETS | BURST_SEGMENTS | BURST_FRAGMENTS,
		.view = fib_live_view(&fake.live),
		.has_one_iif = true,
		.has_one_vrf = true,
		.has_one_port = true,
		.fragment_mask = 1,
		.mbuf[0] = m,
		.frame[0] = rte_pktmbuf_mtod(m, uint8_t *),
		.length[0] = 3714,
		.hop[0] = fib_lookup(fake.fib, 0, &dst),
		.port[0] = 1};
	datapath_fragment(&fake.worker, &b);
	assert_int_equal(fake.device[1].n_sent, 2);
	assert_int_equal(fake.stat.port[1].copied_packets, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_packets_leave_in_fragments),
		cmocka_unit_test(what_a_burst_makes_may_exceed_a_burst),
		cmocka_unit_test(linux_answers_those_that_may_not_be_fragmented),
		cmocka_unit_test(ttl_comes_first),
		cmocka_unit_test(a_packet_may_have_many_fragments),
		cmocka_unit_test(without_buffers_a_packet_is_dropped_as_a_whole),
		cmocka_unit_test(fragments_that_a_device_refuses_are_counted),
		cmocka_unit_test(a_port_without_link_drops_all_fragments),
		cmocka_unit_test(segments_are_put_together),
		cmocka_unit_test(segments_beside_fragments_are_judged_by_the_device),
		cmocka_unit_test(dropped_packets_have_space_while_a_port_is_down),
		cmocka_unit_test(linux_gets_what_does_not_fit_into_buffers_or_bursts),
		cmocka_unit_test(fragments_fit_into_buffers_whatever_the_mtu_is_by_then),
	};

	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
