// Packets with MPLS labels in tunnels: the bytes that are sent, what becomes of received ones, and
// why some are stopped.
#include "datapath/dice.h"
#include "datapath/fake.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <string.h>

enum {
	TUNNEL = 300,
	IN = 0,
	OUT = 1,
	MPLS_PORT = 6635,
	FIRST_PORT = 49152,
	BOTTOM = 1 << 8,
	ROUNDS = 300,
};

// Labels that are known here.
enum { POP = 300, POP_PIPE, SWAP_IN, PHP_IN, SWAP_OUT, LINUX, UNKNOWN = 999 };

static const struct wire_addr here4 = {.family = 4, .bytes = {10, 0, 0, 1}};
static const struct wire_addr there4 = {.family = 4, .bytes = {10, 1, 9, 9}};
static const struct wire_addr here6 = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 0, [15] = 1}};
static const struct wire_addr there6 = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 1, [15] = 9}};
static const struct fib_hop into = {.kind = FIB_PEER,
	.iface = TUNNEL,
	.n_labels = 2,
	.label = {100, 200}};

static struct iface_tunnel tunnel_of(uint8_t kind, uint16_t flags, bool is_ip6)
{
	const bool is_udp = flags & IFACE_TUNNEL_UDP;

	return (struct iface_tunnel){.local = is_ip6 ? here6 : here4,
		.remote = is_ip6 ? there6 : there4,
		.kind = kind,
		.ttl = 64,
		.dest_port = MPLS_PORT,
		.flags = flags | (is_udp ? 0 : IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6) |
	                 IFACE_TUNNEL_MPLS | IFACE_TUNNEL_DF | IFACE_TUNNEL_TOS |
	                 IFACE_TUNNEL_LABELLED_TOS};
}

static struct iface_tunnel over_udp(uint16_t flags)
{
	return tunnel_of(IFACE_IPIP, IFACE_TUNNEL_UDP | flags, false);
}

static void set_label(uint32_t label, uint8_t op, const struct fib_hop *hop, bool is_pipe)
{
	const struct fib_label set = {.label = label,
		.op = op,
		.hop = hop ? *hop : (struct fib_hop){.iface = IFACE_NONE},
		.is_pipe = is_pipe};

	assert_int_equal(fib_label_set(fake.fib, &set, NULL), 0);
}

static uint16_t tunnel_mtu = 9600;

static void set_tunnel(const struct iface_tunnel *tunnel)
{
	const struct iface settings = {.mtu = tunnel_mtu,
		.has_peer = true,
		.flags = IFACE_MPLS,
		.tunnel = *tunnel};

	assert_int_equal(fib_iface_set(fake.fib, TUNNEL, &settings), 0);
}

static int open_tunnel(void **state)
{
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
	struct fib_hop hop = {.kind = FIB_PEER, .iface = TUNNEL, .n_labels = 1, .label = {400}};

	fake_open(state);
	fake_route(0, "10.77.0.0/16", &into);
	fake_route(0, "2001:db8:77::/48", &into);
	fake_route(0, "10.0.0.1/32", &local);
	fake_route(0, "2001:db8::1/128", &local);
	set_label(POP, FIB_LABEL_LOOKUP, NULL, false);
	set_label(POP_PIPE, FIB_LABEL_LOOKUP, NULL, true);
	set_label(SWAP_IN, FIB_LABEL_FORWARD, &hop, false);
	hop.n_labels = hop.label[0] = 0;
	set_label(PHP_IN, FIB_LABEL_FORWARD, &hop, false);
	hop = (struct fib_hop){.kind = FIB_VIA,
		.iface = OUT,
		.via = {.family = 4, .bytes = {10, OUT, 0, 2}},
		.n_labels = 1,
		.label = {310}};
	set_label(SWAP_OUT, FIB_LABEL_FORWARD, &hop, false);
	set_label(LINUX, FIB_LABEL_LINUX, NULL, false);
	return 0;
}

static void start(unsigned variant, const struct iface_tunnel *tunnel)
{
	struct iface port = *fib_iface(fake.fib, IN);

	fake_reset(fake_variants[variant]);
	port.flags |= IFACE_MPLS;
	fake_set(IN, &port);
	set_tunnel(tunnel);
	fake.worker.next_id = 0;
}

static uint64_t stopped(enum verdict verdict)
{
	return fake.stat.verdict[verdict] + fake.stat.handed[verdict];
}

