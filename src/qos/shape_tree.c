// See shape_node.h: which node is in which ring, or in the wheel. A parent serves its ready
// children in turns of deficit round robin. Who has to wait for its own rate leaves the ring only
// when its turn comes again: one that is due by then has not lost its place, and so gets its share.
#include "qos/shape_node.h"

static struct shape_node *parent_of(const struct shape *s, const struct shape_node *node)
{
	return &s->node[node->parent];
}

static bool is_subscriber(const struct shape *s, uint32_t id)
{
	return id >= s->first[SHAPE_SUBSCRIBER];
}

static bool is_port(const struct shape *s, uint32_t id)
{
	return id < s->first[SHAPE_AGGREGATE];
}

static void put_into_wheel(struct shape *s, uint32_t id, uint64_t due)
{
	s->node[id].state = NODE_WAITING;
	wheel_insert(&s->wheel, id, (due + (1ull << s->slot_shift) - 1) >> s->slot_shift);
}

// Adds it as the last one.
static void put_into_ring(struct shape *s, uint32_t id)
{
	struct shape_node *node = &s->node[id], *parent = parent_of(s, node);
	const uint32_t first = parent->children;

	node->state = NODE_READY;
	if (!first) {
		node->ring.next = node->ring.previous = id;
		parent->children = id;
		return;
	}
	const uint32_t last = s->node[first].ring.previous;
	node->ring.next = first;
	node->ring.previous = last;
	s->node[first].ring.previous = s->node[last].ring.next = id;
}

static void take_out_of_ring(struct shape *s, uint32_t id)
{
	struct shape_node *node = &s->node[id], *parent = parent_of(s, node);

	s->node[node->ring.next].ring.previous = node->ring.previous;
	s->node[node->ring.previous].ring.next = node->ring.next;
	if (parent->children == id)
		parent->children = node->ring.next == id ? 0 : node->ring.next;
}

// When a node that has something to send may send it.
static uint64_t due_of(const struct shape *s, uint32_t id)
{
	const struct shape_node *node = &s->node[id];

	if (is_subscriber(s, id) && node->classes == 1)
		return MAX_OF(node->due, node->strict_due);
	return node->due;
}

void tree_wake(struct shape *s, uint32_t id, uint64_t now)
{
	const uint64_t due = due_of(s, id);

	if (due > now) {
		put_into_wheel(s, id, due);
		return;
	}
	put_into_ring(s, id);
	const uint32_t parent = s->node[id].parent;
	if (!is_port(s, parent) && s->node[parent].state == NODE_IDLE)
		tree_wake(s, parent, now);
}

void tree_rest(struct shape *s, uint32_t id)
{
	struct shape_node *node = &s->node[id];

	if (node->state == NODE_WAITING) {
		wheel_remove(&s->wheel, id);
		node->state = NODE_IDLE;
		return;
	}
	take_out_of_ring(s, id);
	node->state = NODE_IDLE;
	if (!is_port(s, node->parent) && !parent_of(s, node)->children)
		tree_rest(s, node->parent);
}

void tree_wait(struct shape *s, uint32_t id, uint64_t due)
{
	tree_rest(s, id);
	put_into_wheel(s, id, due);
}

uint32_t tree_turn(struct shape *s, uint32_t parent, uint64_t now)
{
	const uint32_t id = s->node[parent].children;
	struct shape_node *node = &s->node[id];

	if (node->due > now) {
		tree_wait(s, id, node->due);
		return 0;
	}
	if (likely(node->deficit > 0))
		return id;
	node->deficit = node->ring.next == id ? node->quantum : node->deficit + node->quantum;
	s->node[parent].children = node->ring.next;
	return 0;
}

void tree_sent(struct shape *s, uint32_t id, uint64_t now)
{
	struct shape_node *node = &s->node[id];

	if (node->deficit > 0 && node->due <= now)
		return;
	if (node->deficit <= 0)
		node->deficit += node->quantum;
	parent_of(s, node)->children = node->ring.next;
	__builtin_prefetch(&s->node[node->ring.next], 1);
}

// What the turn of a subscriber will touch: first its class, then the queue, then its packet.
static unsigned class_of(const struct shape_node *node)
{
	return node->classes ? (unsigned)__builtin_ctz(node->classes) : 0;
}

static void prefetch_class(const struct shape *s, uint32_t id)
{
	const struct shape_node *node = &s->node[id];

	__builtin_prefetch(&s->backlogs[node->backlog].class[class_of(node)], 1);
	__builtin_prefetch(stats_of(s, id, class_of(node)), 1);
	__builtin_prefetch(parent_of(s, node), 1);
}

static uint32_t queue_of(const struct shape *s, uint32_t id)
{
	const struct shape_node *node = &s->node[id];
	const struct shape_class *class = &s->backlogs[node->backlog].class[class_of(node)];

	return class->is_fair ? (class->fresh ? class->fresh : class->old) : class->map;
}

// Aggregates send in turns: fetches what those after the next one will need.
void tree_look_ahead(const struct shape *s, uint32_t aggregate)
{
	const struct shape_node *node = s->node;
	const uint32_t first = node[aggregate].ring.next, second = node[first].ring.next,
		       third = node[second].ring.next, fourth = node[third].ring.next;
	const uint32_t near = node[first].children, middle = node[second].children;

	__builtin_prefetch(&node[fourth], 1);
	__builtin_prefetch(&node[node[third].children], 1);
	prefetch_class(s, middle);
	__builtin_prefetch(&s->cells[queue_of(s, near)], 1);
}

void tree_expire(struct shape *s, uint64_t now)
{
	uint32_t due[SHAPE_BURST + WHEEL_CELL];
	const unsigned n = wheel_expire(&s->wheel, now >> s->slot_shift, due, ARRAY_LEN(due));

	for (unsigned i = 0; i < n; i++)
		if (is_subscriber(s, due[i]))
			prefetch_class(s, due[i]);
	for (unsigned i = 0; i < n; i++)
		if (is_subscriber(s, due[i]))
			__builtin_prefetch(&s->cells[queue_of(s, due[i])], 1);
	for (unsigned i = 0; i < n; i++)
		if (is_subscriber(s, due[i]))
			__builtin_prefetch(s->cells[queue_of(s, due[i])].queue.head);
	for (unsigned i = 0; i < n; i++)
		tree_wake(s, due[i], now);
}
