// Looks up the flows of a burst: for each packet that has one its number and action, and the next
// hop if the action gives one. Reads only. What the other actions do is the business of the step
// flow. Worker.
#include "datapath/hop_limits.h"
#include "datapath/steps.h"
#include "wire/transport.h"

#include <endian.h>
#include <netinet/in.h>

enum { KEY4_AT = WIRE_ETHER_BYTES + offsetof(struct wire_ip4, ttl), PORTS_BYTES = 4 };

static inline bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP ||
	       proto == IPPROTO_DCCP || proto == IPPROTO_UDPLITE;
}

// Messages with an identifier, as for Linux (skb_flow_get_icmp_tci() in net/core/flow_dissector.c).
static bool has_identifier(uint8_t proto, uint8_t type)
{
	if (proto == WIRE_PROTO_ICMP6)
		return type == WIRE_ICMP6_ECHO || type == WIRE_ICMP6_ECHO_REPLY;
	return type == WIRE_ICMP4_ECHO || type == WIRE_ICMP4_ECHO_REPLY ||
	       type == WIRE_ICMP4_TIMESTAMP || type == WIRE_ICMP4_TIMESTAMP_REPLY;
}

struct ports {
	uint16_t src_be, dst_be;
};

// The ports of a key, of n bytes of layer 4. False: there are too few.
static bool read_ports(struct ports *ports, uint8_t proto, bool is_icmp, const uint8_t *layer4,
	unsigned n)
{
	const struct wire_icmp *icmp = (const void *)layer4;

	*ports = (struct ports){0};
	if (has_ports(proto)) {
		if (n < PORTS_BYTES)
			return false;
		memcpy(ports, layer4, sizeof(*ports));
	} else if (is_icmp) {
		if (n < 1)
			return false;
		if (!has_identifier(proto, icmp->type))
			return true;
		if (n < offsetof(struct wire_icmp, seq_be))
			return false;
		ports->src_be = icmp->id_be;
	}
	return true;
}

static inline bool is_fragment4(const struct wire_ip4 *ip)
{
	return ip->fragment_be & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET);
}

// A whole packet of TCP or UDP in one buffer.
static inline bool is_common4(const struct wire_ip4 *ip, uint16_t has)
{
	const unsigned is_common = ip->protocol == WIRE_PROTO_TCP || ip->protocol == WIRE_PROTO_UDP;
	const unsigned is_long = be16toh(ip->total_length_be) >= WIRE_IP4_BYTES + PORTS_BYTES;

	return is_common & is_long & (unsigned)!is_fragment4(ip) &
	       (unsigned)!(has & BURST_SEGMENTS);
}

// A key of any packet. False: it has none.
static __attribute__((noinline)) bool make_key4(const struct burst *b, uint16_t i,
	struct flow_key4 *key)
{
	const uint8_t *frame = b->frame[i];
	const struct wire_ip4 *ip = (const void *)(frame + WIRE_ETHER_BYTES);
	const unsigned end = MIN_OF(burst_contiguous_bytes(b, i),
		WIRE_ETHER_BYTES + be16toh(ip->total_length_be));
	const unsigned layer4 = WIRE_ETHER_BYTES + wire_ip4_header_bytes(ip);
	struct ports ports;

	*key = (struct flow_key4){0};
	if (is_fragment4(ip) || layer4 > end ||
		!read_ports(&ports, ip->protocol, ip->protocol == WIRE_PROTO_ICMP4, frame + layer4,
			end - layer4))
		return false;
	*key = (struct flow_key4){.kind = flow_kind4(burst_vrf(b, i), ip->protocol),
		.src_be = load32(ip->src),
		.dst_be = load32(ip->dst),
		.src_port_be = ports.src_be,
		.dst_port_be = ports.dst_be};
	return true;
}

// As in memory: 16 bytes of the packet, the first four of which are replaced.
typedef uint32_t key_words __attribute__((vector_size(16), may_alias));

static inline void copy_key4(const uint8_t *frame, uint32_t kind, struct flow_key4 *key)
{
	key_words words;

	memcpy(&words, frame + KEY4_AT, sizeof(words));
	words[0] = kind;
	*(key_words *)(void *)key = words;
}
_Static_assert(KEY4_AT + 4 == WIRE_ETHER_BYTES + offsetof(struct wire_ip4, src),
	"the addresses and the ports follow the word of the kind");

