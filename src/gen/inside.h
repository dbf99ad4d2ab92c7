// Shared by the control thread's files of this module: the generator's state, runs and their
// handover to the workers, the methods. Control thread.
#pragma once

#include "gen/gen.h"
#include "gen/neighbours.h"
#include "gen/workers.h"

#include "stats/verdict.h"

struct gen {
	struct run *current; // atomic: the run that workers execute; never NULL between open and
	                     // close
	bool stop;           // atomic, relaxed
	struct port_table *ports;
	const struct port_table_settings *settings;
	const json_t *streams; // from the file; NULL: none
	uint64_t hz;           // of the TSC
	unsigned n_workers;
	unsigned patience_s;         // timeout for a worker that does not take over a run
	uint8_t worker_of[PORT_MAX]; // by port index: the worker that polls its queue
	struct gen_worker worker[STATS_MAX_WORKERS];
	struct neighbours neighbours;
};

// --- hand.c

enum { HAND_PATIENCE_S = 3 };

// Publishes `run` to the workers; the previous one becomes its `older`.
void hand_over(struct gen *gen, struct run *run);
// Waits until every worker holds the current run, and frees older ones. -EBUSY with `error` set to
// the worker that did not take over; older runs are then freed by a later call.
int hand_await(struct gen *gen, struct error *error);
// Frees runs no longer held by workers. Returns the first worker that still holds an older run, -1:
// none.
int hand_poll(struct gen *gen);

// --- run state, gen.c

enum gen_state { GEN_IDLE, GEN_SENDING, GEN_DONE };

// State of the current run; also advances it as far as the control thread is involved. A run is
// done when everything is sent and the TSC offset has been measured again.
enum gen_state gen_state(struct gen *gen);

// Parameters of the method send.
struct gen_order {
	const json_t *streams; // NULL: those of the file
	double seconds;        // 0: until all frames of the streams are sent
	double delay_s;
};
// Starts a run. -errno with `error` set; nothing has changed in that case, unless a worker did not
// take over: then the run has ended without sending anything.
int gen_send(struct gen *gen, const struct gen_order *order, struct error *error);

// --- Methods. Each row of schema/generator_methods.toml needs its function here; a missing one
// breaks the build.
#define METHOD_PROTOTYPE(method, word, takes, means)                                               \
	json_t *gen_method_##method(void *ctx, const json_t *params, struct error *error);
SCHEMA_GENERATOR_METHODS(METHOD_PROTOTYPE)
#undef METHOD_PROTOTYPE

const char *gen_state_word(enum gen_state state);
json_t *gen_port_json(const struct gen *gen, unsigned port);
// null if out of memory, or if nothing was sent yet.
json_t *gen_timeline_json(const struct gen_ctx *ctx);
