// Header templates as they are written in front of packets.
#include "datapath/dice.h"
#include "datapath/steps.h"
#include "datapath/vlans.h"

enum { LABEL_BYTES = 4, ROUNDS = 2000 };

// Headers of any hops, which tests write by hand.
enum { N_HOPS = 8 };
static struct fib_hop_entry hops[N_HOPS];
static struct fib_template templates[N_HOPS];
static const struct fib_view view = {.hops = hops};
static struct burst b;

static void make_hop(uint16_t id, uint8_t length, uint8_t replaced)
{
	const struct fib_template *template = &templates[id];

	templates[id] = (struct fib_template){.length = length, .replaced = replaced};
	for (unsigned i = 0; i < sizeof(templates[id].bytes); i++)
		templates[id].bytes[i] = 16 * id + i;
	hops[id] = (struct fib_hop_entry){.frame_max = 1514, .kind = FIB_HOP_TEMPLATE};
	memcpy(hops[id].macs, &template, sizeof(template));
}

static void start_burst(void)
{
	fake_reset(fake_variants[1]);
	b = (struct burst){.has = BURST_PACKETS | BURST_TEMPLATES,
		.view = &view,
		.has_one_port = true};
}

static struct rte_mbuf *add_packet(const struct bytes *frame, uint32_t hop, bool has_template)
{
	struct rte_mbuf *m = fake_mbuf(frame);

	b.mbuf[b.n] = m;
	b.frame[b.n] = rte_pktmbuf_mtod(m, uint8_t *);
	b.length[b.n] = frame->n;
	b.hop[b.n] = hop;
	b.template_mask |= (uint64_t)has_template << b.n++;
	return m;
}

static struct bytes with_header(const struct bytes *frame, const struct fib_template *template)
{
	struct bytes left = {.n = template->length + frame->n - template->replaced};

	memcpy(left.at, template->bytes, template->length);
	memcpy(left.at + template->length, frame->at + template->replaced,
		frame->n - template->replaced);
	return left;
}

static void expect_packet(unsigned i, const struct rte_mbuf *m, const struct bytes *left)
{
	assert_ptr_equal(b.mbuf[i], m);
	assert_ptr_equal(b.frame[i], rte_pktmbuf_mtod(m, uint8_t *));
	assert_int_equal(b.length[i], left->n);
	expect_bytes(m, left);
}

// Each length, with the EtherType left in place and replaced.
static void a_header_replaces_macs_or_the_type_too(void **state)
{
	const struct bytes frame = frame_to(0, "10.1.2.3");

	for (unsigned replaced = 12; replaced <= 14; replaced += 2)
		for (unsigned length = replaced; length <= FIB_TEMPLATE_MAX; length++) {
			start_burst();
			make_hop(3, length, replaced);
			const struct bytes left = with_header(&frame, &templates[3]);
			struct rte_mbuf *m = add_packet(&frame, 3, true);
			datapath_encap(&fake.worker, &b);
			assert_int_equal(b.n, 1);
			expect_packet(0, m, &left);
		}
}

// As MPLS: its EtherType, then a label, in place of the packet's type.
static void a_label_makes_a_frame_four_bytes_longer(void **state)
{
	struct bytes frame = frame_to(0, "2001:db8::3"), left = frame;

	start_burst();
	make_hop(1, 14 + LABEL_BYTES, 14);
	memcpy(templates[1].bytes + 12, (uint8_t[]){0x88, 0x47, 0x00, 0x06, 0x41, 0xff}, 6);
	memmove(left.at + 18, left.at + 14, left.n - 14);
	memcpy(left.at, templates[1].bytes, 18);
	left.n += LABEL_BYTES;
	struct rte_mbuf *m = add_packet(&frame, 1, true);
	datapath_encap(&fake.worker, &b);
	expect_packet(0, m, &left);
}

