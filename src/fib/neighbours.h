// Neighbours as links see them. Control thread.
#pragma once

#include "fib/fib.h"

// Moves the hosts of all neighbours on a link to the table of another VRF, which is the link's from
// then on. 0, or -ENOSPC and nothing is changed.
int hosts_follow_iface(struct fib *fib, uint16_t iface, uint8_t vrf);
