// Random packets and flows against a plain model: each packet by itself, from what it was made of.
#include "datapath/dice.h"
#include "datapath/flows.h"

#include "wire/build.h"
#include "wire/headers.h"

#include <stdio.h>

enum { ROUNDS = 40, N_PACKETS = 500, MOST_FLOWS = 300, MIRROR = 2 };
enum { LEFT_TO_LINUX = SERVICE_IN };

// What a packet is made of; its flow, if it has one, has the same addresses, protocol and ports.
enum form { WHOLE, FIRST_FRAGMENT, LATER_FRAGMENT, CUT, EXTENSION, ERROR_MESSAGE, N_SHAPES };
struct packet {
	uint16_t iface;
	uint8_t family, proto, src, dst, ttl; // src and dst: numbers in the lists below
	uint16_t src_port, dst_port;
	enum form form;
	struct bytes plain, frame; // without and with tags
	struct rte_mbuf *mbuf;
};

static const struct {
	uint16_t iface, vrf;
} ways_in[] = {{PLAIN_IN, 0}, {TAGGED_IN, 0}, {QINQ_IN, 0}, {RED_IN, RED}, {BLUE_IN, BLUE},
	{LEFT_TO_LINUX, 0}};
static const char *const srcs[2][3] = {{"192.0.2.1", "192.0.2.2", "198.51.100.7"},
	{"2001:db8::1", "2001:db8::2", "2001:db8:77::7"}};
static const char *const dsts[2][4] = {{"10.1.2.3", "10.3.9.9", "10.99.0.1", "10.0.0.9"},
	{"2001:db8:1::3", "2001:db8:3::9", "2001:db8:99::1", "2001:db8:1::4"}};
static const uint8_t protos[] = {WIRE_PROTO_TCP, WIRE_PROTO_UDP, WIRE_PROTO_SCTP, 33, 136, 47};

static struct packet packets[N_PACKETS];
static struct bytes copies[N_PACKETS];
static unsigned n_copies;

// The flows of a round.
static struct {
	struct flow_tuple tuple;
	struct flow_action action;
	uint16_t out; // FLOW_TO_HOP
	bool is_resolved;
	uint64_t packets, bytes;
} flows[MOST_FLOWS];
static unsigned n_flows;
static bool drops_missing;

static bool has_ports(uint8_t proto)
{
	return proto != 47 && proto != WIRE_PROTO_ICMP4 && proto != WIRE_PROTO_ICMP6;
}

static bool is_icmp(const struct packet *p)
{
	return p->proto == WIRE_PROTO_ICMP4 || p->proto == WIRE_PROTO_ICMP6;
}

// The number of bytes of layer 4 that do not contain the whole key.
static unsigned too_few(const struct packet *p)
{
	if (is_icmp(p))
		return dice(6);
	return has_ports(p->proto) ? dice(4) : 0;
}

static void cut(struct packet *p)
{
	const unsigned n = too_few(p);
	struct wire_ip4 *ip4 = (void *)(p->plain.at + WIRE_ETHER_BYTES);
	struct wire_ip6 *ip6 = (void *)(p->plain.at + WIRE_ETHER_BYTES);

	if (p->family == 4)
		ip4->total_length_be = htobe16(WIRE_IP4_BYTES + n);
	else
		ip6->payload_length_be = htobe16(n);
	p->plain.n = MAX_OF(60u, WIRE_ETHER_BYTES + (p->family == 4 ? 20u : 40u) + n);
	if (is_icmp(p) && n)
		p->plain.at[WIRE_ETHER_BYTES + (p->family == 4 ? 20 : 40)] =
			p->family == 4 ? WIRE_ICMP4_ECHO : WIRE_ICMP6_ECHO;
}

// An extension header before layer 4; `field`: fragment offset and flag.
static void insert(struct packet *p, uint8_t header, uint8_t field)
{
	enum { AT = WIRE_ETHER_BYTES + WIRE_IP6_BYTES, BYTES = 8 };
	struct wire_ip6 *ip6 = (void *)(p->plain.at + WIRE_ETHER_BYTES);

	memmove(p->plain.at + AT + BYTES, p->plain.at + AT, p->plain.n - AT);
	p->plain.n += BYTES;
	memcpy(p->plain.at + AT, (uint8_t[BYTES]){ip6->next_header, [3] = field}, BYTES);
	ip6->next_header = header;
	ip6->payload_length_be = htobe16(be16toh(ip6->payload_length_be) + BYTES);
}

