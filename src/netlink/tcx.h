// Programs attached to an interface by tcx (Linux 6.6): equivalent to tc filters, but without a
// qdisc and without netlink notifications. Internal to netlink. Control thread.
#pragma once

#include "tap/tap.h"

#include <stdint.h>

// The sides (enum event_side) of an interface, in the namespace of the TAP interfaces, with
// programs attached.
uint8_t tcx_sides(const struct tap_table *taps, int ifindex);
