// Tunnels of a table: by which hop the remote end of each is reached, and what workers find their
// ends by. Control thread.
#pragma once

#include "fib/fib_fast.h"

#include <stddef.h>

struct fib;

struct tunnels {
	uint16_t *iface; // of each
	size_t n, capacity;
	struct fib_ends *ends;                    // what workers read; NULL: none
	struct fib_udp_end udp[FIB_MAX_UDP_ENDS]; // of fib_udp_ends_set
	unsigned n_udp;
};

void tunnels_close(struct tunnels *tunnels);
// An interface has other settings, or none, and is published already.
void tunnels_iface_changed(struct fib *fib, uint16_t iface);
// Looks up again by which hop remote ends are reached, and rewrites hops into tunnels if anything
// that their headers are made of has changed. Cheap without tunnels.
void tunnels_follow(struct fib *fib);
