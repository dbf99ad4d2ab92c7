// Flows: which packets have one, what its action does, and what happens to packets without one.
#include "datapath/flows.h"

#include "datapath/datapath.h"
#include "wire/build.h"
#include "wire/headers.h"

enum { OUT = 1, TTL_AT = 22, LIMIT_AT = 21, TYPE_AT = 34, TYPE6_AT = 54 };

static const char *const dsts[] = {"10.1.2.3", "2001:db8:1::3"};

static void receive_on(uint16_t iface, const char *dst)
{
	struct bytes frame = frame_on(iface, dst);

	fake_receive(0, &frame);
}

static void a_flow_leads_to_its_next_hop(void **state)
{
	static const uint16_t outs[] = {PLAIN_OUT, 3, TAGGED_OUT, RED_OUT};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(outs) * ARRAY_LEN(dsts); i++) {
			const char *dst = dsts[i % 2];
			const struct flow_tuple tuple = flows_tuple(dst);
			struct bytes frame = frame_to(0, dst);
			struct bytes left = frame_forwarded(&frame, outs[i / 2]);

			flows_reset(v);
			flows_set(&tuple, flows_to(outs[i / 2]));
			fake_receive(0, &frame);
			fake_run();
			expect_sent(fib_iface(fake.fib, outs[i / 2])->port, &left);
			flows_expect(&tuple, 1, frame.n);
		}
}

// Where there is no route, and to an address of the router.
static void a_flow_needs_no_route(void **state)
{
	static const char *const without[] = {"10.99.0.1", "2001:db8:99::1", "224.1.1.1"};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(without); i++) {
			const struct flow_tuple tuple = flows_tuple(without[i]);

			flows_reset(v);
			flows_set(&tuple, flows_to(3));
			receive_on(PLAIN_IN, without[i]);
			fake_run();
			assert_int_equal(fake.device[3].n_sent, 1);
		}
}

static void actions_drop_and_punt(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < 2 * ARRAY_LEN(dsts); i++) {
			const char *dst = dsts[i % 2];
			const struct flow_tuple tuple = flows_tuple(dst);
			struct bytes frame = frame_on(TAGGED_IN, dst);
			const bool drops = i / 2;

			flows_reset(v);
			flows_set(&tuple, flows_do(drops ? FLOW_DROP : FLOW_PUNT));
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_DROPPED], drops);
			assert_int_equal(fake.stat.handed[VERDICT_FLOW_PUNTED], !drops);
			if (!drops)
				expect_bytes(fake_punted(CLASS_LINUX), &frame);
			flows_expect(&tuple, 1, frame.n - WIRE_VLAN_BYTES);
		}
}

static void without_taps_what_is_to_be_punted_is_dropped(void **state)
{
	const struct flow_tuple tuple = flows_tuple(dsts[0]);

	flows_reset(1);
	fake.worker.tap = NULL;
	flows_set(&tuple, flows_do(FLOW_PUNT));
	receive_on(PLAIN_IN, dsts[0]);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_FLOW_PUNTED], 1);
}

// Not left to Linux, which would send the packet by its routes.
static void an_unresolved_next_hop_drops(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			const struct flow_tuple tuple = flows_tuple(dsts[i]);

			flows_reset(v);
			flows_set(&tuple, flows_to_unresolved());
			receive_on(PLAIN_IN, dsts[i]);
			receive_on(PLAIN_IN, "10.50.1.1"); // the same next hop, by route
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_UNRESOLVED], 1);
			assert_int_equal(fake.stat.handed[VERDICT_NEIGHBOUR_UNRESOLVED], 1);
			flows_expect(&tuple, 1, frame_to(0, dsts[i]).n);
		}
}

// Neither an unresolved next hop nor one that was withdrawn.
static void a_learnt_next_hop_is_no_worse_than_the_route(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts) * 3; i++) {
			const char *dst = dsts[i % 2];
			const struct flow_tuple tuple = flows_tuple(dst);
			struct flow_action action = i / 2 ? flows_to(3) : flows_to_unresolved();

			action.learnt = 1;
			flows_reset(v);
			flows_set(&tuple, action);
			if (i / 2 == 2)
				flows_withdraw(&action);
			receive_on(PLAIN_IN, dst);
			receive_on(PLAIN_IN, "10.50.1.1");
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_UNRESOLVED], 0);
			assert_int_equal(fake.device[i / 2 == 1 ? 3 : 1].n_sent, 1);
			flows_expect(&tuple, 1, frame_to(0, dst).n);
		}
}