// Puts bytes before the packet of a frame.
static void precede(struct bytes *frame, const void *bytes, unsigned n)
{
	memmove(frame->at + 14 + n, frame->at + 14, frame->n - 14);
	memcpy(frame->at + 14, bytes, n);
	frame->n += n;
}

static void set_type(struct bytes *frame, uint16_t type)
{
	frame->at[12] = type >> 8;
	frame->at[13] = type & 0xff;
}

static void push(struct bytes *frame, uint32_t label, uint8_t ttl, bool is_bottom)
{
	const uint32_t word_be = htobe32(label << 12 | (is_bottom ? BOTTOM : 0) | ttl);

	precede(frame, &word_be, sizeof(word_be));
	set_type(frame, WIRE_ETHERTYPE_MPLS);
}

static void set_macs(struct bytes *frame)
{
	memcpy(frame->at, (uint8_t[]){2, 0, 0, OUT, 0, 2, 2, 0, 0, 0, 0, OUT + 1}, 12);
}

static void arrive(struct bytes *frame)
{
	memcpy(frame->at, (uint8_t[]){2, 0, 0, 0, 0, IN + 1, 2, 0, 0, 0, 0, 9}, 12);
}

// An outer header of IPv4 in front of what follows the Ethernet header.
static void outer4(struct bytes *frame, uint8_t tos, uint8_t protocol, bool is_from_there)
{
	uint8_t ip[20] = {0x45, tos, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 1, 9,
		9};

	if (is_from_there)
		memcpy(ip + 12, (uint8_t[]){10, 1, 9, 9, 10, 0, 0, 1}, 8);
	precede(frame, ip, sizeof(ip));
	set_type(frame, WIRE_ETHERTYPE_IP4);
	frame->at[16] = (frame->n - 14) >> 8;
	frame->at[17] = (frame->n - 14) & 0xff;
	frame_mend(frame);
}

static void in_udp(struct bytes *frame, uint16_t source_port, uint16_t dest_port)
{
	const uint16_t words[] = {htobe16(source_port), htobe16(dest_port),
		htobe16(frame->n - 14 + WIRE_UDP_BYTES), 0};

	precede(frame, words, sizeof(words));
}

// What the other end sends with these labels, the outermost one first; 0 ends them.
static struct bytes from_there(const char *dst, uint32_t first, uint32_t second)
{
	struct bytes frame = frame_to(IN, dst);

	push(&frame, second ? second : first, 9, true);
	if (second)
		push(&frame, first, 9, false);
	in_udp(&frame, FIRST_PORT + 5, MPLS_PORT);
	outer4(&frame, 0, WIRE_PROTO_UDP, true);
	arrive(&frame);
	return frame;
}

static const uint8_t *sent_frame(void)
{
	assert_int_equal(fake.device[OUT].n_sent, 1);
	return rte_pktmbuf_mtod(fake.device[OUT].sent[0], const uint8_t *);
}

static void process(unsigned v, const struct iface_tunnel *tunnel, const struct bytes *frame)
{
	start(v, tunnel);
	fake_receive(IN, frame);
	fake_run();
}

// --- into tunnels

static void labels_over_udp_have_these_bytes(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);
	struct bytes frame = frame_to(IN, "10.77.0.9");

	frame.at[15] = 0xba; // DSCP 46, ECT(0): both are copied (RFC 6040)
	frame_mend(&frame);
	struct bytes expected = forwarded_once(&frame);
	push(&expected, 200, 63, true);
	push(&expected, 100, 63, false);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		process(v, &tunnel, &frame);
		const uint16_t port = sent_frame()[34] << 8 | sent_frame()[35];
		struct bytes whole = expected;

		assert_in_range(port, FIRST_PORT, UINT16_MAX);
		in_udp(&whole, port, MPLS_PORT);
		outer4(&whole, 0xba, WIRE_PROTO_UDP, false);
		set_macs(&whole);
		expect_sent(OUT, &whole);
	}
}

static void labels_over_gre_and_ip_have_these_bytes(void **state)
{
	static const uint8_t gre[] = {0, 0, 0x88, 0x47};
	const struct bytes frame = frame_to(IN, "10.77.0.9");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (uint8_t kind = IFACE_IPIP; kind <= IFACE_GRE; kind++) {
			const struct iface_tunnel tunnel = tunnel_of(kind, 0, false);
			struct bytes whole = forwarded_once(&frame);

			push(&whole, 200, 63, true);
			push(&whole, 100, 63, false);
			if (kind == IFACE_GRE)
				precede(&whole, gre, sizeof(gre));
			outer4(&whole, 0, kind == IFACE_GRE ? WIRE_PROTO_GRE : WIRE_PROTO_MPLS,
				false);
			set_macs(&whole);
			process(v, &tunnel, &frame);
			expect_sent(OUT, &whole);
		}
}

