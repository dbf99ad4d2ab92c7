// See shape.h: tables and settings.
#include "qos/shape_node.h"

#include "base/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { STEP_US = 4, LIMIT_MTUS = 10, FLUSH_NODES = 4096 };

static unsigned shift_of(uint64_t ticks)
{
	return ticks > 1 ? 63 - (unsigned)__builtin_clzll(ticks) : 0;
}

static bool map_shared(struct shape *s, const struct shape *first)
{
	if (first) {
		s->node = first->node;
		s->stats = first->stats;
		s->is_beside = true;
		return true;
	}
	s->node = pages_alloc((size_t)s->first[SHAPE_SUBSCRIBER + 1] * sizeof(*s->node));
	s->stats = pages_alloc((size_t)s->config.n_subscribers * SHAPE_CLASSES * sizeof(*s->stats));
	return s->node && s->stats;
}

static bool map_own(struct shape *s, uint64_t now)
{
	const uint32_t n_nodes = s->first[SHAPE_SUBSCRIBER + 1];

	s->backlogs = pages_alloc((size_t)s->n_backlogs * sizeof(*s->backlogs));
	s->cells = pages_alloc((size_t)s->n_cells * sizeof(*s->cells));
	s->rules = pages_alloc(SHAPE_PROFILES * sizeof(*s->rules));
	if (!s->backlogs || !s->cells || !s->rules)
		return false;
	return !wheel_init(&s->wheel, &s->node[0].wheel, sizeof(*s->node), n_nodes,
		now >> s->slot_shift);
}

static bool is_valid(const struct shape_config *c)
{
	return c->hz >= SHAPE_LEAST_HZ && c->hz <= SHAPE_MOST_HZ && c->n_ports &&
	       c->n_ports <= SHAPE_MOST_PORTS && c->n_aggregates &&
	       c->n_aggregates <= SHAPE_MOST_AGGREGATES && c->n_subscribers &&
	       c->n_subscribers <= SHAPE_MOST_SUBSCRIBERS && c->most_held &&
	       c->most_held <= 1u << 26 && c->mtu >= 64;
}

static int open_one(struct shape **shape, const struct shape_config *config,
	const struct shape *first, uint64_t now, struct error *error)
{
	if (!is_valid(config))
		return error_set(error, -EINVAL,
			"a size of the shaper is out of range; see struct shape_config");
	struct shape *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(error, -ENOMEM, "no memory for a shaper");
	s->config = *config;
	s->first[SHAPE_PORT] = 1;
	s->first[SHAPE_AGGREGATE] = 1 + config->n_ports;
	s->first[SHAPE_SUBSCRIBER] = s->first[SHAPE_AGGREGATE] + config->n_aggregates;
	s->first[SHAPE_SUBSCRIBER + 1] = s->first[SHAPE_SUBSCRIBER] + config->n_subscribers;
	s->n_backlogs = 1 + MIN_OF(config->n_subscribers, config->most_held);
	s->n_cells = 1 + 2 * config->most_held;
	s->touched_backlogs = s->touched_cells = 1;
	s->slot_shift = shift_of(config->hz * STEP_US / 1000000);
	s->delay_shift = shift_of(config->hz / 1000000 * 128);
	s->least_limit = LIMIT_MTUS * config->mtu;
	if (!map_shared(s, first) || !map_own(s, now)) {
		shape_close(s);
		return error_set(error, -ENOMEM, "no memory for the tables of a shaper");
	}
	*shape = s;
	return 0;
}

int shape_open(struct shape **shape, const struct shape_config *config, uint64_t now,
	struct error *error)
{
	return open_one(shape, config, NULL, now, error);
}

int shape_open_beside(struct shape **shape, struct shape *first, uint64_t now, struct error *error)
{
	return open_one(shape, &first->config, first, now, error);
}

static void free_shared(struct shape *s)
{
	if (s->is_beside)
		return;
	pages_free(s->node, (size_t)s->first[SHAPE_SUBSCRIBER + 1] * sizeof(*s->node));
	pages_free(s->stats, (size_t)s->config.n_subscribers * SHAPE_CLASSES * sizeof(*s->stats));
}

