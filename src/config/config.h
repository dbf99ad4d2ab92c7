// The YAML file -> the settings struct that each room declares; one clear error per mistake.
// Control thread.
#pragma once

#include "base/error.h"
#include "fib/fib.h"
#include "port/port.h"
#include "tap/tap.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct config;

// Reads `path` and all route files it names and checks everything that needs no device. 0, or
// -errno with `error` set of the form "FILE:LINE: what was found, what was wanted". Owner: caller,
// config_free.
int config_load(struct config **out, const char *path, struct error *error);
// The same file again, while the program runs: regular files only, for nobody may keep it waiting.
int config_load_again(struct config **out, const struct config *now, struct error *error);
// The same for the generator's file: streams instead of routes, one receive queue for each port.
int config_load_generator(struct config **out, const char *path, struct error *error);
void config_free(struct config *config);
// Frees the routes and neighbours, which only config_fill needs.
void config_forget_routes(struct config *config);

const struct port_table_settings *config_ports(const struct config *config);
const struct tap_settings *config_taps(const struct config *config); // key `linux`
const char *config_socket(const struct config *config);              // control socket
const char *config_socket_group(const struct config *config);        // NULL: the process's own
const char *config_path(const struct config *config);

// The addresses that the file gives a port, with the lengths of their networks, at most `max`;
// returns how many were written.
unsigned config_addresses(const struct config *config, unsigned port, struct wire_prefix out[],
	unsigned max);

// Fills a fresh table: ports (their MACs as `macs[port]`, which only the running device knows), own
// addresses, connected routes, routes (inline and files), neighbours. Where Linux is the control
// plane: ports only, the mirror does the rest. -errno with `error` set that
// names file and line.
int config_fill(const struct config *config, const struct wire_mac macs[], struct fib *fib,
	struct error *error);

// One route in the file's text form, for routes.change: "PREFIX via ADDRESS dev PORT" and its kin.
// Several next hops become a group of `fib`, good for its next fib_change.
int config_parse_route(const struct config *config, struct fib *fib, const char *text,
	struct fib_route *out, struct error *error);

// The generator's list of streams as it stands in the file, borrowed; NULL: none. What they mean
// is read by others, whose error ("streams[1] (east): size ...") then gets FILE:LINE.
const json_t *config_streams(const struct config *config);
void config_place_stream(const struct config *config, struct error *error);

// A prefix alone, as a route begins with it: PREFIX, ADDRESS or "default" (that of IPv4). 0, or
// -EINVAL.
int config_parse_prefix(const char *text, struct wire_prefix *out);

// NULL when `next` can take the place of `now` while running, else the first key that needs a
// restart ("ports[1].device").
const char *config_needs_restart(const struct config *now, const struct config *next);

// A complete, commented file that config_load / config_load_generator accepts.
void config_print_example(FILE *out);
void config_print_generator_example(FILE *out);

// The command line: PROGRAM [--check|--example|--version|--help|--hold] [-d PLUGIN]... [FILE] [--
// EAL ARGUMENTS].
enum config_action {
	CONFIG_RUN,
	CONFIG_CHECK,
	CONFIG_EXAMPLE,
	CONFIG_VERSION,
	CONFIG_HELP,
	CONFIG_HOLD
};
struct config_options {
	const char *program; // "dl3d" or "dl3gen"; set before reading
	int action;          // enum config_action
	const char *file;    // for CONFIG_RUN and CONFIG_CHECK; CONFIG_HOLD: the holder's socket
	const char *plugins[PORT_MAX_PLUGINS];
	char **eal_args;
	unsigned n_plugins, n_eal_args;
};
// 0, or -EINVAL with `error` set. Texts and eal_args lie in `argv`.
int config_read_options(struct config_options *out, int argc, char **argv, struct error *error);
// Prints the example, version or help when that is the action. False: it is another.
bool config_answer(const struct config_options *options, FILE *out);
// Adds plugins and arguments of the command line to those of the file.
int config_add_options(struct port_table_settings *settings, const struct config_options *options,
	struct error *error);

// How many routes the file and its route files hold.
size_t config_n_routes(const struct config *config);
