// VXLAN: the bytes that are sent, which frames go to which remote ends, what is taken out of
// received packets, and why it is not.
#include "datapath/vxlans.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <string.h>

static void a_frame_to_a_known_address_has_these_bytes(void **state)
{
	const struct bytes known = frame_between(1, 50), answer = frame_between(50, 1);

	for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++) {
		const struct bytes expected = wrapped(&answer, 1, is_ip6);
		const struct bytes arrived = arriving(&known, 1, is_ip6);

		reset(is_ip6, IFACE_TUNNEL_ZERO_CHECKSUM);
		receive(UNDER, &arrived); // 50 is learnt behind remote end 1
		const unsigned at_hosts = n_sent(HOSTS);
		receive(HOSTS, &answer);
		assert_int_equal(n_sent(UNDER), 1);
		assert_in_range(expect_wrapped(UNDER, 0, expected, is_ip6), 49152, 65535);
		receive(UNDER, &arrived); // 1 is learnt by now
		assert_int_equal(n_sent(HOSTS), at_hosts + 1);
		expect_bytes(fake.device[HOSTS].sent[at_hosts], &known);
		assert_int_equal(fake.stat.tunnel[DEVICE].rx_packets, 2);
	}
}

static void floods_go_to_all_ports_and_remote_ends_but_not_between_these(void **state)
{
	const struct bytes to_all = frame(broadcast, 1), unknown = frame_between(NOBODY, 1);
	const struct bytes arrived = arriving(&to_all, 0, false);

	reset(false, 0);
	receive(HOSTS, &to_all);
	assert_int_equal(n_sent(HOSTS), 0);
	assert_int_equal(n_sent(OTHERS), 1);
	expect_bytes(fake.device[OTHERS].sent[0], &to_all);
	assert_int_equal(n_sent(UNDER), 2);
	expect_wrapped(UNDER, 0, wrapped(&to_all, 0, false), false);
	expect_wrapped(UNDER, 1, wrapped(&to_all, 1, false), false);
	receive(HOSTS, &unknown);
	assert_int_equal(n_sent(UNDER), 4);
	receive(UNDER, &arrived);
	assert_int_equal(n_sent(UNDER), 4);
	assert_int_equal(n_sent(HOSTS), 1);
	assert_int_equal(n_sent(OTHERS), 3);
	members[2].flags &= ~MAC_FLOODS;
	commit();
	receive(HOSTS, &unknown);
	assert_int_equal(n_sent(UNDER), 4);
}

static void the_last_remote_end_gets_the_frame_itself(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset(false, 0);
	bridge.n_members = 2;
	members[1] = members[2];
	commit();
	const uint64_t copied = fake.stat.port[HOSTS].copied_packets;
	receive(HOSTS, &to_all);
	assert_int_equal(n_sent(UNDER), 2);
	assert_int_equal(fake.stat.port[HOSTS].copied_packets - copied, 1);
	expect_wrapped(UNDER, 1, wrapped(&to_all, 1, false), false);
	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	fake.worker.tap = NULL;
	assert_int_equal(mac_set_flood(table, MEMBER, NULL, 0, NULL), 0);
	fake.states[HOSTS].is_bridged = true;
	receive(HOSTS, &to_all);
	expect_verdict(VERDICT_BRIDGE_NO_PORT);
}

static void an_address_moves_between_ports_and_remote_ends(void **state)
{
	const struct bytes to_it = frame_between(50, 1), from_it = frame_between(1, 50);
	const struct bytes first = arriving(&from_it, 0, false);
	const struct bytes second = arriving(&from_it, 1, false);

	reset(false, 0);
	receive(UNDER, &first);
	receive(HOSTS, &to_it);
	expect_wrapped(UNDER, 0, wrapped(&to_it, 0, false), false);
	receive(UNDER, &second);
	receive(HOSTS, &to_it);
	expect_wrapped(UNDER, 1, wrapped(&to_it, 1, false), false);
	receive(OTHERS, &from_it);
	const unsigned at_others = n_sent(OTHERS);
	receive(HOSTS, &to_it);
	assert_int_equal(n_sent(UNDER), 2);
	assert_int_equal(n_sent(OTHERS), at_others + 1);
}

