// The parts of a verification. Inside verify. Control thread.
#pragma once

#include "netlink/inside.h"

// How many next hops workers send to otherwise than Linux would, told one by one (`how` NULL: not
// told), or -errno. One that changes at this very moment counts too: look again.
int verify_neighbours(struct netlink *netlink, const struct netlink_verification *how);