// As those of a tunnel of Linux: nothing of the packet is copied.
static void a_tunnel_of_linux_copies_nothing(void **state)
{
	struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	struct bytes frame = frame_to(IN, "10.77.0.9");

	tunnel.flags &= ~(IFACE_TUNNEL_LABELLED_TOS | IFACE_TUNNEL_DF);
	tunnel.ttl = 0;
	frame.at[15] = 0xbb;
	frame.at[20] = 0x40; // DF
	frame_mend(&frame);
	process(0, &tunnel, &frame);
	assert_int_equal(sent_frame()[15], 0);
	assert_int_equal(sent_frame()[20], 0);
	assert_int_equal(sent_frame()[22], 64);
	assert_int_equal(sent_frame()[14 + 20 + 3], 63); // the TTL of the label
}

// A label below the one that is popped has no TTL for the outer header: that has the default one.
static void a_tunnel_that_inherits_takes_no_ttl_of_a_label(void **state)
{
	struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	struct bytes frame = frame_to(IN, "10.5.0.9");

	tunnel.ttl = 0;
	push(&frame, 777, 3, true);
	push(&frame, PHP_IN, 9, false);
	process(0, &tunnel, &frame);
	assert_int_equal(sent_frame()[22], 64);
	assert_int_equal(sent_frame()[14 + 20 + 3], 3);
}

static void over_ipv6_there_is_a_checksum_unless_it_is_off(void **state)
{
	const struct bytes frame = frame_to(IN, "2001:db8:77::9");

	for (unsigned is_on = 0; is_on < 2; is_on++) {
		const struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP,
			IFACE_TUNNEL_UDP | (is_on ? IFACE_TUNNEL_CHECKSUM : 0), true);

		process(0, &tunnel, &frame);
		const uint8_t *sent = sent_frame();
		const struct wire_udp *udp = (const void *)(sent + 54);
		const uint16_t bytes = be16toh(udp->length_be);
		const uint64_t pseudo = wire_sum_pseudo6((const void *)(sent + 14), 17, bytes);
		assert_int_equal(bytes, frame.n - 14 + 8 + 8);
		assert_int_equal(!!udp->checksum_be, is_on);
		if (is_on)
			assert_int_equal(wire_sum_finish_be(wire_sum(pseudo, udp, bytes)), 0);
	}
}

static void labels_are_swapped_into_a_tunnel(void **state)
{
	const struct iface_tunnel tunnel = over_udp(IFACE_TUNNEL_CHECKSUM);
	struct bytes frame = frame_to(IN, "10.5.0.9"), expected = frame;

	push(&frame, 777, 3, true); // below: it stays
	push(&frame, SWAP_IN, 9, false);
	push(&expected, 777, 3, true);
	push(&expected, 400, 8, false);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		process(v, &tunnel, &frame);
		const struct wire_udp *udp = (const void *)(sent_frame() + 34);
		const uint16_t bytes = be16toh(udp->length_be);

		assert_int_equal(bytes, expected.n - 14 + WIRE_UDP_BYTES);
		assert_memory_equal(udp + 1, expected.at + 14, expected.n - 14);
		assert_int_equal(wire_sum_finish_be(wire_sum(
					 wire_sum_pseudo4((const void *)(sent_frame() + 14), 17,
						 bytes),
					 udp, bytes)),
			0);
	}
}

static void what_is_below_the_last_label_goes_into_a_tunnel(void **state)
{
	static const uint8_t gre[] = {0, 0, 0x08, 0};
	const struct iface_tunnel tunnel = tunnel_of(IFACE_GRE, 0, false);
	struct bytes frame = frame_to(IN, "10.5.0.9"), expected = frame;

	expected.at[22] = 8; // the label's, less 1
	frame_mend(&expected);
	push(&frame, PHP_IN, 9, true);
	precede(&expected, gre, sizeof(gre));
	outer4(&expected, 0, WIRE_PROTO_GRE, false);
	set_macs(&expected);
	process(0, &tunnel, &frame);
	expect_sent(OUT, &expected);
	const struct iface_tunnel only_labels = over_udp(0);
	process(0, &only_labels, &frame);
	assert_int_equal(stopped(VERDICT_TUNNEL_REFUSED), 1);
}

