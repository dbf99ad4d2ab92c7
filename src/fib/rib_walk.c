// Traversals in order of address: runs for publishing, and the next route for listings. Control
// thread.
#include "fib/rib.h"

struct walk {
	const struct rib *rib;
	struct rib_span span;
	struct rib_runs *runs;
};

static void emit(struct rib_runs *runs, uint32_t last, struct rib_top top)
{
	struct rib_run *before = runs->n ? &runs->run[runs->n - 1] : NULL;

	runs->next = last + 1;
	if (before && !top.node && !before->top.node && before->top.hop == top.hop) {
		before->last = last;
		return;
	}
	assert(runs->n < RIB_MAX_RUNS);
	runs->run[runs->n++] = (struct rib_run){last, top};
}

static void fill_up_to(struct rib_runs *runs, uint32_t end, uint32_t hop)
{
	if (runs->next < end)
		emit(runs, end - 1, (struct rib_top){0, hop});
}

static void visit(const struct walk *walk, struct rib_top top)
{
	const struct rib_node *node = rib_node(walk->rib, top.node);
	const unsigned end = walk->span.len + walk->span.bits;

	if (!top.node)
		return;
	uint32_t first = rib_key_bits(node->key, walk->span.len, walk->span.bits);
	fill_up_to(walk->runs, first, top.hop);
	if (node->len > end || (node->len == end && (node->child[0] || node->child[1]))) {
		emit(walk->runs, first, top);
		return;
	}
	if (node->len == end) {
		fill_up_to(walk->runs, first + 1, rib_hop_resolved(walk->rib, node, top.hop));
		return;
	}
	uint32_t hop = rib_hop(walk->rib, node, top.hop);
	visit(walk, (struct rib_top){node->child[0], hop});
	visit(walk, (struct rib_top){node->child[1], hop});
	fill_up_to(walk->runs, first + (1u << (end - node->len)), hop);
}

void rib_expand(const struct rib *rib, struct rib_top top, struct rib_span span,
	struct rib_runs *runs)
{
	const struct walk walk = {rib, span, runs};

	runs->n = runs->next = 0;
	visit(&walk, top);
	fill_up_to(runs, 1u << span.bits, top.hop);
}

static int compare(const struct rib_node *node, const struct rib_prefix *prefix)
{
	if (node->key.high != prefix->key.high)
		return node->key.high < prefix->key.high ? -1 : 1;
	if (node->key.low != prefix->key.low)
		return node->key.low < prefix->key.low ? -1 : 1;
	return (int)node->len - prefix->len;
}

static uint32_t first_route(const struct rib *rib, uint32_t at)
{
	if (!at || rib_node(rib, at)->route)
		return at;
	uint32_t found = first_route(rib, rib_node(rib, at)->child[0]);
	return found ? found : first_route(rib, rib_node(rib, at)->child[1]);
}

// The first route of a subtree after `after`. Everything that precedes a prefix in order is above
// or left of it.
static uint32_t next_in(const struct rib *rib, uint32_t at, const struct rib_prefix *after)
{
	const struct rib_node *node = rib_node(rib, at);

	if (!at)
		return 0;
	if (compare(node, after) > 0)
		return first_route(rib, at);
	if (node->len > after->len || rib_common_bits(node->key, after->key) < node->len)
		return 0;
	uint32_t found = next_in(rib, node->child[0], after);
	return found ? found : next_in(rib, node->child[1], after);
}

uint32_t rib_next(const struct rib *rib, uint16_t tree, const struct rib_prefix *after)
{
	return after ? next_in(rib, rib->root[tree], after) : first_route(rib, rib->root[tree]);
}
