// Frames between the ports of a bridge of Linux that filters by VLAN: sent with the right tag, or
// punted as they came.
#include "datapath/dice.h"
#include "datapath/fake.h"

#include "mac/mac.h"
#include "wire/headers.h"

#include <rte_cycles.h>

enum { IN = 0, OUT = 2, LENGTH = 100, MTU = 1500, FIRST = 1, SECOND = 2, NOBODY = 99 };
enum { Q = WIRE_ETHERTYPE_VLAN, AD = WIRE_ETHERTYPE_QINQ };
#define TAG(type, tci) ((uint32_t)(type) << 16 | (uint32_t)(tci))

static struct mac_table *table;
static struct mac_member members[FAKE_PORTS];
static struct mac_vlans vlans[FAKE_PORTS];
static struct mac_bridge bridge;
static unsigned n_before[FAKE_PORTS]; // sent before the frames of now

static struct wire_mac mac_of(unsigned host)
{
	return (struct wire_mac){{2, 0, 0, 0, 0, host}};
}

static void commit(void)
{
	struct mac_pending *pending;

	bridge.member = members;
	assert_int_equal(mac_prepare(table, &bridge, 1, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
}

static int open_bridge(void **state)
{
	int err = fake_open(state);
	struct mac_settings settings = {.hz = rte_get_tsc_hz(), .n_workers = 1, .rcu = fake.rcu};

	settings.hz = settings.hz ? settings.hz : 1000000000; // no EAL
	return err ? err : mac_open(&table, &settings, NULL);
}

static int close_bridge(void **state)
{
	mac_close(table);
	return fake_close(state);
}

enum mode { ABSENT, TAGGED, UNTAGGED };

static void set_vlan(unsigned port, uint16_t vid, enum mode mode)
{
	const uint64_t bit = 1ull << vid % 64;

	vlans[port].has[vid / 64] &= ~bit;
	vlans[port].untagged[vid / 64] &= ~bit;
	if (mode != ABSENT)
		vlans[port].has[vid / 64] |= bit;
	if (mode == UNTAGGED)
		vlans[port].untagged[vid / 64] |= bit;
}

// All ports in the bridge, with VLAN 1 only, as Linux has it; no addresses.
static void reset(void)
{
	struct mac_pending *pending;

	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	bridge = (struct mac_bridge){.name = "br0",
		.linuxs = MAC_ALL_STORMS,
		.linux_id = 7,
		.ageing_s = 300,
		.max = 100,
		.vlan_tag = Q,
		.n_members = FAKE_PORTS};
	memset(vlans, 0, sizeof(vlans));
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		struct iface settings = *fib_iface(fake.fib, i);

		set_vlan(i, 1, UNTAGGED);
		vlans[i].pvid = 1;
		members[i] = (struct mac_member){.port = i,
			.flags = MAC_LEARNS | MAC_OF_LINUX,
			.vlans = &vlans[i]};
		fake.states[i].is_bridged = true;
		fake.states[i].mtu = MTU;
		settings.flags = IFACE_LINUX;
		fake_set(i, &settings);
	}
	assert_int_equal(mac_prepare(table, NULL, 0, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
	commit();
}

// As Linux tells it.
static void tell(unsigned port, unsigned host, uint16_t vid)
{
	assert_true(mac_follow(table, 1, &(struct mac_fixed){mac_of(host), port, vid, false},
		rte_rdtsc()));
}

static struct bytes frame_between(unsigned to, unsigned from)
{
	const struct wire_mac dst = mac_of(to), src = mac_of(from);
	struct bytes made = {.n = LENGTH};

	memcpy(made.at, dst.bytes, 6);
	memcpy(made.at + 6, src.bytes, 6);
	made.at[12] = 0x88;
	made.at[13] = 0xb5;
	for (unsigned i = 14; i < LENGTH; i++)
		made.at[i] = i;
	return made;
}

// Tag: EtherType << 16 | TCI; 0: none.
static struct bytes tagged(uint32_t tag, unsigned to, unsigned from)
{
	struct bytes made = frame_between(to, from);

	if (tag)
		frame_tag(&made, tag);
	return made;
}

static void receive(unsigned port, const struct bytes *made)
{
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		n_before[i] = fake.device[i].n_sent;
	fake_receive(port, made);
	fake_run();
}

static unsigned count_punted(const struct bytes *made)
{
	unsigned n = 0;

	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		for (struct rte_mbuf *m; (m = fake_punted(class)); n++)
			expect_bytes(m, made);
	return n;
}

static void expect_at(unsigned port, const struct bytes *made)
{
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		assert_int_equal(fake.device[i].n_sent - n_before[i], i == port);
	if (port < FAKE_PORTS)
		expect_bytes(fake.device[port].sent[n_before[port]], made);
	assert_int_equal(count_punted(made), port == NOBODY);
}

static void frames_leave_with_the_tag_that_their_port_sends(void **state)
{
	static const struct {
		uint32_t in;
		enum mode out;
		uint32_t sent;
	} rows[] = {
		{0, UNTAGGED, 0},
		{0, TAGGED, TAG(Q, 5)},
		{TAG(Q, 5), UNTAGGED, 0},
		{TAG(Q, 5), TAGGED, TAG(Q, 5)},
		{TAG(Q, 0xf005), TAGGED, TAG(Q, 0xf005)}, // priority, DEI
		{TAG(Q, 0xb000), TAGGED, TAG(Q, 0xb005)}, // VLAN 0
		{TAG(Q, 0xb000), UNTAGGED, 0},
	};

	reset();
	set_vlan(IN, 5, UNTAGGED);
	vlans[IN].pvid = 5;
	commit();
	tell(IN, FIRST, 5);
	tell(OUT, SECOND, 5);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct bytes made = tagged(rows[i].in, SECOND, FIRST);
		const struct bytes sent = tagged(rows[i].sent, SECOND, FIRST);

		set_vlan(OUT, 5, rows[i].out);
		commit();
		receive(IN, &made);
		expect_at(OUT, &sent);
	}
}

static void tags_of_another_type_are_part_of_the_packet(void **state)
{
	struct bytes made = tagged(TAG(AD, 7), SECOND, FIRST), sent = made;

	reset();
	set_vlan(OUT, 1, TAGGED);
	commit();
	tell(IN, FIRST, 1);
	tell(OUT, SECOND, 1);
	frame_tag(&sent, TAG(Q, 1));
	receive(IN, &made);
	expect_at(OUT, &sent);
	set_vlan(OUT, 1, UNTAGGED);
	commit();
	receive(IN, &made);
	expect_at(OUT, &made);
	bridge.vlan_tag = AD;
	set_vlan(IN, 7, TAGGED);
	set_vlan(OUT, 7, UNTAGGED);
	commit();
	tell(IN, FIRST, 7);
	tell(OUT, SECOND, 7);
	sent = frame_between(SECOND, FIRST);
	receive(IN, &made);
	expect_at(OUT, &sent);
	made = tagged(TAG(Q, 7), SECOND, FIRST); // VLAN 1
	receive(IN, &made);
	expect_at(OUT, &made);
}

static void linux_gets_frames_of_vlans_that_a_port_has_not(void **state)
{
	const struct bytes five = tagged(TAG(Q, 5), SECOND, FIRST);
	const struct bytes none = frame_between(SECOND, FIRST);
	const struct bytes last = tagged(TAG(Q, 4095), SECOND, FIRST);

	reset();
	tell(IN, FIRST, 5);
	tell(OUT, SECOND, 5);
	tell(IN, FIRST, 1);
	tell(OUT, SECOND, 1);
	receive(IN, &none);
	expect_at(OUT, &none);
	receive(IN, &five); // neither port
	expect_at(NOBODY, &five);
	set_vlan(OUT, 5, TAGGED);
	commit();
	receive(IN, &five); // not the one where it comes in
	expect_at(NOBODY, &five);
	set_vlan(IN, 5, TAGGED);
	commit();
	receive(IN, &five);
	expect_at(OUT, &five);
	set_vlan(OUT, 5, ABSENT);
	commit();
	receive(IN, &five); // not the one where it leaves
	expect_at(NOBODY, &five);
	vlans[IN].pvid = 0;
	commit();
	receive(IN, &none); // no VLAN for untagged frames
	expect_at(NOBODY, &none);
	receive(IN, &last);
	expect_at(NOBODY, &last);
	members[OUT] = members[FAKE_PORTS - 1]; // it leaves the bridge
	bridge.n_members = FAKE_PORTS - 1;
	commit();
	receive(IN, &five);
	expect_at(NOBODY, &five);
}

static void an_address_is_another_one_in_each_vlan(void **state)
{
	const struct bytes five = tagged(TAG(Q, 5), SECOND, FIRST);
	const struct bytes six = tagged(TAG(Q, 6), SECOND, FIRST);

	reset();
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		set_vlan(i, 5, TAGGED);
		set_vlan(i, 6, TAGGED);
	}
	commit();
	tell(IN, FIRST, 5);
	tell(1, SECOND, 5);
	tell(3, SECOND, 6);
	receive(IN, &five);
	expect_at(1, &five);
	receive(IN, &six); // the sender is not known there
	expect_at(NOBODY, &six);
	tell(IN, FIRST, 6);
	receive(IN, &six);
	expect_at(3, &six);
	mac_unfollow(table, 1, &(struct mac_fixed){mac_of(SECOND), 0, 5, false});
	receive(IN, &five);
	expect_at(NOBODY, &five);
	receive(IN, &six);
	expect_at(3, &six);
}

static void a_bridge_that_ceases_to_filter_forgets_its_vlans(void **state)
{
	const struct bytes made = tagged(TAG(Q, 1), SECOND, FIRST);
	const struct bytes bare = frame_between(SECOND, FIRST);
	struct mac_usage usage;

	reset();
	tell(IN, FIRST, 1);
	tell(OUT, SECOND, 1);
	bridge.vlan_tag = 0;
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		members[i].vlans = NULL;
	commit();
	assert_true(mac_usage(table, 1, &usage));
	assert_int_equal(usage.n_learnt, 0);
	receive(IN, &made);
	expect_at(NOBODY, &made);
	tell(IN, FIRST, 0);
	tell(OUT, SECOND, 0);
	receive(IN, &made);
	expect_at(OUT, &made); // as it is
	receive(IN, &bare);
	expect_at(OUT, &bare);
}

static void frames_without_a_whole_tag_or_space_for_one_are_linuxs(void **state)
{
	struct bytes made = tagged(TAG(Q, 1), SECOND, FIRST), bare = frame_between(SECOND, FIRST);

	reset();
	set_vlan(OUT, 1, TAGGED);
	commit();
	tell(IN, FIRST, 1);
	tell(OUT, SECOND, 1);
	made.n = WIRE_ETHER_BYTES + 3;
	receive(IN, &made);
	expect_at(NOBODY, &made);
	made.n = WIRE_ETHER_BYTES + WIRE_VLAN_BYTES;
	receive(IN, &made);
	expect_at(OUT, &made);
	struct rte_mbuf *m = fake_receive(IN, &bare);
	memmove(m->buf_addr, rte_pktmbuf_mtod(m, void *), bare.n);
	m->data_off = 0;
	fake_run();
	assert_int_equal(count_punted(&bare), 1);
	fake.states[OUT].mtu = LENGTH - WIRE_ETHER_BYTES; // its own tag does not count
	struct bytes sent = tagged(TAG(Q, 1), SECOND, FIRST);
	receive(IN, &bare);
	expect_at(OUT, &sent);
	fake.states[OUT].mtu--;
	receive(IN, &bare);
	expect_at(NOBODY, &bare);
	frame_tag(&bare, TAG(AD, 7)); // others count, but for one
	frame_tag(&bare, TAG(AD, 8));
	fake.states[OUT].mtu = bare.n - WIRE_ETHER_BYTES - WIRE_VLAN_BYTES;
	sent = bare;
	frame_tag(&sent, TAG(Q, 1));
	receive(IN, &bare);
	expect_at(OUT, &sent);
	fake.states[OUT].mtu--;
	receive(IN, &bare);
	expect_at(NOBODY, &bare);
}

// The random test: what a bridge does by its definition.

enum { VIDS = 4, HOSTS = 6, ROUNDS = 40, FRAMES = 40 };

// 0: none, of the port that has it behind it in the VLAN, + 1.
static unsigned behind[VIDS + 1][HOSTS];
static enum mode modes[FAKE_PORTS][VIDS + 1];

static void change_all(void)
{
	for (unsigned port = 0; port < FAKE_PORTS; port++) {
		for (unsigned vid = 1; vid <= VIDS; vid++) {
			modes[port][vid] = dice(3);
			set_vlan(port, vid, modes[port][vid]);
		}
		vlans[port].pvid = dice(VIDS + 1);
	}
	commit();
	for (unsigned vid = 1; vid <= VIDS; vid++)
		for (unsigned host = 0; host < HOSTS; host++) {
			behind[vid][host] = 1 + dice(FAKE_PORTS);
			tell(behind[vid][host] - 1, host, vid);
		}
}

static void send_one(unsigned number)
{
	const unsigned port = dice(FAKE_PORTS), src = dice(HOSTS), dst = dice(HOSTS);
	const uint32_t tci = dice(8) << 13 | dice(VIDS + 2);
	const uint32_t tag = dice(3) ? TAG(dice(4) ? Q : AD, tci) : 0;
	const bool has_vid = tag >> 16 == Q && tci & 0xfff;
	const unsigned vid = has_vid ? tci & 0xfff : vlans[port].pvid;
	const bool is_in = vid && vid <= VIDS && modes[port][vid] != ABSENT;
	const unsigned to = is_in ? behind[vid][dst] - 1 : 0;
	struct bytes made = frame_between(dst, src), sent;

	made.at[20] = number;
	sent = made;
	if (tag)
		frame_tag(&made, tag);
	if (tag >> 16 == AD)
		frame_tag(&sent, tag);
	if (!is_in || behind[vid][src] != port + 1 || modes[to][vid] == ABSENT) {
		receive(port, &made);
		expect_at(NOBODY, &made);
		return;
	}
	if (modes[to][vid] == TAGGED)
		frame_tag(&sent, TAG(Q, (tag >> 16 == Q ? tci & 0xf000 : 0) | vid));
	receive(port, &made);
	if (to == port) {
		for (unsigned i = 0; i < FAKE_PORTS; i++)
			assert_int_equal(fake.device[i].n_sent, n_before[i]);
		assert_int_equal(count_punted(&made), 0);
	} else {
		expect_at(to, &sent);
	}
}

static void random_frames_go_where_their_vlan_does(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		reset();
		change_all();
		for (unsigned i = 0; i < FRAMES; i++)
			send_one(i);
	}
}

