// Routing on a bridge of Linux: frames to its own address come in on its interface, and packets to
// its neighbours leave by the port behind which Linux has them.
#include "datapath/fake.h"

#include "datapath/trace.h"
#include "mac/mac.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <unistd.h>

enum { BRIDGED = 0x80, MORE = 100 };
enum {
	BRIDGE = 300,
	OTHER = 556,
	N_MEMBERS = 3,
	OUTSIDE = 3,
	NOBODY = 99,
	MTU = 1500,
	LONG = 1054
};
_Static_assert(BRIDGE % 256 == OTHER % 256, "they compete for a place");

static struct mac_table *table;
static struct mac_member members[N_MEMBERS];
static struct mac_bridge bridges[2];
static const struct wire_mac own = {{2, 0, 0, 0, 7, 1}};
static struct iface bridge_iface;

// Host H has the address 10.50.0.H, 2001:db8:50::H and this MAC address.
static struct wire_mac mac_of(unsigned host)
{
	return (struct wire_mac){{2, 0, 0, 0, 9, host}};
}

static void commit(void)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, bridges, 2, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
}

static struct wire_addr addr(const char *text)
{
	struct wire_addr parsed;

	assert_int_equal(wire_addr_parse(text, &parsed), 0);
	return parsed;
}

static void add_host(unsigned host)
{
	const struct wire_mac mac = mac_of(host);
	struct wire_addr parsed;
	char text[64];

	snprintf(text, sizeof(text), "10.50.0.%u", host);
	parsed = addr(text);
	assert_int_equal(fib_neighbour_set(fake.fib, BRIDGE, &parsed, &mac, NULL), 0);
	snprintf(text, sizeof(text), "2001:db8:50::%u", host);
	parsed = addr(text);
	assert_int_equal(fib_neighbour_set(fake.fib, BRIDGE, &parsed, &mac, NULL), 0);
}

static void add_routes(uint16_t vrf)
{
	const struct fib_hop connected = {.kind = FIB_CONNECTED, .iface = BRIDGE};
	const struct fib_hop via = {.kind = FIB_VIA, .iface = BRIDGE, .via = addr("10.50.0.2")};

	fake_route(vrf, "10.50.0.0/16", &connected);
	fake_route(vrf, "2001:db8:50::/48", &connected);
	fake_route(vrf, "10.60.0.0/16", &via);
}

// Traces take their buffers from a pool of their own.
static int open_eal(void)
{
	static char prefix[64];
	static char *args[] = {"bridge_out_test", "--no-huge", "-m64", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=error", prefix};

	snprintf(prefix, sizeof(prefix), "--file-prefix=datapath-bridge-out-%d", getpid());
	return rte_eal_init(ARRAY_LEN(args), args) < 0;
}

static int open_bridge(void **state)
{
	int err = open_eal() || fake_open(state);
	struct mac_settings settings = {.hz = rte_get_tsc_hz(), .n_workers = 1, .rcu = fake.rcu};

	bridge_iface = (struct iface){.is_bridge = true, .mtu = MTU, .mac = own};
	fake_set(BRIDGE, &bridge_iface);
	for (unsigned host = 1; host < 10; host++)
		add_host(host);
	add_routes(0);
	return err ? err : mac_open(&table, &settings, NULL);
}

static int close_bridge(void **state)
{
	mac_close(table);
	return fake_close(state);
}

// As Linux tells it.
static void tell(uint8_t port, unsigned host)
{
	const uint16_t domain = mac_domain(table, "br0");

	assert_true(mac_follow(table, domain, &(struct mac_fixed){mac_of(host), port, 0, false},
		rte_rdtsc()));
}

static void forget(unsigned host)
{
	const struct mac_fixed at = {.mac = mac_of(host)};

	mac_unfollow(table, mac_domain(table, "br0"), &at);
}

// Ports 0 to 2 are in the bridge, port 3 is not.
static void reset(const struct datapath_variant *variant)
{
	fake_reset(variant);
	fake.worker.macs = mac_live(table);
	bridges[0] = (struct mac_bridge){.name = "br1",
		.linuxs = MAC_ALL_STORMS,
		.linux_id = 2,
		.ageing_s = 300,
		.max = 10,
		.is_routed = true,
		.iface = OTHER,
		.mac = {{2, 0, 0, 0, 7, 2}}};
	bridges[1] = (struct mac_bridge){.name = "br0",
		.linuxs = MAC_ALL_STORMS,
		.linux_id = 1,
		.ageing_s = 300,
		.max = 100,
		.member = members,
		.n_members = N_MEMBERS,
		.is_routed = true,
		.iface = BRIDGE,
		.mac = own};
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		struct iface settings = *fib_iface(fake.fib, i);

		fake.states[i].is_bridged = i < N_MEMBERS;
		fake.states[i].mtu = MTU;
		settings.flags = i < N_MEMBERS ? IFACE_LINUX : 0;
		fake_set(i, &settings);
		if (i < N_MEMBERS)
			members[i] = (struct mac_member){.port = i,
				.flags = MAC_LEARNS | MAC_FLOODS | MAC_OF_LINUX};
	}
	fake_set(BRIDGE, &bridge_iface);
	commit();
	for (unsigned host = 1; host < 10; host++)
		forget(host);
}

