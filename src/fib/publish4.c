// IPv4 for lanes: 262,144 nodes of 18 bits, each with a block of leaves and perhaps one of tail
// lines. Control thread.
#include "fib/publish.h"

#include "fib/table.h"

#include <errno.h>
#include <string.h>

enum { NODE_BITS = 18, SLOT_BITS = 6, TAIL_BITS = 8, LEAVES_PER_UNIT = 2 };
enum { MAX_LEAF_UNITS = 1 << 27, MAX_TAIL_LINES = 1 << 25 };

// A node being made: the answer of each of its 64 slots.
struct draft {
	uint16_t slot[64];
	uint32_t n_lines;
};

int publish4_open(struct publish4 *publish)
{
	if (blocks_open(&publish->node, sizeof(struct fib_node), PUBLISH4_NODES, PUBLISH4_NODES))
		return -ENOMEM;
	if (blocks_open(&publish->leaf, LEAVES_PER_UNIT * sizeof(uint16_t), MAX_LEAF_UNITS,
		    IDENTITY_LEAVES / LEAVES_PER_UNIT))
		goto close_node;
	if (blocks_open(&publish->tail, sizeof(union tail_line), MAX_TAIL_LINES, 1))
		goto close_leaf;
	return 0;
close_leaf:
	blocks_close(&publish->leaf);
close_node:
	blocks_close(&publish->node);
	return -ENOMEM;
}

