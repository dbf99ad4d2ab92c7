// The workers' copy of IPv4 in the main table: 524,288 nodes for 19 bits with their leaves inside
// or in a block, and possibly a block of tail lines; and what further VRFs have in common with it.
// Nodes are built in pairs, so that the trie is traversed once for both. Control thread.
#include "fib/nodes4.h"

#include "base/pages.h"
#include "fib/table.h"

#include <errno.h>
#include <string.h>

enum { PAIR_BITS = 18, PAIR_SLOT_BITS = 6, TAIL_BITS = 8, LEAVES_PER_UNIT = 2, SLOTS = 32 };
enum { MAX_LEAF_UNITS = 1 << 27, MAX_TAIL_LINES = 1 << 27 };
// Never too few: a page for each slot of each root, one for each hop, and those whose grace period
// has not ended.
enum { MAX_PAGES = FIB_MAX_VRFS * ROOT4_SLOTS + FIB_MAX_HOPS + 1 + RCU_DEFER_MAX };
static_assert(PAIR_BITS + 1 == ROOT4_BITS + PAGE4_NODE_BITS, "pages of whole pairs");
static const size_t ROOT_BYTES = FIB_MAX_VRFS * ROOT4_SLOTS * sizeof(uint32_t);
static const size_t OWN_BYTES = FIB_MAX_VRFS * ROOT4_SLOTS / 8;
static const size_t SHARED_BYTES = (FIB_MAX_HOPS + 1) * sizeof(uint32_t);

// Lines of one wide hop each, those of a node.
struct wide_lines {
	unsigned n;
	uint32_t hop[SLOTS];
	uint16_t leaf[SLOTS];
};

// A pair of nodes under construction: the leaf of each slot, and how many tail lines each node has
// in the scratch.
struct draft {
	uint16_t slot[2][SLOTS];
	uint32_t n_lines[2];
	struct wide_lines wide[2];
};

// The leaves of a node, by run of slots; unused ones are 0.
struct leaves {
	uint32_t runs;
	uint16_t leaf[SLOTS];
	unsigned n;
};

static int open_roots(struct publish4 *publish)
{
	publish->root = pages_alloc(ROOT_BYTES);
	publish->own = pages_alloc(OWN_BYTES);
	publish->shared = pages_alloc(SHARED_BYTES);
	if (!publish->root || !publish->own || !publish->shared)
		return -ENOMEM;
	pages_keep_small(publish->root, ROOT_BYTES);
	pages_keep_small(publish->shared, SHARED_BYTES);
	for (uint32_t slot = 0; slot < ROOT4_SLOTS; slot++) // the main table's pages are in order
		publish->root[slot] = slot * PAGE4_NODES;
	return 0;
}

static void close_roots(struct publish4 *publish)
{
	pages_free(publish->root, ROOT_BYTES);
	pages_free(publish->own, OWN_BYTES);
	pages_free(publish->shared, SHARED_BYTES);
}

int publish4_open(struct publish4 *publish)
{
	if (open_roots(publish))
		goto close_roots;
	if (blocks_open(&publish->page, PAGE4_NODES * sizeof(struct fib_node4), MAX_PAGES,
		    PAGE4_EMPTY + 1))
		goto close_roots;
	if (blocks_open(&publish->leaf, LEAVES_PER_UNIT * sizeof(uint16_t), MAX_LEAF_UNITS, 1))
		goto close_page;
	if (blocks_open(&publish->tail, sizeof(union tail_line), MAX_TAIL_LINES, TAIL_OWN))
		goto close_leaf;
	return 0;
close_leaf:
	blocks_close(&publish->leaf);
close_page:
	blocks_close(&publish->page);
close_roots:
	close_roots(publish);
	return -ENOMEM;
}

void publish4_close(struct publish4 *publish)
{
	close_roots(publish);
	blocks_close(&publish->page);
	blocks_close(&publish->leaf);
	blocks_close(&publish->tail);
}

// The line of one wide hop, for all nodes that have no other.
static uint32_t shared_tail(struct publish4 *publish, uint32_t hop)
{
	union tail_line *line = blocks_at(&publish->tail, hop);

	if (line->runs.wide[0])
		return hop;
	tail_make_one(line, hop);
	publish->n_shared_tails++;
	return hop;
}

