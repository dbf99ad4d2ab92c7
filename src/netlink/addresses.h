// Addresses of all interfaces. Local routes define which addresses belong to the host; this table
// shows which source addresses have been removed, and with them the routes that the kernel drops
// without a notification. Internal to ifaces. Control thread.
#pragma once

#include "base/hash_table.h"
#include "netlink/mirror.h"

struct addresses {
	struct hash_table by_local; // hashed by local address
};

struct ifaces;
int addresses_open(struct addresses *all);
void addresses_close(struct addresses *all);
void addresses_event(struct ifaces *ifaces, const struct event *event);
void addresses_iface_gone(struct ifaces *ifaces, int ifindex);
// Writes at most `max` addresses of an interface, with their prefix lengths; returns how many.
unsigned addresses_of(const struct addresses *all, int ifindex, struct wire_prefix out[],
	unsigned max);
void addresses_sweep(struct ifaces *ifaces); // removes what the latest dump did not contain
