// The room's state, private to its files. The TAP interfaces' thread knows TAP interfaces by the
// number of their file, which never changes: control puts another file behind it (dup2).
#pragma once

#include "tap/bucket.h"
#include "tap/hold.h"
#include "tap/netdev.h"
#include "tap/rings.h"
#include "tap/tap_device.h"

#include <pthread.h>

struct tap_entry {
	struct tap_device tap;
	uint16_t worker;     // that takes what Linux sends on it
	bool is_held;        // the holder has a queue of it
	uint32_t n_files;    // that have been behind the number; atomic, relaxed
	uint32_t n_too_long; // frames from Linux that fit no buffer; the thread's, atomic, relaxed
	bool awaits_link;    // adopted with carrier, the port's has not come yet
	bool said_too_long;
};

struct tap_table {
	struct stats_tap stats;
	struct tap_worker *workers;
	unsigned n_workers, n_taps;
	struct tap_entry taps[PORT_MAX];
	const struct tap_settings *settings;
	struct port_table *ports;
	const char *namespace_name;
	bool namespace_is_own, namespace_is_new, said_unnamed, said_unheld;
	int netns;
	struct netdev_sockets sockets;
	int blank;  // what stands behind the number of a TAP interface that is gone
	int holder; // connection to it; -1: none
	struct tap_class_settings class[N_CLASSES]; // rate and burst: atomic, relaxed
	uint64_t started_ns, looked_ns;             // looked: at the namespace's name

	struct tap_bell bell;
	pthread_t thread;
	bool thread_runs, stop; // stop: atomic, relaxed
	bool is_beside_workers; // the thread may run on a worker's core
	struct bucket buckets[N_CLASSES];
	struct rte_mbuf *spare[STATS_MAX_WORKERS]; // a lent buffer that found no frame
	unsigned turn;                             // which worker comes first
} LINE_ALIGNED;

// taps.c: makes or adopts all TAP interfaces, all or none. / Makes those again that are
// gone. The calling thread is inside the namespace. 0, or -errno with `error` set.
int taps_make(struct tap_table *room, struct error *error);
int taps_restore(struct tap_table *room, struct error *error);
// Hands the held queues to the holder, which is started where there is none; with keep off has it
// drop those that it has. Not inside the namespace. 0, or -errno with `error` set.
int taps_hold(struct tap_table *room, struct error *error);
void taps_release(struct tap_table *room, unsigned port);
void taps_close(struct tap_table *room, bool undo);
// Puts the blank file behind the TAP interface's number.
void taps_blank(struct tap_table *room, unsigned port);

// move.c: frames between rings and TAP interfaces. The TAP interfaces' thread; after it has ended,
// control. Moves up to some bulks of punted frames; whether there were any.
bool move_punted(struct tap_table *room);
// Whether any are left; they wait while their worker has not taken its used mbufs back.
bool move_has_punted(const struct tap_table *room);
// Empties the rings; workers have ended, so used mbufs are freed here.
void move_rest(struct tap_table *room);
// Reads frames of this TAP interface into its worker's ring, a fair share. 0, -ENOBUFS: no buffer
// was to be had, -EAGAIN: it had no (more) frames, or why it cannot be read.
int move_injected(struct tap_table *room, unsigned port, unsigned *n_moved);
// Whether its worker has a buffer for a frame.
bool move_can_inject(struct tap_table *room, unsigned port);

// thread.c
int thread_start(struct tap_table *room, struct error *error);
void thread_stop(struct tap_table *room);
