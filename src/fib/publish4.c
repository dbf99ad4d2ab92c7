// The workers' copy of IPv4 in the main table: 524,288 nodes for 19 bits with their leaves inside
// or in a block, and possibly a block of tail lines; and what further VRFs have in common with it.
// Nodes are built in pairs, so that the trie is traversed once for both. Control thread.
#include "fib/nodes4.h"

#include "base/pages.h"
#include "fib/table.h"

#include <errno.h>
#include <string.h>

enum { PAIR_BITS = 18, PAIR_SLOT_BITS = 6, TAIL_BITS = 8, LEAVES_PER_UNIT = 2, SLOTS = 32 };
enum { MAX_LEAF_UNITS = 1 << 27, MAX_TAIL_LINES = 1 << 25 };
// Never too few: a page for each slot of each root, one for each hop, and those whose grace period
// has not ended.
enum { MAX_PAGES = FIB_MAX_VRFS * ROOT4_SLOTS + FIB_MAX_HOPS + 1 + RCU_DEFER_MAX };
static_assert(PAIR_BITS + 1 == ROOT4_BITS + PAGE4_NODE_BITS, "pages of whole pairs");
static const size_t ROOT_BYTES = FIB_MAX_VRFS * ROOT4_SLOTS * sizeof(uint32_t);
static const size_t OWN_BYTES = FIB_MAX_VRFS * ROOT4_SLOTS / 8;
static const size_t SHARED_BYTES = (FIB_MAX_HOPS + 1) * sizeof(uint32_t);

// A pair of nodes under construction: the leaf of each slot, and how many tail lines each node has
// in the scratch.
struct draft {
	uint16_t slot[2][SLOTS];
	uint32_t n_lines[2];
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
	if (blocks_open(&publish->tail, sizeof(union tail_line), MAX_TAIL_LINES, 1))
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

static bool make_tail_runs(const struct rib_runs *runs, struct tail_runs *tail)
{
	unsigned first = 0, n = 0;

	if (runs->n > TAIL_RUNS)
		return false;
	memset(tail, 0, sizeof(*tail));
	for (uint32_t i = 0; i < runs->n; i++) {
		tail->bits[first >> 6] |= 1ull << (first & 63);
		tail->hop[i] = runs->run[i].top.hop;
		first = runs->run[i].last + 1;
	}
	for (unsigned word = 0; word < 4; word++) {
		tail->before[word] = n;
		n += __builtin_popcountll(tail->bits[word]);
	}
	return true;
}

static void make_flat(const struct rib_runs *runs, uint16_t *flat)
{
	unsigned slot = 0;

	for (uint32_t i = 0; i < runs->n; i++)
		while (slot <= runs->run[i].last)
			flat[slot++] = runs->run[i].top.hop;
}

// The leaf of a /24 with longer prefixes; its lines are written to the scratch of its node.
static uint16_t make_tail(struct fib *fib, const struct rib_run *run, struct draft *draft)
{
	struct publish4 *publish = &fib->publish4;
	struct rib_runs *runs = &publish->tail_runs;
	unsigned half = run->last / SLOTS;
	uint32_t *n_lines = &draft->n_lines[half];
	union tail_line *line = &publish->scratch[half][*n_lines];
	uint16_t leaf = LEAF_TAIL | *n_lines;

	rib_expand(&fib->rib, run->top, (struct rib_span){PAIR_BITS + PAIR_SLOT_BITS, TAIL_BITS},
		runs);
	if (runs->n == 1)
		return runs->run[0].top.hop;
	if (make_tail_runs(runs, &line->runs)) {
		*n_lines += 1;
		return leaf;
	}
	make_flat(runs, line->flat);
	*n_lines += TAIL_FLAT_LINES;
	return leaf | LEAF_FLAT;
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
	rib_expand(&fib->rib, top, (struct rib_span){PAIR_BITS, PAIR_SLOT_BITS}, runs);
	for (uint32_t i = 0; i < runs->n; i++) {
		const struct rib_run *run = &runs->run[i];
		uint16_t leaf = run->top.node ? make_tail(fib, run, draft) : run->top.hop;
		for (; slot <= run->last; slot++)
			draft->slot[slot / SLOTS][slot % SLOTS] = leaf;
	}
}

static uint32_t tail_lines(const struct leaves *leaves)
{
	for (unsigned n = leaves->n; n--;)
		if (leaves->leaf[n] & LEAF_TAIL)
			return (leaves->leaf[n] & LEAF_LINE) +
			       (leaves->leaf[n] & LEAF_FLAT ? TAIL_FLAT_LINES : 1);
	return 0;
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
	uint32_t n_lines = tail_lines(leaves);

	if (n_lines)
		rcu_defer_add(&fib->defer, (struct rcu_block){node->tail, n_lines, DEFERRED_TAIL4});
	if (is_outside(node))
		rcu_defer_add(&fib->defer, (struct rcu_block){first_leaf(node) / LEAVES_PER_UNIT,
						   leaf_units(leaves->n), DEFERRED_LEAF4});
}

static void publish_node(struct fib *fib, struct fib_node4 *place, const struct draft *draft,
	unsigned half)
{
	struct publish4 *publish = &fib->publish4;
	const struct fib_node4 old = *place;
	const uint32_t n_lines = draft->n_lines[half];
	struct leaves before, after;
	uint32_t tail = 0;

	read_leaves(fib, &old, &before);
	squeeze(draft->slot[half], &after);
	if (!n_lines && !memcmp(&before, &after, sizeof(before)))
		return;
	if (n_lines) {
		tail = blocks_take(&publish->tail, n_lines);
		assert(tail);
		memcpy(blocks_at(&publish->tail, tail), publish->scratch[half],
			n_lines * sizeof(union tail_line));
	}
	put_node(fib, place, &after, tail);
	retire_node(fib, &old, &before);
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
	uint32_t n_lines = tail_lines(&leaves);
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
