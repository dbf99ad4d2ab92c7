// A run as a whole, and the workers that work at it. The control thread makes a run, hands it over
// by one pointer (workers_hand_over), sets its start once all workers hold it, and frees it once
// none does.
#pragma once

#include "base/idle.h"
#include "gen/offset.h"
#include "gen/run.h"
#include "gen/timeline.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_MAX_PAIRS = 64 };

// What a worker does of a run, in this order.
enum part_phase { PART_WAITS, PART_SENDS, PART_RESTS };

// One worker's part of a run. Made by the control thread, from the handing over on that worker's
// own.
struct run_part {
	unsigned n_live;
	struct sender *live[GEN_MAX_STREAMS]; // that have frames left
	bool waits;          // another program's frames come here until the end of the run
	uint64_t n_measured; // rounds of the TSC offset that are behind it
	uint64_t rounds;
	uint64_t last_look;        // at the clock: at a round's start, behind each burst
	uint64_t longest_gap;      // between two looks
	uint64_t noteworthy_gap;   // a shorter one is neither long nor the longest
	struct gen_worker *worker; // that works at it
	uint64_t rested_tsc;       // when sending was over
	unsigned phase;            // enum part_phase; atomic: set after all that it tells of
} LINE_ALIGNED;

// What a worker sends and receives in the run, all its streams together but those of other
// programs.
struct run_lines {
	struct timeline sent LINE_ALIGNED;
	struct timeline received LINE_ALIGNED;
};

// One port's receiving side, of the worker that polls it.
struct run_port {
	struct sink_port counters;
	uint64_t last_poll;
	uint64_t noteworthy;  // a shorter gap is neither the longest nor late
	uint64_t ring_slots;  // frames that the ring holds
	uint64_t ring_cycles; // how long it holds them at the rate of the streams that end here; 0:
	                      // some are sent as fast as can be, or by another program
	unsigned n_suspect;   // polls that may yet show that a pause filled the ring
	uint64_t missed_before; // what the device had missed before the run; control thread
} LINE_ALIGNED;

struct run {
	// Written by the control thread while workers read: atomic.
	uint64_t start;   // TSC of the first frame; 0: not known yet
	bool is_halted;   // send no more
	uint64_t n_asked; // rounds of the TSC offset that workers should have behind them

	uint64_t end LINE_ALIGNED; // TSC after which nothing is due, set before start; 0: none
	uint64_t hz;
	unsigned number; // 0: the empty run before the first
	struct sink sink;
	unsigned n_workers, n_ports, n_pairs;
	struct gen_streams streams;
	struct sender *sender[GEN_MAX_STREAMS]; // NULL for a stream that is only received
	struct port_out out[GEN_MAX_STREAMS];
	struct sink_stream *received[GEN_MAX_STREAMS];
	struct run_port port[PORT_MAX];
	struct run_part part[STATS_MAX_WORKERS];
	struct run_lines *lines[STATS_MAX_WORKERS]; // NULL: the worker does neither
	struct offset_pair pair[RUN_MAX_PAIRS];
	// The control thread's own.
	struct run *older;  // that workers may still hold
	unsigned n_tries;   // to measure the TSC offset after sending
	uint64_t n_heard;   // frames received when they were last counted,
	uint64_t heard_tsc; // and when there were fewer; 0: not counted yet
	bool is_measured_before, is_measured_again;
};

// What a run is made of; all borrowed but for the time of run_create.
struct run_terms {
	struct port_table *ports;
	unsigned n_ports;
	const uint8_t *worker_of; // by port index: the worker that polls its queue
	const struct gen_streams *streams;
	struct post *const *posts; // by port index; NULL, or of one: no address
	unsigned number;
	uint64_t hz; // of the TSC
};

// 0 or -errno with `error` set; nothing of it runs. Owner: caller, run_destroy. Control thread.
int run_create(struct run **out, const struct run_terms *terms, struct error *error);
void run_destroy(struct run *run);
// The first frame is due `delay_s` from now, the last before `seconds` have passed since then (0:
// no end).
void run_start(struct run *run, double delay_s, double seconds);
// True once no worker sends any more. / TSC when that came to be; 0: not yet.
bool run_is_sent(const struct run *run);
uint64_t run_sent_tsc(const struct run *run);
// Asks for one more round of the TSC offset. / True once all workers have done what was asked for.
void run_ask_offset(struct run *run);
bool run_offset_is_known(const struct run *run);
// True when no pair gave up in all rounds since n_before was set.
bool run_has_measured_since(const struct run *run);

// One core. Read-only for the worker but for `held`.
struct gen_worker {
	const struct port_worker *io;
	struct run *const *current; // atomic: what the control thread wants worked at
	const bool *stop;           // atomic, relaxed
	const uint64_t *n_posted;   // atomic: frames that the control thread wants sent
	struct run *held;           // atomic: what this worker works at, NULL: nothing
	uint64_t long_gap;          // cycles between two looks from which on they are noted
	uint64_t hz;                // of the TSC
	uint64_t n_sleeps;          // between runs; atomic
	struct idle idle;
	struct pauses pauses; // of all runs, and between them
} LINE_ALIGNED;

// The loop of a worker; `arg` is a struct gen_worker.
int worker_run(void *arg);
