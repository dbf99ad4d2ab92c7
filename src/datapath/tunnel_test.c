// Tunnels: the bytes that are sent, what is taken out of received ones, and why it is not.
#include "datapath/dice.h"
#include "datapath/fake.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <string.h>

enum { TUNNEL = 300, IN = 0, OUT = 1, ROUNDS = 400, FOU_PORT = 5555 };

static const struct wire_addr here4 = {.family = 4, .bytes = {10, 0, 0, 1}};
static const struct wire_addr there4 = {.family = 4, .bytes = {10, 1, 9, 9}};
static const struct wire_addr here6 = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 0, [15] = 1}};
static const struct wire_addr there6 = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 1, [15] = 9}};

static struct iface_tunnel tunnel_of(uint8_t kind, uint16_t flags, bool is_ip6)
{
	return (struct iface_tunnel){.local = is_ip6 ? here6 : here4,
		.remote = is_ip6 ? there6 : there4,
		.kind = kind,
		.ttl = 64,
		.dest_port = FOU_PORT,
		.flags = flags | IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_DF |
	                 IFACE_TUNNEL_TOS};
}

static void set_tunnel(const struct iface_tunnel *tunnel)
{
	const struct iface settings = {.mtu = 9600, .has_peer = true, .tunnel = *tunnel};

	assert_int_equal(fib_iface_set(fake.fib, TUNNEL, &settings), 0);
}

// Routes 10.77.0.0/16 and 2001:db8:77::/48 into the tunnel; both of its ends are in the table.
static int open_tunnel(void **state)
{
	const struct fib_hop in = {.kind = FIB_PEER, .iface = TUNNEL};
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};

	fake_open(state);
	fake_route(0, "10.77.0.0/16", &in);
	fake_route(0, "2001:db8:77::/48", &in);
	fake_route(0, "10.0.0.1/32", &local);
	fake_route(0, "2001:db8::1/128", &local);
	return 0;
}

static void start(unsigned variant, const struct iface_tunnel *tunnel)
{
	fake_reset(fake_variants[variant]);
	set_tunnel(tunnel);
	fake.worker.next_id = 0;
}

static void set_macs(struct bytes *frame)
{
	memcpy(frame->at, (uint8_t[]){2, 0, 0, OUT, 0, 2, 2, 0, 0, 0, 0, OUT + 1}, 12);
}

// The frame with these bytes between its MAC addresses and the packet.
static struct bytes wrapped(const struct bytes *inner, const uint8_t *header, unsigned n)
{
	struct bytes frame = {.n = inner->n + n - 2};

	memcpy(frame.at + 12, header, n);
	memcpy(frame.at + 12 + n, inner->at + 14, inner->n - 14);
	set_macs(&frame);
	return frame;
}

// Lengths and the checksum of the expected outer header are those of the frame.
static void set_length4(struct bytes *frame)
{
	frame->at[16] = (frame->n - 14) >> 8;
	frame->at[17] = (frame->n - 14) & 0xff;
	frame_mend(frame);
}

static void expect_one_sent(const struct iface_tunnel *tunnel, const struct bytes *frame,
	const struct bytes *expected)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		const struct stats_tunnel *stat = &fake.stat.tunnel[TUNNEL];

		start(v, tunnel);
		const uint64_t packets = stat->tx_packets, bytes = stat->tx_bytes;
		fake_receive(IN, frame);
		fake_run();
		expect_sent(OUT, expected);
		assert_int_equal(stat->tx_packets - packets, 1);
		assert_int_equal(stat->tx_bytes - bytes, frame->n - 14);
	}
}

