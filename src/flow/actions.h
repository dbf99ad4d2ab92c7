// Actions of flows: numbered, found by their bytes, counted. Control thread; workers read `action`.
#pragma once

#include "base/hash_table.h"
#include "flow/flow_fast.h"

struct actions {
	struct flow_action *action; // by number, for workers; 0 has none
	uint32_t *n_users; // by number: flow_action_use, flows and saves; 0: not in use. Apart from
	                   // the rest, since it is written for each flow.
	struct hash_node *node;
	struct hash_table table; // of nodes, by action
	uint32_t *unused;        // numbers up to `max` that are not in use
	uint32_t n_unused, max, n;
};

// 0, or -ENOMEM: may only be closed. / Also closes one of zeros.
int actions_open(struct actions *actions);
void actions_close(struct actions *actions);
uint64_t actions_bytes(const struct actions *actions);
