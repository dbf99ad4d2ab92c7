// What the shaper is made of: nodes (ports, aggregates and subscribers), and queues of those that
// hold packets. Private to the module.
#pragma once

#include "base/bits.h"
#include "qos/shape.h"
#include "qos/shape_codel.h"
#include "qos/wheel.h"

enum {
	SHAPE_FRACTION = 24, // bits of a tick
	SHAPE_STRICT_FRACTION = 8,
	SHAPE_TURN = 1, // first of the classes with weights
};

enum node_state {
	NODE_UNUSED,
	NODE_AWAY,    // has no parent, but a bucket: see shape_hand
	NODE_IDLE,    // nothing to send
	NODE_WAITING, // in the wheel until it is due
	NODE_READY,   // in the ring of its parent
};

// A bucket is the time at which it is out of debt (GCRA): a packet may leave when that has come,
// and moves it on by the time that its bytes take at the rate. Tokens are how far it lies in the
// past, at most a burst.
struct shape_node {
	uint64_t due;      // ticks
	uint64_t per_byte; // ticks << SHAPE_FRACTION
	uint32_t burst;    // ticks
	uint32_t fraction : SHAPE_FRACTION, strict_fraction : SHAPE_STRICT_FRACTION;
	union {
		struct wheel_entry wheel; // NODE_WAITING
		struct {
			uint32_t next, previous;
		} ring; // NODE_READY
	};
	uint32_t parent;
	int32_t deficit; // bytes that it may send in its turn
	uint16_t quantum, profile;
	union {
		uint32_t children; // first of the ring of a parent, 0: none is ready
		uint32_t backlog;  // of a subscriber, 0: none
	};
	uint64_t strict_due; // as due, of class 0
	union {
		uint32_t n_children;
		uint32_t held_bytes;
	};
	uint16_t held_packets;       // atomic, relaxed
	uint8_t state : 4, turn : 4; // turn: class that sends next, of those with weights
	uint8_t classes;             // that hold packets, a bit for each
};
_Static_assert(sizeof(struct shape_node) == CACHE_LINE_BYTES, "an idle subscriber is a line");

// Of a subscriber's class that holds packets. Rings of queues are named by their last one.
struct shape_class {
	uint32_t map;   // fair: cell with the queues by flow; otherwise the queue
	uint32_t fresh; // queues that have just begun to hold packets (RFC 8290: new)
	uint32_t old;
	int32_t deficit;
	uint32_t bytes, packets;
	bool is_fair;
};

struct shape_backlog {
	union {
		struct shape_class class[SHAPE_CLASSES];
		uint32_t next_free;
	};
};
_Static_assert(sizeof(struct shape_backlog) <= 2 * CACHE_LINE_BYTES, "two lines");

// Either a queue or, of a fair class, its queues by flow.
union shape_cell {
	struct shape_queue queue;
	uint32_t by_flow[SHAPE_FLOWS];
	uint32_t next_free;
};
_Static_assert(sizeof(union shape_cell) == CACHE_LINE_BYTES, "a cell is a line");

// A profile as the owner computes with it.
struct shape_rules {
	bool is_set, is_fair, is_fifo, marks;
	uint32_t strict_scale; // 256 * 100 / percent
	uint16_t quantum[SHAPE_CLASSES];
	uint64_t target, interval, limit; // ticks
	uint32_t limit_bytes, limit_packets;
};

struct shape {
	struct shape_node *node; // from 1: ports, then aggregates, then subscribers
	struct shape_backlog *backlogs;
	union shape_cell *cells;
	struct shape_class_stats *stats; // by subscriber and class
	struct shape_rules *rules;       // by profile
	uint32_t n_rules;                // no profile from it on was ever set
	struct shape_config config;
	uint32_t first[SHAPE_SUBSCRIBER + 2]; // nodes by level
	uint32_t n_backlogs, n_cells, free_backlog, free_cell;
	uint32_t touched_backlogs, touched_cells;
	unsigned slot_shift, delay_shift;
	uint32_t least_limit; // bytes that any subscriber may hold
	struct shape_totals totals;
	struct wheel wheel;
	bool is_beside; // the nodes and counters are another one's
};

// shape_queue.c: the packets of one subscriber.

// Adds a packet, or drops it if there is no space, then drops what is above the limits.
void queue_put(struct shape *s, uint32_t id, struct shape_packet *packet, uint64_t now,
	struct shape_drops *drops);
enum queue_answer {
	QUEUE_PACKET,
	QUEUE_EMPTY,
	QUEUE_STRICT, // class 0 alone holds packets, and has to wait for its own rate
	QUEUE_FULL,   // `drops` has no space
};
// Takes the packet that is to be sent now. Counts it, and charges class 0.
enum queue_answer queue_take(struct shape *s, uint32_t id, uint64_t now,
	struct shape_packet **packet, struct shape_drops *drops);
// Drops one packet. The subscriber holds some, and `drops` has space. / Takes one out, which still
// counts as held.
void queue_flush_one(struct shape *s, uint32_t id, struct shape_drops *drops);
struct shape_packet *queue_hand_one(struct shape *s, uint32_t id);

static inline struct shape_class_stats *stats_of(const struct shape *s, uint32_t id, unsigned class)
{
	return &s->stats[(size_t)(id - s->first[SHAPE_SUBSCRIBER]) * SHAPE_CLASSES + class];
}

// How long a node that was due at `due` is away from it now, at most its burst in the past.
static inline uint64_t oldest_of(const struct shape_node *node, uint64_t now)
{
	return now > node->burst ? now - node->burst : 0;
}

// shape_tree.c: which node is in which ring, or in the wheel.

// A node with something to send, which is neither in a ring nor in the wheel: puts it there.
void tree_wake(struct shape *s, uint32_t id, uint64_t now);
// Of a node that is ready or waits: takes it away. It is idle then.
void tree_rest(struct shape *s, uint32_t id);
// Moves nodes that are due from the wheel to their rings.
void tree_expire(struct shape *s, uint64_t now);
// `aggregate` is in the ring of its port.
void tree_look_ahead(const struct shape *s, uint32_t aggregate);
// The child whose turn it is. 0: the first one's turn has ended.
uint32_t tree_turn(struct shape *s, uint32_t parent, uint64_t now);
// The child has sent, and remains ready.
void tree_sent(struct shape *s, uint32_t id, uint64_t now);
// A ready subscriber has to wait until `due`.
void tree_wait(struct shape *s, uint32_t id, uint64_t due);