static void receive_in_two(const struct bytes *frame, unsigned number)
{
	enum { FIRST = 60, MOST = 16 };
	static struct {
		struct rte_mbuf mbuf;
		uint8_t room[sizeof(frame->at)];
	} rest[MOST];
	struct bytes first = *frame;

	assert_in_range(number, 0, MOST - 1);
	first.n = FIRST;
	memcpy(rest[number].room, frame->at + FIRST, frame->n - FIRST);
	rest[number].mbuf = (struct rte_mbuf){.buf_addr = rest[number].room,
		.buf_len = sizeof(rest[number].room),
		.data_len = frame->n - FIRST,
		.nb_segs = 1,
		.refcnt = 2};
	struct rte_mbuf *m = fake_receive(IN, &first);
	m->next = &rest[number].mbuf;
	m->nb_segs = 2;
	m->pkt_len = frame->n;
}

// One of both ways leads to a port that cannot send frames in several buffers.
static void each_way_has_a_port_that_sends_or_does_not(void **state)
{
	const struct fib_hop one = {.kind = FIB_VIA,
		.iface = OUT,
		.via = {.family = 4, .bytes = {10, OUT, 0, 2}}};
	struct fib_member members[2] = {{one, .weight = 1}, {one, .weight = 1}};
	struct iface_tunnel tunnel = over_udp(0);
	struct fib_hop group;

	members[1].hop.iface = members[1].hop.via.bytes[1] = OUT + 1;
	tunnel.remote = (struct wire_addr){.family = 4, .bytes = {203, 0, 113, 9}};
	assert_int_equal(fib_group(fake.fib, members, 2, &group, NULL), 0);
	fake_route(0, "203.0.113.0/24", &group);
	enum { FLOWS = 16 };
	for (unsigned able = 0; able < 2; able++) {
		start(0, &tunnel);
		fake.states[OUT + able].tx_multi_segment = true;
		for (unsigned flow = 0; flow < FLOWS; flow++) {
			struct bytes frame = frame_to(IN, "10.5.0.9");

			frame.at[33] = flow;
			frame_mend(&frame);
			push(&frame, SWAP_IN, 9, true);
			receive_in_two(&frame, flow);
		}
		fake_run();
		fake.states[OUT + able].tx_multi_segment = false;
		assert_int_equal(fake.device[OUT + !able].n_sent, 0);
		assert_int_equal(fake.device[OUT + able].n_sent + stopped(VERDICT_MULTI_SEGMENT),
			FLOWS);
	}
	assert_true(stopped(VERDICT_MULTI_SEGMENT) < FLOWS); // the second way is used
}

// Two labels, below the MTU of the port or that of the tunnel.
static void labels_count_against_the_mtu(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);
	const struct {
		uint16_t tunnel, most;
	} rows[] = {{9600, 1500 - 20 - 8 - 8}, {1400, 1400 - 8}};

	for (unsigned i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const unsigned more = i % 2, bytes = rows[i / 2].most + more;
		struct bytes frame = frame_to(IN, "10.77.0.9");

		tunnel_mtu = rows[i / 2].tunnel;
		frame.n = 14 + bytes;
		frame.at[16] = bytes >> 8;
		frame.at[17] = bytes & 0xff;
		frame.at[20] = 0x40;
		frame_mend(&frame);
		process(0, &tunnel, &frame);
		tunnel_mtu = 9600;
		assert_int_equal(stopped(VERDICT_MTU_EXCEEDED), more);
		assert_int_equal(fake.device[OUT].n_sent, !more);
	}
}

// --- out of tunnels