void shape_close(struct shape *s)
{
	free_shared(s);
	pages_free(s->backlogs, (size_t)s->n_backlogs * sizeof(*s->backlogs));
	pages_free(s->cells, (size_t)s->n_cells * sizeof(*s->cells));
	pages_free(s->rules, SHAPE_PROFILES * sizeof(*s->rules));
	if (s->wheel.cells)
		wheel_free(&s->wheel);
	free(s);
}

int shape_set_profile(struct shape *s, uint16_t number, const struct shape_profile *p,
	struct error *error)
{
	struct shape_rules rules = {.is_set = true,
		.is_fair = p->is_fair,
		.is_fifo = p->is_fifo,
		.marks = p->marks,
		.limit_packets = p->limit_packets ? p->limit_packets : UINT32_MAX};
	const uint64_t per_us = s->config.hz / 1000000;
	unsigned least = SHAPE_MOST_CLASS_WEIGHT;

	if (p->is_fifo && (p->is_fair || p->marks))
		return error_set(error, -EINVAL,
			"profile %u: a plain queue has no flows and no ECN", number);
	if (p->strict_percent < 1 || p->strict_percent > 100 || !p->interval_us)
		return error_set(error, -EINVAL,
			"profile %u: a percentage is 1 to 100, an interval at least 1 us", number);
	for (unsigned i = SHAPE_TURN; i < SHAPE_CLASSES; i++) {
		if (!p->weight[i] || p->weight[i] > SHAPE_MOST_CLASS_WEIGHT)
			return error_set(error, -EINVAL,
				"profile %u: weight %u of class %u is not 1 to %u", number,
				p->weight[i], i, SHAPE_MOST_CLASS_WEIGHT);
		least = MIN_OF(least, p->weight[i]);
	}
	for (unsigned i = SHAPE_TURN; i < SHAPE_CLASSES; i++)
		rules.quantum[i] = (uint16_t)(512 * p->weight[i] / least);
	rules.strict_scale = 256 * 100 / p->strict_percent;
	rules.target = p->is_fifo ? UINT64_MAX : p->target_us * per_us;
	rules.interval = p->interval_us * per_us;
	rules.limit = p->limit_us * per_us;
	rules.limit_bytes = p->limit_bytes;
	s->rules[number] = rules;
	s->n_rules = MAX_OF(s->n_rules, number + 1u);
	return 0;
}

int shape_terms_of(const struct shape_config *config, const struct shape_setting *set,
	enum shape_level level, struct shape_terms *terms, struct error *error)
{
	const unsigned __int128 second = (unsigned __int128)config->hz << SHAPE_FRACTION;
	const uint64_t quantum = (uint64_t)set->weight * SHAPE_WEIGHT_BYTES;

	if (set->bits < SHAPE_LEAST_RATE || set->bits > SHAPE_MOST_RATE)
		return error_set(error, -EINVAL,
			"a rate of %" PRIu64 " bit/s is not 64 kbit/s to 400 Gbit/s", set->bits);
	if (level != SHAPE_PORT && (!set->weight || set->weight > SHAPE_MOST_WEIGHT))
		return error_set(error, -EINVAL, "a weight of %u is not 1 to %u", set->weight,
			SHAPE_MOST_WEIGHT);
	if (set->burst < config->mtu || set->burst < quantum || set->burst > UINT32_MAX)
		return error_set(error, -EINVAL,
			"a burst of %" PRIu64 " bytes is less than an MTU or the weight needs, "
			"or above 4 GiB",
			set->burst);
	*terms = (struct shape_terms){.parent = set->parent, .profile = set->profile};
	terms->per_byte = (uint64_t)((second * 8 + set->bits / 2) / set->bits);
	const uint64_t burst =
		(uint64_t)((unsigned __int128)set->burst * terms->per_byte >> SHAPE_FRACTION);
	const uint64_t least = config->hz * SHAPE_LEAST_BURST_US / 1000000;
	const uint64_t most = config->hz * SHAPE_MOST_BURST_MS / 1000;
	if (burst < least || (burst > most && set->burst > 2ull * config->mtu) ||
		burst > UINT32_MAX)
		return error_set(error, -EINVAL,
			"a burst of %" PRIu64 " bytes at %" PRIu64
			" bit/s does not last 16 us to 400 ms",
			set->burst, set->bits);
	terms->burst = (uint32_t)burst;
	terms->quantum = (uint16_t)quantum;
	return 0;
}

