// The generator: streams out, stamps in, accounts of both. Control thread.
#pragma once

#include "base/error.h"
#include "port/port.h"
#include "rpc/rpc.h"

#include <stdbool.h>
#include <stdint.h>

struct gen;

// Makes what the workers of `ports` need (borrowed until gen_close); nothing runs yet. Each port
// has one receive queue: the worker that polls it also sends on the port. `streams` is the file's
// list (borrowed, NULL: none), which the method `send` takes when it is given none.
int gen_open(struct gen **out, struct port_table *ports, const struct port_table_settings *settings,
	const json_t *streams, struct error *error);
// Launches the workers: they poll, and send once the method `send` says so. / Ends them.
int gen_start(struct gen *load, struct error *error);
void gen_stop(struct gen *load);
void gen_close(struct gen *load);

// Checks a list of streams (NULL: none) without devices, for --check.
int gen_check(const struct port_table_settings *settings, const json_t *streams,
	struct error *error);

// What methods may touch; dl3gen.c owns it.
struct gen_ctx {
	struct gen *load;
	struct port_table *ports;
	const struct port_table_settings *settings;
	const char *file; // path of the configuration
	uint64_t started_ns;
	struct clock_pair born; // about when it started
	bool stop;              // set by the method stop
};
const struct rpc_method *gen_methods(size_t *n);
// What the control loop does besides serving. -errno with `error` set when a worker or device
// ended.
int gen_poll(struct gen_ctx *ctx, struct error *error);
// So many milliseconds it may be called later: fewer where somebody waits for answers.
int gen_poll_ms(const struct gen *load);
