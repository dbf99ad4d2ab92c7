// The guard: a table of nftables, family bridge, with which Linux floods nothing between the ports
// for which workers flood. Its sets have the names of these ports. In dl3d's own namespace dl3d
// installs it, and it goes with the process; in another one the operator does. Control thread.
#pragma once

#include "netlink/event.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// What chains of the guard are called ("table bridge dl3d chain forward").
#define GUARD_TABLE "dl3d"

// Ports of dl3d, and VXLAN devices.
enum { GUARD_MAX = PORT_MAX + 1024 };

struct guard_port {
	char name[EVENT_NAME_MAX]; // of the TAP interface or VXLAN device; 0 to its end
	bool has_multicasts;       // not only frames to all are guarded, but also those to groups
};

struct guard;

// Nothing is installed before ports are to be guarded. NULL: not enough memory.
struct guard *guard_open(struct tap_table *taps);
// Takes the table away, if it is dl3d's.
void guard_close(struct guard *guard);
// Has these ports guarded, and no others. False: they are not, and the first time this is logged;
// the table is not there, or does not have them all, or Linux refuses it.
bool guard_set(struct guard *guard, const struct guard_port port[], unsigned n);
// How many frames it has kept Linux from flooding. False: not known, as there is none.
bool guard_count(struct guard *guard, uint64_t *n);
// The nft(8) statement that installs what is missing, as much as fits; "": nothing, or it is
// dl3d's to install.
void guard_statement(const struct guard *guard, char *out, size_t bytes);