// A flow by route that has none is no other than a packet without a flow.
static void by_route_the_route_decides(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		const struct flow_tuple tuple = flows_tuple("10.50.1.1");

		flows_reset(v);
		flows_set(&tuple, flows_by_route());
		receive_on(PLAIN_IN, "10.50.1.1");
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_NEIGHBOUR_UNRESOLVED], 1);
	}
}

static void an_expired_ttl_goes_to_linux(void **state)
{
	const struct flow_tuple tuple = flows_tuple(dsts[0]);
	struct bytes frame = frame_to(0, dsts[0]);

	frame.at[TTL_AT] = 1;
	frame_mend(&frame);
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		flows_set(&tuple, flows_to(3));
		fake_receive(0, &frame);
		fake_run();
		expect_bytes(fake_punted(CLASS_TTL), &frame);
	}
}

// Each loop of the worker sees the action that was set last.
static void a_changed_action_holds_from_the_next_burst_on(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			const struct flow_tuple tuple = flows_tuple(dsts[i]);
			const uint16_t bytes = frame_to(0, dsts[i]).n;

			flows_reset(v);
			flows_set(&tuple, flows_to(2));
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.device[2].n_sent, 1);
			flows_set(&tuple, flows_to(3));
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.device[3].n_sent, 1);
			flows_set(&tuple, flows_do(FLOW_DROP));
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_DROPPED], 1);
			flows_expect(&tuple, 3, 3 * bytes);
			flows_delete(&tuple);
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.device[OUT].n_sent, 1);
		}
}

// The next hop of a flow follows its neighbour and its interface.
static void a_next_hop_may_change(void **state)
{
	const struct flow_tuple tuple = flows_tuple(dsts[0]);
	const struct wire_mac mac = {{2, 0, 0, 77, 0, 2}};
	struct wire_addr via;

	assert_int_equal(wire_addr_parse("10.2.0.99", &via), 0);
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		flows_set(&tuple, flows_to_unresolved());
		assert_int_equal(fib_neighbour_set(fake.fib, 2, &via, &mac, NULL), 0);
		receive_on(PLAIN_IN, dsts[0]);
		fake_run();
		assert_int_equal(fake.device[2].n_sent, 1);
		assert_memory_equal(rte_pktmbuf_mtod(fake.device[2].sent[0], void *), mac.bytes, 6);
		assert_int_equal(fib_neighbour_delete(fake.fib, 2, &via), 0);
		receive_on(PLAIN_IN, dsts[0]);
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_FLOW_UNRESOLVED], 1);
	}
}

static void what_has_no_flow_may_be_dropped(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			const struct flow_tuple tuple = flows_tuple(dsts[i]);

			flows_reset(v);
			flows_drop_missing(true);
			receive_on(PLAIN_IN, dsts[i]);
			receive_on(PLAIN_IN, i ? "2001:db8:99::1" : "10.99.0.1"); // no route
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_MISSING], 2);
			flows_set(&tuple, flows_by_route());
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.device[OUT].n_sent, 1);
			flows_delete(&tuple);
			flows_drop_missing(false);
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.device[OUT].n_sent, 2);
		}
}

static void the_router_itself_needs_no_flow(void **state)
{
	static const char *const ours[] = {"10.0.0.9", "224.1.1.1", "fe80::1", "ff02::1"};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(ours); i++) {
			flows_reset(v);
			flows_drop_missing(true);
			receive_on(BLUE_IN, ours[i]);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_MISSING], 0);
			assert_int_equal(fake.stat.handed[VERDICT_LOCAL] +
						 fake.stat.handed[VERDICT_MULTICAST] +
						 fake.stat.handed[VERDICT_LINK_LOCAL_DESTINATION],
				1);
		}
}

// The only packet of a burst that claims to come from the router itself.
static void the_source_of_what_is_dropped_is_not_looked_up(void **state)
{
	static const uint8_t ours[] = {10, 0, 0, 1};
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
	struct bytes frame = frame_on(PLAIN_IN, dsts[0]);
	const struct flow_tuple tuple = flows_tuple(dsts[0]);

	memcpy(frame.at + WIRE_ETHER_BYTES + offsetof(struct wire_ip4, src), ours, sizeof(ours));
	frame_mend(&frame);
	fake_route(0, "10.0.0.1/32", &local);
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		flows_set(&tuple, flows_by_route());
		flows_drop_missing(true);
		fake_receive(0, &frame);
		receive_on(PLAIN_IN, dsts[0]);
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_FLOW_MISSING], 1);
		assert_int_equal(fake.device[OUT].n_sent, 1);
	}
}