// From a host behind a port of the bridge, to the bridge.
static struct bytes frame_from(unsigned host, const char *dst)
{
	const struct wire_mac mac = mac_of(host);
	struct bytes made = frame_to(0, dst);

	memcpy(made.at, own.bytes, 6);
	memcpy(made.at + 6, mac.bytes, 6);
	return made;
}

// The same as it is sent to a host on the bridge.
static struct bytes sent_to(const struct bytes *made, unsigned host)
{
	const struct wire_mac mac = mac_of(host);
	struct bytes out = *made;

	memcpy(out.at, mac.bytes, 6);
	memcpy(out.at + 6, own.bytes, 6);
	if (out.at[12] != 0x08) {
		out.at[21]--;
		return out;
	}
	out.at[22]--;
	frame_mend(&out);
	return out;
}

static unsigned count_punted(const struct bytes *made)
{
	unsigned n = 0;

	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		for (struct rte_mbuf *m; (m = fake_punted(class)); n++)
			expect_bytes(m, made);
	return n;
}

// One frame that Linux gets, with this verdict (N_VERDICTS: any).
static void expect_linuxs(uint8_t port, const struct bytes *made, unsigned verdict)
{
	unsigned before[FAKE_PORTS];
	const uint64_t handed = verdict < N_VERDICTS ? fake.stat.handed[verdict] : 0;

	for (unsigned i = 0; i < FAKE_PORTS; i++)
		before[i] = fake.device[i].n_sent;
	fake_receive(port, made);
	fake_run();
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		assert_int_equal(fake.device[i].n_sent, before[i]);
	assert_int_equal(count_punted(made), 1);
	if (verdict < N_VERDICTS)
		assert_int_equal(fake.stat.handed[verdict], handed + 1);
}

// One frame that only this port sends, with these bytes.
static void expect_out(uint8_t in, const struct bytes *made, uint8_t port, const struct bytes *out)
{
	unsigned before[FAKE_PORTS];

	for (unsigned i = 0; i < FAKE_PORTS; i++)
		before[i] = fake.device[i].n_sent;
	fake_receive(in, made);
	fake_run();
	assert_int_equal(count_punted(made), 0);
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		assert_int_equal(fake.device[i].n_sent - before[i], i == port);
	expect_bytes(fake.device[port].sent[before[port]], out);
}

static const char *const outside[] = {"10.3.1.1", "2001:db8:3::1"};
static const char *const inside[] = {"10.50.0.2", "10.60.1.1", "2001:db8:50::2"};

static void frames_to_the_bridge_are_routed_if_their_sender_is_known(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(outside); i++) {
			const struct bytes made = frame_from(1, outside[i]);
			const struct bytes out = frame_forwarded(&made, OUTSIDE);
			uint32_t place = 0;
			struct mac_info info;

			reset(fake_variants[v]);
			expect_linuxs(0, &made, N_VERDICTS); // it learns
			tell(1, 1);
			expect_linuxs(0, &made, N_VERDICTS); // it has moved
			tell(0, 1);
			expect_out(0, &made, OUTSIDE, &out);
			assert_int_equal(fake.stat.port[0].rx_bytes, 3 * made.n);
			assert_int_equal(mac_page(table, &(struct mac_choice){0, 0}, rte_rdtsc(),
						 &place, &info, 1),
				1);
			assert_false(info.is_unseen);
		}
}

static void packets_to_neighbours_leave_by_their_port_of_now(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(inside); i++) {
			const struct bytes made = frame_to(OUTSIDE, inside[i]);
			const struct bytes out = sent_to(&made, 2);

			reset(fake_variants[v]);
			expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
			tell(1, 2);
			expect_out(OUTSIDE, &made, 1, &out);
			tell(2, 2);
			expect_out(OUTSIDE, &made, 2, &out);
			forget(2);
			expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
		}
}

