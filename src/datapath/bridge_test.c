// Frames between the ports of a bridge: each exactly once at each port that must have it.
#include "datapath/fake.h"

#include "mac/mac.h"
#include "wire/headers.h"

#include <rte_cycles.h>

enum { IN = 0, LENGTH = 100, HALF = 40, MTU = 1500, NOBODY = 99 };

static struct mac_table *table;
static struct mac_member members[FAKE_PORTS];
static struct mac_bridge bridge;
// What was sent and counted before the frames of now.
static unsigned n_before[FAKE_PORTS];
static struct stats_worker stat_before;

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t multicast[6] = {0x01, 0x00, 0x5e, 0, 0, 1};

// Behind each port there are hosts: number 10 * PORT + ...
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

static unsigned n_learnt; // hosts of which Linux was told
static struct mac_info learnt;

static void teach(void *ctx, const struct mac_info *info)
{
	n_learnt++;
	learnt = *info;
}

static int open_bridge(void **state)
{
	int err = fake_open(state);
	struct mac_settings settings = {.hz = rte_get_tsc_hz(),
		.n_workers = 1,
		.rcu = fake.rcu,
		.unknown = teach};

	settings.hz = settings.hz ? settings.hz : 1000000000; // no EAL
	return err ? err : mac_open(&table, &settings, NULL);
}

static int close_bridge(void **state)
{
	mac_close(table);
	return fake_close(state);
}

static void note_before(void)
{
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		n_before[i] = fake.device[i].n_sent;
	memcpy(&stat_before, &fake.stat, sizeof(stat_before));
}

// All ports in the bridge, no addresses.
static void reset(void)
{
	struct mac_pending *pending;

	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	fake.worker.tap = NULL;
	bridge = (struct mac_bridge){.name = "br0",
		.ageing_s = 300,
		.max = 100,
		.n_members = FAKE_PORTS};
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		members[i] = (struct mac_member){.port = i, .flags = MAC_LEARNS | MAC_FLOODS};
		fake.states[i].is_bridged = true;
		fake.states[i].mtu = MTU;
	}
	assert_int_equal(mac_prepare(table, NULL, 0, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
	commit();
	note_before();
}

static struct bytes frame(const uint8_t dst[6], unsigned from)
{
	const struct wire_mac source = mac_of(from);
	struct bytes made = {.n = LENGTH};

	memcpy(made.at, dst, 6);
	memcpy(made.at + 6, source.bytes, 6);
	made.at[12] = 0x88;
	made.at[13] = 0xb5;
	for (unsigned i = 14; i < LENGTH; i++)
		made.at[i] = i;
	return made;
}

static struct bytes frame_between(unsigned to, unsigned from)
{
	return frame(mac_of(to).bytes, from);
}

static void run(void)
{
	fake_run();
	mac_poll(table, rte_rdtsc());
}

static void receive(uint8_t port, const struct bytes *made)
{
	note_before();
	fake_receive(port, made);
	run();
}

// Has the bridge learn that a host is behind a port.
static void learn(uint8_t port, unsigned host)
{
	const struct bytes made = frame_between(NOBODY, host);

	receive(port, &made);
}

static void expect_at(uint64_t ports, const struct bytes *made)
{
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		assert_int_equal(fake.device[i].n_sent - n_before[i], ports >> i & 1);
		if (ports >> i & 1)
			expect_bytes(fake.device[i].sent[n_before[i]], made);
	}
}

static void expect_verdict(enum verdict verdict, unsigned n)
{
	assert_int_equal(fake.stat.verdict[verdict] - stat_before.verdict[verdict], n);
}

static unsigned count_copied(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_PORTS; i++)
		n += fake.stat.port[i].copied_packets - stat_before.port[i].copied_packets;
	return n;
}

static void frames_to_unknown_addresses_and_groups_are_flooded(void **state)
{
	const struct bytes frames[] = {frame_between(NOBODY, 1), frame(broadcast, 1),
		frame(multicast, 1)};

	reset();
	for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
		receive(IN, &frames[i]);
		expect_at(0xe, &frames[i]);
		assert_int_equal(count_copied(), 2);
		expect_verdict(VERDICT_FORWARD, 3);
	}
}