static uint16_t udp_sum(const struct rte_mbuf *m, bool is_ip6)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	const unsigned at = is_ip6 ? 54 : 34, n = m->pkt_len - at;
	const uint64_t pseudo =
		is_ip6 ? wire_sum_pseudo6((const void *)(bytes + 14), WIRE_PROTO_UDP, n)
		       : wire_sum_pseudo4((const void *)(bytes + 14), WIRE_PROTO_UDP, n);

	return wire_sum_finish_be(wire_sum(pseudo, bytes + at, n));
}

// What is sent with a checksum is received by the other end, and a wrong one is not.
static void checksums_are_right_and_are_verified(void **state)
{
	const struct bytes inner = frame_between(NOBODY, 1);

	for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++) {
		struct bytes arrived = arriving(&inner, 0, is_ip6);
		const unsigned at = is_ip6 ? 60 : 40;

		reset(is_ip6, IFACE_TUNNEL_CHECKSUM);
		receive(HOSTS, &inner);
		const struct rte_mbuf *m = fake.device[UNDER].sent[0];
		assert_int_not_equal(load16(rte_pktmbuf_mtod(m, uint8_t *) + at), 0);
		assert_int_equal(udp_sum(m, is_ip6), 0);
		// The sum of two addresses does not depend on their order.
		const uint8_t *sent = rte_pktmbuf_mtod(m, uint8_t *);
		memcpy(arrived.at + at, sent + at, 2);
		memcpy(arrived.at + at - 6, sent + at - 6, 2);
		receive(UNDER, &arrived);
		assert_int_equal(fake.stat.verdict[VERDICT_TUNNEL_CHECKSUM],
			stat_before.verdict[VERDICT_TUNNEL_CHECKSUM]);
		arrived.at[at]++;
		receive(UNDER, &arrived);
		expect_verdict(VERDICT_TUNNEL_CHECKSUM);
		arrived.at[at] = arrived.at[at + 1] = 0;
		receive(UNDER, &arrived);
		assert_int_equal(fake.stat.verdict[VERDICT_TUNNEL_CHECKSUM] -
					 stat_before.verdict[VERDICT_TUNNEL_CHECKSUM],
			is_ip6);
	}
}

static void wrong_packets_have_names(void **state)
{
	const struct bytes inner = frame_between(NOBODY, 1);
	const struct bytes right = arriving(&inner, 0, false);
	struct bytes wrong = right;

	reset(false, 0);
	wrong.at[OUTER4 - 8] = 0x0c;
	expect_refused(&wrong, VERDICT_TUNNEL_FLAGS);
	wrong = right;
	wrong.at[OUTER4 - 1] = 1;
	expect_refused(&wrong, VERDICT_TUNNEL_FLAGS);
	wrong = right;
	wrong.at[OUTER4 - 2]++;
	expect_refused(&wrong, VERDICT_TUNNEL_UNKNOWN);
	wrong = right;
	wrong.n = OUTER4 + 13;
	set_length(&wrong, false);
	expect_refused(&wrong, VERDICT_TUNNEL_SHORT);
	wrong = right;
	wrong.at[39]++; // UDP length beyond the packet
	expect_refused(&wrong, VERDICT_TUNNEL_SHORT);
	wrong = right;
	memset(wrong.at + OUTER4 + 6, 0xff, 6); // from a group
	expect_refused(&wrong, VERDICT_BRIDGE_SOURCE);
	device.flags = IFACE_DOWN;
	fake_set(DEVICE, &device);
	expect_refused(&right, VERDICT_TUNNEL_UNKNOWN);
	device.flags = 0;
	device.tunnel.flags = IFACE_TUNNEL_ONLY_LOCAL;
	device.tunnel.local = addr("10.2.0.77");
	fake_set(DEVICE, &device);
	expect_refused(&right, VERDICT_TUNNEL_UNKNOWN);
}