static void before_the_first_routes_nothing_needs_a_flow(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		flows_drop_missing(true);
		fib_set_synced(fake.fib, false);
		receive_on(PLAIN_IN, "10.99.0.1");
		receive_on(PLAIN_IN, "2001:db8:99::1");
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_FLOW_MISSING], 0);
		assert_int_equal(fake.stat.handed[VERDICT_NOT_SYNCED], 2);
		fib_set_synced(fake.fib, true);
	}
}

static void leave_to_linux(uint16_t iface)
{
	struct iface settings = *fib_iface(fake.fib, iface);

	settings.flags = IFACE_LINUX4 | IFACE_LINUX6;
	fake_set(iface, &settings);
}

// Where Linux forwards, flows stop packets, and nothing else.
static void linux_does_not_follow_next_hops(void **state)
{
	static const enum flow_effect effects[] = {FLOW_TO_HOP, FLOW_BY_ROUTE, FLOW_DROP,
		FLOW_PUNT};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(effects) * ARRAY_LEN(dsts); i++) {
			const enum flow_effect effect = effects[i / 2];
			const struct flow_tuple tuple = flows_tuple(dsts[i % 2]);
			struct flow_action action =
				effect == FLOW_TO_HOP ? flows_to(3) : flows_do(effect);
			struct bytes frame = frame_on(TAGGED_IN, dsts[i % 2]);

			flows_reset(v);
			leave_to_linux(TAGGED_IN);
			action.dscp = 7;
			action.mirror = 2;
			flows_set(&tuple, action);
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_DROPPED],
				effect == FLOW_DROP);
			assert_int_equal(fake.stat.handed[VERDICT_FLOW_PUNTED],
				effect == FLOW_PUNT);
			assert_int_equal(fake.stat.handed[VERDICT_LINUX],
				effect == FLOW_TO_HOP || effect == FLOW_BY_ROUTE);
			if (effect != FLOW_DROP)
				expect_bytes(fake_punted(CLASS_LINUX), &frame);
			assert_int_equal(fake.n_taken, 0);
			flows_expect(&tuple, 1, frame.n - WIRE_VLAN_BYTES);
		}
}

static void linux_gets_packets_for_us_in_their_class(void **state)
{
	struct flow_tuple tuple = flows_tuple("10.0.0.9");

	tuple.vrf = BLUE;
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		leave_to_linux(BLUE_IN);
		flows_set(&tuple, flows_to(3));
		receive_on(BLUE_IN, "10.0.0.9");
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_LOCAL], 1);
	}
}

// A packet whose flow sends it back gives no reason for a redirect: Linux would name its own route.
static void flows_cause_no_redirects(void **state)
{
	struct iface settings;

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned by_flow = 0; by_flow < 2; by_flow++) {
			const struct flow_tuple tuple = flows_tuple("10.0.2.3");

			flows_reset(v);
			settings = *fib_iface(fake.fib, PLAIN_IN);
			settings.flags |= IFACE_REDIRECTS4;
			fake_set(PLAIN_IN, &settings);
			fake.tap.redirect_cycles = 1;
			fake.tap.redirect_burst = 10;
			flows_set(&tuple, by_flow ? flows_to(PLAIN_IN) : flows_by_route());
			receive_on(PLAIN_IN, "10.0.2.3");
			fake_run();
			assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], !by_flow);
			assert_int_equal(fake.device[0].n_sent, by_flow);
		}
}

// The source is checked as that of any other packet.
static void sources_of_flows_are_checked(void **state)
{
	struct iface settings;

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		const struct flow_tuple tuple = flows_tuple(dsts[0]);

		flows_reset(v);
		settings = *fib_iface(fake.fib, PLAIN_IN);
		settings.rpf4 = IFACE_RPF_STRICT;
		fake_set(PLAIN_IN, &settings);
		flows_set(&tuple, flows_to(3));
		receive_on(PLAIN_IN, dsts[0]);
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_RPF_FAILED], 1);
	}
}

static struct bytes echo(const char *dst, uint8_t type)
{
	const bool is6 = strchr(dst, ':');
	struct wire_recipe recipe = wire_recipe(is6 ? 6 : 4);
	struct bytes frame = {.n = recipe.frame_bytes};