static void what_went_in_comes_out(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		const bool is_ip6 = dice(2), is_over6 = dice(2), is_udp = dice(2);
		const uint16_t flags = (is_udp ? IFACE_TUNNEL_UDP : 0) |
		                       (is_over6 || dice(2) ? IFACE_TUNNEL_CHECKSUM : 0);
		const struct iface_tunnel tunnel =
			tunnel_of(is_udp || dice(2) ? IFACE_IPIP : IFACE_GRE, flags, is_over6);
		const unsigned v = dice(FAKE_VARIANTS);
		struct iface_tunnel back = tunnel;
		const struct bytes frame = frame_to(IN, is_ip6 ? "2001:db8:77::9" : "10.77.0.9");
		struct bytes outer = {0}, left = forwarded_once(&frame);

		process(v, &tunnel, &frame);
		outer.n = fake.device[OUT].sent[0]->data_len;
		memcpy(outer.at, sent_frame(), outer.n);
		arrive(&outer);
		const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
		const struct fib_hop out = {.kind = FIB_VIA,
			.iface = OUT,
			.via = {.family = 4, .bytes = {10, OUT, 0, 2}}};
		fake_route(0, "10.1.9.9/32", &local); // the other end is this router, too
		fake_route(0, "2001:db8:1::9/128", &local);
		fake_route(0, "10.77.0.0/16", &out);
		fake_route(0, "2001:db8:77::/48", &out);
		set_label(100, FIB_LABEL_LOOKUP, NULL, false);
		set_label(200, FIB_LABEL_LOOKUP, NULL, false);
		back.local = tunnel.remote;
		back.remote = tunnel.local;
		process(v, &back, &outer);
		left = forwarded_once(&left);
		set_macs(&left);
		expect_sent(OUT, &left);
		struct fib_change change[2] = {{.op = FIB_DELETE}, {.op = FIB_DELETE}};
		wire_prefix_parse("10.1.9.9/32", &change[0].route.prefix);
		wire_prefix_parse("2001:db8:1::9/128", &change[1].route.prefix);
		assert_int_equal(fib_change(fake.fib, change, 2, NULL, NULL), 0);
		fake_route(0, "10.77.0.0/16", &into);
		fake_route(0, "2001:db8:77::/48", &into);
	}
}

static void labels_out_of_a_tunnel_are_swapped(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);
	const struct bytes frame = from_there("10.5.0.9", SWAP_OUT, 777);
	struct bytes expected = frame_to(IN, "10.5.0.9");

	push(&expected, 777, 9, true);
	push(&expected, 310, 8, false);
	set_macs(&expected);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		process(v, &tunnel, &frame);
		expect_sent(OUT, &expected);
	}
}

