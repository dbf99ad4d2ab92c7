// The Linux TAP interface of each port: a TAP with the port's name, MAC address and MTU in a
// network namespace. Workers punt packets to it by class; what Linux sends on it is injected into
// the port. A dedicated thread, the tap thread, moves frames between the workers' rings and the TAP
// interfaces.
#pragma once

#include "base/error.h"
#include "port/port.h"
#include "stats/stats.h"
#include "tap/tap_fast.h"

#include <stdbool.h>
#include <stdint.h>

enum { TAP_NAME_MAX = 64, TAP_PATH_MAX = 108 };

struct tap_class_settings {
	uint32_t rate;  // frames/s, 0: none; at most 10,000,000
	uint32_t burst; // frames, 1 to 65536
	bool forwards;  // over the rate: forward instead of drop; class `redirect` only
};

// Settings of the key `linux` in the configuration file.
struct tap_settings {
	bool is_on;                        // the key is present: Linux is the control plane
	char namespace_name[TAP_NAME_MAX]; // name as in `ip netns`; "": the default, our own
	char own_namespace[TAP_NAME_MAX];  // name of our own namespace, created if missing
	bool keep;                         // TAP interfaces outlive the process; default true
	char hold_socket[TAP_PATH_MAX];    // where the holder listens
	struct tap_class_settings class[N_CLASSES];
};
// The defaults of schema/classes.toml, keep on, our own namespace. Pure.
void tap_settings_default(struct tap_settings *out);

struct tap_table;

// Checks everything that can be checked without creating anything: the namespace exists,
// /dev/net/tun, CAP_NET_ADMIN, no other interface uses the name of a TAP interface. TAP interfaces
// in use by another dl3d are accepted here, because the file may be checked on its behalf. 0, or
// -errno with `error` set.
int tap_check(const struct tap_settings *settings, const struct port_table_settings *ports,
	struct error *error);

// Enters the namespace, creates the TAP interfaces or adopts existing ones, and starts the holder
// (keep). The TAP interfaces are up and have the MAC addresses, MTUs and carrier of the ports. On
// error everything created is undone. Adopted TAP interfaces keep their admin state, MTU and MAC
// address (which netlink then applies to the ports). Settings and ports are borrowed. Control
// thread.
int tap_open(struct tap_table **out, const struct tap_settings *settings, struct port_table *ports,
	struct error *error);
// Starts and stops the thread that moves frames. tap_stop moves or counts what is left in the
// rings. Workers must have ended before.
int tap_start(struct tap_table *taps, struct error *error);
void tap_stop(struct tap_table *taps);
// `keep`: TAP interfaces stay, held by the holder. Otherwise TAP interfaces, holder and our own
// namespace (if it contains nothing else) are removed.
void tap_close(struct tap_table *taps);
// Applies the settings that can change at run time: the classes. Control thread.
void tap_change(struct tap_table *taps, const struct tap_settings *settings);

// Propagates the ports' carrier; called by the control loop about every 50 ms. A TAP interface that
// was deleted or whose device fails is logged once; its punts are counted as `tap_refused` from
// then on. Control thread.
void tap_poll(struct tap_table *taps);
// Recreates deleted TAP interfaces (method reload). 0, or -errno with `error` set.
int tap_restore(struct tap_table *taps, struct error *error);

// The namespace of the TAP interfaces as an open file, borrowed; whether it is our own (its sysctls
// are then ours to set).
int tap_namespace(const struct tap_table *taps);
bool tap_namespace_is_own(const struct tap_table *taps);
// Runs `call(arg)` on the calling thread in the namespace of the TAP interfaces; returns its
// result. For sockets and /proc/sys of that namespace. -errno if the namespace cannot be entered,
// with `error` (or NULL) set.
int tap_inside(const struct tap_table *taps, int (*call)(void *arg), void *arg,
	struct error *error);
// Interface index of the port's TAP interface in that namespace; 0: currently none.
int tap_tap(const struct tap_table *taps, unsigned port);

// Allocates a worker's rings and fills in its class_of; redirects are limited as if it were the
// only worker. No `pool` yet. For tap_open, and for datapath tests, which have no TAP interfaces. 0
// or -ENOMEM. / Frees the rings and the mbufs in them.
int tap_worker_make(struct tap_worker *worker, const struct tap_class_settings classes[]);
void tap_worker_free(struct tap_worker *worker);
// Maximum number of mbufs in flight between one worker and the TAP interfaces; set
// port_table_settings.n_lent_mbufs to it before port_open.
unsigned tap_n_mbufs(const struct tap_settings *settings);

// The worker's part of the tap module; valid until tap_close. Workers count from 0.
struct tap_worker *tap_worker(struct tap_table *taps, unsigned worker);
// Counters of punted packets. Any thread.
const struct stats_tap *tap_stats(const struct tap_table *taps);

// State for display.
struct tap_info {
	const char *namespace_name;
	bool namespace_is_own, keep, held; // held: the holder has one of its queues
	char name[PORT_NAME_MAX];          // current name of the interface
	int ifindex;                       // 0: deleted
	bool adopted, carrier;             // adopted: it existed before us
};
void tap_info(const struct tap_table *taps, unsigned port, struct tap_info *out);
// The current limit of the class. Control thread.
struct tap_class_settings tap_class(const struct tap_table *taps, enum punt_class class);

// The holder: a process that keeps one detached queue of each TAP interface open, so that its
// carrier, and with it routes and sessions, survive a crash of dl3d. Returns when it has nothing
// left to hold. Main function of `dl3d --hold SOCKET`.
int tap_hold_main(const char *socket_path);
