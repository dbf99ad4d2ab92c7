// What the halves of this room share: a run, its senders, its sinks. The control thread makes a run
// whole, hands it to the workers by one pointer, and frees it after all workers have let go of it.
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

// --- sender.c: one stream's frames, built and handed over by one worker.

// Written by the sending worker, read by anybody (stats_add, stats_read).
struct sender_counters {
	uint64_t sent; // frames that have a sequence number: handed over, or refused by a wire with
	               // back-pressure
	uint64_t sent_bytes; // with FCS
	uint64_t unstamped;  // frames of a capture that have no number
	uint64_t refused;    // of sent: the peer's ring was full (place `dut rx ring full`)
	uint64_t late;       // frames that were due and never built, because the worker was late
	uint64_t busy;       // of them: a device without back-pressure took no more
	uint64_t first_tsc, last_tsc; // when the first and the last of them were handed over
	uint64_t longest_lag;         // cycles that a frame was handed over after it was due
};

struct sender_terms {
	const struct gen_stream *stream;
	const struct port_out *out;
	struct rte_mempool *pool;
	bool has_backpressure;
	uint64_t tsc_hz;
	uint8_t run;               // number of the run
	struct timeline *timeline; // of all streams that this worker sends, borrowed
};

struct sender;
// 0 or -errno with `error` set. Owner: caller, sender_destroy. Control thread.
int sender_create(struct sender **out, const struct sender_terms *terms, struct error *error);
void sender_destroy(struct sender *sender);
// Before its schedule begins: what was sent earlier is freed now, else the first frame would be
// late by that (0.7 ms for 16,384 frames over memif). Worker.
void sender_prepare(struct sender *sender);
// The schedule: first frame due at `start`, none due at or after `end` (0: no end). Worker.
void sender_begin(struct sender *sender, uint64_t start, uint64_t end);
// Builds and hands over what is due now, at most GEN_MAX_BURST frames. False once all is sent.
// Worker.
bool sender_turn(struct sender *sender, uint64_t now);
const struct sender_counters *sender_counters(const struct sender *sender);

// --- sink.c: what comes back. One sink_stream for each stream, used by the one worker that polls
// the stream's port `to`.

struct sink_counters {
	uint64_t received;       // good frames of the stream, each counted once
	uint64_t received_bytes; // with FCS
	uint64_t duplicated;     // seen before, within the last 2^20 sequence numbers
	uint64_t reordered;      // behind a later one of its flow, or of its stream (RFC 4737)
	uint64_t corrupted;      // ours, with a wrong checksum or length; not in received
	uint64_t too_old;        // more than 2^20 behind: neither received nor duplicated
	uint64_t highest;        // sequence number plus one; 0: none yet
	uint64_t missing; // gaps below `highest`; lost = missing + what was sent from there on
	uint64_t jitter_sum, jitter_max, n_jitter; // cycles between delays of neighbours, RFC 4689
	uint64_t first_tsc, last_tsc;
	uint64_t gap_end; // the last number that is missing below `highest`, plus one; 0: none is
	uint64_t longest_silence; // cycles between two frames received one after the other
	uint64_t longest_outage;  // cycles between two frames received, of which others in between
	                          // were missing when the second came
};

struct sink_stream {
	struct sink_counters counters;
	struct histogram due,
		sent; // latency in cycles, from the schedule and from the handing over
	const struct gen_stream *stream;
	struct sink_window *window; // private to sink.c
	struct timeline *timeline; // of the streams that this worker receives, borrowed; NULL: none
} LINE_ALIGNED;

// Counters of one polled queue, all streams together.
struct sink_port {
	uint64_t rx_packets; // rx_packets = received + duplicated + corrupted + too_old (of all
	                     // streams)
	                     // + foreign + stale + misdirected + neighbours
	uint64_t rx_bytes;
	uint64_t foreign;     // not ours
	uint64_t stale;       // of another run of ours
	uint64_t misdirected; // of a stream that ends on another port
	uint64_t neighbours;  // ARP and ND, where the port has addresses
	uint64_t answered;    // of them, by what this port sent
	uint64_t late_polls; // pauses between two polls that were longer than the ring holds at the
	                     // run's rate, and after which it was full
	uint64_t longest_gap; // cycles between two polls
};

// One worker's receiving side.
struct sink {
	struct sink_stream *by_id[GEN_MAX_IDS]; // NULL: no stream of this run
	uint8_t run;
	struct post *post[PORT_MAX]; // by port index; NULL: the port has no address
};

int sink_stream_create(struct sink_stream **out, const struct gen_stream *stream,
	struct error *error);
void sink_stream_destroy(struct sink_stream *stream);
// Frames that one poll of a queue returned.
struct sink_burst {
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint8_t port; // index
	uint64_t now;
};
// Accounts for the frames of a burst, and frees them. Worker.
void sink_take(struct sink *sink, struct sink_port *counters, const struct sink_burst *burst);
