// Inside of parse: what its scalar and its vector file share. Lane.
#pragma once

#include "path/steps.h"

#include <rte_byteorder.h>
#include <string.h>

enum { FRAMES_AHEAD = 6 };

static inline uint16_t load16_be(const uint8_t *p)
{
	return rte_be_to_cpu_16(load16(p));
}

// The receive queue's burst on its way through parse.
struct parse {
	struct worker *w;
	const struct port_face *face;
	uint64_t *rx_bytes;
	uint64_t mac; // the port's, shifted up by 16: as the first 8 bytes of a frame shifted
	              // likewise
	struct rte_mbuf *const *mbuf;
	uint16_t n;
};

// Takes the n frames in any way that agrees with wire_check. The scalar one takes all kinds; the
// vector one gives what is not plain IPv4 to parse_one.
void parse_scalar(struct parse *p);
void parse_avx512(struct parse *p);

// One frame, any kind.
void parse_one(struct parse *p, struct rte_mbuf *m);
