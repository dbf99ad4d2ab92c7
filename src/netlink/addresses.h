// Addresses of all interfaces. Routes of table local say what is ours; this says which source
// addresses have gone, and with them routes that the kernel drops without a word. Inside links.
// Control thread.
#pragma once

#include "netlink/mirror.h"

struct address;
struct addresses {
	struct address **bucket; // by local address
	uint32_t n_buckets, n;   // a power of two
};

struct ifaces;
int addresses_open(struct addresses *all);
void addresses_close(struct addresses *all);
void addresses_event(struct ifaces *ifaces, const struct event *event);
void addresses_iface_gone(struct ifaces *ifaces, int ifindex);
// Those of an interface, with the lengths of their prefixes, at most `max`; returns how many.
unsigned addresses_of(const struct addresses *all, int ifindex, struct wire_prefix out[],
	unsigned max);
void addresses_sweep(struct ifaces *ifaces); // what the newest dump did not name
