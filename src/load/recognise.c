// Finds stamps in frames and verifies them. Lane.
#include "load/recognise.h"

#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <string.h>

enum {
	IDENTITY_BYTES = 3, // magic and stream stand together
	LEAST_BYTES = WIRE_ETHER_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES + IDENTITY_BYTES,
	FRAMES_AHEAD = 4,
};

static inline uint16_t load16(const uint8_t *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint32_t load32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint64_t load64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

// Where a frame's parts lie, as its headers say.
struct place {
	unsigned layer3, layer4, identity;
	bool is_ip6, is_tcp;
};

static inline bool is_tag(uint16_t type_be)
{
	return type_be == htobe16(WIRE_ETHERTYPE_VLAN) || type_be == htobe16(WIRE_ETHERTYPE_QINQ);
}

// Needs LEAST_BYTES, which hold any two tags and the protocol behind them.
static inline bool find_layer4(const uint8_t *frame, struct place *p)
{
	uint16_t type_be = load16(frame + 12);
	uint8_t protocol;

	p->layer3 = WIRE_ETHER_BYTES;
	for (int tag = 0; tag < 2 && rarely(is_tag(type_be)); tag++) {
		type_be = load16(frame + p->layer3 + 2);
		p->layer3 += WIRE_VLAN_BYTES;
	}
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

static inline unsigned stamp_end(const struct place *p)
{
	return p->identity + (p->is_tcp ? STAMP_TCP_PAYLOAD_BYTES : STAMP_BYTES);
}

static inline bool find_stamp(const struct rte_mbuf *m, const uint8_t *frame, struct place *p)
{
	if (m->data_len < LEAST_BYTES || !find_layer4(frame, p) ||
		m->data_len < p->identity + IDENTITY_BYTES)
		return false;
	if (frame[p->identity] != STAMP_MAGIC >> 8)
		return false;
	// What a segment's end cuts through is whole on the wire, but cannot be judged here.
	return likely_to(m->nb_segs == 1) || m->data_len >= stamp_end(p);
}

static inline struct sink_stream *find_stream(const struct recognise *r, const uint8_t *identity)
{
	struct sink_stream *s = r->sink->by_id[identity[2]];

	if (rarely(identity[1] != r->sink->run) && !(s && s->stream->is_receive_only)) {
		stat_add(&r->counters->stale, 1);
		return NULL;
	}
	if (rarely(!s)) {
		stat_add(&r->counters->foreign, 1);
		return NULL;
	}
	if (rarely(s->stream->to != r->port)) {
		stat_add(&r->counters->misdirected, 1);
		return NULL;
	}
	return s;
}

void recognise(const struct recognise *r, struct stamped *out)
{
	uint16_t n = 0;

	for (uint16_t i = 0; i < r->n; i++) {
		struct rte_mbuf *m = r->mbuf[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		struct place p;

		if (i + FRAMES_AHEAD < r->n)
			rte_prefetch0(rte_pktmbuf_mtod(r->mbuf[i + FRAMES_AHEAD], uint8_t *));
		if (rarely(!find_stamp(m, frame, &p))) {
			stat_add(&r->counters->foreign, 1);
			continue;
		}
		struct sink_stream *s = find_stream(r, frame + p.identity);
		out->mbuf[n] = m;
		out->stream[n] = s;
		out->layer3[n] = p.layer3;
		out->layer4[n] = p.layer4;
		out->is_ip6[n] = p.is_ip6;
		out->is_tcp[n] = p.is_tcp;
		n += s != NULL;
	}
	out->n = n;
}

// A frame under verification.
struct frame {
	const struct rte_mbuf *mbuf;
	const uint8_t *at;
	unsigned layer3, layer4, layer4_bytes;
	bool is_ip6, is_tcp;
};

// Bytes `from` to `from` + n of a frame in several segments, which it has.
static __attribute__((noinline)) uint64_t sum_segments(const struct rte_mbuf *m, unsigned from,
	unsigned n)
{
	bool is_odd = false;
	uint64_t sum = 0;

	for (; m && n; m = m->next) {
		if (from >= m->data_len) {
			from -= m->data_len;
			continue;
		}
		unsigned piece = MIN_OF(n, m->data_len - from);
		const uint8_t *at = rte_pktmbuf_mtod_offset(m, const uint8_t *, from);
		uint16_t part = ~wire_sum_finish_be(wire_sum(0, at, piece));
		sum += is_odd ? __builtin_bswap16(part) : part;
		is_odd ^= piece & 1;
		n -= piece;
		from = 0;
	}
	return sum;
}

// The payload's checksum. Source and destination stand right before layer 4 in both families, so
// one sum takes them along.
static inline bool is_sum_right(const struct frame *f)
{
	unsigned addresses = f->is_ip6 ? 32 : 8, n = addresses + f->layer4_bytes;
	unsigned from = f->layer4 - addresses;
	uint64_t sum = htobe16(f->is_tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP);

	sum += htobe16(f->layer4_bytes);
	if (likely_to(from + n <= f->mbuf->data_len))
		sum = wire_sum(sum, f->at + from, n);
	else
		sum += sum_segments(f->mbuf, from, n);
	return wire_sum_finish_be(sum) == 0;
}

// Version, header length, fragmentation, header checksum; sets layer4_bytes.
static inline bool is_ip4_right(struct frame *f)
{
	const uint8_t *ip = f->at + f->layer3;
	uint64_t a = load64(ip), b = load64(ip + 8);
	uint64_t sum = (a >> 32) + (uint32_t)a + (b >> 32) + (uint32_t)b + load32(ip + 16);
	unsigned total = be16toh(load16(ip + 2));

	f->layer4_bytes = total - WIRE_IP4_BYTES;
	return ip[0] == 0x45 && total >= WIRE_IP4_BYTES &&
	       !(load16(ip + 6) & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET)) &&
	       wire_sum_finish_be(sum) == 0;
}

static inline bool is_ip6_right(struct frame *f)
{
	const uint8_t *ip = f->at + f->layer3;

	f->layer4_bytes = be16toh(load16(ip + 4));
	return ip[0] >> 4 == 6;
}

static inline bool is_layer4_right(const struct frame *f)
{
	const uint8_t *layer4 = f->at + f->layer4;

	if (f->layer4 + f->layer4_bytes > f->mbuf->pkt_len)
		return false;
	if (rarely(f->is_tcp))
		return f->layer4_bytes >= WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES &&
		       layer4[offsetof(struct wire_tcp, data_offset)] >> 4 == WIRE_TCP_BYTES / 4;
	return f->layer4_bytes >= WIRE_UDP_BYTES + STAMP_BYTES &&
	       load16(layer4 + offsetof(struct wire_udp, length_be)) == htobe16(f->layer4_bytes);
}

static inline void read_stamp(const struct frame *f, struct stamp *stamp)
{
	const uint8_t *layer4 = f->at + f->layer4;

	if (rarely(f->is_tcp))
		stamp_read_tcp(layer4, stamp);
	else
		stamp_read(layer4 + WIRE_UDP_BYTES, stamp);
}

void recognise_verify(const struct stamped *in, struct whole *out)
{
	uint16_t n = 0;

	for (uint16_t i = 0; i < in->n; i++) {
		struct frame f = {
			.mbuf = in->mbuf[i],
			.at = rte_pktmbuf_mtod(in->mbuf[i], const uint8_t *),
			.layer3 = in->layer3[i],
			.layer4 = in->layer4[i],
			.is_ip6 = in->is_ip6[i],
			.is_tcp = in->is_tcp[i],
		};
		struct stamp stamp;

		if (rarely(!(f.is_ip6 ? is_ip6_right(&f) : is_ip4_right(&f)) ||
			    !is_layer4_right(&f) || !is_sum_right(&f))) {
			stat_add(&in->stream[i]->counters.corrupted, 1);
			continue;
		}
		read_stamp(&f, &stamp);
		out->stream[n] = in->stream[i];
		out->sequence[n] = stamp.sequence;
		out->due[n] = stamp.due;
		out->sent[n] = stamp.sent;
		out->bytes[n] = f.mbuf->pkt_len + WIRE_FCS_BYTES;
		n++;
	}
	out->n = n;
}
