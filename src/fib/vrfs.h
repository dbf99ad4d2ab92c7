// VRFs: further tables in one struct fib. Control thread.
#pragma once

#include "fib/table.h"

// Whether the VRF is open.
static inline bool vrf_exists(const struct fib *fib, uint16_t vrf)
{
	return vrf < FIB_MAX_VRFS && fib->open_vrfs >> vrf & 1;
}

// Opens the main one. 0 or -ENOMEM.
int vrf_open_main(struct fib *fib);
// The view of a VRF that workers use; if the VRF is not open, hop 0 for all addresses.
const struct fib_view *vrf_view_of(const struct fib *fib, uint8_t vrf);