static void gre_with_a_key_has_these_bytes(void **state)
{
	// IPv4 10.0.0.1 to 10.1.9.9, DF, TTL 64, protocol 47; GRE with key 7, IPv4.
	static const uint8_t header[] = {0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 47, 0, 0, 10,
		0, 0, 1, 10, 1, 9, 9, 0x20, 0, 0x08, 0x00, 0, 0, 0, 7};
	struct iface_tunnel tunnel = tunnel_of(IFACE_GRE, IFACE_TUNNEL_KEY, false);
	const struct bytes frame = frame_to(IN, "10.77.0.9");
	const struct bytes inner = forwarded_once(&frame);
	struct bytes expected = wrapped(&inner, header, sizeof(header));

	tunnel.key = 7;
	set_length4(&expected);
	expect_one_sent(&tunnel, &frame, &expected);
}

static void ip_in_ip_copies_dscp_and_ecn(void **state)
{
	// DSCP 46 and CE: RFC 6040 copies both; protocol 4.
	static const uint8_t header[] = {0x08, 0x00, 0x45, 0xbb, 0, 0, 0, 0, 0x40, 0, 64, 4, 0, 0,
		10, 0, 0, 1, 10, 1, 9, 9};
	const struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	struct bytes frame = frame_to(IN, "10.77.0.9");

	frame.at[15] = 0xbb;
	frame_mend(&frame);
	const struct bytes inner = forwarded_once(&frame);
	struct bytes expected = wrapped(&inner, header, sizeof(header));
	set_length4(&expected);
	expect_one_sent(&tunnel, &frame, &expected);
}

static void ipv6_in_ipv6_has_these_bytes(void **state)
{
	uint8_t header[42] = {0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 41, 64};
	const struct bytes frame = frame_to(IN, "2001:db8:77::9");
	const struct bytes inner = forwarded_once(&frame);

	memcpy(header + 10, here6.bytes, 16);
	memcpy(header + 26, there6.bytes, 16);
	header[6] = (frame.n - 14) >> 8;
	header[7] = (frame.n - 14) & 0xff;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		const struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, true);
		struct bytes expected = wrapped(&inner, header, sizeof(header));

		start(v, &tunnel);
		fake_receive(IN, &frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
		const uint8_t *sent = rte_pktmbuf_mtod(fake.device[OUT].sent[0], uint8_t *);
		assert_int_equal(sent[15] & 0xf0, 0); // DSCP 0; then a flow label, which is a hash
		memcpy(expected.at + 15, sent + 15, 3);
		expect_sent(OUT, &expected);
	}
}

