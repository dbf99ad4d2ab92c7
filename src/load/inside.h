// What the house of this room shares: the generator's state, runs and how they are handed to the
// lanes, the verbs. Control thread.
#pragma once

#include "load/lanes.h"
#include "load/load.h"
#include "load/neighbours.h"

#include "stat/verdict.h"

struct load {
	struct run *current; // atomic: what lanes work at; never NULL between open and close
	bool stop;           // atomic, relaxed
	struct port_room *ports;
	const struct port_room_settings *settings;
	const json_t *streams; // of the file; NULL: none
	uint64_t hz;           // of the TSC
	unsigned n_lanes;
	unsigned patience_s;       // with a lane that does not come
	uint8_t lane_of[PORT_MAX]; // by port index: the lane that polls its queue
	struct load_lane lane[STAT_MAX_LANES];
	struct neighbours neighbours;
};

// --- hand.c

enum { HAND_PATIENCE_S = 3 };

// Makes `run` what lanes work at; the one before stays its `older`. / Waits until every lane holds
// the newest run and frees those before it. -EBUSY with a complaint that names the lane that does
// not come; they are then freed by a later call.
void hand_over(struct load *load, struct run *run);
int hand_await(struct load *load, struct complaint *why);
// Frees what lanes have let go of. Returns the first lane that still holds an older run, -1: none.
int hand_tend(struct load *load);

// --- run state, load.c

enum load_state { LOAD_IDLE, LOAD_SENDING, LOAD_DONE };

// How far the newest run is; brings it further where that takes the control thread. A run is done
// when all is sent and the TSC offset was measured again.
enum load_state load_state(struct load *load);

// What the verb send takes.
struct load_order {
	const json_t *streams; // NULL: the file's
	double seconds;        // 0: until all frames of the streams are sent
	double delay_s;
};
// Starts a run. -errno with a complaint, and then nothing has changed; but for a lane that does not
// come: the run then is over without having sent anything.
int load_send(struct load *load, const struct load_order *order, struct complaint *why);

// --- Verbs. Each row of schema/generator_verbs.toml wants its function here; one that is missing
// stops the build.
#define VERB_PROTOTYPE(verb, word, takes, means)                                                   \
	json_t *load_verb_##verb(void *house, const json_t *params, struct complaint *why);
SCHEMA_GENERATOR_VERBS(VERB_PROTOTYPE)
#undef VERB_PROTOTYPE

const char *load_state_word(enum load_state state);
json_t *load_port_json(const struct load *load, unsigned port);
// null where there is no memory, or nothing was sent yet.
json_t *load_timeline_json(const struct load_house *house);
