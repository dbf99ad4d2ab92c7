// A TAP interface's administrative state, MTU and MAC address become the port's, and its appetite
// for frames to other MAC addresses. Inside links. Control thread.
#pragma once

#include "netlink/interfaces.h"

struct taps {
	struct mirror_port has[PORT_MAX];   // what the port really has
	struct mirror_port asked[PORT_MAX]; // what it was asked for last, also when refused
};

struct ifaces;
void taps_open(struct ifaces *ifaces);
void taps_follow(struct ifaces *ifaces);
// After links were judged: a port takes all frames where one of its links wants more than those to
// the port's MAC address.
void taps_follow_filters(struct ifaces *ifaces);
// NULL: the port has no TAP interface now.
struct interface *taps_find(const struct ifaces *ifaces, unsigned port);
int taps_port(const struct ifaces *ifaces, int ifindex); // -1: no TAP interface