// Two tunnels to one end, of which each is received on its own port.
static void tunnels_to_one_end_are_told_apart_by_their_ports(void **state)
{
	enum { OTHER_PORT = 7000, PORT_AT = 36 };
	struct iface_tunnel other = over_udp(0);
	const struct iface_tunnel tunnel = other;
	const struct stats_tunnel *stat = fake.stat.tunnel;
	struct iface settings = {.mtu = 9600, .has_peer = true, .flags = IFACE_MPLS};

	other.dest_port = OTHER_PORT;
	settings.tunnel = other;
	for (unsigned is_other = 0; is_other < 2; is_other++) {
		struct bytes frame = from_there("10.1.2.3", POP, 0);
		const uint16_t port = is_other ? OTHER_PORT : MPLS_PORT;

		frame.at[PORT_AT] = port >> 8;
		frame.at[PORT_AT + 1] = port & 0xff;
		start(0, &tunnel);
		assert_int_equal(fib_iface_set(fake.fib, TUNNEL + 1, &settings), 0);
		const uint64_t before = stat[TUNNEL + is_other].rx_packets;
		const uint64_t before_other = stat[TUNNEL + !is_other].rx_packets;
		fake_receive(IN, &frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
		assert_int_equal(stat[TUNNEL + is_other].rx_packets - before, 1);
		assert_int_equal(stat[TUNNEL + !is_other].rx_packets, before_other);
		fib_iface_delete(fake.fib, TUNNEL + 1);
	}
}

// Only the tunnel to whose other end that is known.
static void a_packet_without_a_checksum_is_taken_of_an_end_that_may_leave_it_out(void **state)
{
	const struct bytes inner = frame_to(IN, "10.1.2.3");
	const struct iface_tunnel strict = tunnel_of(IFACE_IPIP, IFACE_TUNNEL_UDP, true);
	struct iface_tunnel lax = strict;
	struct iface settings = {.mtu = 9600, .has_peer = true, .flags = IFACE_MPLS};

	lax.flags |= IFACE_TUNNEL_ZERO_CHECKSUM;
	lax.remote.bytes[15]++;
	settings.tunnel = lax;
	for (unsigned is_lax = 0; is_lax < 2; is_lax++) {
		uint8_t ip[WIRE_IP6_BYTES] = {0x60, [6] = WIRE_PROTO_UDP, [7] = 64};
		struct bytes frame = inner;

		push(&frame, POP, 9, true);
		in_udp(&frame, FIRST_PORT + 5, MPLS_PORT);
		ip[5] = frame.n - 14;
		memcpy(ip + 8, is_lax ? lax.remote.bytes : strict.remote.bytes, 16);
		memcpy(ip + 24, here6.bytes, 16);
		precede(&frame, ip, sizeof(ip));
		set_type(&frame, WIRE_ETHERTYPE_IP6);
		arrive(&frame);
		start(0, &strict);
		assert_int_equal(fib_iface_set(fake.fib, TUNNEL + 1, &settings), 0);
		fake_receive(IN, &frame);
		fake_run();
		assert_int_equal(stopped(VERDICT_TUNNEL_CHECKSUM), !is_lax);
		assert_int_equal(fake.device[OUT].n_sent, is_lax);
		fib_iface_delete(fake.fib, TUNNEL + 1);
	}
}

static void congestion_is_told_below_the_labels(void **state)
{
	enum { INNER = 14 + 20 + 8 + 4, CE = 3, ECT0 = 2 };
	const struct iface_tunnel tunnel = over_udp(0);

	for (unsigned is_capable = 0; is_capable < 2; is_capable++) {
		struct bytes frame = from_there("10.1.2.3", POP, 0);
		struct wire_ip4 *ip = (void *)(frame.at + INNER);

		ip->dscp_ecn = is_capable ? ECT0 : 0;
		ip->checksum_be = 0;
		ip->checksum_be = wire_ip4_checksum_be(ip);
		frame.at[15] = CE;
		frame_mend(&frame);
		process(0, &tunnel, &frame);
		assert_int_equal(stopped(VERDICT_TUNNEL_ECN), !is_capable);
		if (is_capable)
			assert_int_equal(sent_frame()[15], CE);
	}
}

static void what_is_wrong_has_a_name(void **state)
{
	enum { CHECKSUM = 40, LENGTH = 38, LABEL = 42, TTL = 45, SOURCE = 29, PORT = 36 };
	static const struct {
		uint32_t first, second;
		uint8_t at, value;
		enum verdict verdict;
	} rows[] = {
		{UNKNOWN, 0, 22, 64, VERDICT_MPLS_UNKNOWN},
		{POP, 0, CHECKSUM, 1, VERDICT_TUNNEL_CHECKSUM},
		{POP, 0, LENGTH, 9, VERDICT_TUNNEL_SHORT},
		{POP, 0, TTL, 1, VERDICT_MPLS_TTL},
		{POP, 0, SOURCE, 8, VERDICT_TUNNEL_UNKNOWN},
		{POP, 0, PORT, 9, VERDICT_LOCAL},
		{1, 0, 22, 64, VERDICT_MPLS_RESERVED},
		{LINUX, 0, 22, 64, VERDICT_LINUX},
		{POP, 0, LABEL + 4, 0x25, VERDICT_MPLS_PAYLOAD},
	};
	const struct iface_tunnel tunnel = over_udp(0);

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
			struct bytes frame = from_there("10.1.2.3", rows[i].first, rows[i].second);

			frame.at[rows[i].at] = rows[i].value;
			frame_mend(&frame);
			process(v, &tunnel, &frame);
			if (stopped(rows[i].verdict) != 1)
				fail_msg("row %u", i);
			assert_int_equal(fake.device[OUT].n_sent, 0);
		}
}

// More labels than are popped one after the other; a stack that does not end.
static void a_deep_stack_is_left_to_linux(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);

	for (unsigned has_end = 0; has_end < 2; has_end++) {
		struct bytes frame = frame_to(IN, "10.1.2.3");

		for (unsigned i = 0; i < 6; i++)
			push(&frame, POP, 9, has_end && !i);
		in_udp(&frame, FIRST_PORT, MPLS_PORT);
		outer4(&frame, 0, WIRE_PROTO_UDP, true);
		arrive(&frame);
		process(0, &tunnel, &frame);
		assert_int_equal(stopped(VERDICT_MPLS_DEEP), 1);
		expect_bytes(fake_punted(CLASS_OTHER), &frame);
	}
}

static void a_tunnel_below_labels_is_not_opened(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);
	struct bytes frame = from_there("10.1.2.3", POP, 0);

	push(&frame, POP, 9, true);
	in_udp(&frame, FIRST_PORT, MPLS_PORT);
	outer4(&frame, 0, WIRE_PROTO_UDP, true);
	arrive(&frame);
	process(0, &tunnel, &frame);
	assert_int_equal(stopped(VERDICT_TUNNEL_NESTED), 1);
	expect_bytes(fake_punted(CLASS_LINUX), &frame);
}