static struct bytes packet_to(const char *to, uint8_t tos)
{
	struct bytes made = frame_to(HOSTS, to);

	memcpy(made.at, mac_of(NOBODY).bytes, 6);
	memcpy(made.at + 6, mac_of(1).bytes, 6);
	made.at[15] = tos;
	frame_mend(&made);
	return made;
}

static void congestion_is_passed_on_or_has_a_name(void **state)
{
	struct bytes inner = packet_to("10.9.0.1", 0), arrived, cut = {.n = 14 + 19};

	reset(false, IFACE_TUNNEL_TOS);
	memcpy(cut.at, inner.at, cut.n);
	arrived = arriving(&cut, 0, false);
	expect_refused(&arrived, VERDICT_TUNNEL_SHORT);
	arrived = arriving(&inner, 0, false);
	arrived.at[15] = 3;
	frame_mend(&arrived);
	expect_refused(&arrived, VERDICT_TUNNEL_ECN);
	inner = packet_to("10.9.0.1", 0xb9);
	arrived = arriving(&inner, 0, false);
	arrived.at[15] = 3;
	frame_mend(&arrived);
	receive(UNDER, &arrived);
	inner.at[15] = 0xbb;
	frame_mend(&inner);
	expect_bytes(fake.device[HOSTS].sent[0], &inner);
	receive(HOSTS, &inner); // its DSCP and ECN are those of the outer packet
	assert_int_equal(rte_pktmbuf_mtod(fake.device[UNDER].sent[0], uint8_t *)[15], 0xbb);
	reset(false, IFACE_TUNNEL_TOS | IFACE_TUNNEL_LINUX);
	receive(UNDER, &arrived);
	receive(HOSTS, &inner); // a device of Linux says ECT(0) instead
	assert_int_equal(rte_pktmbuf_mtod(fake.device[UNDER].sent[0], uint8_t *)[15], 0xba);
}

// The outer header of the frame that is sent to the only one that gets floods.
static const uint8_t *outer_of(const struct bytes *made)
{
	set_ends(false, 1);
	receive(HOSTS, made);
	return rte_pktmbuf_mtod(fake.device[UNDER].sent[n_sent(UNDER) - 1], uint8_t *) + 14;
}

static void outer_headers_take_what_is_behind_tags_but_no_df(void **state)
{
	struct bytes inner = packet_to("10.9.0.1", 0xb8), six = packet_to("2001:db8:9::1", 0);

	reset(false, IFACE_TUNNEL_TOS | IFACE_TUNNEL_INNER_DF);
	inner.at[20] = 0x40;
	frame_mend(&inner);
	assert_int_equal(outer_of(&inner)[6], 0x40);
	frame_tag(&inner, 0x81000005);
	frame_tag(&inner, 0x88a80006);
	assert_int_equal(outer_of(&inner)[1], 0xb8);
	assert_int_equal(outer_of(&inner)[6], 0);
	six.at[14] = 0x60;
	six.at[15] = 0;
	assert_int_equal(outer_of(&six)[6], 0x40);
}

static void what_cannot_be_sent_has_a_name(void **state)
{
	struct bytes made = frame_between(50, 1);
	const struct bytes from_it = frame_between(NOBODY, 50);
	const struct bytes arrived = arriving(&from_it, 0, false);

	reset(false, 0);
	receive(UNDER, &arrived);
	made.n = MTU - OUTER4 + 15; // one more than there is space for
	receive(HOSTS, &made);
	expect_verdict(VERDICT_BRIDGE_MTU);
	made.n--;
	receive(HOSTS, &made);
	expect_verdict(VERDICT_FORWARD);
	fake.states[UNDER].up = false;
	receive(HOSTS, &made);
	expect_verdict(VERDICT_PORT_DOWN);
	fake.states[UNDER].up = true;
	fib_iface_delete(fake.fib, DEVICE);
	receive(HOSTS, &made);
	expect_verdict(VERDICT_TUNNEL_NO_WAY);
}