static void frames_to_known_addresses_leave_by_their_port(void **state)
{
	struct bytes made = frame_between(2, 1);

	reset();
	learn(2, 2);
	receive(IN, &made);
	expect_at(1 << 2, &made);
	assert_int_equal(count_copied(), 0);
	frame_tag(&made, 0x81000005);
	frame_tag(&made, 0x88a80007);
	receive(IN, &made);
	expect_at(1 << 2, &made);
	assert_int_equal(fake.stat.port[2].tx_bytes - stat_before.port[2].tx_bytes, made.n);
	assert_int_equal(fake.stat.port[IN].rx_bytes - stat_before.port[IN].rx_bytes, made.n);
}

static void frames_never_return_to_their_port_unless_hairpin_is_on(void **state)
{
	const struct bytes made = frame_between(2, 1), to_all = frame(broadcast, 1);

	reset();
	learn(IN, 2);
	receive(IN, &made);
	expect_at(0, &made);
	expect_verdict(VERDICT_BRIDGE_SAME_PORT, 1);
	members[IN].flags |= MAC_HAIRPIN;
	commit();
	receive(IN, &made);
	expect_at(1 << IN, &made);
	receive(IN, &to_all);
	expect_at(0xf, &to_all);
}

static void isolated_ports_reach_only_others(void **state)
{
	const struct bytes made = frame_between(2, 1), to_all = frame(broadcast, 1);

	reset();
	members[IN].flags |= MAC_ISOLATED;
	members[2].flags |= MAC_ISOLATED;
	commit();
	learn(2, 2);
	receive(IN, &made);
	expect_verdict(VERDICT_BRIDGE_ISOLATED, 1);
	receive(IN, &to_all);
	expect_at(0xa, &to_all);
	receive(1, &made);
	expect_at(1 << 2, &made);
}

static void ports_that_do_not_flood_get_no_unknown_unicast(void **state)
{
	const struct bytes made = frame_between(NOBODY, 1), to_all = frame(multicast, 1);

	reset();
	members[2].flags &= ~MAC_FLOODS;
	commit();
	receive(IN, &made);
	expect_at(0xa, &made);
	receive(IN, &to_all);
	expect_at(0xe, &to_all);
}

static void ports_that_do_not_learn_leave_addresses_unknown(void **state)
{
	const struct bytes made = frame_between(2, 1);

	reset();
	members[2].flags &= ~MAC_LEARNS;
	commit();
	learn(2, 2);
	receive(IN, &made);
	expect_at(0xe, &made);
}

static void reserved_groups_and_impossible_senders_are_dropped(void **state)
{
	uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0};

	reset();
	for (unsigned i = 0; i < 16; i++) {
		reserved[5] = i;
		const struct bytes made = frame(reserved, 1);
		receive(IN, &made);
		expect_at(0, &made);
		expect_verdict(VERDICT_BRIDGE_RESERVED, 1);
	}
	reserved[5] = 0x10;
	struct bytes made = frame(reserved, 1);
	receive(IN, &made);
	expect_at(0xe, &made);
	memset(made.at + 6, 0, 6);
	receive(IN, &made);
	expect_verdict(VERDICT_BRIDGE_SOURCE, 1);
	made.at[6] = 0x03;
	receive(IN, &made);
	expect_verdict(VERDICT_BRIDGE_SOURCE, 1);
	made.n = 13;
	receive(IN, &made);
	expect_verdict(VERDICT_RUNT, 1);
}

static void the_mtu_of_each_output_counts_without_tags(void **state)
{
	struct bytes made = frame_between(2, 1), to_all = frame(broadcast, 1);

	reset();
	learn(2, 2);
	fake.states[2].mtu = 200;
	made.n = to_all.n = 200 + WIRE_ETHER_BYTES;
	receive(IN, &made);
	expect_at(1 << 2, &made);
	frame_tag(&made, 0x81000005);
	receive(IN, &made);
	expect_at(1 << 2, &made);
	made.n++;
	receive(IN, &made);
	expect_verdict(VERDICT_BRIDGE_MTU, 1);
	to_all.n++;
	receive(IN, &to_all);
	expect_at(0xa, &to_all);
	expect_verdict(VERDICT_BRIDGE_MTU, 1);
	assert_int_equal(count_copied(), 2);
	receive(1, &to_all); // the frame itself goes to port 3, a copy to port 0
	expect_at(0x9, &to_all);
}

