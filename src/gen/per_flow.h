// What is counted, logged and checked by flow at the receiving side of a stream. One writer: the
// worker that polls the stream's ports. Creation, and reading of the counters: control thread.
#pragma once

#include "base/bits.h"
#include "base/error.h"
#include "gen/arrivals.h"
#include "gen/expect.h"
#include "gen/fields.h"
#include "gen/flows.h"
#include "gen/recognise.h"
#include "gen/stream.h"

// checked = as expected + the others. Readable by any thread (stats_read).
struct per_flow_counters {
	uint64_t checked;     // valid frames, including those seen before
	uint64_t alternative; // with the action of the other secret
	uint64_t wrong_port, wrong_dscp;
	uint64_t wrong_encap; // in another encapsulation than expected; port and DSCP are not
	                      // judged
	uint64_t wrong_tuple; // their addresses and ports are not those of the flow of their
	                      // sequence number; nothing else is judged
};

// The first frame that was not as expected.
struct per_flow_wrong {
	uint64_t sequence;
	uint32_t flow;
	struct expect_action found;
	uint8_t encap;     // enum gen_encap_type: found
	uint32_t encap_id; // found: the last label, the VNI, the key
	bool is_known;     // atomic: stored after everything else
};

struct per_flow {
	struct per_flow_counters counters LINE_ALIGNED;
	struct per_flow_wrong wrong;
	const struct gen_stream *stream;
	struct flows flows;
	uint32_t *received;        // by flow, modulo 2^32, atomic; NULL: not counted
	struct arrivals *arrivals; // NULL: not logged
	struct fields fields;
	struct frame_values values; // of the flow being checked
};

// NULL in *out if the stream neither counts nor logs flows nor expects anything of them. 0, or
// -ENOMEM with `error` set. Owner: caller, per_flow_destroy.
int per_flow_create(struct per_flow **out, const struct gen_stream *stream, struct error *error);
void per_flow_destroy(struct per_flow *per_flow);
// Counts frames received at `now`, with these sequence numbers and so many cycles since they were
// due, and logs their arrival; does nothing of both that the stream does not want. Worker.
void per_flow_count(struct per_flow *per_flow, const struct whole *frames, const uint64_t number[],
	const uint64_t since_due[], uint64_t now);
// Checks a valid frame that arrived on `port` against what the stream expects. Worker.
void per_flow_check(struct per_flow *per_flow, const struct rte_mbuf *m, uint64_t number,
	uint8_t port);
// Writes the counters of all flows to a new file, which replaces `path`: 32-bit unsigned integers,
// little endian, from flow 0 on. *total is their sum. 0, or -errno with `error` set. Control
// thread; the worker may be counting.
int per_flow_write(const struct per_flow *per_flow, const char *path, uint64_t *total,
	struct error *error);
