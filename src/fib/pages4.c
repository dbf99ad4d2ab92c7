// The workers' copy of IPv4 in further VRFs: nodes as in the main table, in pages of 256. A root
// has a page for each of 2,048 blocks of addresses. Where one hop is enough for a block, that is a
// page which all VRFs share, so that a default route costs a VRF nothing but its root. Control
// thread.
#include "fib/nodes4.h"

#include "fib/table.h"

#include <string.h>

uint32_t *publish4_root(const struct publish4 *publish, uint16_t vrf)
{
	return publish->root + (size_t)vrf * ROOT4_SLOTS;
}

void publish4_open_vrf(struct publish4 *publish, uint16_t vrf)
{
	for (uint32_t slot = 0; slot < ROOT4_SLOTS; slot++)
		publish4_root(publish, vrf)[slot] = PAGE4_EMPTY * PAGE4_NODES;
}

static struct fib_node4 *nodes_of(const struct publish4 *publish, uint32_t page)
{
	return blocks_at(&publish->page, page);
}

static uint32_t take_page(struct publish4 *publish)
{
	uint32_t page = blocks_take(&publish->page, 1);

	assert(page);
	memset(nodes_of(publish, page), 0, PAGE4_NODES * sizeof(struct fib_node4));
	return page;
}

// The page that has a hop for all addresses.
static uint32_t shared_page(struct publish4 *publish, uint32_t hop)
{
	uint32_t *page = &publish->shared[hop];

	if (!hop)
		return PAGE4_EMPTY;
	if (*page)
		return *page;
	*page = take_page(publish);
	for (unsigned i = 0; i < PAGE4_NODES; i++)
		nodes_of(publish, *page)[i] = nodes4_of_hop(publish, hop);
	return *page;
}

void publish4_forget_hop(struct publish4 *publish, uint32_t hop)
{
	if (publish->shared[hop])
		blocks_give(&publish->page, publish->shared[hop], 1);
	publish->shared[hop] = 0;
}

static void retire_page(struct fib *fib, uint32_t page)
{
	for (unsigned i = 0; i < PAGE4_NODES; i++)
		nodes4_retire(fib, &nodes_of(&fib->publish4, page)[i]);
	rcu_defer_add(&fib->defer, (struct rcu_block){page, 1, DEFERRED_PAGE4});
}

// A slot of the root of a VRF.
struct slot4 {
	uint16_t tree;
	uint32_t number;
	uint32_t *first; // in the root: the first node
	uint64_t *own;   // the word with its bit
};

static bool has_own(const struct slot4 *slot)
{
	return *slot->own >> slot->number % 64 & 1;
}

// Makes the slot lead to a page; frees the one that it led to if that was its own.
static void lead_to(struct fib *fib, const struct slot4 *slot, uint32_t page, bool is_own)
{
	const bool had_own = has_own(slot);
	const uint32_t old = *slot->first / PAGE4_NODES;

	if (old == page)
		return;
	*slot->own ^= (uint64_t)(had_own != is_own) << slot->number % 64;
	__atomic_store_n(slot->first, page * PAGE4_NODES, __ATOMIC_RELEASE);
	if (had_own)
		retire_page(fib, old);
}

static void publish_pairs(struct fib *fib, const struct slot4 *slot, uint32_t page, bool all)
{
	const uint32_t pair = slot->number * PAGE4_PAIRS;
	const uint64_t *touched = &fib->publish4.touched[pair / 64];
	struct fib_node4 *nodes = nodes_of(&fib->publish4, page);

	for (uint32_t i = 0; i < PAGE4_PAIRS; i++)
		if (all || touched[i / 64] >> i % 64 & 1)
			nodes4_publish(fib, slot->tree, pair + i, nodes + 2 * i);
}

static void publish_slot(struct fib *fib, const struct slot4 *slot)
{
	struct publish4 *publish = &fib->publish4;
	const struct rib_prefix prefix = {.key.high = (uint64_t)slot->number << (64 - ROOT4_BITS),
		.tree = slot->tree,
		.len = ROOT4_BITS};
	struct rib_runs *runs = &publish->runs;

	rib_expand(&fib->rib, rib_locate(&fib->rib, &prefix), (struct rib_span){ROOT4_BITS, 1},
		runs);
	if (runs->n == 1 && !runs->run[0].top.node) {
		lead_to(fib, slot, shared_page(publish, runs->run[0].top.hop), false);
	} else if (has_own(slot)) {
		publish_pairs(fib, slot, *slot->first / PAGE4_NODES, false);
	} else {
		const uint32_t page = take_page(publish);
		publish_pairs(fib, slot, page, true);
		lead_to(fib, slot, page, true);
	}
}

void pages4_publish(struct fib *fib, uint16_t tree)
{
	struct publish4 *publish = &fib->publish4;
	const uint16_t vrf = rib_tree_vrf(tree);
	const uint32_t words = PAGE4_PAIRS / 64; // of a slot
	const uint32_t end = (publish->end_touched + words - 1) / words;

	for (uint32_t number = publish->first_touched / words; number < end; number++) {
		const uint64_t *touched = &publish->touched[number * words];
		const struct slot4 slot = {tree, number, publish4_root(publish, vrf) + number,
			&publish->own[vrf][number / 64]};

		if (touched[0] | touched[1])
			publish_slot(fib, &slot);
	}
}
static_assert(PAGE4_PAIRS == 2 * 64, "a slot has two words");

static void each_of_vrf(struct fib *fib, uint16_t vrf,
	void (*call)(struct fib *fib, struct fib_node4 *node))
{
	struct publish4 *publish = &fib->publish4;

	for (uint32_t word = 0; word < ROOT4_SLOTS / 64; word++)
		for (uint64_t left = publish->own[vrf][word]; left; left &= left - 1) {
			uint32_t slot = 64 * word + __builtin_ctzll(left);
			uint32_t first = publish4_root(publish, vrf)[slot];
			for (unsigned i = 0; i < PAGE4_NODES; i++)
				call(fib, nodes_of(publish, first / PAGE4_NODES) + i);
		}
}

void pages4_each(struct fib *fib, void (*call)(struct fib *fib, struct fib_node4 *node))
{
	for (uint16_t vrf = 1; vrf < FIB_MAX_VRFS; vrf++)
		if (vrf_view_of(fib, vrf)) // its own[] was never touched otherwise
			each_of_vrf(fib, vrf, call);
}