static void ports_that_are_down_get_nothing(void **state)
{
	const struct bytes made = frame_between(2, 1), to_all = frame(broadcast, 1);

	reset();
	learn(2, 2);
	fake.states[2].up = false;
	receive(IN, &made);
	expect_verdict(VERDICT_PORT_DOWN, 1);
	receive(IN, &to_all);
	expect_at(0xa, &to_all);
	assert_int_equal(count_copied(), 1);
	fake.states[1].up = fake.states[3].up = false;
	receive(IN, &to_all);
	expect_verdict(VERDICT_BRIDGE_NO_PORT, 1);
}

static void without_buffers_one_port_gets_the_frame(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset();
	fake.n_buffers = 1;
	receive(IN, &to_all);
	expect_at(0xa, &to_all);
	expect_verdict(VERDICT_BRIDGE_COPY_FAILED, 1);
	assert_int_equal(count_copied(), 2);
}

static void ports_that_refuse_frames_count_each(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset();
	note_before();
	fake.device[1].takes = 3;
	fake.device[3].takes = 5;
	for (unsigned i = 0; i < BURST_MAX; i++)
		fake_receive(IN, &to_all);
	run();
	assert_int_equal(fake.device[2].n_sent, BURST_MAX);
	expect_verdict(VERDICT_TX_REFUSED, BURST_MAX - 3 + BURST_MAX - 5);
}

static void frames_of_several_buffers_are_copied_whole(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);
	struct bytes first = to_all, rest = {.n = LENGTH - HALF};

	reset();
	first.n = HALF;
	memcpy(rest.at, to_all.at + HALF, rest.n);
	for (unsigned i = 0; i < 2; i++) {
		struct rte_mbuf *m = fake_receive(IN, &first);

		m->next = fake_mbuf(&rest);
		fake.n_made--; // one packet
		m->next->refcnt++;
		m->nb_segs = 2;
		m->pkt_len = LENGTH;
		fake.states[3].tx_multi_segment = i;
		note_before();
		run();
		expect_verdict(VERDICT_MULTI_SEGMENT, i ? 2 : 3);
		assert_int_equal(fake.device[3].n_sent, i);
	}
}

static void storm_control_drops_by_kind(void **state)
{
	static const uint8_t verdicts[] = {VERDICT_STORM_BROADCAST, VERDICT_STORM_MULTICAST,
		VERDICT_STORM_UNKNOWN};
	const struct bytes frames[] = {frame(broadcast, 1), frame(multicast, 1),
		frame_between(NOBODY, 1)};

	for (unsigned kind = 0; kind < MAC_STORMS; kind++) {
		reset();
		memset(bridge.storm_pps, 0, sizeof(bridge.storm_pps));
		bridge.storm_pps[kind] = 1;
		commit();
		note_before();
		for (unsigned i = 0; i < 20 * MAC_STORMS; i++)
			fake_receive(IN, &frames[i % MAC_STORMS]);
		run();
		// A frame in a second: other tests may have used the one of now.
		const unsigned n = fake.stat.verdict[verdicts[kind]];
		assert_in_range(n, 15, 20);
		assert_int_equal(fake.device[1].n_sent, 20 * MAC_STORMS - n);
	}
}

static void ports_out_of_the_bridge_get_nothing(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset();
	bridge.n_members = 3;
	fake.states[3].is_bridged = false;
	commit();
	receive(IN, &to_all);
	expect_at(0x6, &to_all);
	fake.states[3].is_bridged = true; // not any more, for a moment
	receive(3, &to_all);
	expect_verdict(VERDICT_BRIDGE_NO_PORT, 1);
}

// The random test: what a bridge does by its definition.
enum { HOSTS = 24, ROUNDS = 150, BURSTS = 20 };
struct model {
	int port_of[HOSTS]; // -1: unknown
	bool is_up[FAKE_PORTS];
};

static uint64_t random_state = 88172645463325252ull;

static unsigned below(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state * 2685821657736338717ull >> 33) % n;
}

static bool may_reach(unsigned in, unsigned to)
{
	if (in == to && !(members[in].flags & MAC_HAIRPIN))
		return false;
	return !(members[in].flags & members[to].flags & MAC_ISOLATED);
}

