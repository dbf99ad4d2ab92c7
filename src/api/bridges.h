// Bridges of dl3d: opened at start, changed by a reload, served by the control loop. Control
// thread.
#pragma once

#include "api/inside.h"
#include "mac/mac.h"

struct bridges {
	struct mac_table *table;
	bool is_in[PORT_MAX];  // ports in a bridge
	bool was_up[PORT_MAX]; // their links, when they were last read
	bool is_learning;      // workers told something in the latest turn
};

// Prepares the bridges of `next`; NULL: those of Linux stay, which netlink has. -errno with `error`
// set and nothing to be dropped. / Makes workers use them; cannot fail. / Drops them instead.
int bridges_prepare(struct api_ctx *ctx, const struct config *next, struct mac_pending **out,
	struct error *error);
void bridges_commit(struct api_ctx *ctx, const struct config *next, struct mac_pending *pending);
void bridges_drop(struct mac_pending *pending);
// Learns and ages; forgets what was learnt behind ports whose links have gone down.
void bridges_poll(struct api_ctx *ctx);
// Whether the control loop should come back in some milliseconds.
bool bridges_are_learning(const struct api_ctx *ctx);

// groups.c: how workers forward to groups for the bridge of a domain; null: it does not snoop, or
// Linux does.
json_t *snooping_json(const struct mac_table *table, uint16_t domain);
