// Fills the window's table from the rooms below: status, ports, lanes, drops, routes, reload. Control thread.
#pragma once

#include "config/config.h"
#include "ctl/ctl.h"
#include "fib/fib.h"
#include "path/path.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

// What verbs may touch; dl3d.c owns it.
struct verbs_house {
	struct config *config;   // replaced by a reload
	struct port_room *ports;
	struct fib *fib;         // the live table, replaced by a reload
	struct fib_door *door;
	struct path *path;
	uint64_t started_ns;
	bool stop;               // set by the verb stop
	unsigned n_reloads;
};

const struct ctl_verb *verbs_table(size_t *n);

// Reads the file again and applies what can change while running; a failure leaves all as it was. Also on SIGHUP.
int verbs_reload(struct verbs_house *house, struct complaint *why);
