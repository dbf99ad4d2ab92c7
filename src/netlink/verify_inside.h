// The parts of a verification. Internal to verify. Control thread.
#pragma once

#include "netlink/inside.h"

// Returns the number of next hops for which workers and Linux disagree, each reported through `how`
// (NULL: not reported), or -errno. Includes entries that are changing at this moment: check again.
int verify_neighbours(struct netlink *netlink, const struct netlink_verification *how);
