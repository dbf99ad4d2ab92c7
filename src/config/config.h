// The YAML file -> the settings struct that each room declares; one clear complaint per mistake.
// Control thread.
#pragma once

#include "base/complaint.h"
#include "fib/fib.h"
#include "port/port.h"

#include <stdio.h>

struct config;

// Reads `path` and all route files it names and checks everything that needs no device. 0, or
// -errno with a complaint of the form "FILE:LINE: what was found, what was wanted". Owner: caller,
// config_free.
int config_load(struct config **out, const char *path, struct complaint *why);
void config_free(struct config *config);

const struct port_room_settings *config_ports(const struct config *config);
const char *config_socket(const struct config *config); // control socket; default /run/dl3d.sock
const char *config_socket_group(const struct config *config); // NULL: the process's own
const char *config_path(const struct config *config);

// Fills a fresh table: ports (their MACs as `macs[port]`, which only the running device knows), own
// addresses, connected routes, routes (inline and files), neighbours. -errno with a complaint that
// names file and line.
int config_fill(const struct config *config, const struct wire_mac macs[], struct fib *fib,
	struct complaint *why);

// One route in the file's text form, for routes.change: "PREFIX via ADDRESS dev PORT" and its kin.
int config_parse_route(const struct config *config, const char *text, struct fib_route *out,
	struct complaint *why);

// NULL when `next` can take the place of `now` while running, else the first key that needs a
// restart ("ports[1].device").
const char *config_needs_restart(const struct config *now, const struct config *next);

// A complete, commented file that config_load accepts.
void config_print_example(FILE *out);
