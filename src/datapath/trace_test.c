// What a trace tells of a frame, its verdict and its bytes, is what happens when the frame is
// received next; and a trace changes nothing. Random frames of all kinds meet random rules, flows
// and settings.
#include "datapath/dice.h"
#include "datapath/flows.h"
#include "datapath/lists.h"
#include "datapath/trace.h"

#include "mac/mac.h"
#include "wire/build.h"
#include "wire/headers.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>

enum { ROUNDS = 24, FRAMES = 60, FEW_HOPS = 256, SMALL_MTU = 600 };
enum { FIRST_LABEL = 100, N_LABELS = 5 }; // the last one is not known
// So slow that no token becomes due during the test.
static const uint64_t hz = 1000000000000000ull;

static const struct {
	uint16_t iface;
	uint8_t port;
} ways_in[] = {{PLAIN_IN, 0}, {PLAIN_OUT, 1}, {TAGGED_IN, 0}, {QINQ_IN, 0}, {SERVICE_IN, 0},
	{RED_IN, 0}, {BLUE_IN, 0}};
static const char *const srcs[2][5] = {{"192.0.2.1", "10.1.0.2", "10.0.0.9", "127.0.0.1",
					       "169.254.1.1"},
	{"2001:db8::1", "2001:db8:1::2", "fe80::1", "::1", "::ffff:10.0.0.1"}};
static const char *const dsts[2][12] = {{"10.1.2.3", "10.2.9.9", "10.3.0.1", "10.20.0.7",
						"10.30.0.2", "10.60.0.1", "10.61.0.1", "172.20.0.1",
						"172.21.0.1", "198.51.100.1", "224.0.0.5",
						"10.0.7.7"},
	{"2001:db8:1::3", "2001:db8:2::9", "2001:db8:3::1", "2001:db8:14::7", "2001:db8:1e::2",
		"2001:db8:60::1", "2001:db8:61::1", "fe80::7", "ff02::1", "2001:db8:99::1", "::1",
		"2001:db8::5"}};
static const char *const rules[] = {"permit", "deny udp", "reject udp to_port 2048", "punt icmp",
	"permit local", "deny local", "permit udp dscp 46", "deny fragment later",
	"permit udp mark 10", "permit mirror 3",
	"permit police.rate 1packets/s police.burst 3packets",
	"permit local police.rate 1packets/s police.burst 2packets",
	"permit police.rate 1packets/s police.burst 9packets mirror 2"};

static struct trace trace;

static int open_all(void **state)
{
	return lists_open(state, hz);
}

static int close_all(void **state)
{
	acl_close(lists);
	acl_close(filters);
	return flows_close(state);
}

static void set_group(const char *prefix, bool is_resilient)
{
	const bool is_ip6 = strchr(prefix, ':');
	const struct fib_resilience resilience = {.key = 1 + is_ip6};
	struct fib_member members[3] = {{.weight = 1}, {.weight = 2}, {.weight = 1}};
	const unsigned n = ARRAY_LEN(members);
	struct fib_hop group;
	char via[32];
	int err;

	for (unsigned i = 0; i < n; i++) {
		snprintf(via, sizeof(via), is_ip6 ? "2001:db8:%x::2" : "10.%u.0.2", 1 + i);
		members[i].hop = (struct fib_hop){.kind = FIB_VIA, .iface = 1 + i};
		assert_int_equal(wire_addr_parse(via, &members[i].hop.via), 0);
	}
	err = is_resilient ? fib_resilient_group(fake.fib, &resilience, members, n, &group, NULL)
	                   : fib_group(fake.fib, members, n, &group, NULL);
	assert_int_equal(err, 0);
	fake_route(0, prefix, &group);
}

