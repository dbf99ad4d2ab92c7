// See ways.h. Outer headers: RFC 2003, RFC 2473, RFC 2784, RFC 2890. Control thread.
#include "fib/ways.h"

#include "fib/groups.h"
#include "wire/checksum.h"

#include <string.h>

enum { ETHERNET = 14, LIMIT_BYTES = 8, GRE_BYTES = 4, GRE_WORD = 4, LEAST_MTU = 68 };
enum { DEFAULT_TTL = 64 }; // of Linux
enum { GRE_CHECKSUM = 0x80, GRE_KEY = 0x20 };

static uint8_t *append(struct fib_template *t, const void *bytes, unsigned n)
{
	uint8_t *at = t->bytes + t->length;

	memcpy(at, bytes, n);
	t->length += n;
	return at;
}

// IPIP writes the protocol per packet.
static uint8_t protocol_of(const struct iface_tunnel *tunnel)
{
	if (tunnel->flags & IFACE_TUNNEL_UDP)
		return WIRE_PROTO_UDP;
	return tunnel->kind == IFACE_GRE ? WIRE_PROTO_GRE : 0;
}

static void append_outer4(struct fib_template *t, const struct iface_tunnel *tunnel)
{
	struct wire_ip4 ip = {.version_ihl = 0x45,
		.dscp_ecn = tunnel->tos & 0xfc,
		.ttl = tunnel->ttl,
		.protocol = protocol_of(tunnel)};

	memcpy(ip.src, tunnel->local.bytes, sizeof(ip.src));
	memcpy(ip.dst, tunnel->remote.bytes, sizeof(ip.dst));
	t->protocol_at = t->length + offsetof(struct wire_ip4, protocol);
	append(t, &ip, sizeof(ip));
	ip.dscp_ecn = ip.ttl = ip.protocol = 0;
	uint64_t sum = wire_sum(0, &ip, sizeof(ip));
	t->sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32 & 0xffff) + (sum >> 48);
}

static void append_outer6(struct fib_template *t, const struct iface_tunnel *tunnel)
{
	struct wire_ip6 ip = {.version_class_flow_be =
				      htobe32(6u << 28 | (uint32_t)(tunnel->tos & 0xfc) << 20),
		.next_header = protocol_of(tunnel),
		.hop_limit = tunnel->ttl};
	// RFC 2473, 4.1.1, in a destination options header, padded.
	uint8_t limit[LIMIT_BYTES] = {protocol_of(tunnel), 0, 4, 1, tunnel->limit, 1, 1, 0};

	memcpy(ip.src, tunnel->local.bytes, sizeof(ip.src));
	memcpy(ip.dst, tunnel->remote.bytes, sizeof(ip.dst));
	t->protocol_at = t->length + offsetof(struct wire_ip6, next_header);
	if (tunnel->flags & IFACE_TUNNEL_LIMIT)
		ip.next_header = WIRE_PROTO_DESTINATION;
	append(t, &ip, sizeof(ip));
	if (!(tunnel->flags & IFACE_TUNNEL_LIMIT))
		return;
	t->protocol_at = t->length;
	append(t, limit, sizeof(limit));
}

static void append_gre(struct fib_template *t, const struct iface_tunnel *tunnel)
{
	const uint8_t none[GRE_WORD] = {0};
	const uint32_t key_be = htobe32(tunnel->key);
	const bool has_sum = tunnel->flags & IFACE_TUNNEL_CHECKSUM;
	const bool has_key = tunnel->flags & IFACE_TUNNEL_KEY;
	const uint8_t head[GRE_BYTES] = {(has_sum ? GRE_CHECKSUM : 0) | (has_key ? GRE_KEY : 0), 0,
		0, 0};

	append(t, head, sizeof(head));
	if (has_sum)
		append(t, none, sizeof(none));
	if (has_key)
		append(t, &key_be, sizeof(key_be));
}

static void append_udp(struct fib_template *t, const struct iface_tunnel *tunnel)
{
	const struct wire_udp udp = {.src_port_be = htobe16(tunnel->source_port),
		.dst_port_be = htobe16(tunnel->dest_port)};

	append(t, &udp, sizeof(udp));
}

// Linux sends GRE over IPv6 with the ECN of the inner packet only if its DSCP is, too.
static bool has_no_ecn(const struct iface_tunnel *tunnel)
{
	const uint16_t flags = tunnel->flags & (IFACE_TUNNEL_LINUX | IFACE_TUNNEL_TOS);

	return tunnel->kind == IFACE_GRE && tunnel->local.family == 6 &&
	       flags == IFACE_TUNNEL_LINUX;
}

// Linux does as RFC 3168 has it: routers on the way of the tunnel mark its packets anew. But what
// it sends by GRE over IPv6 is the inner packet's.
static bool has_no_ce(const struct iface_tunnel *tunnel)
{
	return tunnel->flags & IFACE_TUNNEL_LINUX &&
	       !(tunnel->kind == IFACE_GRE && tunnel->local.family == 6);
}