// Returns a bit for each packet without a key.
static uint64_t make_keys4(const struct burst *b, struct flow_key4 key[])
{
	const uint16_t has = b->has, n = b->n;
	uint64_t other = 0, keyless = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *frame = b->frame[i];
		const struct wire_ip4 *ip = (const void *)(frame + WIRE_ETHER_BYTES);

		if (likely(is_common4(ip, has)))
			copy_key4(frame, flow_kind4(burst_vrf(b, i), ip->protocol), &key[i]);
		else
			other |= 1ull << i;
	}
	for (; unlikely(other); other &= other - 1) {
		const uint16_t i = __builtin_ctzll(other);

		keyless |= (uint64_t)!make_key4(b, i, &key[i]) << i;
	}
	return keyless;
}

// The part of an IPv6 packet in its first buffer, from its header on.
static unsigned bytes_of6(const struct burst *b, uint16_t i)
{
	const struct wire_ip6 *ip = (const void *)(b->frame[i] + WIRE_ETHER_BYTES);

	return MIN_OF(burst_contiguous_bytes(b, i) - (unsigned)WIRE_ETHER_BYTES,
		(unsigned)WIRE_IP6_BYTES + be16toh(ip->payload_length_be));
}

// The transport header of a packet that is no fragment. False: there is none.
static inline bool find_transport6(const uint8_t *packet, unsigned bytes,
	struct wire_transport *transport)
{
	const uint8_t next = ((const struct wire_ip6 *)packet)->next_header;

	if (likely(next == WIRE_PROTO_TCP || next == WIRE_PROTO_UDP)) {
		*transport = (struct wire_transport){.proto = next, .offset = WIRE_IP6_BYTES};
		return true;
	}
	wire_transport6(transport, packet, bytes);
	return transport->verdict == WIRE_TRANSPORT_OK && transport->fragment == WIRE_FRAGMENT_NONE;
}

static inline bool make_key6(const struct burst *b, uint16_t i, struct flow_key6 *key)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;
	const struct wire_ip6 *ip = (const void *)packet;
	const unsigned bytes = bytes_of6(b, i);
	struct wire_transport transport;
	struct ports ports;

	*key = (struct flow_key6){0};
	if (!find_transport6(packet, bytes, &transport) ||
		!read_ports(&ports, transport.proto, transport.proto == WIRE_PROTO_ICMP6,
			packet + transport.offset, bytes - transport.offset))
		return false;
	memcpy(key->src, ip->src, sizeof(key->src));
	memcpy(key->dst, ip->dst, sizeof(key->dst));
	key->src_port_be = ports.src_be;
	key->dst_port_be = ports.dst_be;
	key->proto = transport.proto;
	key->vrf = burst_vrf(b, i);
	return true;
}

static uint64_t make_keys6(const struct burst *b, struct flow_key6 key[])
{
	uint64_t keyless = 0;

	for (uint16_t i = 0; i < b->n; i++)
		keyless |= (uint64_t)!make_key6(b, i, &key[i]) << i;
	return keyless;
}

bool datapath_match_key(const struct burst *b, uint16_t i, struct flow_unknown *unknown)
{
	unknown->family = b->is_ip6 ? 6 : 4;
	return b->is_ip6 ? make_key6(b, i, &unknown->six) : make_key4(b, i, &unknown->four);
}

static bool is_fragment(const struct burst *b, uint16_t i)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;
	struct wire_transport transport;

	if (!b->is_ip6)
		return is_fragment4((const void *)packet);
	wire_transport6(&transport, packet, bytes_of6(b, i));
	return transport.fragment != WIRE_FRAGMENT_NONE;
}

static __attribute__((noinline)) void count_fragments(struct worker *w, const struct burst *b,
	uint64_t keyless)
{
	unsigned n = 0;

	for (; keyless; keyless &= keyless - 1)
		n += is_fragment(b, __builtin_ctzll(keyless));
	stats_add(&w->stat->flow_fragments, n);
}

static inline struct flow_lookup *lookup_of(struct poll_flows *flows, const struct burst *b)
{
	return b->is_ip6 ? &flows->lookup6 : &flows->lookup4;
}

// The keys are there, except those of the packets that have none.
static inline void start(struct worker *w, struct poll_flows *flows, const struct burst *b,
	uint64_t keyless)
{
	struct flow_lookup *lookup = lookup_of(flows, b);

	lookup->n = b->n;
	lookup->count = w->flows->count[w->io->id];
	if (b->is_ip6) {
		flows->keyless6 = keyless;
		flow_lookup6_begin(w->flows, flows->key6, lookup);
	} else {
		flows->keyless4 = keyless;
		flow_lookup4_begin(w->flows, flows->key4, lookup);
	}
	if (unlikely(keyless))
		count_fragments(w, b, keyless);
}