	memcpy(recipe.dst_mac.bytes, fake.states[0].mac, sizeof(recipe.dst_mac.bytes));
	assert_int_equal(wire_addr_parse(dst, &recipe.dst), 0);
	recipe.protocol = is6 ? WIRE_PROTO_ICMP6 : WIRE_PROTO_ICMP4;
	recipe.src_port = 4711;
	recipe.dst_port = 99; // sequence number
	assert_int_equal(wire_build(&recipe, frame.at, sizeof(frame.at)), 0);
	frame.at[is6 ? TYPE6_AT : TYPE_AT] = type;
	return frame;
}

// By their identifier if they have one, else as identifier 0.
static void messages_have_flows(void **state)
{
	static const uint8_t with4[] = {0, 8, 13, 14}, with6[] = {128, 129};

	for (unsigned v = 0; v < FLOWS_CASES; v += 2)
		for (unsigned i = 0; i < 256 * ARRAY_LEN(dsts); i++) {
			const uint8_t type = i / 2, *with = i % 2 ? with6 : with4;
			const unsigned n_with = i % 2 ? ARRAY_LEN(with6) : ARRAY_LEN(with4);
			struct flow_tuple tuple = flows_tuple(dsts[i % 2]);
			struct bytes frame = echo(dsts[i % 2], type);

			tuple.proto = i % 2 ? WIRE_PROTO_ICMP6 : WIRE_PROTO_ICMP4;
			tuple.src_port = memchr(with, type, n_with) ? 4711 : 0;
			tuple.dst_port = 0;
			flows_reset(v);
			flows_set(&tuple, flows_to(3));
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.device[3].n_sent, 1);
		}
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

// Ports in another buffer than the headers are not read.
static void keys_are_in_the_first_buffer(void **state)
{
	static const struct {
		const char *dst;
		uint16_t tag_bytes, needs;
	} rows[] = {{"10.1.2.3", 0, 38}, {"10.1.2.3", 4, 42}, {"2001:db8:1::3", 0, 58},
		{"2001:db8:1::3", 4, 62}};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
			for (int less = 0; less < 2; less++) {
				const struct flow_tuple tuple = flows_tuple(rows[i].dst);
				struct bytes frame =
					frame_on(rows[i].tag_bytes ? TAGGED_IN : PLAIN_IN,
						rows[i].dst);

				flows_reset(v);
				flows_set(&tuple, flows_to(3));
				fake.states[1].tx_multi_segment = true;
				fake.states[3].tx_multi_segment = true;
				split(fake_receive(0, &frame), &frame, rows[i].needs - less);
				fake_run();
				assert_int_equal(fake.device[3].n_sent, !less);
				assert_int_equal(fake.device[OUT].n_sent, less);
			}
}

// Only what is walked by wire_transport6(): a chain of `n` empty headers of destination options.
static void long_chains_have_no_flow(void **state)
{
	enum { AT = WIRE_ETHER_BYTES + WIRE_IP6_BYTES, BYTES = 8, MOST = 8 };
	const struct flow_tuple tuple = flows_tuple(dsts[1]);

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned n = 1; n <= MOST + 1; n++) {
			struct bytes frame = frame_to(0, dsts[1]);
			struct wire_ip6 *ip = (void *)(frame.at + WIRE_ETHER_BYTES);

			for (unsigned i = 0; i < n; i++) {
				memmove(frame.at + AT + BYTES, frame.at + AT, frame.n - AT);
				memset(frame.at + AT, 0, BYTES);
				frame.at[AT] = ip->next_header;
				ip->next_header = WIRE_PROTO_DESTINATION;
				frame.n += BYTES;
			}
			ip->payload_length_be = htobe16(frame.n - AT);
			flows_reset(v);
			flows_set(&tuple, flows_to(3));
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.device[n > MOST ? OUT : 3].n_sent, 1);
			assert_int_equal(fake.stat.flow_fragments, 0);
		}
}

// A packet with IPv4 options, or a hop-by-hop header.
static struct bytes with_options(const char *dst)
{
	enum { AT4 = WIRE_ETHER_BYTES + WIRE_IP4_BYTES, AT6 = WIRE_ETHER_BYTES + WIRE_IP6_BYTES };
	static const uint8_t hop_by_hop[8] = {WIRE_PROTO_UDP, 0, 1, 4};
	struct bytes frame = frame_to(0, dst);
	const bool is_ip6 = strchr(dst, ':');
	const unsigned n = is_ip6 ? sizeof(hop_by_hop) : 4, at = is_ip6 ? AT6 : AT4;