// Without net.mpls.conf.IF.input they are Linux's.
static void a_tunnel_that_takes_no_labels_leaves_them_to_linux(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);
	const struct iface settings = {.mtu = 9600, .has_peer = true, .tunnel = tunnel};
	const struct bytes frame = from_there("10.1.2.3", POP, 0);

	start(0, &tunnel);
	assert_int_equal(fib_iface_set(fake.fib, TUNNEL, &settings), 0);
	fake_receive(IN, &frame);
	fake_run();
	expect_bytes(fake_punted(CLASS_LINUX), &frame);
}

// Whatever bytes there are: each packet has one verdict, and the account closes.
static void random_bytes_do_no_harm(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);
	static const uint32_t labels[] = {POP, POP_PIPE, SWAP_IN, PHP_IN, SWAP_OUT, LINUX, UNKNOWN,
		0, 1};

	for (unsigned round = 0; round < ROUNDS; round++) {
		start(dice(FAKE_VARIANTS), &tunnel);
		for (unsigned i = 0; i < 40; i++) {
			struct bytes frame = from_there("10.1.2.3", labels[dice(ARRAY_LEN(labels))],
				labels[dice(ARRAY_LEN(labels))]);

			for (unsigned k = dice(4); k; k--)
				frame.at[34 + dice(frame.n - 34)] = dice(256);
			if (!dice(4))
				frame.n = 34 + dice(frame.n - 34);
			frame.at[16] = (frame.n - 14) >> 8;
			frame.at[17] = (frame.n - 14) & 0xff;
			frame_mend(&frame);
			fake_receive(IN, &frame);
		}
		fake_run();
	}
}

// A packet of any flow, DSCP and ECN, with DF or without, and of any length.
static struct bytes any_packet(bool is_ip6)
{
	struct bytes frame = frame_to(IN, is_ip6 ? "2001:db8:77::9" : "10.77.0.9");
	const unsigned source = is_ip6 ? 14 + 8 : 14 + 12, more = dice(600);
	const unsigned length_at = is_ip6 ? 14 + 4 : 14 + 2;

	frame.n += more;
	const uint16_t length = frame.n - (is_ip6 ? 14 + 40 : 14);
	frame.at[length_at] = length >> 8;
	frame.at[length_at + 1] = length & 0xff;
	frame.at[source + 2] = dice(256);
	frame.at[source + 3] = dice(256);
	frame.at[14 + (is_ip6 ? 40 : 20) + 1] = dice(256); // the source port
	if (is_ip6)
		frame.at[15] = dice(4) << 4;
	else
		frame.at[15] = dice(256);
	if (!is_ip6) {
		frame.at[20] = dice(2) ? 0x40 : 0;
		frame_mend(&frame);
	}
	return frame;
}

// Also the source port: the flow's hash is the same, whichever instructions make it.
static void each_variant_sends_the_same_bytes(void **state)
{
	enum { N = 40 };
	static struct bytes frame[N], first[N];

	for (unsigned round = 0; round < ROUNDS / 5; round++) {
		const bool is_ip6 = dice(2), is_over6 = dice(2), is_udp = dice(2);
		const uint16_t flags =
			(is_udp ? IFACE_TUNNEL_UDP : 0) | (dice(2) ? IFACE_TUNNEL_CHECKSUM : 0);
		const struct iface_tunnel tunnel =
			tunnel_of(is_udp || dice(2) ? IFACE_IPIP : IFACE_GRE, flags, is_over6);

		for (unsigned i = 0; i < N; i++)
			frame[i] = any_packet(is_ip6);
		for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
			start(v, &tunnel);
			for (unsigned i = 0; i < N; i++)
				fake_receive(IN, &frame[i]);
			fake_run();
			assert_int_equal(fake.device[OUT].n_sent, N);
			for (unsigned i = 0; i < N; i++) {
				const struct rte_mbuf *m = fake.device[OUT].sent[i];
				const uint8_t *sent = rte_pktmbuf_mtod(m, const uint8_t *);

				if (!v) {
					first[i].n = m->data_len;
					memcpy(first[i].at, sent, m->data_len);
				}
				assert_int_equal(m->data_len, first[i].n);
				assert_memory_equal(sent, first[i].at, first[i].n);
			}
		}
	}
}

// --- source ports

// A packet of flow `i`, and of its fragments the one with this offset in words of 8 bytes; 0: it is
// whole.
static struct bytes of_flow(unsigned i, unsigned fragment)
{
	struct bytes frame = frame_to(IN, "10.77.0.9");