static void form(struct packet *p)
{
	static const uint8_t extensions[] = {WIRE_PROTO_DESTINATION, WIRE_PROTO_ROUTING,
		WIRE_PROTO_FRAGMENT}; // the last one: an atomic fragment
	struct wire_ip4 *ip4 = (void *)(p->plain.at + WIRE_ETHER_BYTES);
	const bool is_first = p->form == FIRST_FRAGMENT;

	switch (p->form) {
	case FIRST_FRAGMENT:
	case LATER_FRAGMENT:
		if (p->family == 4)
			ip4->fragment_be = htobe16(is_first ? 0x2000 : 0x0007);
		else
			insert(p, WIRE_PROTO_FRAGMENT, is_first ? 1 : 7 << 3);
		break;
	case CUT:
		cut(p);
		break;
	case EXTENSION:
		if (p->family == 6)
			insert(p, extensions[dice(ARRAY_LEN(extensions))], 0);
		break;
	case ERROR_MESSAGE:
		if (is_icmp(p))
			p->plain.at[WIRE_ETHER_BYTES + (p->family == 4 ? 20 : 40)] = 3;
	default:
		break;
	}
}

static void build(struct packet *p, unsigned id)
{
	struct wire_recipe recipe = wire_recipe(p->family);
	struct wire_ip4 *ip4 = (void *)(p->plain.at + WIRE_ETHER_BYTES);
	const unsigned layer4 = WIRE_ETHER_BYTES + (p->family == 4 ? 20 : 40);
	const uint16_t ports_be[] = {htobe16(p->src_port), htobe16(p->dst_port)};

	memcpy(recipe.dst_mac.bytes, fake.states[0].mac, sizeof(recipe.dst_mac.bytes));
	wire_addr_parse(srcs[p->family == 6][p->src], &recipe.src);
	wire_addr_parse(dsts[p->family == 6][p->dst], &recipe.dst);
	recipe.protocol = p->proto;
	recipe.ttl = p->ttl;
	recipe.src_port = p->src_port;
	recipe.dst_port = p->dst_port;
	recipe.frame_bytes = 80 + dice(20);
	recipe.dscp_ecn = dice(256);
	p->plain = (struct bytes){.n = recipe.frame_bytes};
	assert_int_equal(wire_build(&recipe, p->plain.at, sizeof(p->plain.at)), 0);
	if (has_ports(p->proto))
		memcpy(p->plain.at + layer4, ports_be, sizeof(ports_be));
	form(p);
	if (p->family == 4) {
		ip4->id_be = htobe16(id);
		frame_mend(&p->plain);
	} else {
		p->plain.at[16] = id >> 8; // flow label
		p->plain.at[17] = id;
	}
	p->frame = p->plain;
	frame_tag_for(&p->frame, p->iface);
}

static struct packet random_packet(unsigned id)
{
	struct packet p = {.iface = ways_in[dice(ARRAY_LEN(ways_in))].iface,
		.family = dice(3) ? 4 : 6,
		.src = dice(3),
		.dst = dice(4),
		.ttl = dice(20) ? 64 : 1,
		.src_port = dice(2) ? 1000 : 0x1234,
		.dst_port = dice(2),
		.form = dice(3) ? WHOLE : (enum form)dice(N_SHAPES)};

	if (dice(4))
		p.proto = protos[dice(ARRAY_LEN(protos))];
	else
		p.proto = p.family == 4 ? WIRE_PROTO_ICMP4 : WIRE_PROTO_ICMP6;
	build(&p, id);
	return p;
}

static uint16_t vrf_of(uint16_t iface)
{
	for (unsigned i = 0; i < ARRAY_LEN(ways_in); i++)
		if (ways_in[i].iface == iface)
			return ways_in[i].vrf;
	return 0;
}

// The flow that a packet could have; false: none.
static bool tuple_of(const struct packet *p, struct flow_tuple *tuple)
{
	*tuple = (struct flow_tuple){.vrf = vrf_of(p->iface), .proto = p->proto};
	wire_addr_parse(srcs[p->family == 6][p->src], &tuple->src);
	wire_addr_parse(dsts[p->family == 6][p->dst], &tuple->dst);
	if (has_ports(p->proto)) {
		tuple->src_port = p->src_port;
		tuple->dst_port = p->dst_port;
	}
	if (is_icmp(p) && p->form != ERROR_MESSAGE)
		tuple->src_port = p->src_port;
	switch (p->form) {
	case FIRST_FRAGMENT:
	case LATER_FRAGMENT:
		return false;
	case CUT:
		return p->proto == 47;
	default:
		return true;
	}
}