static void a_header_needs_headroom_for_what_it_adds(void **state)
{
	const struct bytes frame = frame_to(0, "10.1.2.3");

	for (unsigned length = 16; length <= FIB_TEMPLATE_MAX; length += 16)
		for (int more = -1; more <= 1; more++) {
			const bool fits = more >= 0;
			struct rte_mbuf *m, *last;

			start_burst();
			make_hop(2, length, 12);
			add_packet(&frame, 2, false);
			m = add_packet(&frame, 2, true);
			last = add_packet(&frame, 2, true);
			m->data_off = length - 12 + more;
			b.frame[1] = rte_pktmbuf_mtod(m, uint8_t *);
			memcpy(b.frame[1], frame.at, frame.n);
			const struct bytes left = with_header(&frame, &templates[2]);
			datapath_encap(&fake.worker, &b);
			assert_int_equal(b.n, 2 + fits);
			assert_int_equal(fake.stat.verdict[VERDICT_NO_HEADROOM], !fits);
			expect_bytes(b.mbuf[0], &frame);
			if (fits)
				expect_packet(1, m, &left);
			expect_packet(1 + fits, last, &left);
		}
}

static void only_packets_in_the_mask_get_a_header(void **state)
{
	static struct bytes left[BURST_MAX];
	struct bytes frame = frame_to(0, "10.1.2.3");

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct rte_mbuf *made[BURST_MAX];
		const unsigned n = 1 + dice(BURST_MAX);

		start_burst();
		for (uint16_t id = 0; id < N_HOPS; id++)
			make_hop(id, 16 + dice(FIB_TEMPLATE_MAX - 15), 12 + 2 * dice(2));
		for (unsigned i = 0; i < n; i++) {
			const uint32_t hop = dice(N_HOPS);
			const bool has_template = dice(2);

			frame.at[frame.n - 1] = i;
			left[i] = has_template ? with_header(&frame, &templates[hop]) : frame;
			made[i] = add_packet(&frame, hop, has_template);
		}
		b.template_mask |= n == BURST_MAX ? 0 : UINT64_MAX << n; // of no meaning
		datapath_encap(&fake.worker, &b);
		assert_int_equal(b.n, n);
		for (unsigned i = 0; i < n; i++)
			expect_packet(i, made[i], &left[i]);
	}
}

// RFC 8950: IPv4 packets via an IPv6 neighbour, and IPv6 packets via the same one.
static void both_families_leave_by_the_same_hop(void **state)
{
	static const uint16_t out[] = {TAGGED_OUT, QINQ_OUT};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(out); i++) {
			struct fib_hop hop = {.kind = FIB_VIA, .iface = out[i]};
			struct bytes four = frame_to(0, "10.78.2.3");
			struct bytes six = frame_to(0, "2001:db8:78::3");
			struct bytes left4 = frame_forwarded(&four, out[i]);
			struct bytes left6 = frame_forwarded(&six, out[i]);
			struct wire_addr dst[2];

			fake_reset(fake_variants[v]);
			wire_addr_parse(i ? "2001:db8:15::2" : "2001:db8:14::2", &hop.via);
			fake_route(0, "10.78.0.0/16", &hop);
			fake_route(0, "2001:db8:78::/48", &hop);
			wire_addr_parse("10.78.2.3", &dst[0]);
			wire_addr_parse("2001:db8:78::3", &dst[1]);
			assert_int_equal(fib_lookup(fake.fib, 0, &dst[0]),
				fib_lookup(fake.fib, 0, &dst[1]));
			fake_receive(0, &four);
			fake_receive(0, &six);
			fake_run();
			assert_int_equal(fake.device[1].n_sent, 2);
			const bool is_first4 = fake.device[1].sent[0]->pkt_len == left4.n;
			expect_bytes(fake.device[1].sent[!is_first4], &left4);
			expect_bytes(fake.device[1].sent[is_first4], &left6);
		}
}

static const struct wire_addr neighbour = {.family = 4, .bytes = {10, QINQ_OUT, 0, 2}};

static void lose_neighbour(void)
{
	assert_int_equal(fib_neighbour_delete(fake.fib, QINQ_OUT, &neighbour), 0);
}

static void regain_neighbour(void)
{
	const struct wire_mac mac = {{2, 0, 0, QINQ_OUT, 0, 2}};

	assert_int_equal(fib_neighbour_set(fake.fib, QINQ_OUT, &neighbour, &mac, NULL), 0);
}

static void lose_interface(void)
{
	fib_iface_delete(fake.fib, QINQ_OUT);
}

