// Sends a capture repeatedly: which frame is next, when it is due, and its contents with the stamp.
// Worker; creation: control thread.
#pragma once

#include "gen/capture.h"
#include "gen/pace.h"
#include "gen/run.h"

struct rte_mbuf;

struct replay {
	struct capture capture;
	bool is_recorded;   // due at the recorded times; otherwise according to the pace
	uint64_t *at;       // by frame: cycles since the first one of its lap
	uint64_t lap;       // cycles
	uint64_t lap_start; // TSC
	uint32_t next;      // index into the capture
	uint64_t sequence;  // of the next stamp
	uint64_t stamped;   // bit i: frame i of the last burst built is stamped
	uint16_t magic;     // of stamps
	uint8_t stream;     // its id
};

// 0, or -errno with `error` set. Owner: caller, replay_destroy.
int replay_create(struct replay **out, const struct sender_terms *terms, struct error *error);
void replay_destroy(struct replay *replay);
void replay_begin(struct replay *replay, uint64_t start);

// With recorded times: skips frames that are later than may be caught up with.
void replay_skip(struct replay *replay, struct pace *pace, uint64_t now);
// Like pace_take; the frames remain the next ones until replay_build.
unsigned replay_take(const struct replay *replay, struct pace *pace, uint64_t now, uint64_t due[]);
// Writes the next `n` frames, due at due[] and sent now, and advances. Returns their length with
// FCS.
uint64_t replay_build(struct replay *replay, struct rte_mbuf *const mbuf[], unsigned n,
	const uint64_t due[]);
// How many of the first `n` frames of that burst are stamped; due[] then only contains their times.
unsigned replay_pick_stamped(const struct replay *replay, unsigned n, uint64_t due[]);
// How many of the last `n` of the `n_built` frames of that burst are stamped.
unsigned replay_count_stamped(const struct replay *replay, unsigned n, unsigned n_built);
// The last `n` of the `n_built` frames of that burst were not sent. Their numbers are used again,
// and they are sent again unless their time has passed.
void replay_take_back(struct replay *replay, unsigned n, unsigned n_built);