// The same debt, or tokens, in bytes at the new rate; rounded against the subscriber. `fraction`:
// of a tick, in units of 1 >> SHAPE_FRACTION. Returns the new fraction.
static uint32_t change_rate(uint64_t *due, uint32_t fraction, const struct shape_node *node,
	const struct shape_terms *terms, uint64_t now)
{
	const unsigned __int128 one = 1u << SHAPE_FRACTION;
	const uint64_t from = node->per_byte, to = terms->per_byte;

	if (*due >= now) {
		const unsigned __int128 debt = (*due - now) * one + fraction;
		const unsigned __int128 scaled = (debt * to + from - 1) / from;

		*due = now + (uint64_t)(scaled >> SHAPE_FRACTION);
		return (uint32_t)(scaled & (one - 1));
	}
	*due = MAX_OF(*due, oldest_of(node, now));
	const unsigned __int128 tokens = ((now - *due) * one - fraction) * to / from;
	const unsigned __int128 most = MIN_OF(terms->burst, now) * one, left = MIN_OF(tokens, most);
	*due = now - (uint64_t)((left + one - 1) >> SHAPE_FRACTION);
	return (uint32_t)(-left & (one - 1));
}

static void change_rates(struct shape_node *node, const struct shape_terms *terms, uint64_t now)
{
	const unsigned less = SHAPE_FRACTION - SHAPE_STRICT_FRACTION;
	const uint32_t strict = (uint32_t)node->strict_fraction << less;

	node->fraction = change_rate(&node->due, node->fraction, node, terms, now);
	node->strict_fraction = change_rate(&node->strict_due, strict, node, terms, now) >> less;
}

static bool is_level(const struct shape *s, enum shape_level level, uint32_t number)
{
	return number < s->first[level + 1] - s->first[level];
}

static void adopt(struct shape *s, struct shape_node *node, uint32_t parent)
{
	if (node->parent)
		s->node[node->parent].n_children--;
	node->parent = parent;
	s->node[parent].n_children++;
}

int shape_set(struct shape *s, enum shape_level level, uint32_t number,
	const struct shape_terms *terms, uint64_t now)
{
	const uint32_t id = s->first[level] + number;
	struct shape_node *node = &s->node[id];
	uint32_t parent = 0;

	if (!is_level(s, level, number))
		return -EINVAL;
	if (level == SHAPE_SUBSCRIBER && !s->rules[terms->profile].is_set)
		return -ENOENT;
	if (level != SHAPE_PORT) {
		if (!is_level(s, level - 1, terms->parent))
			return -ENOENT;
		parent = s->first[level - 1] + terms->parent;
		if (s->node[parent].state <= NODE_AWAY)
			return -ENOENT;
	}
	const bool was_active = node->state == NODE_READY || node->state == NODE_WAITING;
	if (was_active)
		tree_rest(s, id);
	if (node->state == NODE_UNUSED) {
		node->due = MAX_OF(node->due, now) + (terms->owes ? terms->burst : 0);
		node->strict_due = MAX_OF(node->strict_due, now);
		node->deficit = terms->quantum;
		node->turn = SHAPE_TURN;
	} else {
		change_rates(node, terms, now);
	}
	node->state = NODE_IDLE;
	node->per_byte = terms->per_byte;
	node->burst = terms->burst;
	node->quantum = terms->quantum;
	node->deficit = MIN_OF(node->deficit, node->quantum);
	node->profile = terms->profile;
	if (level != SHAPE_PORT && node->parent != parent)
		adopt(s, node, parent);
	if (was_active)
		tree_wake(s, id, now);
	return 0;
}

int shape_remove(struct shape *s, enum shape_level level, uint32_t number)
{
	struct shape_node *node = &s->node[s->first[level] + number];

	if (!is_level(s, level, number) || node->state == NODE_UNUSED)
		return -ENOENT;
	if (level == SHAPE_SUBSCRIBER ? node->held_packets : node->n_children)
		return -EBUSY;
	if (node->parent)
		s->node[node->parent].n_children--;
	node->parent = 0;
	node->state = NODE_UNUSED;
	return 0;
}

