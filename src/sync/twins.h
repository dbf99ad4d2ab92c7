// A twin's administrative state, MTU and MAC address become the port's, and its appetite for frames
// to other MAC addresses. Inside links. Control thread.
#pragma once

#include "sync/interfaces.h"

struct twins {
	struct mirror_port has[PORT_MAX];   // what the port really has
	struct mirror_port asked[PORT_MAX]; // what it was asked for last, also when refused
};

struct links;
void twins_open(struct links *links);
void twins_follow(struct links *links);
// After links were judged: a port takes all frames where one of its links wants more than those to
// the port's MAC address.
void twins_follow_filters(struct links *links);
// NULL: the port has no twin now.
struct interface *twins_find(const struct links *links, unsigned port);
int twins_port(const struct links *links, int ifindex); // -1: no twin