// Labels from FIRST_LABEL on: swapped, popped to a neighbour, popped and looked up; routes push
// some.
static void set_labels(void)
{
	struct fib_label label = {.label = FIRST_LABEL, .op = FIB_LABEL_FORWARD};
	struct fib_hop hop = {.kind = FIB_VIA, .iface = 1, .n_labels = 2, .label = {1000, 1001}};

	wire_addr_parse("10.1.0.2", &hop.via);
	label.hop = hop;
	assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
	label.label++;
	label.hop.n_labels = 0;
	label.is_pipe = true;
	assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
	label = (struct fib_label){.label = FIRST_LABEL + 2, .op = FIB_LABEL_LOOKUP};
	assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
	label = (struct fib_label){.label = FIRST_LABEL + 3,
		.op = FIB_LABEL_LOOKUP,
		.vrf = RED,
		.loops = true};
	assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
	fake_route(0, "172.21.0.0/16", &hop);
}

static void set_routes(void)
{
	set_labels();
	set_group("10.60.0.0/16", false);
	set_group("10.61.0.0/16", true);
	set_group("2001:db8:60::/48", false);
	set_group("2001:db8:61::/48", true);
}

static const char *random_rule(void)
{
	return rules[dice(ARRAY_LEN(rules))];
}

static void set_random_lists(struct acl_table *table)
{
	const char *text[LISTS_MAX_RULES] = {random_rule(), dice(2) ? random_rule() : NULL};

	lists_use(table, dice(2) ? ways_in[dice(ARRAY_LEN(ways_in))].iface : PLAIN_IN,
		dice(2) ? ACL_IN : ACL_OUT, dice(3) == 0, text);
}

static void set_random_flows(void)
{
	const struct flow_action actions[] = {flows_by_route(), flows_to(PLAIN_OUT), flows_to(2),
		flows_do(FLOW_DROP), flows_do(FLOW_PUNT), flows_by_route()};

	for (unsigned i = 0; i < 6; i++) {
		const struct flow_tuple tuple = flows_tuple(dsts[dice(2)][dice(6)]);
		struct flow_action action = actions[dice(ARRAY_LEN(actions))];

		if (action.effect == FLOW_BY_ROUTE || action.effect == FLOW_TO_HOP) {
			action.dscp = dice(2) ? FLOW_KEEP_DSCP : dice(64);
			action.mirror = dice(2) ? FLOW_NO_MIRROR : 3;
		}
		flows_set(&tuple, action);
	}
	flows_drop_missing(dice(4) == 0);
}

// Interfaces keep their addresses and tags.
static void set_random_iface(uint16_t iface)
{
	static const uint16_t flags[] = {0, 0, IFACE_LINUX, IFACE_LINUX4, IFACE_LINUX6, IFACE_DOWN,
		IFACE_REDIRECTS4 | IFACE_REDIRECTS6, IFACE_DISCOVERY6};
	struct iface settings = *fib_iface(fake.fib, iface);

	settings.flags = flags[dice(ARRAY_LEN(flags))] | (dice(4) ? IFACE_MPLS : 0);
	settings.rpf4 = dice(3);
	settings.mtu = dice(2) ? 1500 : SMALL_MTU;
	fake_set(iface, &settings);
}

static void set_random_state(unsigned round)
{
	flows_reset(round % FLOWS_CASES);
	fake.worker.variant = fake_variants[round & 1];
	fake.io.burst = BURST_MAX;
	if (dice(2))
		fake.worker.flows = NULL;
	else
		set_random_flows();
	fake.tap.redirect_cycles = UINT64_MAX >> 8;
	fake.tap.redirect_burst = 3;
	if (dice(3) == 0)
		fake.worker.tap = NULL;
	if (dice(3)) {
		set_random_lists(lists);
		fake.worker.acls = acl_live(lists);
		set_random_lists(filters);
		fake.worker.filters = fake.worker.tap ? acl_live(filters) : NULL;
	}
	for (unsigned i = 0; fake.worker.tap && i < ARRAY_LEN(ways_in); i++)
		if (dice(3) == 0)
			set_random_iface(ways_in[i].iface);
	fake.states[3].up = dice(4);
	fake.states[0].rpf6 = dice(3);
	fake.states[0].cut_bytes = dice(4) ? 0 : 1000;
}