// Flows to a group of remote ends, or over several next hops, use all of them, and each only one.
static void flows_are_spread_over_remote_ends_and_next_hops(void **state)
{
	enum { FLOWS = 64 };
	const struct fib_member hops[] = {
		{{.kind = FIB_VIA, .iface = UNDER, .via = addr("10.2.0.2")}, 1},
		{{.kind = FIB_VIA, .iface = SECOND, .via = addr("10.3.0.2")}, 1}};
	struct fib_hop both;
	uint32_t group;

	reset(false, 0);
	assert_int_equal(fib_group(fake.fib, hops, 2, &both, NULL), 0);
	fake_route(0, "10.2.0.9/32", &both);
	assert_int_equal(fib_vtep_hold_group(fake.fib, vtep, 2, &group, NULL), 0);
	const struct mac_remote is = {.member = MEMBER, .vtep = group};
	assert_int_equal(mac_remote_hold(table, &is, &group, NULL), 0);
	assert_int_equal(mac_set_flood(table, MEMBER, &group, 1, NULL), 0);
	for (unsigned i = 0; i < 2 * FLOWS; i++) {
		struct bytes made = packet_to("10.9.0.1", 0);

		made.at[35] += i / 2; // UDP source port
		fake_receive(HOSTS, &made);
	}
	fake_run();
	assert_int_equal(n_sent(UNDER) + n_sent(SECOND), 2 * FLOWS);
	assert_true(n_sent(SECOND) > FLOWS / 8); // a quarter of them, ..
	assert_true(n_sent(SECOND) < FLOWS);
	assert_int_equal(n_sent(UNDER) % 2 + n_sent(SECOND) % 2, 0); // .. whole flows
	unsigned to_second_end = 0;
	for (unsigned k = 0; k < n_sent(UNDER); k++)
		to_second_end += rte_pktmbuf_mtod(fake.device[UNDER].sent[k], uint8_t *)[33] == 10;
	assert_true(to_second_end > FLOWS / 2 && to_second_end < 2 * FLOWS);
}

static void linux_gets_what_it_is_to_decide_as_it_was_received(void **state)
{
	const struct bytes inner = frame_between(1, 50);
	const struct bytes arrived = arriving(&inner, 0, false);

	reset_linux(MAC_ALL_STORMS);
	follow(1, HOSTS);
	receive(UNDER, &arrived); // its sender is not known
	const struct rte_mbuf *punted = fake_punted(CLASS_HOST);
	assert_non_null(punted);
	expect_bytes(punted, &arrived);
	follow(50, MAC_AT_REMOTE + remote[1]);
	receive(UNDER, &arrived); // nor that it is behind this end
	expect_bytes(fake_punted(CLASS_HOST), &arrived);
	follow(50, MAC_AT_REMOTE + remote[0]);
	receive(UNDER, &arrived);
	assert_null(fake_punted(CLASS_HOST));
	assert_int_equal(n_sent(HOSTS), 1);
	expect_bytes(fake.device[HOSTS].sent[0], &inner);
	const struct bytes answer = frame_between(50, 1);
	receive(HOSTS, &answer);
	expect_wrapped(UNDER, 0, wrapped(&answer, 0, false), false);
	struct bytes longer = answer;
	longer.n = MTU - OUTER4 + 15;
	receive(HOSTS, &longer); // Linux answers that it is too long
	assert_int_equal(n_sent(UNDER), 1);
	const struct bytes to_all = frame(broadcast, 50);
	const struct bytes flooded = arriving(&to_all, 0, false);
	receive(UNDER, &flooded);
	expect_bytes(fake_punted(CLASS_HOST), &flooded);
}