	memmove(frame.at + at + n, frame.at + at, frame.n - at);
	frame.n += n;
	if (is_ip6) {
		memcpy(frame.at + at, hop_by_hop, n);
		frame.at[20] = WIRE_PROTO_HOP_BY_HOP;
		frame.at[19] += n;
		return frame;
	}
	memset(frame.at + at, 1, n);
	frame.at[14] = 0x46;
	frame.at[17] += n;
	frame_mend(&frame);
	return frame;
}

// Linux would forward them by its routes.
static void packets_with_options_obey_their_flow(void **state)
{
	static const uint8_t as_before[] = {VERDICT_IP4_OPTIONS, VERDICT_IP6_HOP_BY_HOP};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			const struct flow_tuple tuple = flows_tuple(dsts[i]);
			struct bytes frame = with_options(dsts[i]);

			flows_reset(v);
			flows_set(&tuple, flows_do(FLOW_DROP));
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_DROPPED], 1);
			flows_set(&tuple, flows_do(FLOW_PUNT));
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.handed[VERDICT_FLOW_PUNTED], 1);
			flows_set(&tuple, flows_to(3));
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.handed[as_before[i]], 1);
			flows_expect(&tuple, 3, 3 * frame.n);
			flows_delete(&tuple);
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.handed[as_before[i]], 2);
			flows_drop_missing(true);
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_MISSING], 1);
		}
}

// What is for the router itself is not missing.
static void options_to_the_router_need_no_flow(void **state)
{
	struct bytes frame = with_options("224.1.1.1");

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		flows_drop_missing(true);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_IP4_OPTIONS], 1);
	}
}

static void without_flows_of_a_family_none_is_found(void **state)
{
	const struct flow_settings only6 = {.max6 = 10, .n_workers = 1, .hz = 2000000000};
	struct flow_table *table = flow_create(&only6, 0, NULL);

	assert_non_null(table);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		flows_reset(v);
		fake.worker.flows = flow_view(table);
		receive_on(PLAIN_IN, dsts[0]);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
	}
	fake.worker.flows = NULL;
	flow_destroy(table);
}

static bool has_cycles(const char *name)
{
	for (unsigned i = 0; datapath_step_name(i); i++)
		if (!strcmp(datapath_step_name(i), name))
			return fake.stat.step_cycles[i];
	return false;
}

// Those of a pipelined phase are told as a whole.
static void cycles_are_told_under_enabled_steps(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned has_flows = 0; has_flows < 2; has_flows++) {
			flows_reset(v);
			if (!has_flows)
				fake.worker.flows = NULL;
			fake.worker.long_gap = 1ull << 56;
			receive_on(PLAIN_IN, dsts[0]);
			fake_run();
			assert_int_equal(has_cycles("match"), has_flows);
			assert_true(has_cycles("lookup") || has_flows);
			assert_false(has_cycles("flow"));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_leads_to_its_next_hop),
		cmocka_unit_test(a_flow_needs_no_route),
		cmocka_unit_test(actions_drop_and_punt),
		cmocka_unit_test(without_taps_what_is_to_be_punted_is_dropped),
		cmocka_unit_test(an_unresolved_next_hop_drops),
		cmocka_unit_test(a_learnt_next_hop_is_no_worse_than_the_route),
		cmocka_unit_test(by_route_the_route_decides),
		cmocka_unit_test(an_expired_ttl_goes_to_linux),
		cmocka_unit_test(a_changed_action_holds_from_the_next_burst_on),
		cmocka_unit_test(a_next_hop_may_change),
		cmocka_unit_test(what_has_no_flow_may_be_dropped),
		cmocka_unit_test(the_router_itself_needs_no_flow),
		cmocka_unit_test(the_source_of_what_is_dropped_is_not_looked_up),
		cmocka_unit_test(before_the_first_routes_nothing_needs_a_flow),
		cmocka_unit_test(linux_does_not_follow_next_hops),
		cmocka_unit_test(linux_gets_packets_for_us_in_their_class),
		cmocka_unit_test(flows_cause_no_redirects),
		cmocka_unit_test(sources_of_flows_are_checked),
		cmocka_unit_test(messages_have_flows),
		cmocka_unit_test(keys_are_in_the_first_buffer),
		cmocka_unit_test(long_chains_have_no_flow),
		cmocka_unit_test(packets_with_options_obey_their_flow),
		cmocka_unit_test(options_to_the_router_need_no_flow),
		cmocka_unit_test(without_flows_of_a_family_none_is_found),
		cmocka_unit_test(cycles_are_told_under_enabled_steps),
	};

	return cmocka_run_group_tests(tests, flows_open, flows_close);
}