// Of Linux's GRE devices over IPv6 only those with `tclass inherit` send the ECN of the inner
// packet; the others have ECT(0) in place of CE.
static void linux_devices_have_the_ecn_that_linux_gives_them(void **state)
{
	const struct {
		uint16_t flags, without;
		uint8_t kind, inner, tos;
	} rows[] = {
		{IFACE_TUNNEL_LINUX, IFACE_TUNNEL_TOS, IFACE_GRE, 0xb9, 0},
		{IFACE_TUNNEL_LINUX, 0, IFACE_GRE, 0xb9, 0xb9},
		{IFACE_TUNNEL_LINUX, 0, IFACE_GRE, 0xbb, 0xbb},
		{IFACE_TUNNEL_LINUX, IFACE_TUNNEL_TOS, IFACE_IPIP, 0xb9, 1},
		{IFACE_TUNNEL_LINUX, IFACE_TUNNEL_TOS, IFACE_IPIP, 0xbb, 2},
		{IFACE_TUNNEL_LINUX, 0, IFACE_IPIP, 0xbb, 0xba},
		{0, IFACE_TUNNEL_TOS, IFACE_GRE, 0xb9, 1},
		{0, IFACE_TUNNEL_TOS, IFACE_GRE, 0xbb, 3},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct iface_tunnel tunnel = tunnel_of(rows[i].kind, rows[i].flags, true);
		struct bytes frame = frame_to(IN, "10.77.0.9");

		frame.at[15] = rows[i].inner;
		frame_mend(&frame);
		tunnel.flags &= ~rows[i].without;
		start(0, &tunnel);
		fake_receive(IN, &frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
		const uint8_t *sent = rte_pktmbuf_mtod(fake.device[OUT].sent[0], uint8_t *);
		assert_int_equal((sent[14] & 0xf) << 4 | sent[15] >> 4, rows[i].tos);
	}
}

static void udp_has_a_port_by_flow_and_a_sum_over_ipv6(void **state)
{
	struct iface_tunnel tunnel =
		tunnel_of(IFACE_IPIP, IFACE_TUNNEL_UDP | IFACE_TUNNEL_CHECKSUM, true);
	uint16_t first = 0;

	for (unsigned i = 0; i < 8; i++) {
		struct bytes frame = frame_to(IN, "10.77.0.9");

		frame.at[35] = i < 2 ? 1 : i; // UDP source port
		start(0, &tunnel);
		fake_receive(IN, &frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
		const uint8_t *sent = rte_pktmbuf_mtod(fake.device[OUT].sent[0], uint8_t *);
		const struct wire_udp *udp = (const void *)(sent + 54);
		const uint16_t bytes = be16toh(udp->length_be), port = be16toh(udp->src_port_be);
		assert_int_equal(sent[20], WIRE_PROTO_UDP);
		assert_int_equal(bytes, frame.n - 14 + 8);
		assert_int_equal(be16toh(udp->dst_port_be), FOU_PORT);
		assert_true(port >= 49152);
		assert_int_equal(wire_sum_finish_be(
					 wire_sum(wire_sum_pseudo6((const void *)(sent + 14), 17,
							  bytes),
						 udp, bytes)),
			0);
		assert_true(udp->checksum_be);
		if (i == 1)
			assert_int_equal(port, first);
		if (i > 1)
			assert_int_not_equal(port, first);
		first = i ? first : port;
	}
}

// What the other end would send to us.
static struct bytes arrived(const struct bytes *sent)
{
	struct bytes frame = *sent;

	memcpy(frame.at, (uint8_t[]){2, 0, 0, 0, 0, IN + 1, 2, 0, 0, 0, 0, 9}, 12);
	return frame;
}

static struct iface_tunnel other_end(const struct iface_tunnel *tunnel)
{
	struct iface_tunnel other = *tunnel;

	other.local = tunnel->remote;
	other.remote = tunnel->local;
	return other;
}

static struct bytes frame_of(const struct rte_mbuf *m)
{
	struct bytes frame = {.n = m->data_len};

	memcpy(frame.at, rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	return frame;
}

// The other end is this router, too: its address is made one of ours while it receives.
static void add_local(const char *prefix)
{
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};

	fake_route(0, prefix, &local);
}

static void remove_local(const char *prefix)
{
	struct fib_change change = {.op = FIB_DELETE};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	assert_int_equal(fib_change(fake.fib, &change, 1, NULL, NULL), 0);
}

static struct bytes send_in(const struct iface_tunnel *tunnel, unsigned v,
	const struct bytes *frame)
{
	start(v, tunnel);
	fake_receive(IN, frame);
	fake_run();
	assert_int_equal(fake.device[OUT].n_sent, 1);
	const struct bytes sent = frame_of(fake.device[OUT].sent[0]);
	return arrived(&sent);
}

static void random_inner(struct bytes *frame)
{
	const unsigned more = dice(200);

	for (unsigned i = frame->n; i < frame->n + more; i++)
		frame->at[i] = dice(256);
	if (frame->at[12] == 0x08) {
		frame->at[15] = dice(256);
		frame->at[17] += 0;
		const uint16_t length = frame->n - 14 + more;
		frame->at[16] = length >> 8;
		frame->at[17] = length & 0xff;
		frame_mend(frame);
	} else {
		const uint16_t length = frame->n - 54 + more;
		frame->at[14] = 0x60 | dice(16);
		frame->at[15] = (dice(16) << 4) | (frame->at[15] & 0xf);
		frame->at[18] = length >> 8;
		frame->at[19] = length & 0xff;
	}
	frame->n += more;
}

// Each kind, over both families, with each option: the packet comes out as it went in, with a TTL
// that is 1 less at each end.
static void what_goes_in_comes_out(void **state)
{
	static const uint16_t options[] = {0, IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY,
		IFACE_TUNNEL_CHECKSUM | IFACE_TUNNEL_WANTS_CHECKSUM, IFACE_TUNNEL_LIMIT,
		IFACE_TUNNEL_UDP, IFACE_TUNNEL_UDP | IFACE_TUNNEL_CHECKSUM};

	for (unsigned round = 0; round < ROUNDS; round++) {
		const uint16_t flags = options[dice(ARRAY_LEN(options))];
		const bool is_udp = flags & IFACE_TUNNEL_UDP, is_over6 = dice(2), is_ip6 = dice(2);
		const uint8_t kind = is_udp || dice(2) ? IFACE_IPIP : IFACE_GRE;
		const unsigned v = dice(FAKE_VARIANTS);
		struct iface_tunnel tunnel = tunnel_of(kind,
			flags | (is_udp && is_over6 ? IFACE_TUNNEL_CHECKSUM : 0), is_over6);
		struct bytes frame = frame_to(IN, is_ip6 ? "2001:db8:77::9" : "10.77.0.9");

		tunnel.key = tunnel.wanted_key = 1 + dice(1000);
		random_inner(&frame);
		const struct bytes inner = forwarded_once(&frame);
		const struct bytes outer = send_in(&tunnel, v, &frame);
		const struct iface_tunnel other = other_end(&tunnel);
		const struct fib_hop out = {.kind = FIB_VIA,
			.iface = OUT,
			.via = {.family = 4, .bytes = {10, OUT, 0, 2}}};
		add_local("10.1.9.9/32");
		add_local("2001:db8:1::9/128");
		fake_route(0, "10.77.0.9/32", &out);
		fake_route(0, "2001:db8:77::9/128", &out);
		start(v, &other);
		const uint64_t before = fake.stat.tunnel[TUNNEL].rx_packets;
		fake_receive(IN, &outer);
		fake_run();
		struct bytes left = forwarded_once(&inner);
		set_macs(&left);
		expect_sent(OUT, &left);
		assert_int_equal(fake.stat.tunnel[TUNNEL].rx_packets - before, 1);
		remove_local("10.1.9.9/32");
		remove_local("2001:db8:1::9/128");
		remove_local("10.77.0.9/32");
		remove_local("2001:db8:77::9/128");
	}
}

// A packet of GRE with a key from the other end, to a host behind us.
static struct bytes from_there(const char *dst)
{
	static const uint8_t header[] = {0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0, 10, 1,
		9, 9, 10, 0, 0, 1, 0x20, 0, 0x08, 0x00, 0, 0, 0, 7};
	const struct bytes inner = frame_to(IN, dst);
	struct bytes frame = wrapped(&inner, header, sizeof(header));

	set_length4(&frame);
	return arrived(&frame);
}

static struct iface_tunnel keyed(void)
{
	struct iface_tunnel tunnel =
		tunnel_of(IFACE_GRE, IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY, false);

	tunnel.key = tunnel.wanted_key = 7;
	return tunnel;
}

static void receive_one(unsigned v, const struct bytes *frame)
{
	const struct iface_tunnel tunnel = keyed();

	start(v, &tunnel);
	fake_receive(IN, frame);
	fake_run();
}

static uint64_t stopped(enum verdict verdict)
{
	return fake.stat.verdict[verdict] + fake.stat.handed[verdict];
}

static void wrong_headers_have_names(void **state)
{
	enum { FLAGS = 34, KEY_LAST = 41, ECN = 15, INNER_LENGTH = 45 };
	static const struct {
		uint8_t at, value;
		enum verdict verdict;
	} rows[] = {{FLAGS, 0x60, VERDICT_TUNNEL_FLAGS}, {FLAGS + 1, 1, VERDICT_LOCAL},
		{KEY_LAST, 8, VERDICT_TUNNEL_UNKNOWN}, {29, 8, VERDICT_TUNNEL_UNKNOWN},
		{FLAGS, 0xa0, VERDICT_TUNNEL_CHECKSUM}, {ECN, 3, VERDICT_TUNNEL_ECN},
		{INNER_LENGTH, 0xff, VERDICT_TUNNEL_SHORT}, {20, 0x20, VERDICT_LOCAL},
		{FLAGS + 2, 0x88, VERDICT_LOCAL}};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
			struct bytes frame = from_there("10.1.2.3");

			frame.at[rows[i].at] = rows[i].value;
			frame_mend(&frame);
			receive_one(v, &frame);
			assert_int_equal(stopped(rows[i].verdict), 1);
			assert_int_equal(fake.device[OUT].n_sent, 0);
		}
}

// The outer packet of IPv4 in UDP from the other end.
static struct bytes in_udp(void)
{
	static const uint8_t header[] = {0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1,
		9, 9, 10, 0, 0, 1, 0xc3, 0x50, FOU_PORT >> 8, FOU_PORT & 0xff, 0, 0, 0, 0};
	const struct bytes inner = frame_to(IN, "10.1.2.3");
	struct bytes frame = wrapped(&inner, header, sizeof(header));

	frame.at[38] = (inner.n - 14 + 8) >> 8;
	frame.at[39] = (inner.n - 14 + 8) & 0xff;
	set_length4(&frame);
	return arrived(&frame);
}

static void receive_by(unsigned v, const struct iface_tunnel *tunnel, const struct bytes *frame)
{
	start(v, tunnel);
	fake_receive(IN, frame);
	fake_run();
}

// A device of Linux sends to one port and receives on those on which Linux listens; of GRE it takes
// no checksum that it does not want.
static void a_device_of_linux_receives_what_linux_would(void **state)
{
	const struct fib_udp_end here = {FOU_PORT, WIRE_PROTO_IP4, FIB_UDP_IP4};
	struct iface_tunnel gre = keyed();
	struct iface_tunnel fou =
		tunnel_of(IFACE_IPIP, IFACE_TUNNEL_UDP | IFACE_TUNNEL_LINUX, false);
	const struct bytes udp = in_udp();
	struct bytes frame = from_there("10.1.2.3");
	const struct bytes plain = frame;

	gre.flags |= IFACE_TUNNEL_LINUX;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		receive_by(v, &fou, &udp);
		assert_int_equal(stopped(VERDICT_LOCAL), 1);
		fib_udp_ends_set(fake.fib, &here, 1);
		receive_by(v, &fou, &udp);
		assert_int_equal(fake.device[OUT].n_sent, 1);
		fib_udp_ends_set(fake.fib, NULL, 0);
		receive_by(v, &gre, &plain);
		assert_int_equal(fake.device[OUT].n_sent, 1);
		gre.flags |= IFACE_TUNNEL_WANTS_CHECKSUM;
		receive_by(v, &gre, &plain);
		assert_int_equal(stopped(VERDICT_TUNNEL_CHECKSUM), 1);
		gre.flags &= ~IFACE_TUNNEL_WANTS_CHECKSUM;
	}
}

