// Completes the headers of tunnels that encap writes: what is in the packet, its length, TTL, DSCP
// and ECN (RFC 6040, 4.1), IPv4 id and checksum, GRE type, UDP ports and checksums. Worker.
#include "datapath/tunnel.h"

#include "datapath/steps.h"
#include "wire/checksum.h"

#include <rte_ip.h>

enum { BOTTOM_BYTE = -2, BOTTOM = 1 }; // of the last label, from its end
enum { DEFAULT_TTL = 64 };             // of Linux
enum { FIRST_PORT = 49152, PORT_BITS = 14, WAY_BITS = 4, IDS_OF_WORKER = 11 };
_Static_assert(1 << WAY_BITS == FIB_WAYS, "a way for each value");

static struct tunnel_inner read_inner(const struct burst *b, uint16_t i)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;
	const struct wire_ip4 *ip4 = (const void *)packet;
	const struct wire_ip6 *ip6 = (const void *)packet;
	struct tunnel_inner inner = {.hash = datapath_flow_hash(b, i)};

	if (b->is_ip6) {
		inner.type = WIRE_ETHERTYPE_IP6;
		inner.bytes = WIRE_IP6_BYTES + be16toh(ip6->payload_length_be);
		inner.tos = be32toh(ip6->version_class_flow_be) >> 20;
		inner.ttl = ip6->hop_limit;
	} else {
		inner.type = WIRE_ETHERTYPE_IP4;
		inner.bytes = be16toh(ip4->total_length_be);
		inner.tos = ip4->dscp_ecn;
		inner.ttl = ip4->ttl;
		inner.has_df = ip4->fragment_be & htobe16(WIRE_IP4_DONT_FRAGMENT);
	}
	return inner;
}

static uint8_t tos_of(const struct fib_template *t, uint8_t fixed, const struct tunnel_inner *inner)
{
	const uint8_t dscp = t->tunnel & FIB_TUNNEL_TOS ? inner->tos : fixed;
	const uint16_t without = FIB_TUNNEL_OPAQUE | FIB_TUNNEL_NO_ECN;

	if (t->tunnel & without)
		return dscp & 0xfc;
	return (dscp & 0xfc) | tunnel_ecn(inner->tos, t->tunnel & FIB_TUNNEL_NO_CE);
}

// Of a device that inherits it: labels have none for the outer header.
static uint8_t ttl_of(const struct tunnel_inner *inner)
{
	return inner->type == WIRE_ETHERTYPE_MPLS ? DEFAULT_TTL : inner->ttl;
}

static void complete4(struct worker *w, const struct fib_template *t, struct wire_ip4 *ip,
	const struct tunnel_inner *inner, uint16_t bytes)
{
	const bool copies_df = inner->has_df && !(t->tunnel & FIB_TUNNEL_OPAQUE);
	const bool has_df = t->tunnel & FIB_TUNNEL_DF || copies_df;

	ip->dscp_ecn = tos_of(t, ip->dscp_ecn, inner);
	ip->total_length_be = htobe16(bytes);
	ip->id_be = htobe16((uint16_t)(w->next_id++ + ((unsigned)w->io->id << IDS_OF_WORKER)));
	ip->fragment_be = htobe16(has_df ? WIRE_IP4_DONT_FRAGMENT : 0);
	if (t->tunnel & FIB_TUNNEL_TTL)
		ip->ttl = ttl_of(inner);
	ip->checksum_be = wire_sum_finish_be((uint64_t)t->sum + htobe16(ip->dscp_ecn) +
					     ip->total_length_be + ip->id_be + ip->fragment_be +
					     htobe16(ip->ttl << 8 | ip->protocol));
}

static void complete6(const struct fib_template *t, struct wire_ip6 *ip,
	const struct tunnel_inner *inner, uint16_t bytes)
{
	const uint32_t word = be32toh(ip->version_class_flow_be);
	const uint32_t tos = tos_of(t, word >> 20, inner);
	const bool has_label = t->tunnel & FIB_TUNNEL_FLOW && !(t->tunnel & FIB_TUNNEL_UDP);
	const uint32_t label = has_label ? inner->hash >> 44 : 0;

	ip->version_class_flow_be = htobe32(6u << 28 | tos << 20 | label);
	ip->payload_length_be = htobe16(bytes - WIRE_IP6_BYTES);
	if (t->tunnel & FIB_TUNNEL_TTL)
		ip->hop_limit = ttl_of(inner);
}

// The sum of all bytes from a position of the frame on.
static uint16_t sum_from(const struct rte_mbuf *m, uint32_t at, uint32_t n)
{
	uint16_t sum = 0;

	rte_raw_cksum_mbuf(m, at, n, &sum);
	return sum;
}

