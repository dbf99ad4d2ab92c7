// A run and the workers that execute it. The control thread creates a run, publishes it through one
// pointer (hand_over), sets its start once all workers hold it, and frees it once none does.
#pragma once

#include "base/idle.h"
#include "gen/offset.h"
#include "gen/run.h"
#include "gen/timeline.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_MAX_PAIRS = 64 };

// A worker's phases of a run, in this order.
enum part_phase { PART_WAITS, PART_SENDS, PART_RESTS };

// One worker's part of a run. Created by the control thread; after the handover used only by that
// worker.
struct run_part {
	unsigned n_live;
	struct sender *live[GEN_MAX_STREAMS]; // with frames left
	bool waits;          // receives frames of another program until the end of the run
	uint64_t n_measured; // completed rounds of the TSC offset measurement
	uint64_t rounds;
	uint64_t last_look;        // last reading of the clock: at the start of an iteration, after
	                           // each burst
	uint64_t longest_gap;      // between two readings
	uint64_t min_recorded_gap; // shorter gaps are neither long nor the longest
	struct gen_worker *worker; // the worker executing it
	uint64_t rested_tsc;       // when sending ended
	unsigned phase;            // enum part_phase; atomic: stored after everything it publishes
} LINE_ALIGNED;

// Frames sent and received by a worker in the run, over all its streams except those of other
// programs.
struct run_lines {
	struct timeline sent LINE_ALIGNED;
	struct timeline received LINE_ALIGNED;
};

// The receiving side of one port, used by the worker that polls it.
struct run_port {
	struct sink_port counters;
	uint64_t last_poll;
	uint64_t min_recorded_gap; // shorter gaps are neither the longest nor late
	uint64_t ring_slots;       // capacity of the ring in frames
	uint64_t ring_cycles; // time until it is full at the rate of the streams that end here; 0:
	                      // some are sent as fast as possible, or by another program
	unsigned n_suspect;   // polls that may still show that a stall filled the ring
	uint64_t missed_before; // device's count of missed frames before the run; control thread
} LINE_ALIGNED;

struct run {
	// Written by the control thread while workers read: atomic.
	uint64_t start;   // TSC of the first frame; 0: not set yet
	bool is_halted;   // stop sending
	uint64_t n_asked; // requested rounds of the TSC offset measurement

	uint64_t end LINE_ALIGNED; // TSC from which nothing is due, set before start; 0: none
	uint64_t hz;
	unsigned number; // 0: the empty initial run
	struct sink sink;
	unsigned n_workers, n_ports, n_pairs;
	struct gen_streams streams;
	struct sender *sender[GEN_MAX_STREAMS]; // NULL if the stream is only received
	struct port_out out[GEN_MAX_STREAMS];
	struct sink_stream *received[GEN_MAX_STREAMS];
	struct run_port port[PORT_MAX];
	struct run_part part[STATS_MAX_WORKERS];
	struct run_lines *lines[STATS_MAX_WORKERS]; // NULL: the worker neither sends nor receives
	struct offset_pair pair[RUN_MAX_PAIRS];
	// Used only by the control thread.
	struct run *older;   // may still be held by workers
	unsigned n_tries;    // attempts to measure the TSC offset after sending
	uint64_t n_received; // frames received at the last count,
	uint64_t heard_tsc;  // and when the count last changed; 0: not counted yet
	bool is_measured_before, is_measured_again;
};

// Parameters of a run; all borrowed, only during run_create.
struct run_terms {
	struct port_table *ports;
	unsigned n_ports;
	const uint8_t *worker_of; // by port index: the worker that polls its queue
	const struct gen_streams *streams;
	struct post *const *posts; // by port index; NULL array or entry: no address
	unsigned number;
	uint64_t hz; // of the TSC
};

// 0, or -errno with `error` set; nothing is started. Owner: caller, run_destroy. Control thread.
int run_create(struct run **out, const struct run_terms *terms, struct error *error);
void run_destroy(struct run *run);
// The first frame is due `delay_s` from now, the last one less than `seconds` later (0: no end).
void run_start(struct run *run, double delay_s, double seconds);
// True once no worker is sending any more.
bool run_is_sent(const struct run *run);
// TSC at which that was the case; 0: not yet.
uint64_t run_sent_tsc(const struct run *run);
// Requests one more round of the TSC offset measurement.
void run_ask_offset(struct run *run);
// True once all workers have completed the requested rounds.
bool run_offset_is_known(const struct run *run);
// True if no pair gave up in any round since n_before was set.
bool run_has_measured_since(const struct run *run);

// One core. Read-only for the worker except for `held`.
struct gen_worker {
	const struct port_worker *io;
	struct run *const *current; // atomic: the run to execute
	const bool *stop;           // atomic, relaxed
	const uint64_t *n_posted;   // atomic: frames queued by the control thread to be sent
	struct run *held;           // atomic: the run this worker is executing, NULL: none
	uint64_t long_gap;          // minimum cycles between two readings to be recorded as a stall
	uint64_t hz;                // of the TSC
	uint64_t n_sleeps;          // between runs; atomic
	struct idle idle;
	struct stalls stalls; // during and between runs
} LINE_ALIGNED;

// The loop of a worker; `arg` is a struct gen_worker.
int worker_run(void *arg);
