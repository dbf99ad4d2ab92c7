// The steps that have scalar and vector implementations; each worker uses one set of them. Worker.
#pragma once

#include "datapath/parse.h"

struct datapath_variant {
	// Also prefetches what the IPv4 lookups will read.
	void (*parse)(struct parse *parse);
	// Used by check; see hop_limits.h.
	bool (*all_plain)(struct burst *b);
	void (*limits)(const struct fib_view *view, const uint32_t hop[], uint32_t limits[],
		unsigned n);
	// Updates TTL, checksum (RFC 1624) and MAC addresses; counts packets by next hop.
	void (*rewrite4)(struct stats_worker *stat, struct burst *b);
	void (*rewrite6)(struct stats_worker *stat, struct burst *b);
};
extern const struct datapath_variant datapath_scalar, datapath_avx512;

// Returns the best variant for this CPU within EAL's limit (--force-max-simd-bitwidth). Control
// thread.
const struct datapath_variant *datapath_choose_variant(void);

void rewrite4_scalar(struct stats_worker *stat, struct burst *b);
void rewrite6_scalar(struct stats_worker *stat, struct burst *b);
void rewrite4_avx512(struct stats_worker *stat, struct burst *b);
void rewrite6_avx512(struct stats_worker *stat, struct burst *b);