static void set_fragment(struct bytes *frame)
{
	static const uint16_t fields[] = {0x2000, 0x0007, 0x4000, 0x2007};
	struct wire_ip4 *ip = (void *)(frame->at + WIRE_ETHER_BYTES);

	ip->fragment_be = htobe16(fields[dice(ARRAY_LEN(fields))]);
	frame_mend(frame);
}

static void set_mac(struct bytes *frame)
{
	static const uint8_t macs[][6] = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{1, 0, 0x5e, 0, 0, 5}, {2, 0, 0, 0, 0, 0x77}};

	memcpy(frame->at, macs[dice(ARRAY_LEN(macs))], 6);
}

// What may be wrong with a frame, or special, before it is tagged.
static void twist(struct bytes *frame, bool is_ip4)
{
	switch (dice(10)) {
	case 0:
		set_mac(frame);
		return;
	case 1:
		frame->n = 1 + dice(frame->n);
		return;
	case 2:
		for (unsigned i = 1 + dice(3); i; i--)
			frame->at[dice(MIN_OF(frame->n, 64))] ^= 1 << dice(8);
		return;
	case 3:
		if (is_ip4)
			set_fragment(frame);
		return;
	case 4:
		memset(frame->at + frame->n, 0xee, 30);
		frame->n += 30;
		return;
	case 5:
		frame->at[12] = dice(256);
		frame->at[13] = dice(256);
		return;
	case 6:
		if (is_ip4)
			frame->at[14] = 0x46; // options
		else
			frame->at[20] = 0; // hop by hop
		if (is_ip4)
			frame_mend(frame);
	}
}

static void push_labels(struct bytes *frame)
{
	const unsigned n = 1 + dice(3);

	memmove(frame->at + WIRE_ETHER_BYTES + 4 * n, frame->at + WIRE_ETHER_BYTES,
		frame->n - WIRE_ETHER_BYTES);
	memcpy(frame->at + 12, (uint8_t[]){0x88, 0x47}, 2);
	for (unsigned i = 0; i < n; i++) {
		const uint32_t word_be = htobe32((FIRST_LABEL + dice(N_LABELS)) << 12 |
						 (i + 1 == n) << 8 | (dice(6) ? 64 : dice(4)));

		memcpy(frame->at + WIRE_ETHER_BYTES + 4 * i, &word_be, sizeof(word_be));
	}
	frame->n += 4 * n;
}

static struct bytes random_frame(uint16_t iface, uint8_t port)
{
	static const uint8_t protos[] = {WIRE_PROTO_UDP, WIRE_PROTO_UDP, WIRE_PROTO_TCP, 47};
	const bool is_ip6 = dice(3) == 0;
	struct wire_recipe recipe = wire_recipe(is_ip6 ? 6 : 4);
	struct bytes frame;

	memcpy(recipe.dst_mac.bytes, fake.states[port].mac, 6);
	wire_addr_parse(srcs[is_ip6][dice(3) ? 0 : dice(5)], &recipe.src);
	wire_addr_parse(dsts[is_ip6][dice(12)], &recipe.dst);
	recipe.protocol = dice(5)  ? protos[dice(ARRAY_LEN(protos))]
	                  : is_ip6 ? WIRE_PROTO_ICMP6
	                           : WIRE_PROTO_ICMP4;
	recipe.ttl = dice(8) ? 64 : dice(3);
	recipe.dscp_ecn = dice(256);
	recipe.frame_bytes = dice(3) ? 80 + dice(40) : 80 + dice(1500);
	frame = (struct bytes){.n = recipe.frame_bytes};
	assert_int_equal(wire_build(&recipe, frame.at, sizeof(frame.at)), 0);
	if (!is_ip6 && dice(2)) { // routers may fragment it
		((struct wire_ip4 *)(void *)(frame.at + WIRE_ETHER_BYTES))->fragment_be = 0;
		frame_mend(&frame);
	}
	if (dice(2))
		twist(&frame, !is_ip6);
	if (frame.n >= WIRE_ETHER_BYTES && dice(5) == 0)
		push_labels(&frame);
	if (frame.n >= WIRE_ETHER_BYTES)
		frame_tag_for(&frame, iface);
	if (frame.n >= WIRE_ETHER_BYTES && dice(20) == 0)
		frame_tag(&frame, CUSTOMER | dice(4096));
	return frame;
}

