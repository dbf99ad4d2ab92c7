// CoDel (RFC 8289) on a queue of the shaper. Private to the module; the owner's thread.
#pragma once

#include "qos/shape.h"

#include <stdbool.h>
#include <stdint.h>

// The state of RFC 8289, section 5.2. An empty queue, which is freed, forgets it.
struct codel {
	uint64_t first_above; // 0: not above the target
	uint64_t drop_next;
	uint32_t count, last_count;
};

struct codel_terms {
	uint64_t target, interval; // ticks
	uint32_t mtu;              // bytes: no packet is dropped if no more are left
	bool marks;                // those that have ECN, which stay
};

struct shape_queue {
	struct shape_packet *head, *tail;
	struct codel codel;
	uint32_t bytes;
	uint32_t next;   // in its ring
	int32_t deficit; // bytes that it may send in its turn
	uint8_t flow;    // place in the map of its class
	bool is_dropping;
};

// Removes the first packet. NULL: empty.
struct shape_packet *queue_pop(struct shape_queue *queue);

// Removes the packet that is to be sent at `now`, and drops others before it. NULL: empty, or
// `drops` has no space: calling again with the same `now` goes on as if nothing had happened.
struct shape_packet *codel_take(struct shape_queue *queue, const struct codel_terms *terms,
	uint64_t now, struct shape_drops *drops);

// interval / sqrt(count), rounded down; at most one less. `count`: at least 1.
uint64_t codel_step(uint64_t interval, uint32_t count);

static inline bool drops_are_full(const struct shape_drops *drops)
{
	return drops->n == sizeof(drops->drop) / sizeof(drops->drop[0]);
}

static inline void drops_add(struct shape_drops *drops, struct shape_packet *packet,
	enum shape_drop reason)
{
	drops->drop[drops->n].packet = packet;
	drops->drop[drops->n++].reason = reason;
}
