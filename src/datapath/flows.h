// Test fixture: the table of vlans.h with flows.
#pragma once

#include "datapath/vlans.h"
#include "flow/flow.h"

// Each variant of fake_variants with a table of flows whose lookups do not wait for memory, and
// with one whose lookups do.
enum { FLOWS_CASES = 2 * FAKE_VARIANTS };

// vlans_open, next hops for flows, and a route to 10.50.0.0/16 via flows_to_unresolved().
int flows_open(void **state);
int flows_close(void **state);
// fake_reset; the worker has an empty table of flows. Packets without a flow go by route.
void flows_reset(unsigned number);
void flows_drop_missing(bool drops_missing);

// By route, with neither DSCP nor mirror. / To the neighbour on an interface, or to one that is not
// resolved. / With another effect.
struct flow_action flows_by_route(void);
struct flow_action flows_to(uint16_t iface);
struct flow_action flows_to_unresolved(void);
struct flow_action flows_do(enum flow_effect effect);

// The flow of a packet from 192.0.2.1 or 2001:db8::1, UDP, with the ports of wire_recipe(), in the
// main VRF: that of frame_to() and frame_on().
struct flow_tuple flows_tuple(const char *dst);
// Adds a flow or replaces its action.
void flows_set(const struct flow_tuple *tuple, struct flow_action action);
void flows_delete(const struct flow_tuple *tuple);
// Withdraws an action that a flow has.
void flows_withdraw(const struct flow_action *action);
// Checks the counters of a flow.
void flows_expect(const struct flow_tuple *tuple, uint64_t packets, uint64_t bytes);
// How packets end: the number that were handed to Linux or dropped with this verdict.
uint64_t flows_stopped(enum verdict verdict);
