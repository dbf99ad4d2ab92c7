// The traffic generator: sends streams, receives stamped frames, and counts both. Control thread.
#pragma once

#include "base/error.h"
#include "port/port.h"
#include "rpc/rpc.h"

#include <stdbool.h>
#include <stdint.h>

struct gen;

// Creates what the workers of `ports` need (borrowed until gen_close); nothing runs yet. Each port
// has one receive queue: the worker that polls it also transmits on the port. `streams` is the list
// from the file (borrowed, NULL: none), used by the method `send` if it is given none.
int gen_open(struct gen **out, struct port_table *ports, const struct port_table_settings *settings,
	const json_t *streams, struct error *error);
// Starts the workers: they poll, and send once the method `send` is called.
int gen_start(struct gen *gen, struct error *error);
// Stops the workers.
void gen_stop(struct gen *gen);
void gen_close(struct gen *gen);

// Checks a list of streams (NULL: none) without devices, for --check.
int gen_check(const struct port_table_settings *settings, const json_t *streams,
	struct error *error);

// Context of the methods; owned by dl3gen.c.
struct gen_ctx {
	struct gen *gen;
	struct port_table *ports;
	const struct port_table_settings *settings;
	const char *file; // path of the configuration
	uint64_t started_ns;
	uint64_t started_ms;    // since 1970, the same moment
	struct clock_pair born; // start time, approximate
	bool stop;              // set by the method stop
};
const struct rpc_method *gen_methods(size_t *n);
// The periodic work of the control loop. -errno with `error` set if a worker or device has ended.
int gen_poll(struct gen_ctx *ctx, struct error *error);
// How many milliseconds may pass until the next gen_poll: fewer if hosts are waiting for replies.
int gen_poll_ms(const struct gen *gen);
