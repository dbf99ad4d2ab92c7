// Publishes judged interfaces to the fib. Internal to ifaces. Control thread.
#pragma once

#include "netlink/ifaces_inside.h"

// Removes the interface from the fib. Its id is quarantined until ifaces_settled.
void assign_take_back(struct ifaces *ifaces, struct interface *one);