// `to`: host, HOSTS: broadcast.
static uint64_t ports_for(const struct model *model, unsigned in, unsigned to)
{
	uint64_t ports = 0;

	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		if (!may_reach(in, i) || !model->is_up[i])
			continue;
		if (to < HOSTS && model->port_of[to] >= 0 && model->port_of[to] != (int)i)
			continue;
		if (to < HOSTS && model->port_of[to] < 0 && !(members[i].flags & MAC_FLOODS))
			continue;
		ports |= 1ull << i;
	}
	return ports;
}

static void change_ports(struct model *model)
{
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		members[i].flags = (below(8) ? MAC_LEARNS : 0) | (below(4) ? MAC_FLOODS : 0) |
		                   (below(3) ? 0 : MAC_ISOLATED) | (below(4) ? 0 : MAC_HAIRPIN);
		model->is_up[i] = below(8);
		fake.states[i].up = model->is_up[i];
	}
	commit();
}

// A burst on one port. Each frame has its number after the header.
static void send_burst(struct model *model, unsigned *number)
{
	const unsigned in = below(FAKE_PORTS), n = 1 + below(12);
	uint64_t ports[12];
	unsigned from[12];

	note_before();
	for (unsigned i = 0; i < n; i++) {
		const unsigned to = below(HOSTS + 2);
		// Hosts move rarely, else they are held.
		from[i] = below(HOSTS / FAKE_PORTS) * FAKE_PORTS + in;
		struct bytes made = to < HOSTS ? frame_between(1 + to, 1 + from[i])
		                               : frame(broadcast, 1 + from[i]);

		memcpy(made.at + 14, &(unsigned){*number + i}, sizeof(unsigned));
		fake_receive(in, &made);
		ports[i] = ports_for(model, in, MIN_OF(to, HOSTS));
	}
	run();
	for (unsigned port = 0; port < FAKE_PORTS; port++) {
		uint64_t got = 0;
		for (unsigned k = n_before[port]; k < fake.device[port].n_sent; k++) {
			unsigned which =
				load32(rte_pktmbuf_mtod(fake.device[port].sent[k], uint8_t *) + 14);
			assert_in_range(which, *number, *number + n - 1);
			assert_false(got >> (which - *number) & 1); // twice
			got |= 1ull << (which - *number);
		}
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(got >> i & 1, ports[i] >> port & 1);
	}
	for (unsigned i = 0; i < n && members[in].flags & MAC_LEARNS; i++)
		model->port_of[from[i]] = in;
	*number += n;
}

static void random_frames_go_where_they_must(void **state)
{
	unsigned number = 1;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct model model;

		reset();
		memset(model.port_of, 0xff, sizeof(model.port_of));
		for (unsigned i = 0; i < FAKE_PORTS; i++)
			model.is_up[i] = true;
		for (unsigned i = 0; i < BURSTS; i++) {
			if (!below(4))
				change_ports(&model);
			send_burst(&model, &number);
		}
	}
}

// Bridges of Linux: what is not between two known addresses is punted, as it is without workers.

static void reset_linuxs(void)
{
	struct iface settings = *fib_iface(fake.fib, IN);

	reset();
	fake.worker.tap = &fake.tap;
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		members[i].flags |= MAC_OF_LINUX;
	bridge.linuxs = MAC_ALL_STORMS;
	commit();
	settings.flags = IFACE_LINUX;
	fake_set(IN, &settings);
	note_before();
}

// As Linux tells it.
static void tell(uint8_t port, unsigned host)
{
	assert_true(mac_follow(table, 1, &(struct mac_fixed){mac_of(host), port, 0, false},
		rte_rdtsc()));
}

static unsigned count_punted(const struct bytes *made)
{
	unsigned n = 0;

	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		for (struct rte_mbuf *m; (m = fake_punted(class)); n++)
			expect_bytes(m, made);
	return n;
}

static void expect_linuxs(const struct bytes *made)
{
	receive(IN, made);
	expect_at(0, made);
	assert_int_equal(count_punted(made), 1);
}

static void workers_forward_between_addresses_that_linux_knows(void **state)
{
	struct bytes made = frame_between(2, 1);

	reset_linuxs();
	tell(IN, 1);
	tell(2, 2);
	receive(IN, &made);
	expect_at(1 << 2, &made);
	assert_int_equal(count_punted(&made), 0);
	assert_int_equal(fake.stat.port[IN].rx_bytes - stat_before.port[IN].rx_bytes, made.n);
	frame_tag(&made, 0x81000005); // the bridge does not look at it
	receive(IN, &made);
	expect_at(1 << 2, &made);
	tell(3, 2); // it moves
	receive(IN, &made);
	expect_at(1 << 3, &made);
	mac_unfollow(table, 1, &(struct mac_fixed){.mac = {{2, 0, 0, 0, 0, 2}}});
	expect_linuxs(&made);
	assert_int_equal(count_copied(), 0);
}