// Linux verifies the outer checksum of what it is left, also where congestion is noted within.
static void a_noted_congestion_keeps_the_outer_checksum_right(void **state)
{
	static const uint8_t ip6[] = {0x86, 0xdd, 0x60, 0x20, 0, 0, 0, 0, 59, 64};
	struct bytes inner = frame_between(1, 50), arrived;
	struct wire_udp *udp;

	inner.n = 14 + WIRE_IP6_BYTES;
	memset(inner.at + 14, 7, WIRE_IP6_BYTES);
	memcpy(inner.at + 12, ip6, sizeof(ip6));
	arrived = arriving(&inner, 0, false);
	arrived.at[15] = 3; // congestion experienced
	frame_mend(&arrived);
	udp = (void *)(arrived.at + 34);
	const uint32_t n = arrived.n - 34;
	const uint64_t pseudo =
		wire_sum_pseudo4((const void *)(arrived.at + 14), WIRE_PROTO_UDP, n);
	udp->checksum_be = wire_sum_finish_be(wire_sum(pseudo, arrived.at + 34, n));
	reset_linux(MAC_ALL_STORMS);
	receive(UNDER, &arrived);
	const struct rte_mbuf *punted = fake_punted(CLASS_HOST);
	assert_non_null(punted);
	assert_int_equal(rte_pktmbuf_mtod(punted, const uint8_t *)[OUTER4 + 15], 0x30);
	assert_int_equal(udp_sum(punted, false), 0);
}

// A frame with a tag is as it was, also if its outer packet has met congestion.
static void a_frame_with_a_tag_is_not_changed(void **state)
{
	struct bytes tagged = frame_between(1, 50), arrived;

	reset_linux(0);
	follow(1, HOSTS);
	follow(50, MAC_AT_REMOTE + remote[0]);
	frame_tag(&tagged, 0x81000005);
	arrived = arriving(&tagged, 0, false);
	arrived.at[15] = 3;
	frame_mend(&arrived);
	receive(UNDER, &arrived);
	assert_int_equal(n_sent(HOSTS), 1);
	expect_bytes(fake.device[HOSTS].sent[0], &tagged);
}

// Those of an address that the device has only behind another remote end.
static void linux_gets_what_its_device_drops(void **state)
{
	const struct mac_fixed pinned = {mac_of(50), MAC_AT_REMOTE + remote[0], 0, true};
	struct bytes arrived;
	const struct bytes to_all = frame(broadcast, 50);

	reset_linux(0);
	device.tunnel.flags = IFACE_TUNNEL_LINUX;
	fake_set(DEVICE, &device);
	follow(1, HOSTS);
	follow(50, MAC_AT_REMOTE + remote[0]);
	assert_true(mac_follow(table, 1, &pinned, rte_rdtsc()));
	arrived = arriving(&to_all, 1, false);
	receive(UNDER, &arrived);
	expect_bytes(fake_punted(CLASS_HOST), &arrived);
	assert_int_equal(n_sent(HOSTS), 0);
	arrived = arriving(&to_all, 0, false);
	receive(UNDER, &arrived);
	assert_int_equal(n_sent(HOSTS), 1);
}

static void linux_is_told_of_flooded_senders_and_their_remote_ends(void **state)
{
	const struct bytes inner = frame(broadcast, 50);
	const struct bytes arrived = arriving(&inner, 1, false);

	reset_linux(0);
	receive(UNDER, &arrived);
	assert_int_equal(n_sent(HOSTS), 1);
	assert_int_equal(n_sent(OTHERS), 1);
	assert_int_equal(n_sent(UNDER), 0);
	assert_int_equal(told.port, MEMBER);
	assert_int_equal(told.end.family, 4);
	assert_int_equal(told.end.bytes[3], 10);
	assert_memory_equal(told.mac.bytes, mac_of(50).bytes, 6);
}