// All that a worker counts, and its devices and rings. Hops of the table have low ids.
struct seen {
	uint8_t stat[offsetof(struct stats_worker, hop) + FEW_HOPS * sizeof(uint64_t)];
	unsigned n_sent[FAKE_PORTS], n_made, n_taken;
	uint64_t redirects_due;
	struct acl_count rule[2][LISTS_MAX_RULES];
};

static void see(struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	memcpy(seen->stat, &fake.stat, sizeof(seen->stat));
	for (unsigned p = 0; p < FAKE_PORTS; p++)
		seen->n_sent[p] = fake.device[p].n_sent;
	seen->n_made = fake.n_made;
	seen->n_taken = fake.n_taken;
	seen->redirects_due = fake.worker.redirects_due;
	for (unsigned r = 0; r < LISTS_MAX_RULES; r++) {
		seen->rule[0][r] = acl_rule_count(lists, "list", r);
		seen->rule[1][r] = acl_rule_count(filters, "list", r);
	}
}

// Traces the frame, which changes nothing; what it says is in `trace`.
static void trace_frame(uint8_t port, const struct bytes *frame)
{
	static struct seen before, after;
	const struct trace_input input = {.like = &fake.worker,
		.port = port,
		.room = FAKE_ROOM,
		.frame = frame->at,
		.n = frame->n};
	struct error error = {""};

	see(&before);
	if (trace_run(&input, &trace, &error))
		fail_msg("%s", error.text);
	see(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(trace.account.received + trace.account.copied,
		trace.account.sent + trace.account.punted + trace.account.dropped);
}

static void expect_same_bytes(const struct trace_end *end, const struct rte_mbuf *mbuf)
{
	uint8_t bytes[FAKE_ROOM];

	assert_int_equal(end->n_bytes, mbuf->pkt_len);
	assert_memory_equal(end->bytes, rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, bytes),
		end->n_bytes);
}

// Receives the frame, and compares what happens with what was told.
static void expect_as_told(uint8_t port, const struct bytes *frame)
{
	static struct stats_worker before;
	struct bytes arrives = *frame;
	unsigned n_sent[FAKE_PORTS], dropped[N_VERDICTS] = {0};

	trace_frame(port, frame);
	memcpy(&before, &fake.stat, offsetof(struct stats_worker, hop));
	for (unsigned p = 0; p < FAKE_PORTS; p++)
		n_sent[p] = fake.device[p].n_sent;
	arrives.n = trace.n_received; // the device cuts it
	fake_receive(port, &arrives);
	fake_run();
	for (unsigned i = 0; i < trace.n_ends; i++) {
		const struct trace_end *end = &trace.end[i];

		if (end->kind == TRACE_SENT) {
			const unsigned at = n_sent[end->port]++;

			assert_true(at < fake.device[end->port].n_sent);
			expect_same_bytes(end, fake.device[end->port].sent[at]);
		} else if (end->kind == TRACE_PUNTED) {
			struct rte_mbuf *punted = fake_punted(end->class);

			assert_non_null(punted);
			assert_int_equal(punted->hash.usr, end->verdict);
			expect_same_bytes(end, punted);
		} else {
			dropped[end->verdict]++;
		}
	}
	for (unsigned p = 0; p < FAKE_PORTS; p++)
		assert_int_equal(fake.device[p].n_sent, n_sent[p]);
	for (unsigned v = 0; v < N_VERDICTS; v++) {
		const uint64_t counted = fake.stat.verdict[v] - before.verdict[v];

		assert_int_equal(counted, trace.account.verdict[v]);
		assert_int_equal(counted, v == VERDICT_FORWARD ? trace.account.sent : dropped[v]);
	}
	for (unsigned c = 0; c < N_CLASSES; c++)
		assert_null(fake_punted(c));
	datapath_trace_free(&trace);
}

