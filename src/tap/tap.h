// The TAP interface of each port in Linux, with the port's name, MAC address and MTU, in a network
// namespace. Workers punt packets to it by class; frames that Linux sends on it are
// transmitted on the port (injected). A dedicated thread, the tap thread, moves frames between the
// workers' rings and the TAP interfaces. A helper process, dl3d-hold (dl3d --hold), keeps the TAP
// interfaces open while dl3d is not running.
#pragma once

#include "base/error.h"
#include "port/port.h"
#include "stats/stats.h"
#include "tap/tap_fast.h"

#include <stdbool.h>
#include <stdint.h>

enum { TAP_NAME_MAX = 64, TAP_PATH_MAX = 108 };

struct tap_class_settings {
	uint32_t rate;  // frames/s, at most 10,000,000; 0: all frames of this class are dropped
	uint32_t burst; // frames, 1 to 65536
	bool forwards;  // on overflow, forward in the fast path instead of dropping; class
	                // `redirect` only
};

// Settings of the key `linux` in the configuration file.
struct tap_settings {
	bool is_on;                        // the key is present: Linux is the control plane
	char namespace_name[TAP_NAME_MAX]; // name as in `ip netns`; "": own_namespace
	char own_namespace[TAP_NAME_MAX];  // namespace that dl3d creates if it is missing
	bool keep;                         // persistent TAP interfaces (IFF_PERSIST); default true
	char hold_socket[TAP_PATH_MAX];    // socket path of dl3d-hold
	struct tap_class_settings class[N_CLASSES];
};
// Sets the defaults: the limits of schema/classes.toml, keep on, dl3d's own namespace. Pure.
void tap_settings_default(struct tap_settings *out);

struct tap_table;

// Checks everything that can be checked without creating anything: that the namespace exists,
// /dev/net/tun can be opened, CAP_NET_ADMIN is present, and no other interface has the name of a
// TAP interface. TAP interfaces
// in use by another dl3d are accepted here, because --check may run against the configuration of a
// running dl3d. 0, or -errno with `error` set.
int tap_check(const struct tap_settings *settings, const struct port_table_settings *ports,
	struct error *error);

// Opens the namespace, creates the TAP interfaces or adopts existing ones, and starts dl3d-hold
// (keep). TAP interfaces that it creates are up and have the MAC addresses and MTUs of the ports;
// adopted ones keep their admin state, MTU and MAC address, which netlink then applies to the
// ports. The carrier follows the ports (tap_poll). On error, everything created so far is removed.
// The caller keeps `settings` and `ports` valid until tap_close. Control thread.
int tap_open(struct tap_table **out, const struct tap_settings *settings, struct port_table *ports,
	struct error *error);
// Creates or adopts the TAP interface of a port that port_add has added, while the tap thread runs.
// 0, or -errno with `error` set and nothing changed. Control thread.
int tap_add(struct tap_table *taps, unsigned port, struct error *error);
// Removes the TAP interface of a port, after port_remove: frames that were punted to it before are
// delivered, those that Linux sent are dropped by the workers because the port is down. Control
// thread.
void tap_remove(struct tap_table *taps, unsigned port);
// Captures that the tap thread may find running: frames that it drops are captured. Before
// tap_start; borrowed until tap_stop. Control thread.
struct capture_live;
void tap_set_captures(struct tap_table *taps, struct capture_live *captures);
// Starts the tap thread. 0, or -errno with `error` set.
int tap_start(struct tap_table *taps, struct error *error);
// Stops the tap thread and drains the rings: the remaining packets are delivered, or counted as
// dropped. All workers must have terminated first.
void tap_stop(struct tap_table *taps);
// Stops the tap thread. With `keep`, the TAP interfaces persist, and dl3d-hold keeps a queue of
// each open. Otherwise the TAP interfaces are removed, and dl3d's own namespace too if it contains
// no process and no other interface.
void tap_close(struct tap_table *taps);
// Applies the settings that can change at run time: the classes. Control thread.
void tap_change(struct tap_table *taps, const struct tap_settings *settings);

// Propagates the carrier of the ports to the TAP interfaces; the control thread calls it about
// every 50 ms. A TAP interface that was deleted is logged once. Packets punted to it are counted as
// `tap_refused`, until netlink sets IFACE_DOWN on its port; then all received packets are
// dropped as `port_disabled`. A TAP interface gets the MAC address that a reset of the device has
// brought. Control thread.
void tap_poll(struct tap_table *taps);
// Recreates deleted TAP interfaces, as many as possible; called by the RPC method `reload`. 0, or
// -errno with `error` set for the first that failed.
int tap_restore(struct tap_table *taps, struct error *error);

// Sets the MTU of the port's TAP interface to `mtu`, unless it is no longer `refused`. 0 or -errno.
// Control thread.
int tap_restore_mtu(struct tap_table *taps, unsigned port, unsigned refused, unsigned mtu);

// File descriptor of the namespace of the TAP interfaces; the tap module owns it.
int tap_namespace(const struct tap_table *taps);
// Whether the namespace is dl3d's own (key `namespace` not given); if so, dl3d sets sysctls in it.
bool tap_namespace_is_own(const struct tap_table *taps);
// Runs `call(arg)` on the calling thread in the namespace of the TAP interfaces; returns its
// result. For sockets and /proc/sys of that namespace. -errno if the namespace cannot be entered,
// with `error` (or NULL) set.
int tap_run_in_netns(const struct tap_table *taps, int (*call)(void *arg), void *arg,
	struct error *error);
// Interface index of the port's TAP interface in that namespace; 0: currently none.
int tap_ifindex(const struct tap_table *taps, unsigned port);

// Allocates a worker's rings and sets its class_of; the redirect policer gets the full rate, which
// tap_open then divides by the number of workers. `pool` is not set; the caller sets it. For
// tap_open, and for datapath tests, which have no TAP interfaces. 0 or -ENOMEM.
int tap_worker_make(struct tap_worker *worker, const struct tap_class_settings classes[]);
// Frees the rings and the mbufs in them.
void tap_worker_free(struct tap_worker *worker);
// Maximum number of mbufs in flight between one worker and the TAP interfaces; set
// port_table_settings.n_lent_mbufs to it before port_open.
unsigned tap_n_mbufs(const struct tap_settings *settings);

// The worker's part of the tap module; valid until tap_close. Worker indices start at 0.
struct tap_worker *tap_worker(struct tap_table *taps, unsigned worker);
// Counters of punted packets. Any thread.
const struct stats_tap *tap_stats(const struct tap_table *taps);

// State for display.
struct tap_info {
	const char *namespace_name;
	bool namespace_is_own, keep, held; // held: dl3d-hold keeps a queue of it open
	char name[PORT_NAME_MAX];          // current name of the interface
	int ifindex;                       // 0: deleted
	bool adopted, carrier;             // adopted: existed before dl3d started
};
void tap_info(const struct tap_table *taps, unsigned port, struct tap_info *out);
// The current limit of the class. Control thread.
struct tap_class_settings tap_class(const struct tap_table *taps, enum punt_class class);

// Main function of dl3d-hold (`dl3d --hold SOCKET`): keeps one detached queue of each TAP interface
// open, so that its carrier, and with it routes and sessions, survive a crash of dl3d. Returns when
// the last TAP interface is gone or released and no dl3d is connected.
int tap_hold_main(const char *socket_path);
