// Inside of hear: what each family makes of what Linux says. Control thread.
#pragma once

#include "netlink/peers.h"

// The way that is wished for, made if there is none; 0: no room, or its next-hop object is unknown.
uint32_t read_hop_set(struct routes *routes, const struct hop_set_request *request);

// routes->wish was told, as `way`; or was taken away.
void hear_add4(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event);
void hear_add6(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event);
void hear_delete4(struct routes *routes, const struct peers *peers);
void hear_delete6(struct routes *routes, const struct peers *peers);