static int flow_of(const struct packet *p)
{
	struct flow_tuple tuple;

	if (!tuple_of(p, &tuple))
		return -1;
	for (unsigned i = 0; i < n_flows; i++)
		if (!memcmp(&flows[i].tuple, &tuple, sizeof(tuple)))
			return i;
	return -1;
}

static struct flow_action random_action(uint16_t *out, bool *is_resolved)
{
	static const uint16_t outs[] = {PLAIN_OUT, 3, TAGGED_OUT, RED_OUT, QINQ_OUT};
	struct flow_action action = flows_by_route();

	*is_resolved = true;
	switch (dice(6)) {
	case 0:
		return flows_do(dice(2) ? FLOW_DROP : FLOW_PUNT);
	case 1:
		break;
	case 2:
		*is_resolved = false;
		action = flows_to_unresolved();
		break;
	default:
		*out = outs[dice(ARRAY_LEN(outs))];
		action = flows_to(*out);
	}
	if (!dice(3))
		action.dscp = dice(64);
	if (!dice(4))
		action.mirror = MIRROR;
	return action;
}

// Flows of some of the packets, or of similar ones.
static void deal_flows(void)
{
	const unsigned n = dice(MOST_FLOWS);

	for (n_flows = 0; n_flows < n;) {
		struct packet p = dice(4) ? packets[dice(N_PACKETS)] : random_packet(0);
		typeof(*flows) made = {0};

		p.form = p.form == ERROR_MESSAGE ? ERROR_MESSAGE : WHOLE;
		tuple_of(&p, &made.tuple);
		if (flow_of(&p) >= 0)
			continue;
		made.action = random_action(&made.out, &made.is_resolved);
		flows_set(&made.tuple, made.action);
		flows[n_flows++] = made;
	}
}

// What becomes of a packet.
struct fate {
	enum verdict verdict;
	uint16_t out;     // if it is forwarded: interface
	uint8_t dscp;     // or FLOW_KEEP_DSCP
	bool is_mirrored; // and the copy sent
};

static enum verdict route_of(const struct packet *p, uint16_t *out)
{
	const uint16_t vrf = vrf_of(p->iface);
	const bool is_second = p->dst == 3 && p->family == 6; // the network of the first

	if (p->dst == 0 || is_second)
		*out = vrf == RED ? RED_OUT : vrf == BLUE ? 3 : PLAIN_OUT;
	else if (p->dst == 1 && !vrf)
		*out = 3;
	else if (p->dst == 3 && vrf == BLUE)
		return VERDICT_LOCAL;
	else if (p->dst == 3 && !vrf)
		*out = PLAIN_IN;
	else
		return VERDICT_NO_ROUTE;
	return VERDICT_FORWARD;
}

static struct fate judge_packet(const struct packet *p)
{
	struct fate fate = {.dscp = FLOW_KEEP_DSCP};
	const enum verdict route = route_of(p, &fate.out);
	const int flow = flow_of(p);

	fate.verdict = route;
	if (flow >= 0) {
		const struct flow_action *action = &flows[flow].action;

		flows[flow].packets++;
		flows[flow].bytes += p->plain.n;
		if (action->effect == FLOW_DROP || action->effect == FLOW_PUNT) {
			fate.verdict = action->effect == FLOW_DROP ? VERDICT_FLOW_DROPPED
			                                           : VERDICT_FLOW_PUNTED;
			return fate;
		}
		fate.dscp = action->dscp;
		fate.is_mirrored = action->mirror == MIRROR;
	} else if (drops_missing && route != VERDICT_LOCAL) {
		fate.verdict = VERDICT_FLOW_MISSING;
		return fate;
	}
	if (p->iface == LEFT_TO_LINUX) {
		fate.verdict = route == VERDICT_LOCAL ? VERDICT_LOCAL : VERDICT_LINUX;
		return fate;
	}
	if (flow >= 0 && flows[flow].action.effect == FLOW_TO_HOP) {
		fate.verdict = flows[flow].is_resolved ? VERDICT_FORWARD : VERDICT_FLOW_UNRESOLVED;
		fate.out = flows[flow].out;
	}
	if (fate.verdict == VERDICT_FORWARD && p->ttl == 1)
		fate.verdict = VERDICT_TTL_EXPIRED;
	return fate;
}

