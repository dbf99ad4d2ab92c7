// Applies the administrative state, MTU, MAC address and promiscuity requirements of a TAP
// interface to its port. Internal to ifaces. Control thread.
#pragma once

#include "netlink/interfaces.h"

struct taps {
	struct mirror_port has[PORT_MAX];   // actual settings of the port
	struct mirror_port asked[PORT_MAX]; // last requested settings, including refused ones
};

struct ifaces;
void taps_open(struct ifaces *ifaces);
void taps_follow(struct ifaces *ifaces);
// Call after judging interfaces: a port is promiscuous if one of its interfaces needs frames to
// other MAC addresses.
void taps_follow_filters(struct ifaces *ifaces);
// NULL: the port currently has no TAP interface.
struct interface *taps_find(const struct ifaces *ifaces, unsigned port);
int taps_port(const struct ifaces *ifaces, int ifindex); // -1: not a TAP interface