// The MTU is another one afterwards, and so is the entry of the hop.
static void lower_mtu(void)
{
	struct iface settings = *fib_iface(fake.fib, QINQ_OUT);

	settings.mtu = 1000;
	fake_set(QINQ_OUT, &settings);
}

// Whatever happens to its hop meanwhile, a packet that has passed check gets a whole header.
static void packets_leave_whole_that_were_checked_before(void **state)
{
	static void (*const change[])(
		void) = {lose_neighbour, regain_neighbour, lose_interface, lower_mtu};
	const struct bytes frame = frame_to(0, "10.21.2.3");
	const struct bytes left = frame_forwarded(&frame, QINQ_OUT);
	const struct wire_addr dst = {.family = 4, .bytes = {10, QINQ_OUT, 2, 3}};

	for (unsigned i = 0; i < 2 * ARRAY_LEN(change); i++) {
		const bool before_rewrite = i % 2;
		struct rte_mbuf *m;

		start_burst();
		regain_neighbour();
		b.has = BURST_PACKETS;
		b.view = fib_live_view(&fake.live);
		m = add_packet(&frame, fib_lookup(fake.fib, 0, &dst), false);
		b.ttl[0] = 64;
		b.has_one_iif = b.has_one_vrf = true;
		datapath_check(&fake.worker, &b);
		assert_int_equal(b.n, 1);
		assert_true(b.has & BURST_TEMPLATES);
		if (before_rewrite)
			change[i / 2]();
		datapath_rewrite(&fake.worker, &b);
		if (!before_rewrite)
			change[i / 2]();
		datapath_encap(&fake.worker, &b);
		assert_int_equal(b.n, 1);
		expect_packet(0, m, &left);
	}
	fake_reset(fake_variants[0]);
	regain_neighbour();
}

// What a tagged next hop sends before and after its neighbour has moved, is lost, and comes back.
static void a_tagged_hop_follows_its_neighbour(void **state)
{
	struct wire_mac mac = {{2, 0, 0, QINQ_OUT, 0, 77}};
	const struct bytes frame = frame_to(0, "10.21.2.3");
	struct bytes left = frame_forwarded(&frame, QINQ_OUT);

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		memcpy(left.at, mac.bytes, 6);
		assert_int_equal(fib_neighbour_set(fake.fib, QINQ_OUT, &neighbour, &mac, NULL), 0);
		fake_receive(0, &frame);
		fake_run();
		expect_sent(1, &left);
		fake_reset(fake_variants[v]);
		lose_neighbour();
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_NEIGHBOUR_UNRESOLVED], 1);
		fake_reset(fake_variants[v]);
		regain_neighbour();
		left = frame_forwarded(&frame, QINQ_OUT);
		fake_receive(0, &frame);
		fake_run();
		expect_sent(1, &left);
	}
}

static void an_interface_with_another_vlan_id_sends_with_it(void **state)
{
	const struct bytes frame = frame_to(0, "10.20.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (uint16_t vid = 500; vid < 503; vid++) {
			struct iface settings;
			struct bytes left = frame_forwarded(&frame, TAGGED_OUT);

			fake_reset(fake_variants[v]);
			settings = *fib_iface(fake.fib, TAGGED_OUT);
			settings.tag[0].vid = vid;
			fake_set(TAGGED_OUT, &settings);
			left.at[14] = vid >> 8;
			left.at[15] = vid & 0xff;
			fake_receive(0, &frame);
			fake_run();
			expect_sent(1, &left);
		}
	fake_reset(fake_variants[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_replaces_macs_or_the_type_too),
		cmocka_unit_test(a_label_makes_a_frame_four_bytes_longer),
		cmocka_unit_test(a_header_needs_headroom_for_what_it_adds),
		cmocka_unit_test(only_packets_in_the_mask_get_a_header),
		cmocka_unit_test(both_families_leave_by_the_same_hop),
		cmocka_unit_test(packets_leave_whole_that_were_checked_before),
		cmocka_unit_test(a_tagged_hop_follows_its_neighbour),
		cmocka_unit_test(an_interface_with_another_vlan_id_sends_with_it),
	};

	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
