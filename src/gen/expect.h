// The action expected of each flow: a port and a DSCP, by a keyed function of the flow's number.
// Pure.
//
// With h = mix(mix(secret) + flow * MIX_STEP) (gen/mix.h), the port is ports[(h >> 32) * n_ports >>
// 32], and the DSCP dscps[(h & 0xffffffff) * n_dscps >> 32].
#pragma once

#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>

struct expect_action {
	uint8_t port; // index
	uint8_t dscp;
};

// EXPECT_OTHER: right by the other secret only.
enum expect_verdict { EXPECT_RIGHT, EXPECT_OTHER, EXPECT_WRONG_PORT, EXPECT_WRONG_DSCP };

// The action of a flow; `secret` is one of the two. Requires ports and DSCPs.
struct expect_action expect_action(const struct gen_expect *expect, uint64_t secret, uint32_t flow);
// Whether a flow may have the action of the other secret, too.
bool expect_has_other(const struct gen_expect *expect, uint32_t flow);
// Judges the port and the DSCP of a received frame. A flow with two actions must have one of them
// as a whole; the port of one with the DSCP of the other is EXPECT_WRONG_DSCP.
enum expect_verdict expect_judge(const struct gen_expect *expect, uint32_t flow,
	struct expect_action found);
// Whether frames of the stream end on this port.
bool expect_ends_on(const struct gen_stream *stream, uint8_t port);