	frame.at[28] = i >> 8;
	frame.at[29] = i & 0xff;
	frame.at[32] = i >> 4;
	frame.at[20] = fragment >> 8 | (fragment == 1 ? 0x20 : 0);
	frame.at[21] = fragment;
	frame_mend(&frame);
	return frame;
}

// The chi-square statistic of 64 bins with 63 degrees of freedom: above 103.4 with a probability of
// 0.1 %, below 33.8 likewise 0.1 %. The hash has no seed, so the test gives the same each time.
static void ports_of_ten_thousand_flows_are_uniform(void **state)
{
	enum { FLOWS = 10000, BINS = 64, EACH = 1000, BIN_SHIFT = 8 };
	const struct iface_tunnel tunnel = over_udp(0);
	unsigned bin[BINS] = {0};
	double chi = 0;

	for (unsigned first = 0; first < FLOWS; first += EACH) {
		start(0, &tunnel);
		for (unsigned i = first; i < first + EACH; i++) {
			const struct bytes frame = of_flow(i, 0);

			fake_receive(IN, &frame);
		}
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, EACH);
		for (unsigned i = 0; i < EACH; i++) {
			const uint8_t *sent =
				rte_pktmbuf_mtod(fake.device[OUT].sent[i], const uint8_t *);
			const unsigned port = sent[34] << 8 | sent[35];

			assert_in_range(port, FIRST_PORT, UINT16_MAX);
			bin[(port - FIRST_PORT) >> BIN_SHIFT]++;
		}
	}
	for (unsigned i = 0; i < BINS; i++) {
		const double expected = (double)FLOWS / BINS, off = bin[i] - expected;

		chi += off * off / expected;
	}
	if (chi < 33.8 || chi > 103.4)
		fail_msg("chi-square %.1f", chi);
}

static void a_flow_keeps_its_port_and_so_do_its_fragments(void **state)
{
	const struct iface_tunnel tunnel = over_udp(0);

	for (unsigned round = 0; round < ROUNDS / 10; round++) {
		const unsigned flow = dice(10000), is_cut = round % 2;
		uint16_t port[4];

		start(dice(FAKE_VARIANTS), &tunnel);
		for (unsigned i = 0; i < 4; i++) {
			struct bytes frame = of_flow(flow, is_cut ? 1 + i : 0);

			if (is_cut) // the payload of later ones is no port
				frame.at[34] = dice(256);
			fake_receive(IN, &frame);
		}
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 4);
		for (unsigned i = 0; i < 4; i++) {
			memcpy(&port[i],
				rte_pktmbuf_mtod_offset(fake.device[OUT].sent[i], uint8_t *, 34),
				2);
			assert_int_equal(port[i], port[0]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_over_udp_have_these_bytes),
		cmocka_unit_test(labels_over_gre_and_ip_have_these_bytes),
		cmocka_unit_test(a_tunnel_of_linux_copies_nothing),
		cmocka_unit_test(a_tunnel_that_inherits_takes_no_ttl_of_a_label),
		cmocka_unit_test(over_ipv6_there_is_a_checksum_unless_it_is_off),
		cmocka_unit_test(labels_are_swapped_into_a_tunnel),
		cmocka_unit_test(what_is_below_the_last_label_goes_into_a_tunnel),
		cmocka_unit_test(each_way_has_a_port_that_sends_or_does_not),
		cmocka_unit_test(labels_count_against_the_mtu),
		cmocka_unit_test(what_went_in_comes_out),
		cmocka_unit_test(each_variant_sends_the_same_bytes),
		cmocka_unit_test(labels_out_of_a_tunnel_are_swapped),
		cmocka_unit_test(tunnels_to_one_end_are_told_apart_by_their_ports),
		cmocka_unit_test(
			a_packet_without_a_checksum_is_taken_of_an_end_that_may_leave_it_out),
		cmocka_unit_test(congestion_is_told_below_the_labels),
		cmocka_unit_test(what_is_wrong_has_a_name),
		cmocka_unit_test(a_deep_stack_is_left_to_linux),
		cmocka_unit_test(a_tunnel_below_labels_is_not_opened),
		cmocka_unit_test(a_tunnel_that_takes_no_labels_leaves_them_to_linux),
		cmocka_unit_test(random_bytes_do_no_harm),
		cmocka_unit_test(ports_of_ten_thousand_flows_are_uniform),
		cmocka_unit_test(a_flow_keeps_its_port_and_so_do_its_fragments),
	};

	return cmocka_run_group_tests(tests, open_tunnel, fake_close);
}