// Within the bridge, too; by the port on which it came in as well.
static void hosts_of_a_bridge_reach_each_other_through_it(void **state)
{
	const struct bytes made = frame_from(1, "10.50.0.2");
	const struct bytes out = sent_to(&made, 2);

	reset(fake_variants[1]);
	tell(0, 1);
	tell(1, 2);
	members[0].flags |= MAC_ISOLATED;
	members[1].flags |= MAC_ISOLATED;
	commit();
	expect_out(0, &made, 1, &out);
	tell(0, 2);
	expect_out(0, &made, 0, &out);
}

static void linux_sees_redirects_of_a_bridge_whatever_the_port(void **state)
{
	const struct bytes made = frame_from(1, "10.50.0.2");
	struct iface settings = bridge_iface;

	settings.flags = IFACE_REDIRECTS4;
	reset(fake_variants[1]);
	fake_set(BRIDGE, &settings);
	fake.tap.redirect_cycles = UINT64_MAX / BURST_MAX;
	fake.tap.redirect_burst = 1;
	tell(0, 1);
	tell(1, 2);
	expect_linuxs(0, &made, VERDICT_REDIRECT);
	fake.tap.redirect_cycles = UINT64_MAX;
	const struct bytes out = sent_to(&made, 2);
	expect_out(0, &made, 1, &out);
}

static void what_a_port_cannot_send_is_linuxs(void **state)
{
	const struct bytes made = frame_to(OUTSIDE, "10.50.0.2");

	reset(fake_variants[1]);
	tell(1, 2);
	fake.states[1].up = false;
	expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
	fake.states[1].up = true;
	fake.states[1].is_bridged = false; // it leaves the bridge just now
	expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
	fake.states[1].is_bridged = true;
	fake.states[1].mtu = made.n - WIRE_ETHER_BYTES - 1;
	expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
	fake.states[1].mtu++;
	const struct bytes out = sent_to(&made, 2);
	expect_out(OUTSIDE, &made, 1, &out);
}

static void a_bridge_that_workers_do_not_route_on_is_linuxs(void **state)
{
	const struct bytes in = frame_from(1, "10.3.1.1"), made = frame_to(OUTSIDE, "10.50.0.2");

	reset(fake_variants[1]);
	tell(0, 1);
	tell(1, 2);
	bridges[1].is_routed = false;
	commit();
	expect_linuxs(0, &in, N_VERDICTS);
	expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
	fake.worker.macs = NULL;
	expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
}

// TTL, MTU and addresses of the router are those of the bridge, and Linux gets the frame of the
// port.
static void linux_answers_for_the_bridge(void **state)
{
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
	const struct fib_hop via = {.kind = FIB_VIA, .iface = OUTSIDE, .via = addr("10.3.0.2")};
	struct bytes made = frame_from(1, "10.3.1.1");
	struct iface settings = bridge_iface;

	reset(fake_variants[1]);
	tell(0, 1);
	tell(1, 2);
	made.at[22] = 1;
	frame_mend(&made);
	expect_linuxs(0, &made, VERDICT_TTL_EXPIRED);
	fake_route(0, "10.3.9.9/32", &local);
	made = frame_from(1, "10.3.9.9");
	expect_linuxs(0, &made, VERDICT_LOCAL);
	fake_route(0, "10.3.9.9/32", &via);
	made = frame_from(1, "10.3.1.1");
	frame_tag(&made, 0x81000005); // of a VLAN on the bridge
	expect_linuxs(0, &made, VERDICT_VLAN_UNKNOWN);
	made = frame_to(OUTSIDE, "2001:db8:50::2");
	made.n += MORE;
	made.at[19] += MORE; // payload length
	settings.mtu = made.n - WIRE_ETHER_BYTES - 1;
	fake_set(BRIDGE, &settings);
	expect_linuxs(OUTSIDE, &made, VERDICT_MTU_EXCEEDED);
}

static void settings_are_those_of_the_bridge(void **state)
{
	struct bytes made = frame_from(1, "10.3.1.1");
	const struct bytes out = frame_forwarded(&made, OUTSIDE);
	const struct fib_hop here = {.kind = FIB_CONNECTED, .iface = BRIDGE};
	const struct fib_hop there = {.kind = FIB_CONNECTED, .iface = OUTSIDE};
	struct iface settings = bridge_iface;

	reset(fake_variants[1]);
	tell(0, 1);
	settings.rpf4 = IFACE_RPF_STRICT;
	fake_set(BRIDGE, &settings);
	fake_route(0, "192.0.2.0/24", &there); // its source is not behind the bridge
	fake_receive(0, &made);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_RPF_FAILED], 1);
	fake_route(0, "192.0.2.0/24", &here);
	expect_out(0, &made, OUTSIDE, &out);
	settings.flags = IFACE_LINUX4;
	fake_set(BRIDGE, &settings);
	expect_linuxs(0, &made, VERDICT_LINUX);
	settings.flags = IFACE_DOWN;
	fake_set(BRIDGE, &settings);
	fake_receive(0, &made);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DISABLED], 1);
}