static void linux_gets_all_other_frames_once(void **state)
{
	uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0};
	struct bytes frames[] = {frame_between(NOBODY, 1), frame(broadcast, 1), frame(multicast, 1),
		frame(reserved, 1), frame_between(2, NOBODY), frame_between(2, 3)};

	reset_linuxs();
	tell(IN, 1);
	tell(2, 2);
	tell(3, 3); // seen behind IN now: Linux is to learn that
	for (unsigned i = 0; i < ARRAY_LEN(frames); i++)
		expect_linuxs(&frames[i]);
	struct bytes made = frame_between(2, 1);
	fake.states[2].up = false;
	expect_linuxs(&made);
	fake.states[2].up = true;
	fake.states[2].mtu = LENGTH - 20;
	expect_linuxs(&made);
	fake.states[2].mtu = MTU;
	memset(made.at + 6, 0, 6);
	expect_linuxs(&made);
	made.n = 13;
	receive(IN, &made);
	expect_at(0, &made);
}

// The worker has read that the port is in a bridge, and then the table in which it is not.
static void a_port_that_leaves_a_bridge_of_linux_loses_no_frame(void **state)
{
	struct bytes made = frame_between(2, 1);

	reset_linuxs();
	tell(IN, 1);
	tell(2, 2);
	bridge.n_members = 0;
	commit();
	expect_linuxs(&made);
	memset(made.at, 0, 6); // as the key of a free slot
	expect_linuxs(&made);
	assert_int_equal(fake.stat.port[IN].rx_bytes - stat_before.port[IN].rx_bytes, made.n);
}

static void ports_of_linux_that_do_not_learn_forward_from_any_sender(void **state)
{
	const struct bytes made = frame_between(2, NOBODY);

	reset_linuxs();
	tell(2, 2);
	expect_linuxs(&made);
	members[IN].flags &= ~MAC_LEARNS;
	commit();
	receive(IN, &made);
	expect_at(1 << 2, &made);
}

static void hairpin_and_isolation_are_as_linux_has_them(void **state)
{
	const struct bytes here = frame_between(3, 1), there = frame_between(2, 1);

	reset_linuxs();
	tell(IN, 1);
	tell(IN, 3);
	tell(2, 2);
	receive(IN, &here);
	expect_verdict(VERDICT_BRIDGE_SAME_PORT, 1);
	members[IN].flags |= MAC_HAIRPIN;
	commit();
	receive(IN, &here);
	expect_at(1 << IN, &here);
	members[IN].flags |= MAC_ISOLATED;
	members[2].flags |= MAC_ISOLATED;
	commit();
	receive(IN, &there);
	expect_verdict(VERDICT_BRIDGE_ISOLATED, 1);
	assert_int_equal(count_punted(&here), 0);
}

// Whatever a burst contains, each frame is sent or punted, and senders are marked as seen.
static void a_mixed_burst_is_divided(void **state)
{
	unsigned number[BURST_MAX], n_known = 0, n_sent = 0;

	reset_linuxs();
	tell(IN, 1);
	tell(2, 2);
	note_before();
	for (unsigned i = 0; i < BURST_MAX; i++) {
		struct bytes made = frame_between(below(2) ? 2 : NOBODY, below(4) ? 1 : NOBODY);

		number[i] = made.at[5] == 2 && made.at[11] == 1;
		n_known += number[i];
		made.at[14] = i;
		fake_receive(IN, &made);
	}
	run();
	for (unsigned i = 0; i < BURST_MAX; i++)
		if (number[i]) {
			const struct rte_mbuf *m = fake.device[2].sent[n_before[2] + n_sent++];
			assert_int_equal(rte_pktmbuf_mtod(m, const uint8_t *)[14], i); // in order
		}
	assert_int_equal(fake.device[2].n_sent - n_before[2], n_known);
	unsigned n_punted = 0;
	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		while (fake_punted(class))
			n_punted++;
	assert_int_equal(n_punted, BURST_MAX - n_known);
	struct mac_info info[2];
	uint32_t place = 0;
	assert_int_equal(mac_page(table, &(struct mac_choice){1, IN}, rte_rdtsc(), &place, info, 2),
		1);
	assert_true(!info[0].is_unseen && info[0].idle_s < 100);
}