static struct bytes marked(const struct packet *p, uint8_t dscp)
{
	struct bytes frame = p->plain;
	uint8_t *at = frame.at + WIRE_ETHER_BYTES;
	unsigned class;

	if (dscp == FLOW_KEEP_DSCP)
		return frame;
	if (p->family == 4) {
		at[1] = dscp << 2 | (at[1] & 3);
		frame_mend(&frame);
		return frame;
	}
	class = dscp << 2 | (at[1] >> 4 & 3);
	at[0] = 0x60 | class >> 4;
	at[1] = (class & 15) << 4 | (at[1] & 15);
	return frame;
}

static void expect_sent_as(const struct packet *p, const struct fate *fate)
{
	const uint8_t port = fib_iface(fake.fib, fate->out)->port;
	const struct bytes frame = marked(p, fate->dscp), left = frame_forwarded(&frame, fate->out);
	const struct fake_device *d = &fake.device[port];
	unsigned i = 0;

	while (i < d->n_sent && d->sent[i] != p->mbuf)
		i++;
	assert_true(i < d->n_sent);
	expect_bytes(p->mbuf, &left);
}

// Copies come in the order of their family; each frame is unique.
static void expect_copies(void)
{
	const struct fake_device *d = &fake.device[MIRROR];
	unsigned n = 0;

	for (unsigned i = 0; i < d->n_sent; i++) {
		const struct rte_mbuf *m = d->sent[i];
		unsigned k = 0;

		while (k < n_copies &&
			(copies[k].n != m->pkt_len || memcmp(rte_pktmbuf_mtod(m, const void *),
							      copies[k].at, m->pkt_len)))
			k++;
		if (k == n_copies)
			continue; // forwarded there
		copies[k].n = 0;
		n++;
	}
	assert_int_equal(n, n_copies);
}

static void expect_fates(void)
{
	uint64_t expected[N_VERDICTS] = {0};
	uint64_t n_fragments = 0, n_of_flows = 0;

	n_copies = 0;
	for (unsigned i = 0; i < N_PACKETS; i++) {
		const struct packet *p = &packets[i];
		const struct fate fate = judge_packet(p);

		n_fragments += p->form == FIRST_FRAGMENT || p->form == LATER_FRAGMENT;
		expected[fate.verdict]++;
		if (fate.verdict != VERDICT_FORWARD)
			continue;
		expect_sent_as(p, &fate);
		if (fate.is_mirrored)
			copies[n_copies++] = p->frame;
	}
	expected[VERDICT_FORWARD] += n_copies;
	for (unsigned v = 0; v < N_VERDICTS; v++)
		assert_int_equal(flows_stopped(v), expected[v]);
	assert_int_equal(fake.stat.flow_fragments, n_fragments);
	expect_copies();
	for (unsigned i = 0; i < n_flows; i++) {
		flows_expect(&flows[i].tuple, flows[i].packets, flows[i].bytes);
		n_of_flows += flows[i].packets;
	}
	assert_int_equal(fake.stat.flow_packets, n_of_flows);
}

static void each_packet_meets_its_fate(void **state)
{
	struct iface linuxs;

	for (unsigned round = 0; round < ROUNDS; round++) {
		flows_reset(round % FLOWS_CASES);
		linuxs = *fib_iface(fake.fib, LEFT_TO_LINUX);
		linuxs.flags = IFACE_LINUX4 | IFACE_LINUX6;
		fake_set(LEFT_TO_LINUX, &linuxs);
		drops_missing = dice(4) == 0;
		flows_drop_missing(drops_missing);
		for (unsigned i = 0; i < N_PACKETS; i++)
			packets[i] = random_packet(i);
		deal_flows();
		for (unsigned i = 0; i < N_PACKETS; i++)
			packets[i].mbuf = fake_receive(0, &packets[i].frame);
		fake_run();
		expect_fates();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_meets_its_fate),
	};

	return cmocka_run_group_tests(tests, flows_open, flows_close);
}