// What Linux receives on a port is not changed by a tunnel that has the same.
static void a_port_of_linux_stays_as_it_is(void **state)
{
	const struct fib_udp_end here = {FOU_PORT, WIRE_PROTO_IP4, FIB_UDP_IP4};
	struct iface_tunnel labels = tunnel_of(IFACE_IPIP,
		IFACE_TUNNEL_UDP | IFACE_TUNNEL_MPLS | IFACE_TUNNEL_ZERO_CHECKSUM, false);
	const struct iface_tunnel fou =
		tunnel_of(IFACE_IPIP, IFACE_TUNNEL_UDP | IFACE_TUNNEL_LINUX, false);
	const struct iface settings = {.mtu = 9600, .has_peer = true, .tunnel = labels};
	const struct bytes udp = in_udp();

	start(0, &fou);
	fib_udp_ends_set(fake.fib, &here, 1);
	assert_int_equal(fib_iface_set(fake.fib, TUNNEL + 1, &settings), 0);
	fake_receive(IN, &udp);
	fake_run();
	assert_int_equal(fake.device[OUT].n_sent, 1);
	fib_iface_delete(fake.fib, TUNNEL + 1);
	fib_udp_ends_set(fake.fib, NULL, 0);
}

// Linux gets all of a packet that came in a tunnel, when it is to answer: here the TTL has expired.
static void linux_gets_the_packet_as_it_was_received(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = from_there("10.1.2.3");
		const unsigned ttl_at = 42 + 8;

		frame.at[ttl_at] = 1;
		struct wire_ip4 *ip = (void *)(frame.at + 42);
		ip->checksum_be = wire_ip4_checksum_be(ip);
		receive_one(v, &frame);
		assert_int_equal(stopped(VERDICT_TTL_EXPIRED), 1);
		expect_bytes(fake_punted(CLASS_TTL), &frame);
	}
}