static uint16_t flags_of(const struct iface_tunnel *tunnel)
{
	const bool is_ip6 = tunnel->local.family == 6, is_udp = tunnel->flags & IFACE_TUNNEL_UDP;
	const struct {
		bool is_set;
		uint16_t flag;
	} rows[] = {
		{is_ip6, FIB_TUNNEL_OUTER6},
		{tunnel->flags & IFACE_TUNNEL_IP4, FIB_TUNNEL_IP4},
		{tunnel->flags & IFACE_TUNNEL_IP6, FIB_TUNNEL_IP6},
		{tunnel->kind == IFACE_GRE, FIB_TUNNEL_GRE},
		{is_udp, FIB_TUNNEL_UDP},
		{tunnel->flags & IFACE_TUNNEL_CHECKSUM, FIB_TUNNEL_CHECKSUM},
		{!tunnel->ttl, FIB_TUNNEL_TTL},
		{tunnel->flags & IFACE_TUNNEL_TOS, FIB_TUNNEL_TOS},
		{tunnel->flags & IFACE_TUNNEL_DF, FIB_TUNNEL_DF},
		{is_udp ? !tunnel->source_port : is_ip6, FIB_TUNNEL_FLOW},
		{tunnel->flags & IFACE_TUNNEL_MPLS, FIB_TUNNEL_MPLS},
		{has_no_ecn(tunnel), FIB_TUNNEL_NO_ECN},
		{has_no_ce(tunnel), FIB_TUNNEL_NO_CE},
	};
	uint16_t flags = FIB_TUNNEL;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		flags |= rows[i].is_set ? rows[i].flag : 0;
	return flags;
}

// What a tunnel is to packets that get labels, of either family, in front of them.
static struct iface_tunnel labelled(const struct iface_tunnel *tunnel)
{
	struct iface_tunnel with = *tunnel;

	with.flags |= IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6;
	if (tunnel->flags & IFACE_TUNNEL_LABELLED_TOS)
		return with;
	with.flags &= ~IFACE_TUNNEL_TOS;
	with.ttl = tunnel->ttl ? tunnel->ttl : DEFAULT_TTL;
	return with;
}

// The header of a packet by one next hop, whose own one is built already.
static void build_way(struct fib_template *t, const struct fib_hop *into,
	const struct iface_tunnel *tunnel, const struct iface *under)
{
	const bool is_ip6 = tunnel->local.family == 6;
	const uint8_t type[] = {is_ip6 ? 0x86 : 0x08, is_ip6 ? 0xdd : 0x00};

	if (t->replaced == TEMPLATE_MACS)
		append(t, type, sizeof(type));
	t->replaced = ETHERNET;
	t->outer_at = t->length;
	if (is_ip6)
		append_outer6(t, tunnel);
	else
		append_outer4(t, tunnel);
	t->inner_at = t->length;
	if (tunnel->kind == IFACE_GRE)
		append_gre(t, tunnel);
	else if (tunnel->flags & IFACE_TUNNEL_UDP)
		append_udp(t, tunnel);
	template_append_labels(t, into);
	int mtu = iface_mtu(under, tunnel->local.family) - t->mtu_bytes;
	if (tunnel->path_mtu)
		mtu = MIN_OF(mtu, tunnel->path_mtu);
	t->mtu = MAX_OF(mtu - (t->length - t->outer_at), LEAST_MTU);
	t->port = under->port;
	t->tunnel = flags_of(tunnel);
	if (into->n_labels && !(tunnel->flags & IFACE_TUNNEL_LABELLED_TOS))
		t->tunnel |= FIB_TUNNEL_OPAQUE;
	t->iface = into->iface;
}

// The header of a next hop alone. False: only Linux, or nobody, can send by it; *verdict.
static bool build_under(struct fib_template *t, const struct hops *hops, uint32_t id,
	uint8_t *verdict)
{
	const struct hop *hop = &hops->hop[id];
	const struct fib_hop_entry *entry = &hops->entry[id];
	const bool leads_out = hop->key.kind == FIB_VIA || hop->key.kind == FIB_PEER;
	const struct iface *iface = leads_out ? iface_current(hops->ifaces, hop->key.iface) : NULL;

	*verdict = VERDICT_TUNNEL_NO_WAY;
	if (entry->kind == FIB_HOP_STOP &&
		(entry->verdict == VERDICT_NEIGHBOUR_UNRESOLVED || entry->verdict == VERDICT_LINUX))
		*verdict = entry->verdict;
	else if (entry->kind == FIB_HOP_BRIDGE || entry->kind == FIB_HOP_TUNNEL)
		*verdict = VERDICT_LINUX;
	if (!iface || hop->key.n_labels ||
		(entry->kind != FIB_HOP_PLAIN && entry->kind != FIB_HOP_TEMPLATE))
		return false;
	template_build(t, hop, iface);
	t->under = hop->key.iface;
	return true;
}