// A broadcast in VLAN 5: each port gets it with its own tag, or not at all.
static void floods_stay_in_their_vlan(void **state)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct bytes made = frame_between(SECOND, FIRST), untagged;

	reset();
	bridge.linuxs = 0;
	memcpy(made.at, all, sizeof(all));
	untagged = made;
	frame_tag(&made, TAG(Q, 0x6005));
	set_vlan(0, 5, TAGGED);
	set_vlan(1, 5, UNTAGGED);
	set_vlan(2, 5, TAGGED);
	commit();
	receive(0, &made);
	assert_int_equal(fake.device[0].n_sent, n_before[0]);
	assert_int_equal(fake.device[1].n_sent - n_before[1], 1);
	assert_int_equal(fake.device[2].n_sent - n_before[2], 1);
	assert_int_equal(fake.device[3].n_sent, n_before[3]);
	expect_bytes(fake.device[1].sent[n_before[1]], &untagged);
	expect_bytes(fake.device[2].sent[n_before[2]], &made);
	assert_int_equal(count_punted(&made), 0);
	bridge.linux_too = 1 << MAC_BROADCAST;
	commit();
	receive(0, &made);
	assert_int_equal(fake.device[1].n_sent - n_before[1], 1);
	expect_bytes(fake.device[2].sent[n_before[2]], &made);
	assert_int_equal(count_punted(&made), 1); // as it came
	set_vlan(0, 5, ABSENT);
	commit();
	receive(0, &made);
	expect_at(NOBODY, &made);
}

