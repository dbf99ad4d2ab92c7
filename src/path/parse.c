// Reads headers: is the frame for us, is it sound, where does it want to go. Lane.
// The common case (plain IPv4 or IPv6, nothing odd) is recognised by a few comparisons here; every
// other frame goes to wire_check, which names its fault. The two agree: what wire_check calls sound
// is forwarded whichever way it was recognised.
#include "path/parse.h"
#include "path/variant.h"

#include "wire/check.h"

static const uint8_t verdict_of_fault[N_WIRE_FAULTS] = {
	[WIRE_OK] = VERDICT_FORWARD,
	[WIRE_RUNT] = VERDICT_RUNT,
	[WIRE_MULTI_SEGMENT] = VERDICT_MULTI_SEGMENT,
	[WIRE_ARP] = VERDICT_ARP,
	[WIRE_VLAN] = VERDICT_VLAN_UNKNOWN,
	[WIRE_ETHERTYPE] = VERDICT_ETHERTYPE_UNKNOWN,
	[WIRE_IP4_VERSION] = VERDICT_IP4_VERSION,
	[WIRE_IP4_HEADER_LENGTH] = VERDICT_IP4_HEADER_LENGTH,
	[WIRE_IP4_LENGTH] = VERDICT_IP4_LENGTH,
	[WIRE_IP4_CHECKSUM] = VERDICT_IP4_CHECKSUM,
	[WIRE_IP4_OPTIONS] = VERDICT_IP4_OPTIONS,
	[WIRE_IP6_VERSION] = VERDICT_IP6_VERSION,
	[WIRE_IP6_LENGTH] = VERDICT_IP6_LENGTH,
	[WIRE_IP6_HOP_BY_HOP] = VERDICT_IP6_HOP_BY_HOP,
	[WIRE_MARTIAN_SOURCE] = VERDICT_MARTIAN_SOURCE,
	[WIRE_LINK_LOCAL_SOURCE] = VERDICT_LINK_LOCAL_SOURCE,
};

static inline uint16_t take(struct burst *b, struct rte_mbuf *m, uint8_t *frame)
{
	uint16_t i = b->n++;

	b->mbuf[i] = m;
	b->frame[i] = frame;
	b->length[i] = MIN_OF(m->pkt_len, UINT16_MAX);
	return i;
}

static inline void take4(struct parse *p, struct rte_mbuf *m, uint8_t *frame)
{
	struct burst *b = &p->w->ip4;
	uint16_t i = take(b, m, frame);

	b->ttl[i] = frame[22];
	b->dst4[i] = rte_be_to_cpu_32(load32(frame + 30));
}

static inline void take6(struct parse *p, struct rte_mbuf *m, uint8_t *frame)
{
	struct burst *b = &p->w->ip6;
	uint16_t i = take(b, m, frame);

	b->ttl[i] = frame[21];
	b->dst6[i].high = rte_be_to_cpu_64(load64(frame + 38));
	b->dst6[i].low = rte_be_to_cpu_64(load64(frame + 46));
}

static inline bool is_source4_sound(uint32_t src)
{
	return src - 0x01000000 < 0xdf000000 && src >> 24 != 127 && src >> 16 != 0xa9fe;
}

// Header checksum of 20 bytes: trusted where the device vouches for it, else added up (RFC 1071); a
// bad mark is left to wire_check.
static inline bool is_sum4_good(const struct rte_mbuf *m, const uint8_t *frame)
{
	uint64_t marks = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, sum;

	if (marks == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		return true;
	sum = load64(frame + 14) % UINT32_MAX + load64(frame + 22) % UINT32_MAX +
	      load32(frame + 30);
	return marks != RTE_MBUF_F_RX_IP_CKSUM_BAD && sum % 0xffff == 0;
}

static inline bool is_plain4(const struct parse *p, const struct rte_mbuf *m, const uint8_t *frame)
{
	int length = load16_be(frame + 16);

	return load64(frame) << 16 == p->mac && (load32(frame + 12) & 0xffffff) == 0x450008 &&
	       length >= 20 && length + 14 <= m->data_len && m->data_len == m->pkt_len &&
	       is_sum4_good(m, frame) && is_source4_sound(rte_be_to_cpu_32(load32(frame + 26)));
}

static inline bool is_plain6(const struct parse *p, const struct rte_mbuf *m, const uint8_t *frame)
{
	uint64_t src = rte_be_to_cpu_64(load64(frame + 22));

	return load64(frame) << 16 == p->mac && (load32(frame + 12) & 0xf0ffff) == 0x60dd86 &&
	       load16_be(frame + 18) + 54 <= m->data_len && m->data_len == m->pkt_len &&
	       frame[20] != 0 && src != 0 && src >> 54 != 0xfe80 >> 6 && src >> 56 != 0xff;
}

static enum verdict judge_mac(const struct port_face *face, const uint8_t *frame,
	enum wire_fault fault)
{
	if (fault == WIRE_RUNT || fault == WIRE_MULTI_SEGMENT || fault == WIRE_ARP)
		return verdict_of_fault[fault];
	if (frame[0] & 1)
		return VERDICT_MAC_GROUP;
	if (memcmp(frame, face->mac, sizeof(face->mac)) != 0)
		return VERDICT_MAC_NOT_OURS;
	return verdict_of_fault[fault];
}

// The long way, for all frames that the short one does not know.
static __attribute__((noinline)) void parse_odd(struct parse *p, struct rte_mbuf *m, uint8_t *frame)
{
	uint64_t marks = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	struct wire_check_rules rules = {
		.verify_ip4_checksum = marks != RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		.pass_martians = __atomic_load_n(&p->face->pass_martians, __ATOMIC_RELAXED),
	};
	enum wire_fault fault = wire_check(frame, m->data_len, m->pkt_len, &rules);
	enum verdict verdict = judge_mac(p->face, frame, fault);

	if (verdict != VERDICT_FORWARD) {
		burst_drop(p->w, m, verdict);
		return;
	}
	bool is_ip4 = frame[12] == 0x08;
	struct burst *b = is_ip4 ? &p->w->ip4 : &p->w->ip6;

	b->has_segments |= m->nb_segs > 1;
	if (is_ip4)
		take4(p, m, frame);
	else
		take6(p, m, frame);
}

void parse_one(struct parse *p, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (likely_to(is_plain4(p, m, frame)))
		take4(p, m, frame);
	else if (is_plain6(p, m, frame))
		take6(p, m, frame);
	else
		parse_odd(p, m, frame);
}

void parse_scalar(struct parse *p)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < p->n; i++) {
		if (i + FRAMES_AHEAD < p->n)
			rte_prefetch0((uint8_t *)p->mbuf[i + FRAMES_AHEAD]->buf_addr +
				      RTE_PKTMBUF_HEADROOM);
		bytes += p->mbuf[i]->pkt_len;
		parse_one(p, p->mbuf[i]);
	}
	stat_add(p->rx_bytes, bytes);
}

void path_parse(struct worker *w, const struct received *r)
{
	struct parse p = {
		.w = w,
		.face = &w->faces[r->from->port],
		.mac = load64(w->faces[r->from->port].mac) << 16,
		.rx_bytes = &w->stat->port[r->from->port].rx_bytes,
		.mbuf = r->mbuf,
		.n = r->n,
	};

	w->ip4.n = w->ip6.n = 0;
	w->ip4.has_segments = w->ip6.has_segments = false;
	w->variant->parse(&p);
}
