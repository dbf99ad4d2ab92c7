// Programs that hang on an interface by tcx (Linux 6.6): they do what tc's filters do, but no qdisc
// shows them and netlink does not tell of them. Inside sync. Control thread.
#pragma once

#include "tap/tap.h"

#include <stdint.h>

// On which sides (enum event_side) of an interface in the TAP interfaces' namespace there are any.
uint8_t tcx_sides(const struct tap_table *taps, int ifindex);