// What is not in the bridge's own tag is part of the packet, ARP or not.
static void control_frames_are_told_apart_behind_the_bridges_tag(void **state)
{
	struct bytes arp = frame_between(SECOND, FIRST), other;

	reset();
	bridge.linuxs = 0;
	set_vlan(0, 5, TAGGED);
	commit();
	memset(arp.at, 0xff, 6);
	arp.at[12] = 0x08;
	arp.at[13] = 0x06;
	other = arp;
	frame_tag(&arp, TAG(Q, 5));
	frame_tag(&other, TAG(AD, 5));
	receive(0, &arp);
	expect_at(NOBODY, &arp);
	receive(0, &other);
	assert_int_equal(fake.device[1].n_sent - n_before[1], 1);
	assert_int_equal(count_punted(&other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_leave_with_the_tag_that_their_port_sends),
		cmocka_unit_test(tags_of_another_type_are_part_of_the_packet),
		cmocka_unit_test(linux_gets_frames_of_vlans_that_a_port_has_not),
		cmocka_unit_test(an_address_is_another_one_in_each_vlan),
		cmocka_unit_test(a_bridge_that_ceases_to_filter_forgets_its_vlans),
		cmocka_unit_test(frames_without_a_whole_tag_or_space_for_one_are_linuxs),
		cmocka_unit_test(random_frames_go_where_their_vlan_does),
		cmocka_unit_test(floods_stay_in_their_vlan),
		cmocka_unit_test(control_frames_are_told_apart_behind_the_bridges_tag),
	};

	return cmocka_run_group_tests(tests, open_bridge, close_bridge);
}
