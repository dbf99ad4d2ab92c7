// Finds stamps in frames and verifies stamped frames. Worker.
#include "gen/recognise.h"

#include "gen/expect.h"
#include "gen/sum.h"
#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <string.h>

enum {
	IDENTITY_BYTES = 3, // magic and stream are adjacent
	LEAST_BYTES = WIRE_ETHER_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES + IDENTITY_BYTES,
};

static const struct recognise_place plain = {
	.layer3 = WIRE_ETHER_BYTES,
	.layer4 = WIRE_ETHER_BYTES + WIRE_IP4_BYTES,
	.identity = WIRE_ETHER_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES,
};

// Plain: one segment, no VLAN tag, UDP over IPv4, long enough for a stamp.
static inline bool is_plain(const struct rte_mbuf *m, const uint8_t *frame)
{
	return m->data_len >= RECOGNISE_LONG_BYTES && m->data_len == m->pkt_len &&
	       load16(frame + 12) == htobe16(WIRE_ETHERTYPE_IP4) && frame[23] == WIRE_PROTO_UDP;
}

static inline bool is_tag(uint16_t type_be)
{
	return type_be == htobe16(WIRE_ETHERTYPE_VLAN) || type_be == htobe16(WIRE_ETHERTYPE_QINQ);
}

// Finds the headers of the packet at p->layer3, of which the protocol can be read.
static bool find_layer4(const uint8_t *frame, uint16_t type_be, struct recognise_place *p)
{
	uint8_t protocol;

	p->is_ip6 = type_be == htobe16(WIRE_ETHERTYPE_IP6);
	if (!p->is_ip6 && type_be != htobe16(WIRE_ETHERTYPE_IP4))
		return false;
	protocol = frame[p->layer3 + (p->is_ip6 ? offsetof(struct wire_ip6, next_header)
						: offsetof(struct wire_ip4, protocol))];
	p->layer4 = p->layer3 + (p->is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	p->is_tcp = protocol == WIRE_PROTO_TCP;
	p->identity = p->layer4 + (p->is_tcp ? WIRE_TCP_BYTES : WIRE_UDP_BYTES);
	return p->is_tcp || protocol == WIRE_PROTO_UDP;
}

// Finds those of an Ethernet frame at `at`. Requires LEAST_BYTES, which cover two tags and the
// protocol field after them.
static bool find_in_ethernet(const uint8_t *frame, unsigned at, struct recognise_place *p)
{
	uint16_t type_be = load16(frame + at + 12);

	p->layer3 = at + WIRE_ETHER_BYTES;
	for (int tag = 0; tag < 2 && is_tag(type_be); tag++) {
		type_be = load16(frame + p->layer3 + 2);
		p->layer3 += WIRE_VLAN_BYTES;
	}
	return find_layer4(frame, type_be, p);
}

// Whether the stamp can be read.
static bool has_room(const struct rte_mbuf *m, struct recognise_place *p)
{
	unsigned stamp_end = p->identity + (p->is_tcp ? STAMP_TCP_PAYLOAD_BYTES : STAMP_BYTES);

	p->has_segments = m->data_len != m->pkt_len;
	// Data split across segments is valid on the wire, but cannot be checked here.
	return m->data_len >= (p->has_segments ? stamp_end : p->identity + IDENTITY_BYTES);
}

static bool find_place(const struct rte_mbuf *m, const uint8_t *frame, struct recognise_place *p)
{
	return m->data_len >= LEAST_BYTES && find_in_ethernet(frame, 0, p) && has_room(m, p);
}

// The packet within an encapsulation.
static bool find_inner(const struct rte_mbuf *m, const uint8_t *frame,
	const struct encap_found *encap, struct recognise_place *p)
{
	if (m->data_len < encap->inner + LEAST_BYTES - WIRE_ETHER_BYTES)
		return false;
	p->layer3 = encap->inner;
	if (!encap->is_ethernet)
		return find_layer4(frame, encap->inner_type_be, p) && has_room(m, p);
	return m->data_len >= encap->inner + LEAST_BYTES &&
	       find_in_ethernet(frame, encap->inner, p) && has_room(m, p);
}

static bool is_stamped(const uint8_t *frame, const struct recognise_place *p)
{
	return frame[p->identity] == STAMP_MAGIC >> 8;
}

// Labels may look like a stamp. The payload of our own frames never looks like labels and a packet.
static bool may_be_labels(const uint8_t *frame, const struct recognise_place *p)
{
	return !p->is_tcp && load16(frame + p->layer4 + 2) == htobe16(ENCAP_MPLS_PORT);
}

// The first look: the packet is the outermost one.
static inline bool find_stamped(const struct rte_mbuf *m, const uint8_t *frame,
	struct recognise_place *p)
{
	return find_place(m, frame, p) && is_stamped(frame, p) && !may_be_labels(frame, p);
}

// The second look.
static bool find_wrapped(const struct rte_mbuf *m, const uint8_t *frame, struct recognise_place *p,
	struct encap_found *encap)
{
	if (encap_find(frame, m->data_len, encap) && find_inner(m, frame, encap, p) &&
		is_stamped(frame, p))
		return true;
	encap->type = GEN_PLAIN;
	return find_place(m, frame, p);
}

bool recognise_find(const struct rte_mbuf *m, struct recognise_place *p, struct encap_found *encap)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	encap->type = GEN_PLAIN;
	return find_stamped(m, frame, p) || find_wrapped(m, frame, p, encap);
}