static void a_trace_tells_what_happens_to_random_frames(void **state)
{
	unsigned n_ends[3] = {0}, n_rules = 0, n_flows = 0, n_fragmented = 0;

	set_routes();
	for (unsigned round = 0; round < ROUNDS; round++) {
		set_random_state(round);
		for (unsigned i = 0; i < FRAMES; i++) {
			const unsigned way = dice(ARRAY_LEN(ways_in));
			const struct bytes frame =
				random_frame(ways_in[way].iface, ways_in[way].port);

			expect_as_told(ways_in[way].port, &frame);
			n_ends[0] += trace.account.sent;
			n_ends[1] += trace.account.punted;
			n_ends[2] += trace.account.dropped;
			n_rules += trace.n_rules;
			n_flows += trace.flow != FLOW_NONE;
			n_fragmented += trace.is_fragmented;
		}
	}
	// The frames have met everything.
	for (unsigned i = 0; i < ARRAY_LEN(n_ends); i++)
		assert_true(n_ends[i] > ROUNDS);
	assert_true(n_rules > ROUNDS);
	assert_true(n_flows > 0);
	assert_true(n_fragmented > 0);
}

static void expect_steps(const char *const names[])
{
	for (unsigned i = 0; names[i]; i++) {
		assert_true(i < trace.n_steps);
		assert_string_equal(datapath_step_name(trace.step[i]), names[i]);
	}
}

static void a_trace_names_the_steps_and_what_they_found(void **state)
{
	const struct bytes frame = frame_on(TAGGED_IN, "10.20.0.7");

	fake_reset(fake_variants[0]);
	lists_use(lists, TAGGED_IN, ACL_IN, false,
		(const char *[LISTS_MAX_RULES]){"deny tcp", "permit"});
	fake.worker.acls = acl_live(lists);
	trace_frame(0, &frame);
	expect_steps((const char *[]){"parse", "lookup", "acl_in", "source", "check", "acl_out",
		"rewrite", "untag", "encap", "send", NULL});
	assert_int_equal(trace.iif, TAGGED_IN);
	assert_true(trace.has_hop && !trace.is_ip6);
	assert_int_equal(trace.dst4, 0x0a140007);
	assert_int_equal(trace.n_rules, 1);
	assert_int_equal(trace.rule[0].rule, 2);
	assert_string_equal(acl_source_of(lists, trace.rule[0].list)->name, "list");
	assert_int_equal(trace.n_ends, 1);
	assert_int_equal(trace.end[0].port, 1);
	datapath_trace_free(&trace);
}

static void a_trace_takes_no_tokens(void **state)
{
	const struct bytes frame = frame_to(0, "10.1.2.3");

	fake_reset(fake_variants[0]);
	lists_use(lists, PLAIN_IN, ACL_IN, false,
		(const char *[LISTS_MAX_RULES]){
			"permit police.rate 1packets/s police.burst 1packets"});
	fake.worker.acls = acl_live(lists);
	for (unsigned i = 0; i < 3; i++) {
		trace_frame(0, &frame);
		assert_false(trace.rule[0].is_red);
		assert_int_equal(trace.account.sent, 1);
		datapath_trace_free(&trace);
	}
	expect_as_told(0, &frame); // takes the only one
	trace_frame(0, &frame);
	assert_true(trace.rule[0].is_red);
	assert_int_equal(trace.end[0].verdict, VERDICT_POLICE_RED);
	datapath_trace_free(&trace);
}