// A remote end on the link whose MAC address is not known: Linux asks for it, and keeps the frame.
static void linux_floods_what_would_wait_or_is_too_long(void **state)
{
	const struct bytes unknown = frame_between(NOBODY, 1), to_all = frame(broadcast, 1);
	const struct fib_hop on_link = {.kind = FIB_CONNECTED, .iface = UNDER};
	const struct wire_addr end = addr("10.60.0.9");
	struct mac_remote waiting = {.member = MEMBER};
	uint32_t list[2];

	fake_route(0, "10.60.0.0/16", &on_link);
	reset_linux(0);
	follow(1, HOSTS);
	assert_int_equal(fib_vtep_hold(fake.fib, 0, &end, &waiting.vtep, NULL), 0);
	assert_int_equal(mac_remote_hold(table, &waiting, &list[1], NULL), 0);
	list[0] = remote[0];
	assert_int_equal(mac_set_flood(table, MEMBER, list, 2, NULL), 0);
	receive(HOSTS, &unknown);
	assert_int_equal(n_sent(OTHERS) + n_sent(UNDER), 0);
	assert_int_equal(fake.stat.verdict[VERDICT_NEIGHBOUR_UNRESOLVED],
		stat_before.verdict[VERDICT_NEIGHBOUR_UNRESOLVED]);
	assert_int_equal(fake.stat.port[HOSTS].copied_packets,
		stat_before.port[HOSTS].copied_packets);
	receive(HOSTS, &to_all); // of these it floods none between ports that are served
	expect_verdict(VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(n_sent(OTHERS), 1);
	assert_int_equal(n_sent(UNDER), 1);
	const struct wire_mac mac = mac_of(99);
	assert_int_equal(fib_neighbour_set(fake.fib, UNDER, &end, &mac, NULL), 0);
	receive(HOSTS, &unknown);
	assert_int_equal(n_sent(OTHERS), 2);
	assert_int_equal(n_sent(UNDER), 3);
	struct bytes longer = unknown;
	longer.n = MTU - OUTER4 + 15;
	receive(HOSTS, &longer); // Linux answers that it is too long
	assert_int_equal(n_sent(OTHERS), 2);
}

// What is routed to a bridge leaves by VXLAN, and what comes by it to the bridge is routed.
static void packets_are_routed_into_and_out_of_vxlan(void **state)
{
	const struct wire_addr there = addr("10.50.0.50");
	const struct wire_mac mac = mac_of(50);
	struct bytes in = frame_to(SECOND, "10.50.0.50"), inner = in;

	reset_linux(MAC_ALL_STORMS);
	assert_int_equal(fib_neighbour_set(fake.fib, BRIDGE, &there, &mac, NULL), 0);
	follow(50, MAC_AT_REMOTE + remote[0]);
	receive(SECOND, &in);
	memcpy(inner.at, mac.bytes, 6);
	memcpy(inner.at + 6, own.bytes, 6);
	inner.at[22]--;
	frame_mend(&inner);
	assert_int_equal(n_sent(UNDER), 1);
	expect_wrapped(UNDER, 0, wrapped(&inner, 0, false), false);
	struct bytes back = frame_to(UNDER, "10.3.0.7");
	memcpy(back.at, own.bytes, 6);
	memcpy(back.at + 6, mac.bytes, 6);
	const struct bytes arrived = arriving(&back, 0, false);
	receive(UNDER, &arrived);
	const struct bytes expected = frame_forwarded(&back, SECOND);
	assert_int_equal(n_sent(SECOND), 1);
	expect_bytes(fake.device[SECOND].sent[0], &expected);
	in.n = MTU - OUTER4 + 15; // Linux answers that it is too long
	in.at[16] = (in.n - 14) >> 8;
	in.at[17] = in.n - 14;
	in.at[20] = 0x40;
	frame_mend(&in);
	receive(SECOND, &in);
	assert_int_equal(n_sent(UNDER), 1);
	assert_int_equal(fake.stat.handed[VERDICT_BRIDGE_UNKNOWN] -
				 stat_before.handed[VERDICT_BRIDGE_UNKNOWN],
		1);
}

// Fragments are made in a burst of their own, in which the others leave by VXLAN as they would
// have.
static void frames_beside_fragments_leave_by_vxlan(void **state)
{
	const struct wire_addr there = addr("10.50.0.50"), via = addr("10.2.0.2");
	const struct fib_hop hop = {.kind = FIB_VIA, .iface = UNDER, .via = via};
	const struct wire_mac mac = mac_of(50);
	struct bytes in = frame_to(SECOND, "10.50.0.50"), inner = in, longer = in;
	struct iface under;

	reset_linux(MAC_ALL_STORMS);
	under = *fib_iface(fake.fib, UNDER);
	under.mtu = 200;
	fake_set(UNDER, &under);
	assert_int_equal(fib_neighbour_set(fake.fib, BRIDGE, &there, &mac, NULL), 0);
	follow(50, MAC_AT_REMOTE + remote[0]);
	fake_route(0, "10.61.0.0/16", &hop);
	longer = frame_to(SECOND, "10.61.0.1");
	longer.n = 14 + 300; // two fragments
	longer.at[16] = 300 >> 8;
	longer.at[17] = 300 & 0xff;
	longer.at[20] = 0;
	frame_mend(&longer);
	memcpy(inner.at, mac.bytes, 6);
	memcpy(inner.at + 6, own.bytes, 6);
	inner.at[22]--;
	frame_mend(&inner);
	fake_receive(SECOND, &in);
	fake_receive(SECOND, &longer);
	fake_receive(SECOND, &in);
	fake_run();
	assert_int_equal(n_sent(UNDER), 4);
	expect_wrapped(UNDER, 0, wrapped(&inner, 0, false), false);
	expect_wrapped(UNDER, 3, wrapped(&inner, 0, false), false);
	for (unsigned i = 1; i < 3; i++) {
		const uint8_t *sent = rte_pktmbuf_mtod(fake.device[UNDER].sent[i], uint8_t *);

		assert_int_equal(sent[23], longer.at[23]); // no header in front
		assert_memory_equal(sent + 30, longer.at + 30, 4);
	}
}

// A device in no bridge, with one remote end, needs no address of its neighbours.
static void a_device_alone_sends_all_to_its_only_end(void **state)
{
	const struct fib_hop via = {.kind = FIB_VIA, .iface = DEVICE, .via = addr("10.60.0.2")};
	const struct wire_mac mac = mac_of(60);
	struct bytes in = frame_to(SECOND, "10.61.0.1"), inner = in;

	reset_linux(MAC_ALL_STORMS);
	device.mac = own;
	fake_set(DEVICE, &device);
	bridge.n_members = 1;
	bridge.member = &members[2];
	bridge.iface = DEVICE;
	commit();
	assert_int_equal(mac_set_flood(table, MEMBER, remote, 1, NULL), 0);
	assert_int_equal(fib_neighbour_set(fake.fib, DEVICE, &via.via, &mac, NULL), 0);
	fake_route(0, "10.61.0.0/16", &via);
	receive(SECOND, &in);
	memcpy(inner.at, mac.bytes, 6);
	memcpy(inner.at + 6, own.bytes, 6);
	inner.at[22]--;
	frame_mend(&inner);
	assert_int_equal(n_sent(UNDER), 1);
	expect_wrapped(UNDER, 0, wrapped(&inner, 0, false), false);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_vxlan, close_vxlan)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_frame_to_a_known_address_has_these_bytes),
		TEST(floods_go_to_all_ports_and_remote_ends_but_not_between_these),
		TEST(the_last_remote_end_gets_the_frame_itself),
		TEST(an_address_moves_between_ports_and_remote_ends),
		TEST(checksums_are_right_and_are_verified),
		TEST(wrong_packets_have_names),
		TEST(congestion_is_passed_on_or_has_a_name),
		TEST(outer_headers_take_what_is_behind_tags_but_no_df),
		TEST(what_cannot_be_sent_has_a_name),
		TEST(flows_are_spread_over_remote_ends_and_next_hops),
		TEST(linux_gets_what_it_is_to_decide_as_it_was_received),
		TEST(a_noted_congestion_keeps_the_outer_checksum_right),
		TEST(a_frame_with_a_tag_is_not_changed),
		TEST(linux_gets_what_its_device_drops),
		TEST(linux_is_told_of_flooded_senders_and_their_remote_ends),
		TEST(linux_floods_what_would_wait_or_is_too_long),
		TEST(packets_are_routed_into_and_out_of_vxlan),
		TEST(frames_beside_fragments_leave_by_vxlan),
		TEST(a_device_alone_sends_all_to_its_only_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