// Those that workers flood, as long as Linux's guard lets them.

static void reset_floods(uint8_t linuxs, uint8_t linux_too)
{
	reset_linuxs();
	bridge.linuxs = linuxs;
	bridge.linux_too = linux_too;
	commit();
	mac_set_partial(table, false);
	n_learnt = 0;
}

static void workers_flood_what_linux_leaves_to_them(void **state)
{
	const struct bytes frames[MAC_STORMS] = {frame(broadcast, 1), frame(multicast, 1),
		frame_between(NOBODY, 1)};

	for (unsigned kind = 0; kind < MAC_STORMS; kind++) {
		reset_floods(MAC_ALL_STORMS & ~(1 << kind), 0);
		for (unsigned i = 0; i < MAC_STORMS; i++) {
			if (i != kind) {
				expect_linuxs(&frames[i]);
				continue;
			}
			receive(IN, &frames[i]);
			expect_at(0xe, &frames[i]);
			assert_int_equal(count_punted(&frames[i]), 0);
			assert_int_equal(count_copied(), 2);
			assert_int_equal(fake.stat.port[IN].rx_bytes -
						 stat_before.port[IN].rx_bytes,
				frames[i].n);
		}
		assert_int_equal(n_learnt, 1);
		assert_int_equal(learnt.mac.bytes[5], 1);
		assert_int_equal(learnt.port, IN);
	}
}

static void linux_gets_the_frame_itself_once(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset_floods(0, 1 << MAC_BROADCAST);
	receive(IN, &to_all);
	expect_at(0xe, &to_all);
	assert_int_equal(count_punted(&to_all), 1);
	assert_int_equal(count_copied(), 3);
	assert_int_equal(fake.stat.port[IN].rx_bytes - stat_before.port[IN].rx_bytes, to_all.n);
	for (unsigned i = 1; i < FAKE_PORTS; i++)
		fake.states[i].up = false;
	expect_linuxs(&to_all);
	members[IN].flags |= MAC_HAIRPIN;
	commit();
	receive(IN, &to_all);
	expect_at(1 << IN, &to_all);
	assert_int_equal(count_punted(&to_all), 1);
}

static void linux_is_told_of_senders_that_it_does_not_know_there(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset_floods(0, 0);
	tell(IN, 1);
	receive(IN, &to_all);
	assert_int_equal(n_learnt, 0);
	receive(1, &to_all);
	assert_int_equal(n_learnt, 1);
	assert_int_equal(learnt.port, 1);
	receive(1, &to_all); // it was told of in this second
	assert_true(n_learnt <= 2);
	members[2].flags &= ~MAC_LEARNS;
	commit();
	n_learnt = 0;
	receive(2, &to_all);
	expect_at(0xb, &to_all);
	assert_int_equal(n_learnt, 0);
	assert_null(mac_iface_of(mac_live_view(mac_live(table)), 0));
}

// A frame whose byte at `offset` of the packet is `byte`.
static struct bytes packet(uint16_t type, unsigned offset, uint8_t byte)
{
	struct bytes made = frame(broadcast, 1);

	made.at[12] = type >> 8;
	made.at[13] = type;
	made.at[14 + offset] = byte;
	return made;
}

static void what_linux_answers_is_left_to_it(void **state)
{
	uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0};
	struct bytes linuxs[] = {packet(0x0806, 0, 0), packet(0x8035, 0, 0), packet(0x0800, 9, 2),
		packet(0x0800, 9, 103), packet(0x86dd, 6, 0), packet(0x86dd, 6, 58),
		frame(reserved, 1)};
	struct bytes others[] = {packet(0x0800, 9, 17), packet(0x86dd, 6, 17),
		packet(0x0807, 0, 0)};

	reset_floods(0, 0);
	for (unsigned tags = 0; tags < 2; tags++) {
		for (unsigned i = 0; i < ARRAY_LEN(linuxs); i++) {
			expect_linuxs(&linuxs[i]);
			frame_tag(&linuxs[i], tags ? 0x88a80007 : 0x81000005);
		}
		for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
			receive(IN, &others[i]);
			expect_at(0xe, &others[i]);
			frame_tag(&others[i], 0x81000005);
		}
	}
	receive(IN, &linuxs[0]); // behind two tags, neither the guard nor workers see it
	expect_at(0xe, &linuxs[0]);
	struct bytes cut = packet(0x0800, 9, 2);
	cut.n = 14 + 9;
	receive(IN, &cut);
	expect_at(0xe, &cut);
	assert_int_equal(count_punted(&cut), 0);
}