static void a_trace_counts_no_packet_of_a_flow(void **state)
{
	const struct bytes frame = frame_to(0, "10.1.2.3");
	const struct flow_tuple tuple = flows_tuple("10.1.2.3");

	flows_reset(0);
	flows_set(&tuple, flows_to(2));
	trace_frame(0, &frame);
	assert_true(trace.flow_gives_hop);
	assert_int_equal(trace.end[0].port, 2);
	datapath_trace_free(&trace);
	flows_expect(&tuple, 0, 0);
	expect_as_told(0, &frame);
	flows_expect(&tuple, 1, frame.n);
}

static void a_trace_marks_no_bucket_as_used(void **state)
{
	const struct bytes frame = frame_to(0, "10.61.0.1");
	const struct fib_view *view = fib_live_view(&fake.live);
	const size_t n = FIB_MAX_GROUPS * FIB_GROUP_BUCKETS;
	unsigned n_used = 0;

	fake_reset(fake_variants[0]);
	fib_groups_poll(fake.fib, 1000000000);
	fib_groups_poll(fake.fib, 5000000000);
	uint32_t *before = malloc(n * sizeof(*before));
	assert_non_null(before);
	memcpy(before, view->used, n * sizeof(*before));
	trace_frame(0, &frame);
	assert_int_not_equal(trace.hop, trace.first_hop);
	datapath_trace_free(&trace);
	assert_memory_equal(before, view->used, n * sizeof(*before));
	expect_as_told(0, &frame);
	for (size_t i = 0; i < n; i++)
		n_used += before[i] != view->used[i];
	assert_int_equal(n_used, 1);
	free(before);
}

static void a_trace_uses_no_redirect(void **state)
{
	const struct bytes frame = frame_to(0, "10.0.7.7");
	struct iface settings = *fib_iface(fake.fib, 0);

	fake_reset(fake_variants[0]);
	settings.flags = IFACE_REDIRECTS4;
	fake_set(0, &settings);
	fake.tap.redirect_cycles = UINT64_MAX >> 8;
	fake.tap.redirect_burst = 2;
	for (unsigned i = 0; i < 4; i++)
		expect_as_told(0, &frame);
	settings.flags = 0;
	fake_set(0, &settings);
}

// Bridges.

static struct mac_table *table;
static struct mac_member members[FAKE_PORTS];
static struct mac_bridge bridge;

