// Internal to the table: moves neighbours between VRFs. Control thread.
#pragma once

#include "fib/fib.h"

// Moves the hosts of all neighbours on an interface to the table of another VRF, which becomes the
// interface's. 0, or -ENOSPC and nothing is changed.
int hosts_follow_iface(struct fib *fib, uint16_t iface, uint8_t vrf);