void publish4_close(struct publish4 *publish)
{
	blocks_close(&publish->node);
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

// The leaf of a /24 that has longer prefixes: its lines go to the scratch.
static uint16_t make_tail(struct fib *fib, const struct rib_run *run, struct draft *draft)
{
	struct publish4 *publish = &fib->publish4;
	struct rib_runs *runs = &publish->tail_runs;
	union tail_line *line = &publish->scratch[draft->n_lines];
	uint16_t leaf = LEAF_TAIL | draft->n_lines;

	rib_expand(&fib->rib, run->top, (struct rib_span){NODE_BITS + SLOT_BITS, TAIL_BITS}, runs);
	if (runs->n == 1)
		return runs->run[0].top.hop;
	if (make_tail_runs(runs, &line->runs)) {
		draft->n_lines++;
		return leaf;
	}
	make_flat(runs, line->flat);
	draft->n_lines += TAIL_FLAT_LINES;
	return leaf | LEAF_FLAT;
}

static void make_draft(struct fib *fib, uint32_t number, struct draft *draft)
{
	struct rib_prefix prefix = {.key.high = (uint64_t)number << (64 - NODE_BITS),
		.tree = RIB4,
		.len = NODE_BITS};
	struct rib_runs *runs = &fib->publish4.runs;
	unsigned slot = 0;
	struct rib_top top = rib_locate(&fib->rib, &prefix);

	draft->n_lines = 0;
	rib_expand(&fib->rib, top, (struct rib_span){NODE_BITS, SLOT_BITS}, runs);
	for (uint32_t i = 0; i < runs->n; i++) {
		const struct rib_run *run = &runs->run[i];
		uint16_t leaf = run->top.node ? make_tail(fib, run, draft) : run->top.hop;
		while (slot <= run->last)
			draft->slot[slot++] = leaf;
	}
}

static uint32_t tail_lines(const uint16_t *leaf, unsigned n)
{
	while (n--)
		if (leaf[n] & LEAF_TAIL)
			return (leaf[n] & LEAF_LINE) + (leaf[n] & LEAF_FLAT ? TAIL_FLAT_LINES : 1);
	return 0;
}

static unsigned leaf_units(unsigned n_leaves)
{
	return (n_leaves + LEAVES_PER_UNIT - 1) / LEAVES_PER_UNIT;
}

static void retire_node(struct fib *fib, const struct fib_node *node)
{
	unsigned n = 1 + __builtin_popcountll(node->runs);

	if (!node->runs)
		return;
	const uint16_t *leaf = &fib->view.leaf4[node->base];
	if (node->tail)
		retire_add(&fib->retire,
			(struct retired){node->tail, tail_lines(leaf, n), RETIRED_TAIL4});
	retire_add(&fib->retire,
		(struct retired){node->base / LEAVES_PER_UNIT, leaf_units(n), RETIRED_LEAF4});
}

static bool says_the_same(const struct fib *fib, const struct fib_node *a, const struct fib_node *b,
	const uint16_t *leaf)
{
	unsigned n = 1 + __builtin_popcountll(a->runs);

	if (a->runs != b->runs || a->tail || b->tail)
		return false;
	return !memcmp(&fib->view.leaf4[a->base], leaf, n * sizeof(*leaf));
}

// Squeezes 64 slots into runs and their leaves.
static unsigned squeeze(const struct draft *draft, struct fib_node *node, uint16_t *leaf)
{
	unsigned n = 0;

	leaf[n++] = draft->slot[0];
	for (unsigned slot = 1; slot < 64; slot++) {
		if (draft->slot[slot] == draft->slot[slot - 1])
			continue;
		node->runs |= 1ull << slot;
		leaf[n++] = draft->slot[slot];
	}
	return n;
}

static void publish_node(struct fib *fib, uint32_t number)
{
	struct publish4 *publish = &fib->publish4;
	struct fib_node *place = blocks_at(&publish->node, number), old = *place, node = {0};
	struct draft draft;
	uint16_t leaf[64];

	make_draft(fib, number, &draft);
	unsigned n = squeeze(&draft, &node, leaf);
	if (!draft.n_lines && says_the_same(fib, &old, &node, leaf))
		return;
	if (draft.n_lines) {
		node.tail = blocks_take(&publish->tail, draft.n_lines);
		assert(node.tail);
		memcpy(blocks_at(&publish->tail, node.tail), publish->scratch,
			draft.n_lines * sizeof(union tail_line));
	}
	node.base = leaf[0];
	if (node.runs) {
		uint32_t unit = blocks_take(&publish->leaf, leaf_units(n));
		assert(unit);
		memcpy(blocks_at(&publish->leaf, unit), leaf, n * sizeof(*leaf));
		node.base = unit * LEAVES_PER_UNIT;
	}
	word16 word;
	memcpy(&word, &node, sizeof(word));
	word16_store(place, word);
	retire_node(fib, &old);
}

static void touch(struct publish4 *publish, uint32_t first, uint32_t n)
{
	publish->first_touched = MIN_OF(publish->first_touched, first / 64);
	publish->end_touched = MAX_OF(publish->end_touched, (first + n - 1) / 64 + 1);
	for (uint32_t i = first; i < first + n; i++)
		publish->touched[i / 64] |= 1ull << i % 64;
}

static void publish_touched(struct fib *fib)
{
	struct publish4 *publish = &fib->publish4;

	for (uint32_t word = publish->first_touched; word < publish->end_touched; word++)
		for (uint64_t left = publish->touched[word]; left; left &= left - 1)
			publish_node(fib, word * 64 + __builtin_ctzll(left));
	for (uint32_t word = publish->first_touched; word < publish->end_touched; word++)
		publish->touched[word] = 0;
}

static uint32_t copy_block(struct blocks *blocks, uint32_t from, uint32_t n)
{
	uint32_t to = blocks_take(blocks, n);

	assert(to);
	memcpy(blocks_at(blocks, to), blocks_at(blocks, from), (size_t)n * blocks->unit_bytes);
	return to;
}

static void move_node(struct fib *fib, uint32_t number)
{
	struct publish4 *publish = &fib->publish4;
	struct fib_node *place = blocks_at(&publish->node, number), node = *place;
	unsigned n = 1 + __builtin_popcountll(node.runs);
	word16 word;

	if (!node.runs)
		return;
	if (node.tail)
		node.tail = copy_block(&publish->tail, node.tail,
			tail_lines(&fib->view.leaf4[node.base], n));
	node.base = LEAVES_PER_UNIT *
	            copy_block(&publish->leaf, node.base / LEAVES_PER_UNIT, leaf_units(n));
	memcpy(&word, &node, sizeof(word));
	word16_store(place, word);
}

bool publish4_tidy(struct fib *fib)
{
	struct publish4 *publish = &fib->publish4;
	struct blocks_place leaves, lines;
	struct blocks leaf = publish->leaf;

	retire_drain(&fib->retire);
	if (!blocks_move_begin(&publish->leaf, &leaves))
		return false;
	if (!blocks_move_begin(&publish->tail, &lines)) {
		publish->leaf = leaf;
		return false;
	}
	for (uint32_t number = 0; number < PUBLISH4_NODES; number++)
		move_node(fib, number);
	retire_wait(&fib->retire);
	blocks_move_end(&publish->leaf, &leaves);
	blocks_move_end(&publish->tail, &lines);
	return true;
}

void publish4_edits(struct fib *fib, const struct edit *edits, size_t n)
{
	struct publish4 *publish = &fib->publish4;

	publish->first_touched = PUBLISH4_NODES / 64;
	publish->end_touched = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t first = edits[i].key.high >> (64 - NODE_BITS);
		touch(publish, first,
			edits[i].len >= NODE_BITS ? 1 : 1u << (NODE_BITS - edits[i].len));
	}
	publish_touched(fib);
}
