// State of the tap module, private to its files. The tap thread refers to a TAP interface by its
// file descriptor number, which never changes: the control thread replaces the file behind it
// (dup2).
#pragma once

#include "capture/capture_fast.h"
#include "tap/bucket.h"
#include "tap/hold.h"
#include "tap/netdev.h"
#include "tap/reject.h"
#include "tap/rings.h"
#include "tap/tap_device.h"

#include <pthread.h>

struct tap_entry {
	struct tap_device tap;
	bool is_absent;      // there is no such port; atomic, release, for `worker`
	uint16_t worker;     // that transmits what Linux sends on it
	bool is_held;        // the holder has one of its queues
	uint32_t n_files;    // files used behind the descriptor so far; atomic, relaxed
	uint32_t n_too_long; // frames from Linux too long for a buffer; written by the thread,
	                     // atomic, relaxed
	bool awaits_link;    // adopted with carrier, the port has none yet
	bool said_too_long;
	unsigned n_own_macs; // of the port, see port_info
};

struct tap_table {
	struct stats_tap stats;
	struct tap_worker *workers;
	unsigned n_workers;
	unsigned n_taps; // including absent ones; atomic, release, for their descriptors
	struct tap_entry taps[PORT_MAX];
	const struct tap_settings *settings;
	struct capture_live *captures; // NULL: none are made
	struct port_table *ports;
	const char *namespace_name;
	bool namespace_is_own, namespace_is_new, said_unnamed, said_unheld;
	int netns;
	struct netdev_sockets sockets;
	struct reject reject;
	int blank;  // file behind the descriptor of a deleted TAP interface
	int holder; // connection to the holder; -1: none
	struct tap_class_settings class[N_CLASSES]; // rate and burst: atomic, relaxed
	uint64_t started_ns, looked_ns;             // looked: last check of the namespace's name

	struct tap_wakeup wakeup;
	pthread_t thread;
	pid_t tid;              // of the thread, once it runs; atomic, relaxed
	bool thread_runs, stop; // stop: atomic, relaxed
	uint32_t n_rounds;      // of the thread's loop; atomic, release
	bool is_beside_workers; // the thread may run on a worker's core
	struct bucket buckets[N_CLASSES];
	struct rte_mbuf *spare[STATS_MAX_WORKERS]; // a lent buffer not filled yet
	unsigned turn;                             // worker to be served first
} LINE_ALIGNED;

// taps.c: creates or adopts all TAP interfaces, or none.
int taps_make(struct tap_table *taps, struct error *error);
// Recreates deleted ones, as many as possible. Call inside the namespace. 0, or -errno with `error`
// set for the first that failed.
int taps_restore(struct tap_table *taps, struct error *error);
// Passes the held queues to the holder, which is started if needed; with keep off, makes it release
// those it has. Call outside the namespace. 0, or -errno with `error` set.
int taps_hold(struct tap_table *taps, struct error *error);
// Those of a single port, which was added / which goes. Call the former inside the namespace.
int taps_make_one(struct tap_table *taps, unsigned port, struct error *error);
int taps_hold_one(struct tap_table *taps, unsigned port, struct error *error);
void taps_remove_one(struct tap_table *taps, unsigned port);
void taps_release(struct tap_table *taps, unsigned port);
void taps_close(struct tap_table *taps, bool undo);
// Puts the blank file behind the descriptor of the TAP interface.
void taps_blank(struct tap_table *taps, unsigned port);

// move.c: moves frames between rings and TAP interfaces. Tap thread; after it has ended, control
// thread. Moves up to several bulks of punted frames; returns whether there were any.
bool move_punted(struct tap_table *taps);
// Whether any are left, including those that cannot be moved until their worker has taken its used
// mbufs back.
bool move_has_punted(const struct tap_table *taps);
// Waits, for a limited time, until the thread has taken what workers had punted before, / until the
// worker has taken what Linux had sent before. Control thread.
void move_wait_punted(struct tap_table *taps);
void move_wait_injected(const struct tap_worker *worker);
// Empties the rings. Workers have ended, so used mbufs are freed here.
void move_rest(struct tap_table *taps);
// Reads frames from this TAP interface into its worker's ring, up to a fair share. 0, -ENOBUFS: no
// buffer available, -EAGAIN: no (more) frames, or the read error.
int move_injected(struct tap_table *taps, unsigned port, unsigned *n_moved);
// Whether its worker has lent a buffer for a frame.
bool move_can_inject(struct tap_table *taps, unsigned port);

// thread.c
int thread_start(struct tap_table *taps, struct error *error);
void thread_stop(struct tap_table *taps);
// Waits until the thread, if it runs, has begun another round: it has seen what was written before.
void thread_wait(struct tap_table *taps);

static inline bool tap_is_absent(const struct tap_entry *tap)
{
	return __atomic_load_n(&tap->is_absent, __ATOMIC_ACQUIRE);
}