static bool flush(struct shape *s, uint32_t id, struct shape_drops *drops)
{
	struct shape_node *node = &s->node[id];

	if (!node->held_packets)
		return true;
	while (node->held_packets && !drops_are_full(drops))
		queue_flush_one(s, id, drops);
	if (node->held_packets)
		return false;
	tree_rest(s, id);
	return true;
}

bool shape_flush(struct shape *s, uint32_t subscriber, struct shape_drops *drops)
{
	return !is_level(s, SHAPE_SUBSCRIBER, subscriber) ||
	       flush(s, s->first[SHAPE_SUBSCRIBER] + subscriber, drops);
}

unsigned shape_hand(struct shape *s, uint32_t subscriber, struct shape_packet *out[], unsigned most)
{
	const uint32_t id = s->first[SHAPE_SUBSCRIBER] + subscriber;
	struct shape_node *node = &s->node[id];
	unsigned n = 0;

	while (n < most && node->held_packets)
		out[n++] = queue_hand_one(s, id);
	if (n == most || node->state == NODE_UNUSED)
		return n;
	if (node->state > NODE_IDLE)
		tree_rest(s, id);
	if (node->parent)
		s->node[node->parent].n_children--;
	node->parent = 0;
	node->state = NODE_AWAY;
	return n;
}

void shape_hold(struct shape *s, unsigned n)
{
	s->totals.enqueued += n;
	__atomic_store_n(&s->totals.held, s->totals.held + n, __ATOMIC_RELAXED);
}

void shape_moved(struct shape *s, unsigned n)
{
	__atomic_store_n(&s->totals.held, s->totals.held - n, __ATOMIC_RELAXED);
	s->totals.moved += n;
}

bool shape_flush_port(struct shape *s, uint32_t port, uint32_t *next, struct shape_drops *drops)
{
	for (unsigned i = 0; i < FLUSH_NODES && *next < s->config.n_subscribers; i++, ++*next) {
		const uint32_t id = s->first[SHAPE_SUBSCRIBER] + *next;
		const uint32_t parent = s->node[id].parent;

		if (parent && s->node[parent].parent == s->first[SHAPE_PORT] + port &&
			!flush(s, id, drops))
			return false;
	}
	return *next == s->config.n_subscribers;
}

const struct shape_class_stats *shape_class_stats(const struct shape *s, uint32_t subscriber,
	unsigned class)
{
	return stats_of(s, s->first[SHAPE_SUBSCRIBER] + subscriber, class);
}

const struct shape_totals *shape_totals(const struct shape *s)
{
	return &s->totals;
}

unsigned shape_held(const struct shape *s, uint32_t subscriber)
{
	const struct shape_node *node = &s->node[s->first[SHAPE_SUBSCRIBER] + subscriber];

	return __atomic_load_n(&node->held_packets, __ATOMIC_RELAXED);
}

void shape_clear_stats(struct shape *s, uint32_t subscriber)
{
	struct shape_class_stats *stats = stats_of(s, s->first[SHAPE_SUBSCRIBER] + subscriber, 0);

	for (unsigned i = 0; i < SHAPE_CLASSES; i++) {
		__atomic_store_n(&stats[i].packets, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&stats[i].bytes, 0, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < SHAPE_DROPS_OF_CLASS; k++)
			__atomic_store_n(&stats[i].dropped[k], 0, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < SHAPE_DELAYS; k++)
			__atomic_store_n(&stats[i].delays[k], 0, __ATOMIC_RELAXED);
	}
}

uint64_t shape_delay_bound(const struct shape *s, unsigned i)
{
	return 1ull << (s->delay_shift + 2 * i);
}

uint64_t shape_memory(const struct shape *s)
{
	return sizeof(*s) + s->n_rules * sizeof(*s->rules) +
	       (uint64_t)s->first[SHAPE_SUBSCRIBER + 1] * sizeof(*s->node) +
	       (uint64_t)s->touched_backlogs * sizeof(*s->backlogs) +
	       (uint64_t)s->touched_cells * sizeof(*s->cells) +
	       (uint64_t)s->wheel.n_touched * sizeof(*s->wheel.cells);
}