size_t publish4_tail_bytes(const struct publish4 *publish)
{
	const uint32_t n_untouched = TAIL_OWN - 1 - publish->n_shared_tails;

	return blocks_bytes(&publish->tail) - (size_t)n_untouched * sizeof(union tail_line);
}

// The leaf of consecutive /24s with one hop, in a node with others.
static uint16_t make_leaf(struct fib *fib, uint32_t hop, struct draft *draft, unsigned half)
{
	struct wide_lines *wide = &draft->wide[half];

	if (hop < HOP_WIDE)
		return hop;
	for (unsigned i = wide->n; i--;)
		if (wide->hop[i] == hop)
			return wide->leaf[i];
	tail_make_one(&fib->publish4.scratch[half][draft->n_lines[half]], hop);
	wide->hop[wide->n] = hop;
	wide->leaf[wide->n] = LEAF_TAIL | LEAF_WIDE | draft->n_lines[half]++;
	return wide->leaf[wide->n++];
}

// The leaf of a /24 with longer prefixes; its lines are written to the scratch of its node.
static uint16_t make_tail(struct fib *fib, const struct rib_run *run, struct draft *draft)
{
	struct publish4 *publish = &fib->publish4;
	struct rib_runs *runs = &publish->tail_runs;
	unsigned half = run->last / SLOTS;
	uint32_t *n_lines = &draft->n_lines[half];
	uint16_t leaf = LEAF_TAIL | *n_lines;

	rib_expand(&fib->rib, run->top, (struct rib_span){PAIR_BITS + PAIR_SLOT_BITS, TAIL_BITS},
		runs);
	if (runs->n == 1)
		return make_leaf(fib, runs->run[0].top.hop, draft, half);
	leaf |= tail_make(&publish->scratch[half][*n_lines], runs);
	*n_lines += tail_leaf_lines(leaf);
	return leaf;
}

static void make_draft(struct fib *fib, uint16_t tree, uint32_t number, struct draft *draft)
{
	struct rib_prefix prefix = {.key.high = (uint64_t)number << (64 - PAIR_BITS),
		.tree = tree,
		.len = PAIR_BITS};
	struct rib_runs *runs = &fib->publish4.runs;
	unsigned slot = 0;
	struct rib_top top = rib_locate(&fib->rib, &prefix);

	memset(draft->n_lines, 0, sizeof(draft->n_lines));
	draft->wide[0].n = draft->wide[1].n = 0;
	rib_expand(&fib->rib, top, (struct rib_span){PAIR_BITS, PAIR_SLOT_BITS}, runs);
	for (uint32_t i = 0; i < runs->n; i++) {
		const struct rib_run *run = &runs->run[i];
		for (; slot <= run->last; slot++) {
			const unsigned half = slot / SLOTS;
			draft->slot[half][slot % SLOTS] =
				run->top.node ? make_tail(fib, run, draft)
					      : make_leaf(fib, run->top.hop, draft, half);
		}
	}
}

// The number of tail lines that a node owns.
static uint32_t own_lines(const struct fib_node4 *node, const struct leaves *leaves)
{
	uint32_t end = 0;

	for (unsigned n = 0; n < leaves->n; n++)
		if (leaves->leaf[n] & LEAF_TAIL)
			end = MAX_OF(end,
				(leaves->leaf[n] & LEAF_LINE) + tail_leaf_lines(leaves->leaf[n]));
	return end && node->tail >= TAIL_OWN ? end : 0;
}

static unsigned leaf_units(unsigned n_leaves)
{
	return (n_leaves + LEAVES_PER_UNIT - 1) / LEAVES_PER_UNIT;
}

// Compresses slots into runs and their leaves.
static void squeeze(const uint16_t slot[SLOTS], struct leaves *leaves)
{
	memset(leaves, 0, sizeof(*leaves));
	leaves->leaf[leaves->n++] = slot[0];
	for (unsigned i = 1; i < SLOTS; i++) {
		if (slot[i] == slot[i - 1])
			continue;
		leaves->runs |= 1u << i;
		leaves->leaf[leaves->n++] = slot[i];
	}
}

static bool is_narrow(const struct fib_node4 *node)
{
	return node->runs & node->narrow[0] & 1;
}

static bool is_outside(const struct fib_node4 *node)
{
	return node->runs & ~node->narrow[0] & 1;
}

// Runs of nodes with bit 0 set are counted from 1.
static uint32_t first_leaf(const struct fib_node4 *node)
{
	return (node->outside >> 1) + 1;
}

