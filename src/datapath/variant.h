// The steps that exist plain and with vector instructions; a worker has one set of them. Worker.
#pragma once

#include "datapath/parse.h"

struct datapath_variant {
	// Begins to fetch what the lookups of IPv4 will read, too.
	void (*parse)(struct parse *parse);
	// For check; see hop_limits.h.
	bool (*all_plain)(const struct fib_view *view, struct burst *b);
	void (*limits)(const struct fib_view *view, const uint16_t hop[], uint32_t limits[],
		unsigned n);
	// TTL, checksum (RFC 1624), MAC addresses; counts packets by next hop.
	void (*rewrite4)(struct stats_worker *stat, const struct fib_view *view, struct burst *b);
	void (*rewrite6)(struct stats_worker *stat, const struct fib_view *view, struct burst *b);
};
extern const struct datapath_variant datapath_scalar, datapath_avx512;

// The best for this CPU and the limit that EAL was given (--force-max-simd-bitwidth). Control
// thread.
const struct datapath_variant *datapath_choose_variant(void);

void rewrite4_scalar(struct stats_worker *stat, const struct fib_view *view, struct burst *b);
void rewrite6_scalar(struct stats_worker *stat, const struct fib_view *view, struct burst *b);
void rewrite4_avx512(struct stats_worker *stat, const struct fib_view *view, struct burst *b);
void rewrite6_avx512(struct stats_worker *stat, const struct fib_view *view, struct burst *b);
