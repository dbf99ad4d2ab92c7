// See shape.h: packets in, packets out.
#include "qos/shape_node.h"

static void enqueue_one(struct shape *s, uint64_t now, uint32_t subscriber,
	struct shape_packet *packet, struct shape_drops *drops)
{
	const uint32_t id = s->first[SHAPE_SUBSCRIBER] + subscriber;
	struct shape_node *node = &s->node[id];

	if (unlikely(subscriber >= s->config.n_subscribers || node->state <= NODE_AWAY)) {
		s->totals.dropped[SHAPE_DROP_UNKNOWN]++;
		drops_add(drops, packet, SHAPE_DROP_UNKNOWN);
		return;
	}
	const uint8_t classes = node->classes;
	queue_put(s, id, packet, now, drops);
	if (node->state == NODE_IDLE) {
		if (node->held_packets)
			tree_wake(s, id, now);
	} else if (node->state == NODE_WAITING && classes == 1 && node->classes != 1) {
		tree_rest(s, id); // it may have waited for the rate of class 0
		tree_wake(s, id, now);
	}
}

uint64_t shape_missing(const struct shape *s, const uint32_t subscriber[], unsigned n)
{
	const struct shape_node *first = &s->node[s->first[SHAPE_SUBSCRIBER]];
	uint64_t missing = 0;

	for (unsigned i = 0; i < n; i++)
		if (likely(subscriber[i] < s->config.n_subscribers))
			__builtin_prefetch(&first[subscriber[i]], 1);
	for (unsigned i = 0; i < n; i++)
		if (subscriber[i] < s->config.n_subscribers)
			missing |= (uint64_t)(first[subscriber[i]].state <= NODE_AWAY) << i;
	return missing;
}

void shape_enqueue(struct shape *s, uint64_t now, const uint32_t subscriber[],
	struct shape_packet *const packet[], unsigned n, struct shape_drops *drops)
{
	const struct shape_node *first = &s->node[s->first[SHAPE_SUBSCRIBER]];

	for (unsigned i = 0; i < n; i++)
		if (likely(subscriber[i] < s->config.n_subscribers))
			__builtin_prefetch(&first[subscriber[i]], 1);
	for (unsigned i = 0; i < n; i++)
		if (likely(subscriber[i] < s->config.n_subscribers))
			__builtin_prefetch(
				&s->backlogs[first[subscriber[i]].backlog].class[packet[i]->class],
				1);
	for (unsigned i = 0; i < n; i++)
		enqueue_one(s, now, subscriber[i], packet[i], drops);
	s->totals.enqueued += n;
}

static void charge(struct shape_node *node, uint32_t bytes, uint64_t now)
{
	const uint64_t cost = bytes * node->per_byte + node->fraction;

	node->due = MAX_OF(node->due, oldest_of(node, now)) + (cost >> SHAPE_FRACTION);
	node->fraction = cost & ((1u << SHAPE_FRACTION) - 1);
	node->deficit -= (int32_t)bytes;
}

unsigned shape_dequeue(struct shape *s, const struct shape_round *round,
	struct shape_packet *sent[], struct shape_drops *drops)
{
	const uint32_t port = s->first[SHAPE_PORT] + round->port;
	const uint64_t now = round->now;
	struct shape_node *node = s->node;
	unsigned n = 0;

	tree_expire(s, now);
	for (unsigned work = 4 * round->most + SHAPE_BURST; work && n < round->most; work--) {
		if (!node[port].children || node[port].due > now)
			break;
		const uint32_t aggregate = tree_turn(s, port, now);
		if (aggregate)
			tree_look_ahead(s, aggregate);
		const uint32_t id = aggregate ? tree_turn(s, aggregate, now) : 0;
		if (!id)
			continue;
		const enum queue_answer answer = queue_take(s, id, now, &sent[n], drops);
		if (answer == QUEUE_FULL)
			break;
		if (answer == QUEUE_STRICT) {
			tree_wait(s, id, node[id].strict_due);
			continue;
		}
		if (answer == QUEUE_EMPTY) {
			tree_rest(s, id);
			continue;
		}
		const uint32_t bytes = sent[n++]->bytes;
		charge(&node[id], bytes, now);
		charge(&node[aggregate], bytes, now);
		charge(&node[port], bytes, now);
		if (node[id].held_packets)
			tree_sent(s, id, now);
		else
			tree_rest(s, id);
		if (node[aggregate].state == NODE_READY)
			tree_sent(s, aggregate, now);
	}
	return n;
}
