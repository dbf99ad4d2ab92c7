// See shape_node.h: the packets of one subscriber. Each class has one queue, or up to 16 (RFC
// 8290); queues exist only while the class holds packets.
#include "qos/shape_node.h"

#include <string.h>

static void add64(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static void add32(uint32_t *counter, uint32_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static void set_held(struct shape_node *node, uint32_t packets)
{
	__atomic_store_n(&node->held_packets, (uint16_t)packets, __ATOMIC_RELAXED);
}

// A cell of zeros, or 0: there is none.
static uint32_t alloc_cell(struct shape *s)
{
	uint32_t cell = s->free_cell;

	if (cell)
		s->free_cell = s->cells[cell].next_free;
	else if (s->touched_cells < s->n_cells)
		cell = s->touched_cells++;
	else
		return 0;
	memset(&s->cells[cell], 0, sizeof(s->cells[cell]));
	return cell;
}

static void free_cell(struct shape *s, uint32_t cell)
{
	s->cells[cell].next_free = s->free_cell;
	s->free_cell = cell;
}

static uint32_t alloc_backlog(struct shape *s)
{
	uint32_t backlog = s->free_backlog;

	if (backlog)
		s->free_backlog = s->backlogs[backlog].next_free;
	else if (s->touched_backlogs < s->n_backlogs)
		backlog = s->touched_backlogs++;
	else
		return 0;
	memset(&s->backlogs[backlog], 0, sizeof(s->backlogs[backlog]));
	return backlog;
}

static void free_backlog(struct shape *s, struct shape_node *node)
{
	s->backlogs[node->backlog].next_free = s->free_backlog;
	s->free_backlog = node->backlog;
	node->backlog = 0;
}

// Rings, named by their last queue.

static uint32_t ring_first(const struct shape *s, uint32_t ring)
{
	return s->cells[ring].queue.next;
}

static void ring_add(struct shape *s, uint32_t *ring, uint32_t id)
{
	struct shape_queue *queue = &s->cells[id].queue;

	queue->next = *ring ? ring_first(s, *ring) : id;
	if (*ring)
		s->cells[*ring].queue.next = id;
	*ring = id;
}

static uint32_t ring_take_first(struct shape *s, uint32_t *ring)
{
	const uint32_t first = ring_first(s, *ring);

	if (first == *ring)
		*ring = 0;
	else
		s->cells[*ring].queue.next = s->cells[first].queue.next;
	return first;
}

// The queue for a packet, a new one if need be. 0: there is no cell for it.
static uint32_t queue_for(struct shape *s, struct shape_class *class,
	const struct shape_packet *packet)
{
	const uint8_t flow = packet->subflow % SHAPE_FLOWS;

	if (!class->map) {
		class->map = alloc_cell(s);
		if (!class->map)
			return 0;
		if (!class->is_fair)
			ring_add(s, &class->old, class->map);
	}
	if (!class->is_fair)
		return class->map;
	uint32_t *id = &s->cells[class->map].by_flow[flow];
	if (*id)
		return *id;
	*id = alloc_cell(s);
	if (!*id)
		return 0;
	s->cells[*id].queue.flow = flow;
	s->cells[*id].queue.deficit = s->config.mtu;
	ring_add(s, &class->fresh, *id);
	return *id;
}

static void free_ring(struct shape *s, uint32_t *ring)
{
	while (*ring)
		free_cell(s, ring_take_first(s, ring));
}

// A class holds no packets any more: frees its queues.
static void clear_class(struct shape *s, struct shape_node *node, unsigned class)
{
	struct shape_class *c = &s->backlogs[node->backlog].class[class];

	free_ring(s, &c->fresh);
	free_ring(s, &c->old);
	if (c->is_fair && c->map)
		free_cell(s, c->map);
	c->map = 0;
	node->classes &= ~(1u << class);
	if (!node->classes)
		free_backlog(s, node);
}

// A packet has left its queue, sent or dropped. The last one frees the queues.
static void account(struct shape *s, struct shape_node *node, const struct shape_packet *packet)
{
	struct shape_class *class = &s->backlogs[node->backlog].class[packet->class];

	class->bytes -= packet->bytes;
	class->packets--;
	node->held_bytes -= packet->bytes;
	set_held(node, node->held_packets - 1u);
	add64(&s->totals.held, -1ull);
	if (!class->packets)
		clear_class(s, node, packet->class);
}

static void count_drop(struct shape *s, uint32_t id, const struct shape_packet *packet,
	enum shape_drop reason)
{
	add64(&s->totals.dropped[reason], 1);
	add32(&stats_of(s, id, packet->class)->dropped[reason], 1);
}

static uint32_t longest_of_ring(const struct shape *s, uint32_t ring, uint32_t longest)
{
	uint32_t id = ring;

	if (ring)
		do {
			if (!longest || s->cells[id].queue.bytes > s->cells[longest].queue.bytes)
				longest = id;
			id = s->cells[id].queue.next;
		} while (id != ring);
	return longest;
}

// The longest queue of the class that holds the most bytes.
static struct shape_queue *longest_queue(struct shape *s, const struct shape_node *node)
{
	const struct shape_class *class = s->backlogs[node->backlog].class, *most = class;

	for (unsigned i = 1; i < SHAPE_CLASSES; i++)
		most = class[i].bytes > most->bytes ? &class[i] : most;
	const uint32_t longest = longest_of_ring(s, most->fresh, 0);
	return &s->cells[longest_of_ring(s, most->old, longest)].queue;
}

// Drops the first packet of the longest queue (RFC 8290, section 4.1).
static void drop_longest(struct shape *s, uint32_t id, enum shape_drop reason,
	struct shape_drops *drops)
{
	struct shape_node *node = &s->node[id];
	struct shape_packet *packet = queue_pop(longest_queue(s, node));

	count_drop(s, id, packet, reason);
	account(s, node, packet);
	drops_add(drops, packet, reason);
}

void queue_flush_one(struct shape *s, uint32_t id, struct shape_drops *drops)
{
	drop_longest(s, id, SHAPE_DROP_FLUSHED, drops);
}

struct shape_packet *queue_hand_one(struct shape *s, uint32_t id)
{
	struct shape_node *node = &s->node[id];
	struct shape_packet *packet = queue_pop(longest_queue(s, node));

	account(s, node, packet);
	add64(&s->totals.held, 1);
	return packet;
}

// How long the bytes take at the rate.
static uint64_t ticks_of(const struct shape_node *node, uint64_t bytes)
{
	return (uint64_t)((unsigned __int128)bytes * node->per_byte >> SHAPE_FRACTION);
}

static bool is_above_limit(const struct shape *s, const struct shape_node *node)
{
	const struct shape_rules *rules = &s->rules[node->profile];
	const uint32_t held = node->held_bytes;

	if (unlikely(rules->is_fifo))
		return false; // has_no_place
	return node->held_packets > rules->limit_packets ||
	       (held > s->least_limit &&
		       (held > rules->limit_bytes || ticks_of(node, held) > rules->limit));
}

// What is held in plain queues and may leave at once, as if they went one after the other.
static void find_free(const struct shape *s, const struct shape_node *node, uint64_t now,
	uint64_t *bytes, uint32_t *packets)
{
	const struct shape_class *class = s->backlogs[node->backlog].class;
	const uint64_t due = MAX_OF(node->due, oldest_of(node, now));
	unsigned __int128 cost = node->fraction;

	*bytes = *packets = 0;
	for (unsigned i = 0; node->backlog && i < SHAPE_CLASSES; i++) {
		const bool is_plain = class[i].packets && !class[i].is_fair;
		const struct shape_packet *packet =
			is_plain ? s->cells[class[i].map].queue.head : NULL;

		for (; packet && due + (uint64_t)(cost >> SHAPE_FRACTION) <= now;
			packet = packet->next) {
			cost += (unsigned __int128)packet->bytes * node->per_byte;
			*bytes += packet->bytes;
			++*packets;
		}
	}
}

// Whether a plain queue is full, so that this packet is dropped.
static bool has_no_place(const struct shape *s, const struct shape_node *node,
	const struct shape_packet *packet, uint64_t now)
{
	const struct shape_rules *rules = &s->rules[node->profile];
	const uint64_t held = (uint64_t)node->held_bytes + packet->bytes;
	uint64_t free_bytes;
	uint32_t free_packets;

	if (held <= rules->limit_bytes && node->held_packets < rules->limit_packets)
		return false;
	find_free(s, node, now, &free_bytes, &free_packets);
	return held - free_bytes > rules->limit_bytes ||
	       node->held_packets - free_packets >= rules->limit_packets;
}

// A subscriber may hold as many packets as there are places left for all.
static bool is_above_share(const struct shape *s, const struct shape_node *node)
{
	return node->held_packets > s->config.most_held - s->totals.held;
}

static struct shape_queue *find_space(struct shape *s, struct shape_node *node,
	const struct shape_packet *packet)
{
	if (s->totals.held >= s->config.most_held || node->held_packets == UINT16_MAX)
		return NULL;
	if (!node->backlog)
		node->backlog = alloc_backlog(s);
	if (!node->backlog)
		return NULL;
	struct shape_class *class = &s->backlogs[node->backlog].class[packet->class];
	if (!class->packets)
		class->is_fair = s->rules[node->profile].is_fair;
	const uint32_t id = queue_for(s, class, packet);
	if (id)
		return &s->cells[id].queue;
	if (!class->packets)
		clear_class(s, node, packet->class);
	return NULL;
}

void queue_put(struct shape *s, uint32_t id, struct shape_packet *packet, uint64_t now,
	struct shape_drops *drops)
{
	struct shape_node *node = &s->node[id];
	struct shape_queue *queue;

	if (unlikely(s->rules[node->profile].is_fifo) && has_no_place(s, node, packet, now)) {
		count_drop(s, id, packet, SHAPE_DROP_LIMIT);
		drops_add(drops, packet, SHAPE_DROP_LIMIT);
		return;
	}
	queue = find_space(s, node, packet);
	if (unlikely(!queue)) {
		count_drop(s, id, packet, SHAPE_DROP_POOL);
		drops_add(drops, packet, SHAPE_DROP_POOL);
		return;
	}
	struct shape_class *class = &s->backlogs[node->backlog].class[packet->class];
	packet->next = NULL;
	packet->since = now;
	if (queue->head)
		queue->tail->next = packet;
	else
		queue->head = packet;
	queue->tail = packet;
	queue->bytes += packet->bytes;
	class->bytes += packet->bytes;
	class->packets++;
	node->held_bytes += packet->bytes;
	set_held(node, node->held_packets + 1u);
	node->classes |= 1u << packet->class;
	add64(&s->totals.held, 1);
	for (unsigned i = 0; i < 2 && unlikely(is_above_limit(s, node)); i++)
		drop_longest(s, id, SHAPE_DROP_LIMIT, drops);
	if (unlikely(is_above_share(s, node)) && node->held_packets > 1)
		drop_longest(s, id, SHAPE_DROP_POOL, drops);
}

// The class that sends now, SHAPE_CLASSES: none yet. Deficit round robin (Shreedhar, Varghese) in
// which a packet may leave a debt, so that its length need not be known.
static unsigned pick_class(struct shape *s, struct shape_node *node, uint64_t now)
{
	const struct shape_rules *rules = &s->rules[node->profile];
	const unsigned weighted = node->classes & ~1u;
	struct shape_class *class = s->backlogs[node->backlog].class;

	if (node->classes & 1 && node->strict_due <= now)
		return 0;
	if (!weighted)
		return SHAPE_CLASSES;
	if (!(weighted & (weighted - 1))) {
		node->turn = (uint8_t)__builtin_ctz(weighted);
		class[node->turn].deficit = rules->quantum[node->turn];
		return node->turn;
	}
	for (;;) {
		if (weighted >> node->turn & 1) {
			if (class[node->turn].deficit > 0)
				return node->turn;
			class[node->turn].deficit += rules->quantum[node->turn];
		}
		node->turn = node->turn == SHAPE_CLASSES - 1 ? SHAPE_TURN : node->turn + 1;
	}
}

// RFC 8290, section 4.2. NULL: the class is empty, or `drops` is full.
static struct shape_packet *take_fair(struct shape *s, struct shape_class *class,
	const struct codel_terms *terms, uint64_t now, struct shape_drops *drops)
{
	while (class->fresh || class->old) {
		uint32_t *ring = class->fresh ? &class->fresh : &class->old;
		const uint32_t id = ring_first(s, *ring);
		struct shape_queue *queue = &s->cells[id].queue;

		if (queue->deficit <= 0) {
			queue->deficit += s->config.mtu;
			ring_take_first(s, ring);
			ring_add(s, &class->old, id);
			continue;
		}
		struct shape_packet *packet = codel_take(queue, terms, now, drops);
		if (packet) {
			queue->deficit -= packet->bytes;
			return packet;
		}
		if (queue->head)
			return NULL;
		ring_take_first(s, ring);
		if (ring == &class->fresh) {
			ring_add(s, &class->old, id);
			continue;
		}
		s->cells[class->map].by_flow[queue->flow] = 0;
		free_cell(s, id);
	}
	return NULL;
}

static struct shape_packet *take_of_class(struct shape *s, uint32_t id, unsigned class,
	uint64_t now, struct shape_drops *drops)
{
	struct shape_node *node = &s->node[id];
	struct shape_class *c = &s->backlogs[node->backlog].class[class];
	const struct shape_rules *rules = &s->rules[node->profile];
	const struct codel_terms terms = {
		.target = MAX_OF(rules->target, ticks_of(node, s->config.mtu)),
		.interval = rules->interval,
		.mtu = s->config.mtu,
		.marks = rules->marks,
	};
	const unsigned first = drops->n;
	struct shape_packet *packet =
		c->is_fair ? take_fair(s, c, &terms, now, drops)
			   : codel_take(&s->cells[c->map].queue, &terms, now, drops);

	for (unsigned i = first; i < drops->n; i++) {
		count_drop(s, id, drops->drop[i].packet, SHAPE_DROP_CODEL);
		account(s, node, drops->drop[i].packet);
	}
	if (packet)
		c->deficit -= packet->bytes;
	return packet;
}

static void charge_strict(struct shape *s, struct shape_node *node, uint32_t bytes, uint64_t now)
{
	const unsigned shift = SHAPE_FRACTION + 8 - SHAPE_STRICT_FRACTION;
	const uint64_t scale = s->rules[node->profile].strict_scale;
	const uint64_t oldest = oldest_of(node, now);
	const uint64_t cost =
		(uint64_t)((unsigned __int128)(bytes * node->per_byte) * scale >> shift) +
		node->strict_fraction;

	node->strict_due = MAX_OF(node->strict_due, oldest) + (cost >> SHAPE_STRICT_FRACTION);
	node->strict_fraction = cost & ((1u << SHAPE_STRICT_FRACTION) - 1);
}

static void count_sent(struct shape *s, uint32_t id, const struct shape_packet *packet,
	uint64_t now)
{
	struct shape_class_stats *stats = stats_of(s, id, packet->class);
	const uint64_t delay = (now - packet->since) >> s->delay_shift;
	const unsigned bits = delay ? 64 - (unsigned)__builtin_clzll(delay) : 0;

	add64(&stats->packets, 1);
	add64(&stats->bytes, packet->bytes);
	add32(&stats->delays[MIN_OF((bits + 1) / 2, SHAPE_DELAYS - 1)], 1);
	add64(&s->totals.sent, 1);
}

enum queue_answer queue_take(struct shape *s, uint32_t id, uint64_t now,
	struct shape_packet **packet, struct shape_drops *drops)
{
	struct shape_node *node = &s->node[id];

	while (node->held_packets) {
		const unsigned class = pick_class(s, node, now);

		if (class == SHAPE_CLASSES)
			return QUEUE_STRICT;
		*packet = take_of_class(s, id, class, now, drops);
		if (*packet) {
			count_sent(s, id, *packet, now);
			if (class == 0)
				charge_strict(s, node, (*packet)->bytes, now);
			account(s, node, *packet);
			return QUEUE_PACKET;
		}
		if (drops_are_full(drops) && node->held_packets)
			return QUEUE_FULL;
	}
	return QUEUE_EMPTY;
}