// The stream of a frame if it ends here. Otherwise the frame is counted accordingly.
static inline struct sink_stream *find_stream(const struct recognise *r, const uint8_t *identity)
{
	struct sink_stream *s = r->sink->by_id[identity[2]];

	if (unlikely(identity[0] != STAMP_MAGIC >> 8))
		stats_add(&r->counters->foreign, 1);
	else if (unlikely(identity[1] != r->sink->run) && !(s && s->stream->is_receive_only))
		stats_add(&r->counters->stale, 1);
	else if (unlikely(!s))
		stats_add(&r->counters->foreign, 1);
	else if (unlikely(s->stream->to != r->port) && !expect_ends_on(s->stream, r->port))
		stats_add(&r->counters->misdirected, 1);
	else
		return s;
	return NULL;
}

// Sums bytes `from` to `from` + n of a multi-segment frame that is at least that long.
static __attribute__((noinline)) uint64_t sum_segments(const struct rte_mbuf *m, unsigned from,
	unsigned n)
{
	bool is_slow = false;
	uint64_t sum = 0;

	for (; m && n; m = m->next) {
		if (from >= m->data_len) {
			from -= m->data_len;
			continue;
		}
		unsigned piece = MIN_OF(n, m->data_len - from);
		const uint8_t *at = rte_pktmbuf_mtod_offset(m, const uint8_t *, from);
		uint16_t part = ~wire_sum_finish_be(wire_sum(0, at, piece));
		sum += is_slow ? __builtin_bswap16(part) : part;
		is_slow ^= piece & 1;
		n -= piece;
		from = 0;
	}
	return sum;
}

// A frame being verified.
struct frame {
	const struct rte_mbuf *mbuf;
	const uint8_t *at;
	const struct recognise_place *place;
	unsigned layer4_bytes;
};

// Checks version, header length, fragmentation and header checksum; sets layer4_bytes.
static inline bool is_ip4_right(struct frame *f)
{
	const uint8_t *ip = f->at + f->place->layer3;
	unsigned total = be16toh(load16(ip + 2));
	uint64_t sum = sum_add(sum_load(ip), sum_load(ip + 8));

	f->layer4_bytes = total - WIRE_IP4_BYTES;
	return ip[0] == 0x45 && total >= WIRE_IP4_BYTES &&
	       !(load16(ip + 6) & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET)) &&
	       sum_is_right(sum_add(sum, load32(ip + 16)));
}

static inline bool is_ip6_right(struct frame *f)
{
	const uint8_t *ip = f->at + f->place->layer3;

	f->layer4_bytes = be16toh(load16(ip + 4));
	return ip[0] >> 4 == 6;
}

static inline bool is_layer4_right(const struct frame *f)
{
	const uint8_t *layer4 = f->at + f->place->layer4;

	if (f->place->layer4 + f->layer4_bytes > f->mbuf->pkt_len)
		return false;
	if (f->place->is_tcp)
		return f->layer4_bytes >= WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES &&
		       layer4[offsetof(struct wire_tcp, data_offset)] >> 4 == WIRE_TCP_BYTES / 4;
	return f->layer4_bytes >= WIRE_UDP_BYTES + STAMP_BYTES &&
	       load16(layer4 + offsetof(struct wire_udp, length_be)) == htobe16(f->layer4_bytes);
}

// Checks the payload checksum. Source and destination immediately precede layer 4 in both families,
// so one sum includes them.
static inline bool is_sum_right(const struct frame *f)
{
	unsigned addresses = f->place->is_ip6 ? 32 : 8, n = addresses + f->layer4_bytes;
	unsigned from = f->place->layer4 - addresses;
	uint64_t pseudo = htobe16(f->place->is_tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP);

	pseudo += htobe16(f->layer4_bytes);
	if (unlikely(f->place->has_segments))
		return sum_is_right(pseudo + sum_segments(f->mbuf, from, n));
	return sum_is_right(sum_bytes(pseudo, f->at + from, n));
}