static bool fits_narrow(const struct leaves *leaves)
{
	if (leaves->n > FIB_NODE4_NARROW)
		return false;
	for (unsigned n = 0; n < leaves->n; n++) {
		uint16_t leaf = leaves->leaf[n];

		if (leaf && (leaf <= FIB_NARROW_AFTER || leaf > FIB_NARROW_AFTER + UINT8_MAX))
			return false;
	}
	return true;
}

// Reads a node's runs and leaves back, as squeeze() computed them.
static void read_leaves(const struct fib *fib, const struct fib_node4 *node, struct leaves *leaves)
{
	memset(leaves, 0, sizeof(*leaves));
	leaves->runs = node->runs & ~1u;
	leaves->n = 1 + __builtin_popcount(leaves->runs);
	if (is_narrow(node)) {
		for (unsigned n = 0; n < leaves->n; n++)
			leaves->leaf[n] = narrow_leaf(node->narrow[1 + n]);
		return;
	}
	const uint16_t *from = is_outside(node) ? &fib->view.leaf4[first_leaf(node)] : node->leaf;

	memcpy(leaves->leaf, from, leaves->n * sizeof(*from));
}

static void put_narrow(struct fib_node4 *node, const struct leaves *leaves)
{
	node->runs |= 1;
	node->narrow[0] = 1;
	for (unsigned n = 0; n < leaves->n; n++)
		node->narrow[1 + n] = leaves->leaf[n] ? leaves->leaf[n] - FIB_NARROW_AFTER : 0;
}

static void put_outside(struct fib *fib, struct fib_node4 *node, const struct leaves *leaves)
{
	uint32_t unit = blocks_take(&fib->publish4.leaf, leaf_units(leaves->n));

	assert(unit);
	memcpy(blocks_at(&fib->publish4.leaf, unit), leaves->leaf, leaves->n * sizeof(uint16_t));
	node->runs |= 1;
	node->outside = (unit * LEAVES_PER_UNIT - 1) << 1;
}

// Writes a node to its place; `tail`: its first line, 0: none.
static void put_node(struct fib *fib, struct fib_node4 *place, const struct leaves *leaves,
	uint32_t tail)
{
	const unsigned room = FIB_NODE4_LEAVES - (tail ? 2 : 0);
	struct fib_node4 node = {.runs = leaves->runs};
	word16 word;

	if (leaves->n <= room)
		memcpy(node.leaf, leaves->leaf, room * sizeof(uint16_t));
	else if (fits_narrow(leaves))
		put_narrow(&node, leaves);
	else
		put_outside(fib, &node, leaves);
	if (tail)
		node.tail = tail;
	memcpy(&word, &node, sizeof(word));
	word16_store(place, word);
}

static void retire_node(struct fib *fib, const struct fib_node4 *node, const struct leaves *leaves)
{
	uint32_t n_lines = own_lines(node, leaves);

	if (n_lines)
		rcu_defer_add(&fib->defer, (struct rcu_block){node->tail, n_lines, DEFERRED_TAIL4});
	if (is_outside(node))
		rcu_defer_add(&fib->defer, (struct rcu_block){first_leaf(node) / LEAVES_PER_UNIT,
						   leaf_units(leaves->n), DEFERRED_LEAF4});
}

// The wide hop that is all that a node has, 0: it has none, or more.
static uint32_t only_wide_hop(const struct draft *draft, const struct leaves *leaves, unsigned half)
{
	const struct wide_lines *wide = &draft->wide[half];

	return leaves->n == 1 && wide->n ? wide->hop[0] : 0;
}

// Copies the lines of a node from the scratch; returns the first one, 0: there are none.
static uint32_t put_lines(struct publish4 *publish, unsigned half, uint32_t n)
{
	if (!n)
		return 0;
	uint32_t first = blocks_take(&publish->tail, n);
	assert(first);
	memcpy(blocks_at(&publish->tail, first), publish->scratch[half],
		n * sizeof(union tail_line));
	return first;
}

static void publish_node(struct fib *fib, struct fib_node4 *place, const struct draft *draft,
	unsigned half)
{
	struct publish4 *publish = &fib->publish4;
	const struct fib_node4 old = *place;
	struct leaves before, after;

	read_leaves(fib, &old, &before);
	squeeze(draft->slot[half], &after);
	const uint32_t only = only_wide_hop(draft, &after, half);
	const uint32_t n_lines = only ? 0 : draft->n_lines[half];
	if (!n_lines && (!only || old.tail == only) && !memcmp(&before, &after, sizeof(before)))
		return;
	put_node(fib, place, &after,
		only ? shared_tail(publish, only) : put_lines(publish, half, n_lines));
	retire_node(fib, &old, &before);
}