static void a_tunnel_in_a_tunnel_is_left_to_linux(void **state)
{
	const struct bytes once = from_there("10.1.2.3");
	static const uint8_t header[] = {0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0, 10, 1,
		9, 9, 10, 0, 0, 1, 0x20, 0, 0x08, 0x00, 0, 0, 0, 7};
	struct bytes twice = wrapped(&once, header, sizeof(header));

	set_length4(&twice);
	twice = arrived(&twice);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		receive_one(v, &twice);
		assert_int_equal(stopped(VERDICT_TUNNEL_NESTED), 1);
		expect_bytes(fake_punted(CLASS_LINUX), &twice);
	}
}

// Whatever bytes follow the outer header: each packet has one verdict, and the account closes.
static void random_bytes_do_no_harm(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct iface_tunnel tunnel = keyed();

		start(dice(FAKE_VARIANTS), &tunnel);
		for (unsigned i = 0; i < 40; i++) {
			struct bytes frame = from_there("10.1.2.3");

			for (unsigned k = dice(4); k; k--)
				frame.at[34 + dice(frame.n - 34)] = dice(256);
			if (!dice(4))
				frame.n = 34 + dice(frame.n - 34);
			set_length4(&frame);
			fake_receive(IN, &frame);
		}
		fake_run();
	}
}