static void a_bridge_may_be_in_a_vrf(void **state)
{
	const struct fib_hop via = {.kind = FIB_VIA, .iface = 1, .via = addr("10.1.0.2")};
	const struct bytes made = frame_from(1, "10.3.1.1");
	struct iface settings = bridge_iface;

	reset(fake_variants[1]);
	fake.states[1].is_bridged = false;
	tell(0, 1);
	assert_int_equal(fib_vrf_open(fake.fib, 7, NULL), 0);
	fake_route(7, "10.3.0.0/16", &via);
	settings.vrf = 7;
	fake_set(BRIDGE, &settings);
	const struct bytes out = frame_forwarded(&made, 1);
	expect_out(0, &made, 1, &out);
	fib_vrf_close(fake.fib, 7);
}

static unsigned below(unsigned n)
{
	static uint64_t random = 88172645463325252ull;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return random % n;
}

// Hosts 1 to 3 are behind ports 0 to 2; host 4 is nowhere. Packet `number` has it as its TTL.
struct step {
	unsigned to;
	bool is_bridged;
};

static struct bytes random_frame(struct step *out)
{
	char dst[32];
	struct bytes made;

	out->to = 1 + below(5); // 5: outside
	out->is_bridged = !below(4);
	snprintf(dst, sizeof(dst), out->to == 5 ? "10.3.0.%u" : "10.50.0.%u",
		out->to == 5 ? 2 : out->to);
	made = frame_from(below(4) ? 1 : 9, dst); // 9 is not known
	if (out->is_bridged) {
		const struct wire_mac mac = mac_of(2 + below(3));

		memcpy(made.at, mac.bytes, 6);
	}
	return made;
}

// The ports of a packet that came in on port 0: -1: Linux.
static int port_of(const struct bytes *made, const struct step *step)
{
	const bool is_known = made->at[11] == 1;

	if (!is_known)
		return -1;
	if (step->is_bridged)
		return made->at[5] <= 3 ? made->at[5] - 1 : -1;
	return step->to == 5 ? OUTSIDE : step->to <= 3 ? (int)step->to - 1 : -1;
}

// Those that were bridged come first.
static void expect_in_order(unsigned port, const uint8_t number[], unsigned n)
{
	unsigned at = 0;

	assert_int_equal(fake.device[port].n_sent, n);
	for (unsigned is_routed = 0; is_routed < 2; is_routed++)
		for (unsigned i = 0; i < n; i++) {
			if ((number[i] < BRIDGED) != is_routed)
				continue;
			const struct rte_mbuf *m = fake.device[port].sent[at++];
			const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

			assert_int_equal(frame[m->data_len - 1] | (is_routed ? 0 : BRIDGED),
				number[i]);
		}
}

// Bridged, routed and left to Linux, in one burst: each goes one way.
static void mixed_bursts_are_divided(void **state)
{
	for (unsigned round = 0; round < 300; round++) {
		unsigned n_expected[FAKE_PORTS] = {0}, n_linuxs = 0, n_punted = 0;
		uint8_t number[FAKE_PORTS][BURST_MAX];
		const unsigned n = 1 + below(BURST_MAX);

		reset(fake_variants[round % 2]); // those that poll whole bursts
		for (unsigned host = 1; host <= 3; host++)
			tell(host - 1, host);
		for (unsigned i = 0; i < n; i++) {
			struct step step;
			struct bytes made = random_frame(&step);
			const int port = port_of(&made, &step);

			made.at[made.n - 1] = i; // of the payload
			fake_receive(0, &made);
			if (port < 0)
				n_linuxs++;
			else
				number[port][n_expected[port]++] =
					i | (step.is_bridged ? BRIDGED : 0);
		}
		fake_run();
		for (enum punt_class class = 0; class < N_CLASSES; class ++)
			while (fake_punted(class))
				n_punted++;
		assert_int_equal(n_punted, n_linuxs);
		for (unsigned port = 0; port < FAKE_PORTS; port++)
			expect_in_order(port, number[port], n_expected[port]);
	}
}

