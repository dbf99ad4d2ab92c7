// Publishes judged interfaces to the fib. Internal to ifaces. Control thread.
#pragma once

#include "netlink/ifaces_inside.h"

// Takes the fib interface id away from the interface and deletes a VLAN from the fib. The id is
// quarantined until ifaces_settled.
void assign_take_back(struct ifaces *ifaces, struct interface *one);