// The bytes of the outer IP packet, by its header; 0: it is wrong.
static unsigned outer_bytes(const uint8_t *ip, uint8_t family)
{
	uint64_t sum = sum_add(sum_load(ip), sum_load(ip + 8));

	if (family == 6)
		return WIRE_IP6_BYTES + be16toh(load16(ip + 4));
	return sum_is_right(sum_add(sum, load32(ip + 16))) ? be16toh(load16(ip + 2)) : 0;
}

// Checks lengths and checksums of the headers around a packet that is right.
static bool is_outer_right(const struct frame *f, const struct encap_found *encap)
{
	const uint8_t *ip = f->at + encap->layer3, *udp = f->at + encap->layer4;
	unsigned inner_end = f->place->layer4 + f->layer4_bytes;
	unsigned end = encap->layer3 + (encap->family ? outer_bytes(ip, encap->family) : 0);
	unsigned n = end - encap->layer4, addresses = encap->family == 6 ? 32 : 8;

	if (!encap->family)
		return true;
	if (end < inner_end || end > f->mbuf->pkt_len)
		return false;
	if (encap->type != GEN_MPLS_UDP && encap->type != GEN_VXLAN)
		return true;
	if (load16(udp + offsetof(struct wire_udp, length_be)) != htobe16(n))
		return false;
	if (!load16(udp + offsetof(struct wire_udp, checksum_be)))
		return true;
	// The addresses may not be adjacent: extension headers follow them.
	uint64_t sum = (uint64_t)htobe16(WIRE_PROTO_UDP) + htobe16(n);

	ip += encap->family == 6 ? offsetof(struct wire_ip6, src) : offsetof(struct wire_ip4, src);
	sum = sum_bytes(sum, ip, addresses);
	return sum_is_right(f->place->has_segments ? sum + sum_segments(f->mbuf, encap->layer4, n)
						   : sum_bytes(sum, udp, n));
}

static inline void take(const struct frame *f, uint8_t id, struct whole *out)
{
	const uint8_t *layer4 = f->at + f->place->layer4;
	struct stamp stamp;
	uint16_t n = out->n++;

	if (f->place->is_tcp)
		stamp_read_tcp(layer4, &stamp);
	else
		stamp_read(layer4 + WIRE_UDP_BYTES, &stamp);
	out->id[n] = id;
	out->sequence[n] = stamp.sequence;
	out->due[n] = stamp.due;
	out->sent[n] = stamp.sent;
	out->bytes[n] = f->mbuf->pkt_len + WIRE_FCS_BYTES;
}

static inline __attribute__((always_inline)) void decide(const struct recognise *r,
	const struct rte_mbuf *m, const struct recognise_place *place,
	const struct encap_found *encap, struct whole *out)
{
	struct frame f = {.mbuf = m, .at = rte_pktmbuf_mtod(m, const uint8_t *), .place = place};
	struct sink_stream *s = find_stream(r, f.at + place->identity);

	if (unlikely(!s))
		return;
	if (likely((place->is_ip6 ? is_ip6_right(&f) : is_ip4_right(&f)) && is_layer4_right(&f) &&
		    is_sum_right(&f) && (!encap || is_outer_right(&f, encap))))
		take(&f, f.at[place->identity + 2], out);
	else
		stats_add(&s->counters.corrupted, 1);
}

static __attribute__((noinline)) void decide_wrapped(const struct recognise *r,
	const struct rte_mbuf *m, struct whole *out)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct recognise_place place;
	struct encap_found encap;

	if (find_wrapped(m, frame, &place, &encap))
		decide(r, m, &place, encap.type ? &encap : NULL, out);
	else if (post_received(r->sink->post[r->port], frame, m->data_len))
		stats_add(&r->counters->neighbours, 1);
	else
		stats_add(&r->counters->foreign, 1);
}

// The slow path, for all frames that are not plain, or not stamped as plain ones are.
static __attribute__((noinline)) void decide_slow(const struct recognise *r,
	const struct rte_mbuf *m, struct whole *out)
{
	struct recognise_place place;

	if (likely(find_stamped(m, rte_pktmbuf_mtod(m, const uint8_t *), &place)))
		decide(r, m, &place, NULL, out);
	else
		decide_wrapped(r, m, out);
}

void recognise_one(const struct recognise *r, uint16_t i, struct whole *out)
{
	const uint8_t *frame = r->at[i];

	out->from[out->n] = i; // if it is valid, which increments n
	if (likely(is_plain(r->mbuf[i], frame) && is_stamped(frame, &plain) &&
		    !may_be_labels(frame, &plain)))
		decide(r, r->mbuf[i], &plain, NULL, out);
	else
		decide_slow(r, r->mbuf[i], out);
}

void recognise_scalar(const struct recognise *r, struct whole *out)
{
	out->n = 0;
	for (uint16_t i = 0; i < r->n; i++)
		recognise_one(r, i, out);
}
