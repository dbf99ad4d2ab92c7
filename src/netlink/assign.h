// Judgements become links of the fib. Inside links. Control thread.
#pragma once

#include "netlink/ifaces_inside.h"

// The interface has no link any more; its id rests.
void assign_take_back(struct ifaces *ifaces, struct interface *one);
