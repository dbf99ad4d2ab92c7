// What check reads of next hops besides their MACs: the summary table for a whole burst (struct
// fib_plain_hops), and for each hop the last 4 bytes of its entry. They are read in one access and
// so are consistent even while the control thread replaces the entry. A gather reads each element
// separately (Intel SDM vol. 2, VPGATHERDD), and an aligned 4-byte element in one access. Worker.
#pragma once

#include "datapath/burst.h"
#include "stats/verdict.h"

#include <stddef.h>

_Static_assert(offsetof(struct fib_hop_entry, frame_max) == 12 &&
		       offsetof(struct fib_hop_entry, port) == 14 &&
		       offsetof(struct fib_hop_entry, kind) == 15,
	"the order of the words below");
enum { LIMITS_AT = offsetof(struct fib_hop_entry, frame_max) };

static inline uint32_t limits_read(const struct fib_view *view, uint32_t hop)
{
	const uint8_t *entry = (const uint8_t *)&view->hops[hop];

	return __atomic_load_n((const uint32_t *)(entry + LIMITS_AT), __ATOMIC_RELAXED);
}

// Returns true if all packets leave through hops in view->plain, within the TTL and
// length limits; then port[], has_one_port and has_one_hop are set. False: check each packet. The
// scalar variant always returns false.
bool all_plain_scalar(struct burst *b);
bool all_plain_avx512(struct burst *b);

// Reads the limits of n hops; limits[] has space for BURST_MAX.
void limits_scalar(const struct fib_view *view, const uint32_t hop[], uint32_t limits[],
	unsigned n);
void limits_avx512(const struct fib_view *view, const uint32_t hop[], uint32_t limits[],
	unsigned n);

static inline uint16_t limits_frame_max(uint32_t limits)
{
	return limits & 0xffff;
}

static inline uint8_t limits_port(uint32_t limits)
{
	return limits >> 16 & 0xff;
}

static inline uint8_t limits_kind(uint32_t limits)
{
	return limits >> 24;
}

// Of a hop of kind FIB_HOP_STOP.
static inline enum verdict limits_verdict(uint32_t limits)
{
	return (enum verdict)limits_frame_max(limits);
}
_Static_assert(offsetof(struct fib_hop_entry, verdict) == LIMITS_AT, "in place of frame_max");
