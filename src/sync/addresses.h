// Addresses of all interfaces. Routes of table local say what is ours; this says which source
// addresses have gone, and with them routes that the kernel drops without a word. Inside links.
// Control thread.
#pragma once

#include "sync/mirror.h"

struct address;
struct addresses {
	struct address **bucket; // by local address
	uint32_t n_buckets, n;   // a power of two
};

struct links;
int addresses_open(struct addresses *all);
void addresses_close(struct addresses *all);
void addresses_event(struct links *links, const struct event *event);
void addresses_link_gone(struct links *links, int ifindex);
void addresses_sweep(struct links *links); // what the newest dump did not name
