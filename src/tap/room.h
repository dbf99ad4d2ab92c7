// The room's state, private to its files. The twins' thread knows twins by the number of their
// file, which never changes: control puts another file behind it (dup2).
#pragma once

#include "tap/bucket.h"
#include "tap/hold.h"
#include "tap/iface.h"
#include "tap/rings.h"
#include "tap/twin.h"

#include <pthread.h>

struct room_twin {
	struct twin twin;
	uint16_t lane;       // that takes what Linux sends on it
	bool is_held;        // the holder has a queue of it
	uint32_t n_files;    // that have been behind the number; atomic, relaxed
	uint32_t n_too_long; // frames from Linux that fit no buffer; the thread's, atomic, relaxed
	bool awaits_link;    // adopted with carrier, the port's has not come yet
	bool said_too_long;
};

struct tap_room {
	struct stat_tap stats;
	struct tap_lane *lanes;
	unsigned n_lanes, n_twins;
	struct room_twin twins[PORT_MAX];
	const struct tap_settings *settings;
	struct port_room *ports;
	const char *namespace_name;
	bool namespace_is_own, namespace_is_new, said_unnamed, said_unheld;
	int netns;
	struct iface_sockets sockets;
	int blank;  // what stands behind the number of a twin that is gone
	int holder; // connection to it; -1: none
	struct tap_class_settings class[N_CLASSES]; // rate and burst: atomic, relaxed
	uint64_t started_ns, looked_ns;             // looked: at the namespace's name

	struct tap_bell bell;
	pthread_t thread;
	bool thread_runs, stop; // stop: atomic, relaxed
	bool is_beside_lanes;   // the thread may run on a lane's core
	struct bucket buckets[N_CLASSES];
	struct rte_mbuf *spare[STAT_MAX_LANES]; // a lent buffer that found no frame
	unsigned turn;                          // which lane comes first
} LINE_ALIGNED;

// twins.c: makes or adopts all twins, all or none. / Makes those again that are gone. The calling
// thread is inside the namespace. 0, or -errno with a complaint.
int twins_make(struct tap_room *room, struct complaint *why);
int twins_restore(struct tap_room *room, struct complaint *why);
// Hands the held queues to the holder, which is started where there is none; with keep off has it
// drop those that it has. Not inside the namespace. 0, or -errno with a complaint.
int twins_hold(struct tap_room *room, struct complaint *why);
void twins_release(struct tap_room *room, unsigned port);
void twins_close(struct tap_room *room, bool undo);
// Puts the blank file behind the twin's number.
void twins_blank(struct tap_room *room, unsigned port);

// move.c: frames between rings and twins. The twins' thread; after it has ended, control.
// Moves up to some bulks of punted frames; whether there were any.
bool move_punted(struct tap_room *room);
// Whether any are left; they wait while their lane has not taken its used mbufs back.
bool move_has_punted(const struct tap_room *room);
// Empties the rings; lanes have ended, so used mbufs are freed here.
void move_rest(struct tap_room *room);
// Reads frames of this twin into its lane's ring, a fair share. 0, -ENOBUFS: no buffer was to be
// had, -EAGAIN: it had no (more) frames, or why it cannot be read.
int move_injected(struct tap_room *room, unsigned port, unsigned *n_moved);
// Whether its lane has a buffer for a frame.
bool move_can_inject(struct tap_room *room, unsigned port);

// thread.c
int thread_start(struct tap_room *room, struct complaint *why);
void thread_stop(struct tap_room *room);