static void add(struct ways *ways, const struct hops *hops, uint32_t id, const struct fib_hop *into)
{
	struct iface_tunnel tunnel = iface_latest(hops->ifaces, into->iface)->tunnel;
	struct fib_template *way = &ways->way[ways->n];

	if (!build_under(way, hops, id, &ways->verdict))
		return;
	if (tunnel.flags & IFACE_TUNNEL_BOUND && way->under != tunnel.link) {
		ways->verdict = VERDICT_LINUX;
		return;
	}
	if (into->n_labels)
		tunnel = labelled(&tunnel);
	build_way(way, into, &tunnel, iface_latest(hops->ifaces, way->under));
	ways->n++;
}

// Repeats ways until each slot has one, in order, so that equal ones are side by side.
static void spread_ways(struct ways *ways)
{
	const unsigned n = ways->n;

	if (n < 2)
		return;
	for (unsigned slot = FIB_WAYS; slot--;)
		ways->way[slot] = ways->way[slot * n / FIB_WAYS];
	ways->n = FIB_WAYS;
}

void ways_build(struct ways *ways, const struct hops *hops, const struct fib_hop *into)
{
	const uint32_t id = hops->under[into->iface];

	ways->n = 0;
	ways->verdict = VERDICT_TUNNEL_NO_WAY;
	if (!id)
		return;
	if (hops->entry[id].kind != FIB_HOP_GROUP) {
		add(ways, hops, id, into);
		return;
	}
	const struct group *group = &hops->groups->group[groups_number(&hops->hop[id].key)];
	uint32_t end[GROUP_MAX_MEMBERS], slot = 0;

	groups_share(group, end);
	for (unsigned i = 0; i < group->n_members; i++) // as many slots as its share has, or one
		for (bool first = true; ways->n < FIB_WAYS && (first || slot < end[i]);
			first = false, slot += FIB_GROUP_BUCKETS / FIB_WAYS)
			add(ways, hops, group->member[i], into);
	spread_ways(ways);
}

static const struct fib_template *way_at(const struct fib_template *t, unsigned slot)
{
	const struct fib_template *way;

	memcpy(&way, t->bytes + slot * sizeof(way), sizeof(way));
	return way;
}

bool ways_equal(const struct fib_template *published, const struct ways *ways)
{
	if (!published)
		return false;
	if (!published->n_ways)
		return ways->n == 1 && templates_equal(published, &ways->way[0]);
	for (unsigned i = 0; i < FIB_WAYS; i++)
		if (ways->n != FIB_WAYS || !templates_equal(way_at(published, i), &ways->way[i]))
			return false;
	return true;
}

static void give(struct blocks *pool, const struct fib_template *template)
{
	const struct template_lines lines = template_lines(pool, template);

	blocks_give(pool, lines.first, lines.n);
}

const struct fib_template *ways_publish(struct blocks *pool, const struct ways *ways)
{
	struct fib_template all = {.n_ways = FIB_WAYS,
		.tunnel = ways->way[0].tunnel,
		.n_labels = ways->way[0].n_labels};
	const struct fib_template *way[FIB_WAYS], *published;
	unsigned n = 0;

	if (ways->n == 1)
		return template_publish(pool, &ways->way[0]);
	all.mtu = UINT16_MAX;
	for (; n < ways->n; n++) {
		const bool is_same = n && templates_equal(&ways->way[n - 1], &ways->way[n]);

		way[n] = is_same ? way[n - 1] : template_publish(pool, &ways->way[n]);
		if (!way[n])
			break;
		all.mtu = MIN_OF(all.mtu, ways->way[n].mtu);
		append(&all, &way[n], sizeof(way[n]));
	}
	published = n == ways->n ? template_publish(pool, &all) : NULL;
	for (unsigned i = 0; !published && i < n; i++)
		if (!i || way[i] != way[i - 1])
			give(pool, way[i]);
	return published;
}

uint16_t ways_mtu(const struct fib_template *published)
{
	return published ? published->mtu : UINT16_MAX;
}

unsigned ways_parts(const struct fib_template *published)
{
	unsigned n = published ? 1 : 0;

	for (unsigned i = 0; published && i < published->n_ways; i++)
		n += !i || way_at(published, i) != way_at(published, i - 1);
	return n;
}

const struct fib_template *ways_part(const struct fib_template *published, unsigned i)
{
	if (!i)
		return published;
	for (unsigned slot = 0;; slot++)
		if ((!slot || way_at(published, slot) != way_at(published, slot - 1)) && !--i)
			return way_at(published, slot);
}