static void commit(void)
{
	struct mac_pending *pending;

	bridge.member = members;
	assert_int_equal(mac_prepare(table, &bridge, 1, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
}

static void open_bridge(void)
{
	const struct mac_settings settings = {.hz = rte_get_tsc_hz(),
		.n_workers = 1,
		.rcu = fake.rcu};

	assert_int_equal(mac_open(&table, &settings, NULL), 0);
	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	fake.worker.tap = NULL;
	bridge = (struct mac_bridge){.name = "br0",
		.linuxs = MAC_ALL_STORMS,
		.ageing_s = 300,
		.max = 100,
		.n_members = FAKE_PORTS};
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		members[i] = (struct mac_member){.port = i, .flags = MAC_LEARNS | MAC_FLOODS};
		fake.states[i].is_bridged = true;
		fake.states[i].mtu = i == 3 ? SMALL_MTU : 1500;
	}
	commit();
}

static struct bytes frame_between(uint8_t to, uint8_t from, uint16_t n)
{
	struct bytes frame = {.n = n, .at = {2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5}};

	if (to == 0xff)
		memset(frame.at, 0xff, 6);
	return frame;
}

static bool is_known(uint8_t host)
{
	const uint8_t mac[8] = {2, 0, 0, 0, 0, host};
	const struct mac_view *view = mac_live_view(mac_live(table));
	const uint64_t key = mac_key(view->port[0].domain, mac);
	struct mac_found found;

	mac_lookup(view->slots, &key, 1, &found);
	return found.slot;
}

static void a_trace_of_a_bridged_frame_learns_nothing(void **state)
{
	open_bridge();
	for (unsigned i = 0; i < 200; i++) {
		const uint8_t from = dice(8), to = dice(9) ? dice(8) : 0xff;
		const struct bytes frame = frame_between(to, from, dice(3) ? 100 : 700);
		const uint8_t port = from % FAKE_PORTS;
		const bool was_known = is_known(from);

		trace_frame(port, &frame);
		assert_int_equal(trace.bridge,
			to != 0xff && is_known(to) ? TRACE_KNOWN : TRACE_FLOODED);
		datapath_trace_free(&trace);
		mac_poll(table, rte_rdtsc());
		assert_int_equal(is_known(from), was_known);
		expect_as_told(port, &frame);
		mac_poll(table, rte_rdtsc());
		assert_true(is_known(from));
	}
	fake_reset(fake_variants[0]);
	mac_close(table);
}

static void a_trace_passes_storm_control_as_often_as_it_is_asked(void **state)
{
	const struct bytes frame = frame_between(0xff, 1, 100);

	open_bridge();
	bridge.storm_pps[MAC_BROADCAST] = 1;
	commit();
	for (unsigned i = 0; i < 4; i++) {
		trace_frame(0, &frame);
		assert_int_equal(trace.account.dropped, 0);
		datapath_trace_free(&trace);
	}
	fake_reset(fake_variants[0]);
	mac_close(table);
}

static void a_cross_connected_frame_is_traced(void **state)
{
	const struct bytes frame = frame_to(0, "10.1.2.3"), runt = {.n = 5};

	fake_reset(fake_variants[1]);
	fake.states[0].is_xconnect = true;
	fake.states[0].xconnect = 3;
	expect_as_told(0, &frame);
	expect_as_told(0, &runt);
	fake.states[0].mac_update = true;
	expect_as_told(0, &frame);
	assert_string_equal(datapath_step_name(trace.step[0]), "xconnect");
}

static void a_frame_of_several_buffers_is_traced(void **state)
{
	static uint8_t bytes[TRACE_FRAME_MAX];
	const struct bytes start = frame_to(0, "10.1.2.3");
	const struct trace_input input = {.like = &fake.worker,
		.port = 0,
		.room = FAKE_ROOM,
		.frame = bytes,
		.n = sizeof(bytes)};
	struct error error = {""};

	fake_reset(fake_variants[0]);
	memcpy(bytes, start.at, start.n);
	memset(bytes + start.n, 7, sizeof(bytes) - start.n);
	fake.states[1].tx_multi_segment = true;
	assert_int_equal(trace_run(&input, &trace, &error), 0); // a trailer that is cut off
	assert_int_equal(trace.n_ends, 1);
	assert_int_equal(trace.end[0].n_bytes, start.n);
	datapath_trace_free(&trace);
	fake.states[0].is_xconnect = true;
	fake.states[0].xconnect = 1;
	assert_int_equal(trace_run(&input, &trace, &error), 0);
	assert_int_equal(trace.end[0].n_bytes, sizeof(bytes));
	assert_memory_equal(trace.end[0].bytes, bytes, sizeof(bytes));
	datapath_trace_free(&trace);
	fake.states[1].tx_multi_segment = false;
	assert_int_equal(trace_run(&input, &trace, &error), 0);
	assert_int_equal(trace.end[0].verdict, VERDICT_MULTI_SEGMENT);
	datapath_trace_free(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_tells_what_happens_to_random_frames),
		cmocka_unit_test(a_trace_names_the_steps_and_what_they_found),
		cmocka_unit_test(a_trace_takes_no_tokens),
		cmocka_unit_test(a_trace_counts_no_packet_of_a_flow),
		cmocka_unit_test(a_trace_marks_no_bucket_as_used),
		cmocka_unit_test(a_trace_uses_no_redirect),
		cmocka_unit_test(a_trace_of_a_bridged_frame_learns_nothing),
		cmocka_unit_test(a_trace_passes_storm_control_as_often_as_it_is_asked),
		cmocka_unit_test(a_cross_connected_frame_is_traced),
		cmocka_unit_test(a_frame_of_several_buffers_is_traced),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
