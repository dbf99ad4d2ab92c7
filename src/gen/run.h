// Shared by both halves of this module: a run, its senders and sinks. The control thread creates a
// run completely, publishes it to the workers through one pointer, and frees it after all workers
// have released it.
#pragma once

#include "gen/histogram.h"
#include "gen/queue.h"
#include "gen/stream.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

struct rte_mempool;
struct rte_mbuf;
struct timeline;
struct per_flow;

// --- sender.c: one stream's frames, built and sent by one worker.

// Written by the sending worker, readable by any thread (stats_add, stats_read).
struct sender_counters {
	uint64_t sent; // frames with a sequence number: accepted by the device, or refused by a
	               // wire with back-pressure
	uint64_t sent_bytes; // with FCS
	uint64_t unstamped;  // frames of a capture without a sequence number
	uint64_t refused;    // of sent: the peer's ring was full (location `dut rx ring full`)
	uint64_t late;       // frames that were due but not built, because the worker was late
	uint64_t busy;       // of late: a device without back-pressure accepted no more
	uint64_t first_tsc, last_tsc; // when the first and the last frame were sent
	uint64_t longest_lag;         // maximum delay between due time and sending, in cycles
};

struct sender_terms {
	const struct gen_stream *stream;
	const struct port_out *out;
	struct rte_mempool *pool;
	bool has_backpressure;
	uint64_t tsc_hz;
	uint8_t run;               // number of the run
	struct timeline *timeline; // of all streams sent by this worker, borrowed
};

struct sender;
// 0, or -errno with `error` set. Owner: caller, sender_destroy. Control thread.
int sender_create(struct sender **out, const struct sender_terms *terms, struct error *error);
void sender_destroy(struct sender *sender);
// Call before the schedule starts: frees mbufs sent earlier, which would otherwise delay the first
// frame (0.7 ms for 16,384 frames over memif). Worker.
void sender_prepare(struct sender *sender);
// Sets the schedule: first frame due at `start`, none due at or after `end` (0: no end). Worker.
void sender_begin(struct sender *sender, uint64_t start, uint64_t end);
// Builds and sends what is due now, at most GEN_MAX_BURST frames. Returns false once everything is
// sent. Worker.
bool sender_turn(struct sender *sender, uint64_t now);
const struct sender_counters *sender_counters(const struct sender *sender);

// --- sink.c: received frames. One sink_stream per stream, used by the one worker that polls the
// stream's port `to`.

struct sink_counters {
	uint64_t received;       // valid frames of the stream, each counted once
	uint64_t received_bytes; // with FCS
	uint64_t duplicated;     // seen before, within the last 2^20 sequence numbers
	uint64_t reordered;      // arrived after a later one of its flow, or of its stream (RFC
	                         // 4737)
	uint64_t corrupted;      // ours, but with a wrong checksum or length; not in received
	uint64_t too_old;        // more than 2^20 behind: neither in received nor in duplicated
	uint64_t highest;        // highest sequence number plus one; 0: none yet
	uint64_t missing;        // gaps below `highest`; lost = missing + frames sent from there on
	uint64_t jitter_sum, jitter_max, n_jitter; // cycles between delays of consecutive frames,
	                                           // RFC 4689
	uint64_t first_tsc, last_tsc;
	uint64_t gap_end;         // the last missing number below `highest`, plus one; 0: none
	uint64_t longest_silence; // cycles between two consecutively received frames
	uint64_t longest_outage;  // cycles between two received frames, with frames between them
	                          // missing when the second arrived
};

struct sink_stream {
	struct sink_counters counters;
	struct histogram due,
		sent; // latency in cycles, from the due time and from sending
	const struct gen_stream *stream;
	struct sink_window *window; // private to sink.c
	struct timeline *timeline;  // of the streams received by this worker, borrowed; NULL: none
	struct per_flow *per_flow;  // NULL: nothing is counted, logged or expected by flow
} LINE_ALIGNED;

// Counters of one polled queue, over all streams.
struct sink_port {
	uint64_t rx_packets; // rx_packets = received + duplicated + corrupted + too_old (of all
	                     // streams) + foreign + stale + misdirected + neighbours
	uint64_t rx_bytes;
	uint64_t foreign;     // not from dl3gen
	uint64_t stale;       // of a different run
	uint64_t misdirected; // of a stream that ends on another port
	uint64_t neighbours;  // ARP and ND, if the port has addresses
	uint64_t answered;    // of which were answered by this port
	uint64_t late_polls;  // stalls between two polls longer than the ring lasts at the run's
	                      // rate, after which it was full
	uint64_t longest_gap; // maximum, cycles between two polls
};

// The receiving side of one worker.
struct sink {
	struct sink_stream *by_id[GEN_MAX_IDS]; // NULL: not a stream of this run
	uint8_t run;
	bool expects; // frames of some stream are checked against what is expected of their flow
	struct post *post[PORT_MAX]; // by port index; NULL: the port has no address
};

int sink_stream_create(struct sink_stream **out, const struct gen_stream *stream,
	struct error *error);
void sink_stream_destroy(struct sink_stream *stream);
// Accounts for the frames that one poll of a queue of `port` (index) returned at `now`, and frees
// them. Worker.
void sink_take(struct sink *sink, struct sink_port *counters, struct rte_mbuf *mbuf[], uint16_t n,
	uint8_t port, uint64_t now);