static void a_tunnel_without_a_way_says_so(void **state)
{
	struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	const struct bytes frame = frame_to(IN, "10.77.0.9");

	tunnel.remote = (struct wire_addr){.family = 4, .bytes = {203, 0, 113, 9}};
	start(0, &tunnel);
	fake_receive(IN, &frame);
	fake_run();
	assert_int_equal(stopped(VERDICT_TUNNEL_NO_WAY), 1);
}

static void the_header_follows_the_neighbour(void **state)
{
	const struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	const struct wire_addr via = {.family = 4, .bytes = {10, OUT, 0, 2}};
	const struct wire_mac other = {{2, 0, 0, OUT, 0, 77}}, usual = {{2, 0, 0, OUT, 0, 2}};
	const struct bytes frame = frame_to(IN, "10.77.0.9");

	start(0, &tunnel);
	assert_int_equal(fib_neighbour_set(fake.fib, OUT, &via, &other, NULL), 0);
	fake_receive(IN, &frame);
	fake_run();
	assert_memory_equal(rte_pktmbuf_mtod(fake.device[OUT].sent[0], uint8_t *), other.bytes, 6);
	assert_int_equal(fib_neighbour_delete(fake.fib, OUT, &via), 0);
	start(0, &tunnel);
	fake_receive(IN, &frame);
	fake_run();
	assert_int_equal(stopped(VERDICT_NEIGHBOUR_UNRESOLVED), 1);
	assert_int_equal(fib_neighbour_set(fake.fib, OUT, &via, &usual, NULL), 0);
	start(0, &tunnel);
	fake_receive(IN, &frame);
	fake_run();
	assert_int_equal(fake.device[OUT].n_sent, 1);
}

