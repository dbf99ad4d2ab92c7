// Route event handlers per address family. Internal to routes. Control thread.
#pragma once

#include "netlink/peers.h"

// The requested next-hop set, created if needed; 0: no space, or its next-hop object is unknown.
uint32_t read_hop_set(struct routes *routes, const struct hop_set_request *request);

// routes->request was added with next-hop set `hop_set`, or was deleted.
void handle_add4(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event);
void handle_add6(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event);
void handle_delete4(struct routes *routes, const struct peers *peers);
void handle_delete6(struct routes *routes, const struct peers *peers);
