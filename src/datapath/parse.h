// Internal to parse: shared by its scalar and vector code. Worker.
#pragma once

#include "datapath/steps.h"
#include "fib/fib.h"
#include "wire/check.h"

#include <rte_byteorder.h>

enum { FRAMES_AHEAD = 6 };
enum { PADDED_BYTES = 60 }; // minimum length of Ethernet, without FCS: padding up to it stays

static inline uint16_t load16_be(const uint8_t *p)
{
	return rte_be_to_cpu_16(load16(p));
}

// State of parse for one received burst.
struct parse {
	struct worker *w;
	const struct fib_view *view;
	const struct port_state *port_state;
	const struct mac_port *bridge; // by which frames to a bridge came in; NULL: they are others
	uint16_t in_port, in_iface; // in_iface: the port, or that of its bridge, of untagged frames
	struct iface_in iface;      // of in_iface; all 0 without TAP interfaces
	uint64_t *rx_bytes;
	uint64_t mac; // that interface's MAC, shifted left by 16, to compare with the first 8 bytes
	              // of a frame shifted likewise
	struct rte_mbuf *const *mbuf;
	uint16_t n;
	bool has_offloads;         // an open frame (offload.h)
	struct labelled *labelled; // frames with MPLS labels, which are dealt with after all others
};

// Parse all n frames, with the same result as wire_check. The scalar function handles all kinds;
// the vector one passes anything but plain packets to parse_one.
void parse_scalar(struct parse *p);
void parse_avx512(struct parse *p);

// Parses one frame of any kind.
void parse_one(struct parse *p, struct rte_mbuf *m);
// The verdict of a fault; VERDICT_FORWARD: there is none.
enum verdict parse_verdict(enum wire_fault fault);
// Bytes of an IP packet by its own header.
uint32_t parse_reported_bytes(const uint8_t *packet, bool is_ip6);
// The latest packet came in on an interface other than the one of the frames. Packets of that have
// the values that are set already.
void parse_arrive(const struct parse *p, struct burst *b, uint16_t id, struct iface_in iface);
// The interface of a bridge that filters by VLAN, and is routed, on which frames come in that a
// port of it has let into this VLAN; IFACE_NONE: none.
uint16_t parse_bridge_iface(const struct fib_view *view, const struct mac_port *port, uint16_t vid);
// Slow path: parses one frame that is not plain.
void parse_slow(struct parse *p, struct rte_mbuf *m);

// Stores the same value for all packets, those still to come included.
static inline void spread(uint16_t values[], bool *has_one)
{
	for (unsigned i = 1; *has_one && i < BURST_MAX; i++)
		values[i] = values[0];
	*has_one = false;
}

static inline void set_bit(uint64_t *mask, unsigned i, bool is_set)
{
	*mask = (*mask & ~(1ull << i)) | (uint64_t)is_set << i;
}

static inline uint16_t take(struct burst *b, struct rte_mbuf *m, uint8_t *frame, uint32_t length)
{
	uint16_t i = b->n++;

	b->mbuf[i] = m;
	b->frame[i] = frame;
	b->length[i] = MIN_OF(length, UINT16_MAX);
	return i;
}

static inline uint32_t source4(const uint8_t *frame)
{
	return rte_be_to_cpu_32(load32(frame + 26));
}

// Appends a valid packet to the burst of its family.
static inline void take4(struct burst *b, struct rte_mbuf *m, uint8_t *frame, uint32_t length)
{
	uint16_t i = take(b, m, frame, length);

	b->ttl[i] = frame[22];
	b->dst4[i] = rte_be_to_cpu_32(load32(frame + 30));
	b->own_source_mask |= (uint64_t)fib_source_may_be_ours(b->sources, source4(frame)) << i;
}

static inline void take6(struct burst *b, struct rte_mbuf *m, uint8_t *frame, uint32_t length)
{
	uint16_t i = take(b, m, frame, length);

	b->ttl[i] = frame[21];
	b->dst6[i].high = rte_be_to_cpu_64(load64(frame + 38));
	b->dst6[i].low = rte_be_to_cpu_64(load64(frame + 46));
}

// Flags of an interface that hold for packets of a family.
struct burst_flags {
	bool for_linux, may_redirect, has_discovery, is_strict, is_loose;
};

static inline struct burst_flags burst_flags(const struct parse *p, struct iface_in iface,
	bool is_ip6)
{
	const uint8_t rpf6 = __atomic_load_n(&p->port_state->rpf6, __ATOMIC_RELAXED);
	const uint8_t rpf = is_ip6 ? rpf6 : iface.rpf4;
	const uint8_t flags = iface.flags;
	const uint8_t linux_flag = is_ip6 ? IFACE_LINUX6 : IFACE_LINUX4;
	const uint8_t redirects = is_ip6 ? IFACE_REDIRECTS6 : IFACE_REDIRECTS4;

	return (struct burst_flags){
		.for_linux = flags & (IFACE_LINUX | linux_flag),
		.may_redirect = flags & redirects,
		.has_discovery = is_ip6 && flags & IFACE_DISCOVERY6,
		.is_strict = rpf == IFACE_RPF_STRICT,
		.is_loose = rpf == IFACE_RPF_LOOSE,
	};
}