static void a_long_packet_is_never_fragmented_outside(void **state)
{
	const struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	struct bytes frame = frame_to(IN, "10.77.0.9");

	frame.n = 1514;      // 1500 + 20 do not fit
	frame.at[20] = 0x40; // DF
	set_length4(&frame);
	start(0, &tunnel);
	fake_receive(IN, &frame);
	fake_run();
	assert_int_equal(stopped(VERDICT_MTU_EXCEEDED), 1);
	frame.n = 1494;
	set_length4(&frame);
	start(0, &tunnel);
	fake_receive(IN, &frame);
	fake_run();
	assert_int_equal(fake.device[OUT].n_sent, 1);
	assert_int_equal(fake.device[OUT].sent[0]->pkt_len, 1514);
}

// Each flow uses one of both ways, and the port of its header.
static void flows_are_spread_over_the_ways_of_the_remote_end(void **state)
{
	struct iface_tunnel tunnel = tunnel_of(IFACE_IPIP, 0, false);
	struct fib_member members[2] = {{.weight = 1}, {.weight = 1}};
	struct fib_hop group;

	for (unsigned i = 0; i < 2; i++)
		members[i].hop = (struct fib_hop){.kind = FIB_VIA,
			.iface = OUT + i,
			.via = {.family = 4, .bytes = {10, OUT + i, 0, 2}}};
	tunnel.remote = (struct wire_addr){.family = 4, .bytes = {203, 0, 113, 9}};
	assert_int_equal(fib_group(fake.fib, members, 2, &group, NULL), 0);
	fake_route(0, "203.0.113.0/24", &group);
	start(0, &tunnel);
	for (unsigned i = 0; i < 256; i++) {
		struct bytes frame = frame_to(IN, "10.77.0.9");

		frame.at[35] = i;
		fake_receive(IN, &frame);
	}
	fake_run();
	for (unsigned i = 0; i < 2; i++) {
		const struct fake_device *out = &fake.device[OUT + i];

		assert_in_range(out->n_sent, 64, 192);
		for (unsigned k = 0; k < out->n_sent; k++)
			assert_int_equal(rte_pktmbuf_mtod(out->sent[k], uint8_t *)[3], OUT + i);
	}
	assert_int_equal(fake.device[OUT].n_sent + fake.device[OUT + 1].n_sent, 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gre_with_a_key_has_these_bytes),
		cmocka_unit_test(ip_in_ip_copies_dscp_and_ecn),
		cmocka_unit_test(ipv6_in_ipv6_has_these_bytes),
		cmocka_unit_test(linux_devices_have_the_ecn_that_linux_gives_them),
		cmocka_unit_test(udp_has_a_port_by_flow_and_a_sum_over_ipv6),
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(wrong_headers_have_names),
		cmocka_unit_test(a_device_of_linux_receives_what_linux_would),
		cmocka_unit_test(a_port_of_linux_stays_as_it_is),
		cmocka_unit_test(linux_gets_the_packet_as_it_was_received),
		cmocka_unit_test(a_tunnel_in_a_tunnel_is_left_to_linux),
		cmocka_unit_test(random_bytes_do_no_harm),
		cmocka_unit_test(a_tunnel_without_a_way_says_so),
		cmocka_unit_test(the_header_follows_the_neighbour),
		cmocka_unit_test(a_long_packet_is_never_fragmented_outside),
		cmocka_unit_test(flows_are_spread_over_the_ways_of_the_remote_end),
	};

	return cmocka_run_group_tests(tests, open_tunnel, fake_close);
}
