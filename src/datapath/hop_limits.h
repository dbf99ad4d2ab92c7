// What there is to know of a next hop besides its MACs: in brief for a whole burst (struct
// fib_plain_hops), and of each by itself in the last 4 bytes of its entry, read in one
// piece so that they are of one moment, even while the control thread replaces the entry. A gather
// reads each element by itself (Intel SDM vol. 2, VPGATHERDD), and 4 aligned bytes in one piece.
// Worker.
#pragma once

#include "datapath/burst.h"

#include <stddef.h>

_Static_assert(offsetof(struct fib_hop_entry, frame_max) == 12 &&
		       offsetof(struct fib_hop_entry, port) == 14 &&
		       offsetof(struct fib_hop_entry, verdict) == 15,
	"the order of the words below");
enum { LIMITS_AT = offsetof(struct fib_hop_entry, frame_max) };

// A packet that comes with this TTL or hop limit, or with less, goes no further.
enum { TTL_LAST = 1 };

static inline uint32_t limits_read(const struct fib_view *view, uint16_t hop)
{
	const uint8_t *entry = (const uint8_t *)&view->hops[hop];

	return __atomic_load_n((const uint32_t *)(entry + LIMITS_AT), __ATOMIC_RELAXED);
}

// Whether all packets go out by hops that view->plain tells of, untagged, with TTL and length to
// spare: then port[], has_one_port and has_one_hop are filled. False: that is to be asked packet by
// packet, as it always is without vectors.
bool all_plain_scalar(const struct fib_view *view, struct burst *b);
bool all_plain_avx512(const struct fib_view *view, struct burst *b);

// Those of n hops; limits[] has room for BURST_MAX.
void limits_scalar(const struct fib_view *view, const uint16_t hop[], uint32_t limits[],
	unsigned n);
void limits_avx512(const struct fib_view *view, const uint16_t hop[], uint32_t limits[],
	unsigned n);

static inline uint16_t limits_frame_max(uint32_t limits)
{
	return limits & 0xffff;
}

static inline uint8_t limits_port(uint32_t limits)
{
	return limits >> 16 & 0xff;
}

static inline uint8_t limits_verdict(uint32_t limits)
{
	return limits >> 24;
}
