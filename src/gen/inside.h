// What the house of this room shares: the generator's state, runs and how they are handed to the
// workers, the methods. Control thread.
#pragma once

#include "gen/gen.h"
#include "gen/neighbours.h"
#include "gen/workers.h"

#include "stats/verdict.h"

struct gen {
	struct run *current; // atomic: what workers work at; never NULL between open and close
	bool stop;           // atomic, relaxed
	struct port_table *ports;
	const struct port_table_settings *settings;
	const json_t *streams; // of the file; NULL: none
	uint64_t hz;           // of the TSC
	unsigned n_workers;
	unsigned patience_s;         // with a worker that does not come
	uint8_t worker_of[PORT_MAX]; // by port index: the worker that polls its queue
	struct gen_worker worker[STATS_MAX_WORKERS];
	struct neighbours neighbours;
};

// --- hand.c

enum { HAND_PATIENCE_S = 3 };

// Makes `run` what workers work at; the one before stays its `older`. / Waits until every worker
// holds the newest run and frees those before it. -EBUSY with `error` set that names the worker
// that does not come; they are then freed by a later call.
void hand_over(struct gen *load, struct run *run);
int hand_await(struct gen *load, struct error *error);
// Frees what workers have let go of. Returns the first worker that still holds an older run, -1:
// none.
int hand_poll(struct gen *load);

// --- run state, load.c

enum gen_state { GEN_IDLE, GEN_SENDING, GEN_DONE };

// How far the newest run is; brings it further where that takes the control thread. A run is done
// when all is sent and the TSC offset was measured again.
enum gen_state gen_state(struct gen *load);

// What the method send takes.
struct gen_order {
	const json_t *streams; // NULL: the file's
	double seconds;        // 0: until all frames of the streams are sent
	double delay_s;
};
// Starts a run. -errno with `error` set, and then nothing has changed; but for a worker that does
// not come: the run then is over without having sent anything.
int gen_send(struct gen *load, const struct gen_order *order, struct error *error);

// --- Methods. Each row of schema/generator_methods.toml wants its function here; one that is
// missing stops the build.
#define METHOD_PROTOTYPE(method, word, takes, means)                                               \
	json_t *gen_method_##method(void *ctx, const json_t *params, struct error *error);
SCHEMA_GENERATOR_METHODS(METHOD_PROTOTYPE)
#undef METHOD_PROTOTYPE

const char *gen_state_word(enum gen_state state);
json_t *gen_port_json(const struct gen *load, unsigned port);
// null where there is no memory, or nothing was sent yet.
json_t *gen_timeline_json(const struct gen_ctx *ctx);