// A TCP packet of a guest, to be cut into segments of 300 bytes.
static void receive_long(uint8_t port, struct bytes made)
{
	made.at[14 + 3] = (uint8_t)(LONG - 14);
	made.at[14 + 2] = (LONG - 14) >> 8;
	made.at[14 + 6] = made.at[14 + 7] = 0; // no fragment
	made.at[14 + 9] = WIRE_PROTO_TCP;
	for (unsigned i = 34; i < LONG; i++)
		made.at[i] = i;
	made.at[34 + 12] = WIRE_TCP_BYTES / 4 << 4;
	made.at[34 + 13] = 0x10; // ACK
	made.n = LONG;
	frame_mend(&made);
	struct rte_mbuf *m = fake_receive(port, &made);

	m->ol_flags = RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE;
	m->tso_segsz = 300;
}

// From a guest in the bridge, and to a port of it: shorter than the MTU of the port are its parts.
static void what_guests_leave_open_is_finished(void **state)
{
	static const char *const dst[] = {"10.3.1.1", "10.50.0.2"};
	static const uint8_t port[] = {OUTSIDE, 1};

	for (unsigned i = 0; i < ARRAY_LEN(dst); i++) {
		reset(fake_variants[1]);
		tell(0, 1);
		tell(1, 2);
		fake.states[0].has_offloads = true;
		fake.states[OUTSIDE].takes = fake.states[1].takes = 0;
		fake.states[1].mtu = LONG / 2;
		receive_long(0, frame_from(1, dst[i]));
		fake_run();
		assert_int_equal(fake.device[port[i]].n_sent, 4);
		for (unsigned k = 0; k < 4; k++)
			assert_false(offload_is_open(fake.device[port[i]].sent[k]));
		fake.states[0].has_offloads = false;
	}
	fake.states[1].mtu = 200;
	fake.states[0].has_offloads = true;
	receive_long(0, frame_from(1, dst[1]));
	fake_run();
	assert_int_equal(fake.device[1].n_sent, 4);
	assert_true(fake.stat.handed[VERDICT_BRIDGE_UNKNOWN] > 0);
	fake.states[0].has_offloads = false;
	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		while (fake_punted(class))
			;
}

static void trace(uint8_t port, const struct bytes *made, struct trace *out)
{
	const struct trace_input input = {.like = &fake.worker,
		.port = port,
		.room = FAKE_ROOM,
		.frame = made->at,
		.n = made->n};

	assert_int_equal(trace_run(&input, out, NULL), 0);
}

static void a_trace_shows_both_ways(void **state)
{
	const struct bytes to_bridge = frame_from(1, "10.50.0.2"),
			   made = frame_to(OUTSIDE, "10.50.0.4");
	struct trace seen;

	reset(fake_variants[1]);
	tell(0, 1);
	tell(1, 2);
	trace(0, &to_bridge, &seen);
	assert_int_equal(seen.bridge, TRACE_NOT_BRIDGED);
	assert_int_equal(seen.iif, BRIDGE);
	assert_int_equal(seen.n_ends, 1);
	assert_int_equal(seen.end[0].kind, TRACE_SENT);
	assert_int_equal(seen.end[0].port, 1);
	datapath_trace_free(&seen);
	trace(OUTSIDE, &made, &seen);
	assert_int_equal(seen.n_ends, 1);
	assert_int_equal(seen.end[0].kind, TRACE_PUNTED);
	assert_int_equal(seen.end[0].verdict, VERDICT_BRIDGE_UNKNOWN);
	assert_string_equal(datapath_step_name(seen.end[0].step), "bridge_out");
	datapath_trace_free(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_to_the_bridge_are_routed_if_their_sender_is_known),
		cmocka_unit_test(packets_to_neighbours_leave_by_their_port_of_now),
		cmocka_unit_test(hosts_of_a_bridge_reach_each_other_through_it),
		cmocka_unit_test(linux_sees_redirects_of_a_bridge_whatever_the_port),
		cmocka_unit_test(what_a_port_cannot_send_is_linuxs),
		cmocka_unit_test(a_bridge_that_workers_do_not_route_on_is_linuxs),
		cmocka_unit_test(linux_answers_for_the_bridge),
		cmocka_unit_test(settings_are_those_of_the_bridge),
		cmocka_unit_test(a_bridge_may_be_in_a_vrf),
		cmocka_unit_test(mixed_bursts_are_divided),
		cmocka_unit_test(what_guests_leave_open_is_finished),
		cmocka_unit_test(a_trace_shows_both_ways),
	};

	return cmocka_run_group_tests(tests, open_bridge, close_bridge);
}