static void complete_gre(const struct fib_template *t, struct rte_mbuf *m, uint8_t *gre,
	const struct tunnel_inner *inner)
{
	const uint16_t type_be = htobe16(t->n_labels ? WIRE_ETHERTYPE_MPLS : inner->type);
	const uint32_t bytes = t->length - t->inner_at + inner->bytes;

	memcpy(gre + 2, &type_be, sizeof(type_be));
	if (!(t->tunnel & FIB_TUNNEL_CHECKSUM))
		return;
	const uint16_t sum_be = wire_sum_finish_be(sum_from(m, t->inner_at, bytes));
	memcpy(gre + 4, &sum_be, sizeof(sum_be));
}

static void complete_udp(const struct fib_template *t, struct rte_mbuf *m, struct wire_udp *udp,
	const uint8_t *outer, const struct tunnel_inner *inner)
{
	const uint16_t bytes = t->length - t->inner_at + inner->bytes;

	if (t->tunnel & FIB_TUNNEL_FLOW)
		udp->src_port_be = htobe16(FIRST_PORT + (inner->hash >> (64 - PORT_BITS)));
	udp->length_be = htobe16(bytes);
	if (!(t->tunnel & FIB_TUNNEL_CHECKSUM))
		return;
	uint64_t sum = t->tunnel & FIB_TUNNEL_OUTER6
	                       ? wire_sum_pseudo6((const void *)outer, WIRE_PROTO_UDP, bytes)
	                       : wire_sum_pseudo4((const void *)outer, WIRE_PROTO_UDP, bytes);
	sum += sum_from(m, t->inner_at, bytes);
	const uint16_t sum_be = wire_sum_finish_be(sum);
	udp->checksum_be = sum_be ? sum_be : UINT16_MAX;
}

static const struct fib_template *choose_way(const struct fib_template *t, uint64_t hash)
{
	const struct fib_template *way;

	if (likely(!t->n_ways))
		return t;
	memcpy(&way, t->bytes + (hash >> (64 - PORT_BITS - WAY_BITS)) % FIB_WAYS * sizeof(way),
		sizeof(way));
	return way;
}

// The protocol of a packet that is in IP alone.
static uint8_t protocol_of(const struct fib_template *t, uint16_t type)
{
	if (t->n_labels || type == WIRE_ETHERTYPE_MPLS)
		return WIRE_PROTO_MPLS;
	return type == WIRE_ETHERTYPE_IP6 ? WIRE_PROTO_IP6 : WIRE_PROTO_IP4;
}

bool tunnel_carries(const struct fib_template *t, uint16_t type)
{
	return t->tunnel & (type == WIRE_ETHERTYPE_MPLS         ? FIB_TUNNEL_MPLS
				   : type == WIRE_ETHERTYPE_IP6 ? FIB_TUNNEL_IP6
								: FIB_TUNNEL_IP4);
}

uint8_t *tunnel_prepend(struct worker *w, struct rte_mbuf *m, const struct fib_template *any,
	const struct tunnel_inner *inner, uint8_t *port)
{
	const struct fib_template *t = choose_way(any, inner->hash);
	const uint16_t bytes = t->length - t->outer_at + inner->bytes;
	uint8_t *start = datapath_write_header(m, t, inner->ttl);

	if (unlikely(!start))
		return NULL;
	uint8_t *outer = start + t->outer_at;
	if (t->n_labels && inner->type == WIRE_ETHERTYPE_MPLS)
		start[t->length + BOTTOM_BYTE] &= ~BOTTOM;
	if (!(t->tunnel & (FIB_TUNNEL_GRE | FIB_TUNNEL_UDP)))
		start[t->protocol_at] = protocol_of(t, inner->type);
	if (t->tunnel & FIB_TUNNEL_OUTER6)
		complete6(t, (void *)outer, inner, bytes);
	else
		complete4(w, t, (void *)outer, inner, bytes);
	if (t->tunnel & FIB_TUNNEL_GRE)
		complete_gre(t, m, start + t->inner_at, inner);
	else if (t->tunnel & FIB_TUNNEL_UDP)
		complete_udp(t, m, (void *)(start + t->inner_at), outer, inner);
	*port = t->port;
	stats_add(&w->stat->tunnel[t->iface].tx_packets, 1);
	stats_add(&w->stat->tunnel[t->iface].tx_bytes, inner->bytes);
	return start;
}

bool tunnel_write(struct worker *w, struct burst *b, uint16_t i, const struct fib_template *any)
{
	struct rte_mbuf *m = b->mbuf[i];
	const struct tunnel_inner inner = read_inner(b, i);

	if (unlikely(offload_is_open(m)))
		offload_finish(m);
	if (inner.bytes + WIRE_ETHER_BYTES < m->pkt_len) // padding
		datapath_cut(m, inner.bytes + WIRE_ETHER_BYTES);
	uint8_t *start = tunnel_prepend(w, m, any, &inner, &b->port[i]);
	if (unlikely(!start))
		return false;
	b->frame[i] = start;
	b->length[i] = m->pkt_len;
	return true;
}