static inline void begin(struct worker *w, struct poll_flows *flows, const struct burst *b)
{
	start(w, flows, b, b->is_ip6 ? make_keys6(b, flows->key6) : make_keys4(b, flows->key4));
}

static inline void go_on(struct worker *w, struct poll_flows *flows, const struct burst *b)
{
	if (b->is_ip6)
		flow_lookup6_continue(w->flows, flows->key6, &flows->lookup6);
	else
		flow_lookup4_continue(w->flows, flows->key4, &flows->lookup4);
}

static inline uint64_t find_found(const uint32_t flow[], unsigned n)
{
	uint64_t found = 0;

	for (unsigned i = 0; i < n; i++)
		found |= (uint64_t)(flow[i] != FLOW_NONE) << i;
	return found;
}

// Users want no other next hop. One that was learnt is followed only while it forwards packets.
static inline bool is_followed(const struct fib_view *view, const struct flow_action *action,
	uint32_t hop)
{
	if (likely(!action->learnt))
		return true;
	// Pairs with the store in flow_action_withdraw.
	return !__atomic_load_n(&action->withdrawn, __ATOMIC_RELAXED) &&
	       limits_kind(limits_read(view, hop)) != FIB_HOP_STOP;
}

// Writes the next hops that flows give: not of packets that Linux forwards, whose class depends on
// the route.
static inline void take_hops(const struct worker *w, struct burst *b)
{
	const struct flow_action *actions = w->flows->actions;
	uint64_t with_hop = 0;

	for (uint64_t rest = b->flow_mask & ~b->linux_mask; rest; rest &= rest - 1) {
		const unsigned i = __builtin_ctzll(rest);
		const struct flow_action *action = &actions[b->action[i]];

		if (action->effect != FLOW_TO_HOP)
			continue;
		const uint32_t hop = fib_held_load(b->view, action->held);
		if (!is_followed(b->view, action, hop))
			continue;
		b->hop[i] = hop;
		with_hop |= 1ull << i;
	}
	b->flow_hop_mask = with_hop;
	b->redirect_mask &= ~with_hop; // Linux would redirect hosts by its routes
}

// Whether flows may be learnt from packets of this burst that have none.
static inline bool may_learn(const struct worker *w, const struct burst *b)
{
	return w->learn && flow_learn_is_on(w->learn) &&
	       (b->is_ip6 ? w->flows->n_lines6 : w->flows->n_lines4);
}

static inline void end(struct worker *w, struct poll_flows *flows, struct burst *b)
{
	const struct flow_lookup *lookup = lookup_of(flows, b);

	if (b->is_ip6)
		flow_lookup6_end(w->flows, flows->key6, &flows->lookup6);
	else
		flow_lookup4_end(w->flows, flows->key4, &flows->lookup4);
	b->flow_mask =
		find_found(lookup->flow, b->n) & ~(b->is_ip6 ? flows->keyless6 : flows->keyless4);
	memcpy(b->flow, lookup->flow, b->n * sizeof(b->flow[0]));
	memcpy(b->action, lookup->action, b->n * sizeof(b->action[0]));
	take_hops(w, b);
	if (~b->flow_mask & burst_all(b) && may_learn(w, b))
		b->has |= BURST_UNKNOWN;
	if (b->flow_mask || __atomic_load_n(w->drops_missing, __ATOMIC_RELAXED))
		b->has |= BURST_FLOWS;
}

void datapath_match(struct worker *w, struct burst *b)
{
	struct poll_flows *flows = w->poll->flows;

	begin(w, flows, b);
	go_on(w, flows, b);
	end(w, flows, b);
}

void datapath_match_linuxs(struct worker *w, struct burst *one)
{
	struct poll_flows *flows = w->poll->flows;

	one->linux_mask = 1; // so that its hop is that of the route
	start(w, flows, one,
		one->is_ip6 ? !make_key6(one, 0, &flows->key6[0])
			    : !make_key4(one, 0, &flows->key4[0]));
	go_on(w, flows, one);
	end(w, flows, one);
}

void datapath_match_begin(struct worker *w, struct poll *p)
{
	if (p->ip4.n)
		begin(w, p->flows, &p->ip4);
	if (p->ip6.n)
		begin(w, p->flows, &p->ip6);
}

void datapath_match_continue(struct worker *w, struct poll *p)
{
	if (p->ip4.n)
		go_on(w, p->flows, &p->ip4);
	if (p->ip6.n)
		go_on(w, p->flows, &p->ip6);
}

void datapath_match_end(struct worker *w, struct poll *p)
{
	if (p->ip4.n)
		end(w, p->flows, &p->ip4);
	if (p->ip6.n)
		end(w, p->flows, &p->ip6);
}
