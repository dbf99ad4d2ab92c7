// VRFs: further tables in one struct fib. Control thread.
#pragma once

#include "fib/table.h"

// Whether routes may stand there.
static inline bool vrf_exists(const struct fib *fib, uint16_t vrf)
{
	return vrf < FIB_MAX_VRFS && fib->open_vrfs >> vrf & 1;
}

// Opens the main one. -ENOMEM.
int vrf_open_main(struct fib *fib);
// The view of a VRF as workers have it; hop 0 for all that is not open.
const struct fib_view *vrf_view_of(const struct fib *fib, uint8_t vrf);
