// The Linux TAP interface of each port: a TAP with the port's name, MAC address and MTU in a
// network namespace; workers punt to it by class, what Linux sends on it is injected into the port.
// One thread of its own moves the frames between the workers' rings and the TAP interfaces.
#pragma once

#include "base/error.h"
#include "port/port.h"
#include "stats/stats.h"
#include "tap/tap_fast.h"

#include <stdbool.h>
#include <stdint.h>

enum { TAP_NAME_MAX = 64, TAP_PATH_MAX = 108 };

struct tap_class_settings {
	uint32_t rate;  // frames/s, 0: none at all; at most 10,000,000
	uint32_t burst; // frames, 1 to 65536
	bool forwards;  // over the rate: forwarded instead of dropped; class `redirect` only
};

// As in the file, key `linux`.
struct tap_settings {
	bool is_on;                        // the file has the key: Linux is the control plane
	char namespace_name[TAP_NAME_MAX]; // as `ip netns` knows it; "": the default, our own
	char own_namespace[TAP_NAME_MAX];  // name of our own one: made when missing
	bool keep;                         // TAP interfaces outlast the process; default true
	char hold_socket[TAP_PATH_MAX];    // where the holder listens
	struct tap_class_settings class[N_CLASSES];
};
// The defaults of schema/classes.toml, keep, our own namespace. Pure.
void tap_settings_default(struct tap_settings *out);

struct tap_table;

// What can be checked without making anything: the namespace exists, /dev/net/tun, CAP_NET_ADMIN,
// no other interface has a TAP interface's name. TAP interfaces that another dl3d uses are no
// mistake here, where a file may be checked for it. 0, or -errno with one sentence.
int tap_check(const struct tap_settings *settings, const struct port_table_settings *ports,
	struct error *error);

// Enters the namespace, makes the TAP interfaces or adopts those that are there, starts the holder
// (keep). The TAP interfaces are up, have the ports' MACs and MTUs, and the ports' carrier. On
// error all that was made is undone. Adopted TAP interfaces keep their admin state, MTU and MAC
// (which the ports then get through sync). Settings and ports are borrowed. Control thread.
int tap_open(struct tap_table **out, const struct tap_settings *settings, struct port_table *ports,
	struct error *error);
// Starts and stops the thread that moves frames. Stop: what lies in the rings is still moved or
// counted. Workers have ended before.
int tap_start(struct tap_table *room, struct error *error);
void tap_stop(struct tap_table *room);
// `keep`: TAP interfaces stay, held. Else TAP interfaces, holder and our own namespace go (if
// nothing else is in it).
void tap_close(struct tap_table *room);
// Applies what can change while running: the classes. Control thread.
void tap_change(struct tap_table *room, const struct tap_settings *settings);

// Follows the ports' carrier; the control loop calls it every 50 ms or so. A TAP interface that has
// been deleted or whose device fails is named in the log once; its punts are `tap_refused` from
// then on. Control thread.
void tap_poll(struct tap_table *room);
// Makes TAP interfaces again that are gone (method reload). 0, or -errno with `error` set.
int tap_restore(struct tap_table *room, struct error *error);

// The namespace of the TAP interfaces as an open file, borrowed; whether it is our own (sysctls are
// ours).
int tap_namespace(const struct tap_table *room);
bool tap_namespace_is_own(const struct tap_table *room);
// Runs `call(arg)` with the calling thread in the TAP interfaces' namespace; its result. For
// sockets and /proc/sys that belong there. -errno when the namespace cannot be entered.
int tap_inside(const struct tap_table *room, int (*call)(void *arg), void *arg);
// Interface index of the port's TAP interface in that namespace; 0: it has none now.
int tap_tap(const struct tap_table *room, unsigned port);

// A worker's rings in memory of their own; its class_of; redirects as if it were the only worker.
// No `pool` yet. For tap_open, and for tests of the walk, which have no TAP interfaces. 0 or
// -ENOMEM. / Frees rings and the mbufs in them.
int tap_worker_make(struct tap_worker *worker, const struct tap_class_settings classes[]);
void tap_worker_free(struct tap_worker *worker);
// Mbufs that one worker and the TAP interfaces may have between them at most; goes into
// port_table_settings.n_lent_mbufs before port_open.
unsigned tap_n_mbufs(const struct tap_settings *settings);

// What the worker owns of this room; valid until tap_close. Workers count from 0.
struct tap_worker *tap_worker(struct tap_table *room, unsigned worker);
// What became of punted packets. Any thread.
const struct stats_tap *tap_stats(const struct tap_table *room);

// For people.
struct tap_info {
	const char *namespace_name;
	bool namespace_is_own, keep, held; // held: the holder has a queue of it
	char name[PORT_NAME_MAX];          // of the interface now
	int ifindex;                       // 0: gone
	bool adopted, carrier;             // adopted: it was there before us
};
void tap_info(const struct tap_table *room, unsigned port, struct tap_info *out);
// The class's limit as it stands. Control thread.
struct tap_class_settings tap_class(const struct tap_table *room, enum punt_class class);

// The holder: a process that keeps one detached queue of each TAP interface open, so that its
// carrier and with it routes and sessions survive a crash of dl3d. Never returns before it has
// nothing to hold. Main of `dl3d --hold SOCKET`.
int tap_hold_main(const char *socket_path);
