// A twin's administrative state, MTU and MAC address become the port's. Inside links. Control
// thread.
#pragma once

#include "sync/interfaces.h"

struct twins {
	struct mirror_port has[PORT_MAX];   // what the port really has
	struct mirror_port asked[PORT_MAX]; // what it was asked for last, also when refused
};

struct links;
void twins_open(struct links *links);
void twins_follow(struct links *links);
// NULL: the port has no twin now.
struct interface *twins_find(const struct links *links, unsigned port);
int twins_port(const struct links *links, int ifindex); // -1: no twin