struct fib_node4 nodes4_of_hop(struct publish4 *publish, uint32_t hop)
{
	struct fib_node4 node = {.leaf = {hop}};

	if (hop < HOP_WIDE)
		return node;
	node.leaf[0] = LEAF_TAIL | LEAF_WIDE;
	node.tail = shared_tail(publish, hop);
	return node;
}

void nodes4_publish(struct fib *fib, uint16_t tree, uint32_t pair, struct fib_node4 place[2])
{
	struct draft draft;

	make_draft(fib, tree, pair, &draft);
	publish_node(fib, &place[0], &draft, 0);
	publish_node(fib, &place[1], &draft, 1);
}

void nodes4_retire(struct fib *fib, const struct fib_node4 *node)
{
	struct leaves leaves;

	read_leaves(fib, node, &leaves);
	retire_node(fib, node, &leaves);
}

static struct fib_node4 *node_at(const struct publish4 *publish, uint32_t number)
{
	return (struct fib_node4 *)blocks_at(&publish->page, 0) + number;
}

static void touch(struct publish4 *publish, uint32_t first, uint32_t n)
{
	publish->first_touched = MIN_OF(publish->first_touched, first / 64);
	publish->end_touched = MAX_OF(publish->end_touched, (first + n - 1) / 64 + 1);
	for (uint32_t i = first; i < first + n; i++)
		publish->touched[i / 64] |= 1ull << i % 64;
}

static void publish_main(struct fib *fib)
{
	struct publish4 *publish = &fib->publish4;

	for (uint32_t word = publish->first_touched; word < publish->end_touched; word++)
		for (uint64_t left = publish->touched[word]; left; left &= left - 1) {
			const uint32_t pair = word * 64 + __builtin_ctzll(left);
			nodes4_publish(fib, RIB4, pair, node_at(publish, 2 * pair));
		}
}

static uint32_t copy_block(struct blocks *blocks, uint32_t from, uint32_t n)
{
	uint32_t to = blocks_take(blocks, n);

	assert(to);
	memcpy(blocks_at(blocks, to), blocks_at(blocks, from), (size_t)n * blocks->unit_bytes);
	return to;
}

static void move_node(struct fib *fib, struct fib_node4 *place)
{
	struct publish4 *publish = &fib->publish4;
	struct leaves leaves;

	read_leaves(fib, place, &leaves);
	uint32_t n_lines = own_lines(place, &leaves);
	if (!n_lines && !is_outside(place))
		return;
	put_node(fib, place, &leaves,
		n_lines ? copy_block(&publish->tail, place->tail, n_lines) : 0);
}

bool publish4_tidy(struct fib *fib)
{
	struct publish4 *publish = &fib->publish4;
	struct blocks_place leaves, lines;
	struct blocks leaf = publish->leaf;

	rcu_defer_drain(&fib->defer);
	if (!blocks_move_begin(&publish->leaf, &leaves))
		return false;
	if (!blocks_move_begin(&publish->tail, &lines)) {
		publish->leaf = leaf;
		return false;
	}
	for (uint32_t number = 0; number < 2 * PUBLISH4_PAIRS; number++)
		move_node(fib, node_at(publish, number));
	pages4_each(fib, move_node);
	rcu_defer_wait(&fib->defer);
	blocks_move_end(&publish->leaf, &leaves);
	blocks_move_end(&publish->tail, &lines);
	return true;
}

void publish4_edits(struct fib *fib, const struct edit *edits, size_t n)
{
	struct publish4 *publish = &fib->publish4;

	publish->first_touched = PUBLISH4_PAIRS / 64;
	publish->end_touched = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t first = edits[i].key.high >> (64 - PAIR_BITS);
		touch(publish, first,
			edits[i].len >= PAIR_BITS ? 1 : 1u << (PAIR_BITS - edits[i].len));
	}
	if (n && edits->tree == RIB4)
		publish_main(fib);
	else if (n)
		pages4_publish(fib, edits->tree);
	for (uint32_t word = publish->first_touched; word < publish->end_touched; word++)
		publish->touched[word] = 0;
}