static void frames_to_addresses_elsewhere_are_linuxs(void **state)
{
	const struct bytes made = frame_between(2, 1);
	struct mac_fixed elsewhere = {mac_of(2), MAC_PORTS, 0, false};

	reset_floods(0, 0);
	assert_true(mac_follow(table, 1, &elsewhere, rte_rdtsc()));
	expect_linuxs(&made);
	commit();
	expect_linuxs(&made);
	mac_unfollow(table, 1, &elsewhere);
	receive(IN, &made);
	expect_at(0xe, &made);
	mac_set_partial(table, true); // it may be one that workers do not have
	expect_linuxs(&made);
}

static void flood_flags_are_by_kind(void **state)
{
	const struct bytes to_all = frame(broadcast, 1), to_group = frame(multicast, 1);

	reset_floods(0, 0);
	members[1].flags |= MAC_NO_BROADCASTS;
	members[2].flags |= MAC_NO_MULTICASTS;
	commit();
	receive(IN, &to_all);
	expect_at(0xc, &to_all);
	receive(IN, &to_group);
	expect_at(0xa, &to_group);
}

static void storms_are_limited_by_port(void **state)
{
	const struct bytes to_all = frame(broadcast, 1);

	reset_floods(0, 1 << MAC_BROADCAST);
	members[IN].storm_pps[MAC_BROADCAST] = 1;
	commit();
	for (unsigned i = 0; i < 2; i++)
		receive(IN, &to_all);
	expect_verdict(VERDICT_STORM_BROADCAST, 1);
	expect_at(0, &to_all);
	assert_int_equal(count_punted(&to_all), 1); // the first
	receive(1, &to_all);
	expect_at(0xd, &to_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_to_unknown_addresses_and_groups_are_flooded),
		cmocka_unit_test(frames_to_known_addresses_leave_by_their_port),
		cmocka_unit_test(frames_never_return_to_their_port_unless_hairpin_is_on),
		cmocka_unit_test(isolated_ports_reach_only_others),
		cmocka_unit_test(ports_that_do_not_flood_get_no_unknown_unicast),
		cmocka_unit_test(ports_that_do_not_learn_leave_addresses_unknown),
		cmocka_unit_test(reserved_groups_and_impossible_senders_are_dropped),
		cmocka_unit_test(the_mtu_of_each_output_counts_without_tags),
		cmocka_unit_test(ports_that_are_down_get_nothing),
		cmocka_unit_test(without_buffers_one_port_gets_the_frame),
		cmocka_unit_test(ports_that_refuse_frames_count_each),
		cmocka_unit_test(frames_of_several_buffers_are_copied_whole),
		cmocka_unit_test(storm_control_drops_by_kind),
		cmocka_unit_test(ports_out_of_the_bridge_get_nothing),
		cmocka_unit_test(random_frames_go_where_they_must),
		cmocka_unit_test(workers_forward_between_addresses_that_linux_knows),
		cmocka_unit_test(linux_gets_all_other_frames_once),
		cmocka_unit_test(a_port_that_leaves_a_bridge_of_linux_loses_no_frame),
		cmocka_unit_test(ports_of_linux_that_do_not_learn_forward_from_any_sender),
		cmocka_unit_test(hairpin_and_isolation_are_as_linux_has_them),
		cmocka_unit_test(a_mixed_burst_is_divided),
		cmocka_unit_test(workers_flood_what_linux_leaves_to_them),
		cmocka_unit_test(linux_gets_the_frame_itself_once),
		cmocka_unit_test(linux_is_told_of_senders_that_it_does_not_know_there),
		cmocka_unit_test(what_linux_answers_is_left_to_it),
		cmocka_unit_test(frames_to_addresses_elsewhere_are_linuxs),
		cmocka_unit_test(flood_flags_are_by_kind),
		cmocka_unit_test(storms_are_limited_by_port),
	};

	return cmocka_run_group_tests(tests, open_bridge, close_bridge);
}
