// Fills the window's table from the rooms below: status, ports, lanes, drops, routes, reload.
// Control thread.
#pragma once

#include "config/config.h"
#include "ctl/ctl.h"
#include "fib/fib.h"
#include "path/path.h"
#include "port/port.h"
#include "sync/sync.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// What verbs may touch; dl3d.c owns it.
struct verbs_house {
	struct config *config; // replaced by a reload
	struct port_room *ports;
	struct fib *fib; // the live table, replaced by a reload
	struct fib_door *door;
	struct path *path;
	struct tap_room *twins; // NULL: Linux is not the control plane
	struct sync *sync;      // the same, and until verbs_follow
	int wake;               // readable when the control loop has something to do
	bool is_busy;           // the mirror has more to do at once
	uint64_t started_ns, tended_ns;
	struct clock_pair born; // about when it started
	int silent_lane;        // named in the log already; -1: none
	bool stop;              // set by the verb stop
	unsigned n_reloads;
};

const struct ctl_verb *verbs_table(size_t *n);

// A complete table for a configuration; the lanes do not know of it yet. `faces` tell the MACs of
// the devices; NULL before they are open. 0, or -errno with a complaint. Owner: caller.
int verbs_build(const struct config *config, const struct port_face faces[], struct fib **out,
	struct complaint *why);

// Makes `fib` what lanes read; its next hops are counted from here on. Returns the old one, which
// no lane reads any more, for fib_destroy.
struct fib *verbs_swap(struct verbs_house *house, struct fib *fib);

// Reads the file again and applies what can change while running; a failure leaves all as it was.
// Also on SIGHUP.
int verbs_reload(struct verbs_house *house, struct complaint *why);

// Where ports have twins: lets their frames move and follows Linux from now on. Lanes run. / Lets
// go of Linux, which forwards on; and, once lanes have ended, of the twins' frames.
int verbs_follow(struct verbs_house *house, struct complaint *why);
void verbs_unfollow(struct verbs_house *house);

// Does what the signals that have come ask for: SIGHUP reads the file again, others stop.
void verbs_heed(struct verbs_house *house, int signals);

// What the control loop does besides serving: follows Linux, reads links, frees what lanes have
// left behind, names a lane that is silent. -errno with a complaint when a lane has ended by itself
// or a device is gone.
int verbs_tend(struct verbs_house *house, struct complaint *why);

// At the end: what was received, sent and dropped by name, in a few log lines.
void verbs_log_account(const struct verbs_house *house);
