// The workers' copy of IPv6: for each VRF a root of 65,536 entries, with wide
// blocks where many prefixes are below an entry, and lines otherwise. The unit of rebuilding is an
// entry with all lines below it, or a node of a wide block. Control thread.
#include "fib/publish.h"

#include "fib/table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOT_SLOTS = 1 << ROOT6_BITS, LEVEL_BITS = 16, NODE_SLOT_BITS = 6, N_LEVELS = 8 };
enum { MAX_WIDES = 1 << 19, MAX_LEAVES = 1 << 28, MAX_LINES = 1 << 27 };
// Thresholds, in rib nodes below an entry, for turning lines into a wide block and back. The lines
// of an entry are rebuilt together.
enum { WIDE_FROM_NODES = 256, LINES_FROM_NODES = 128 };
static const uint32_t IS_LINE = UINT32_MAX; // in place of a hop id
static_assert(2 * WIDE_FROM_NODES + 2 <= RIB_MAX_RUNS, "a node starts at most two runs");

// The changes below a place: `n` sorted edits; NULL: everything has changed.
struct news {
	const struct edit *edit;
	size_t n;
};

// A place in the tree: its `level`, and the key bits above it.
struct place {
	struct fib_key6 key;
	uint8_t level;
	uint16_t tree;
	struct news news;
};

// A range of bitmap words, or of nodes of a wide block.
struct range {
	unsigned first, end;
};

int publish6_open(struct publish6 *publish)
{
	if (blocks_open(&publish->root, sizeof(uint32_t), ROOT_SLOTS * FIB_MAX_VRFS,
		    ROOT_SLOTS * FIB_MAX_VRFS))
		return -ENOMEM;
	if (blocks_open(&publish->wide, WIDE_NODES * sizeof(struct fib_node6), MAX_WIDES, 1))
		goto close_root;
	if (blocks_open(&publish->leaf, sizeof(uint32_t), MAX_LEAVES, IDENTITY_LEAVES))
		goto close_wide;
	if (blocks_open(&publish->line, sizeof(struct line6), MAX_LINES, 1))
		goto close_leaf;
	return 0;
close_leaf:
	blocks_close(&publish->leaf);
close_wide:
	blocks_close(&publish->wide);
close_root:
	blocks_close(&publish->root);
	return -ENOMEM;
}

void publish6_close(struct publish6 *publish)
{
	blocks_close(&publish->root);
	blocks_close(&publish->wide);
	blocks_close(&publish->leaf);
	blocks_close(&publish->line);
}

uint32_t *publish6_root(const struct publish6 *publish, uint16_t vrf)
{
	return blocks_at(&publish->root, vrf * ROOT_SLOTS);
}

// All its entries are 0, and they stay 0 if the kernel gives a fresh page to a worker that still
// reads them.
void publish6_close_root(struct publish6 *publish, uint16_t vrf)
{
	madvise(publish6_root(publish, vrf), ROOT_SLOTS * sizeof(uint32_t), MADV_DONTNEED);
}

void publish_hop(struct fib *fib, uint32_t id)
{
	if (id >= IDENTITY_LEAVES)
		return;
	uint32_t *leaf = blocks_at(&fib->publish6.leaf, id);

	if (*leaf != id)
		*leaf = id;
}

// Lines. The lines below are copied into blocks bottom up, so that a line is complete before
// anything points to it.

static void put_lines(struct fib *fib, struct line6 *line, const struct line6 *below, unsigned n)
{
	if (!n)
		return;
	line->base = blocks_take(&fib->publish6.line, n);
	assert(line->base);
	memcpy(blocks_at(&fib->publish6.line, line->base), below, n * sizeof(*below));
}

static uint32_t make_line(struct fib *fib, unsigned level, struct rib_top top, struct line6 *line);

static void clear_line(struct line6 *line, uint16_t flags)
{
	memset(line, 0, sizeof(*line));
	line->flags = flags;
	if (flags & LINE_WIDE) {
		memset(line->wide_last, 0xff, sizeof(line->wide_last));
		line->below = UINT16_MAX;
	} else {
		memset(line->last, 0xff, sizeof(line->last));
	}
}

// `hop`: of the run, or IS_LINE: it continues below.
static void put_run(struct line6 *line, unsigned i, uint16_t last, uint32_t hop)
{
	const unsigned below = (unsigned)(hop == IS_LINE) << i;

	if (line->flags & LINE_WIDE) {
		line->wide_last[i] = last;
		line->wide_hop[i] = hop == IS_LINE ? 0 : hop;
		line->wide_below |= below;
	} else {
		line->last[i] = last;
		line->hop[i] = hop == IS_LINE ? 0 : hop;
		line->below |= below;
	}
}

static bool has_wide(const struct rib_run *run, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!run[i].top.node && run[i].top.hop >= HOP_WIDE)
			return true;
	return false;
}

// Writes what is below a run: IS_LINE, or its hop. A wide hop that turns up below a narrow line
// gets a line.
static uint32_t make_below(struct fib *fib, const struct line6 *line, unsigned level,
	struct rib_top top, struct line6 *below)
{
	uint32_t hop = make_line(fib, level, top, below);

	if (hop == IS_LINE || hop < HOP_WIDE || line->flags & LINE_WIDE)
		return hop;
	clear_line(below, LINE_WIDE);
	put_run(below, 0, UINT16_MAX, hop);
	return IS_LINE;
}

// Makes a line of consecutive runs.
static void fill_line(struct fib *fib, const struct rib_run *run, unsigned n, unsigned level,
	struct line6 *line)
{
	struct line6 below[LINE_RUNS];
	unsigned n_below = 0;

	clear_line(line, has_wide(run, n) ? LINE_WIDE : 0);
	for (unsigned i = 0; i < n; i++) {
		const struct rib_top top = run[i].top;
		uint32_t hop = top.hop;
		if (top.node)
			hop = make_below(fib, line, level + 1, top, &below[n_below]);
		put_run(line, i, run[i].last, hop);
		n_below += hop == IS_LINE;
	}
	put_lines(fib, line, below, n_below);
}

// More runs than fit into a line: builds a tree of lines over the same slots, full ones first.
static void fill_split(struct fib *fib, const struct rib_run *run, unsigned n, unsigned level,
	struct line6 *line)
{
	struct line6 below[LINE_RUNS];
	const unsigned most = has_wide(run, n) ? LINE_WIDE_RUNS : LINE_RUNS;
	unsigned n_lines = (n + most - 1) / most, n_below = 0;
	unsigned share = (n_lines + LINE_RUNS - 1) / LINE_RUNS * most;

	if (n <= most) {
		fill_line(fib, run, n, level, line);
		return;
	}
	clear_line(line, LINE_SPLIT);
	for (unsigned i = 0; i < n; i += share) {
		unsigned part = MIN_OF(share, n - i);
		put_run(line, n_below, run[i + part - 1].last, IS_LINE);
		fill_split(fib, run + i, part, level, &below[n_below++]);
	}
	put_lines(fib, line, below, n_below);
}

// Fills the line for a subtree and returns IS_LINE, or returns the hop if the whole subtree has the
// same one.
static uint32_t make_line(struct fib *fib, unsigned level, struct rib_top top, struct line6 *line)
{
	const struct rib_span span = {LEVEL_BITS * level, LEVEL_BITS};
	struct rib_runs runs;

	rib_expand(&fib->rib, top, span, &runs);
	if (runs.n == 1 && !runs.run[0].top.node)
		return runs.run[0].top.hop;
	fill_split(fib, runs.run, runs.n, level, line);
	return IS_LINE;
}

static uint32_t make_lines(struct fib *fib, unsigned level, struct rib_top top)
{
	struct line6 line;
	uint32_t hop = top.node ? make_line(fib, level, top, &line) : top.hop;

	if (hop != IS_LINE)
		return hop;
	uint32_t index = blocks_take(&fib->publish6.line, 1);
	assert(index);
	memcpy(blocks_at(&fib->publish6.line, index), &line, sizeof(line));
	return ENTRY_LINE | index;
}

// Frees what an entry pointed to, once nothing points to it any more.

static void retire_lines(struct fib *fib, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct line6 *line = blocks_at(&fib->publish6.line, first + i);
		if (line_below(line))
			retire_lines(fib, line->base, __builtin_popcount(line_below(line)));
	}
	rcu_defer_add(&fib->defer, (struct rcu_block){first, n, DEFERRED_LINE6});
}

static void retire_entry(struct fib *fib, uint32_t entry);

static void retire_leaves(struct fib *fib, const struct fib_node6 *node)
{
	unsigned n = 1 + __builtin_popcountll(node->runs);

	if (node->base >= IDENTITY_LEAVES)
		rcu_defer_add(&fib->defer, (struct rcu_block){node->base, n, DEFERRED_LEAF6});
}

static void retire_wide(struct fib *fib, uint32_t index)
{
	const struct fib_node6 *node = blocks_at(&fib->publish6.wide, index);

	for (unsigned i = 0; i < WIDE_NODES; i++) {
		const uint32_t *leaf = blocks_at(&fib->publish6.leaf, node[i].base);
		for (unsigned run = 0; run <= (unsigned)__builtin_popcountll(node[i].runs); run++)
			retire_entry(fib, leaf[run]);
		retire_leaves(fib, &node[i]);
	}
	rcu_defer_add(&fib->defer, (struct rcu_block){index, 1, DEFERRED_WIDE6});
}

static void retire_entry(struct fib *fib, uint32_t entry)
{
	if (entry & ENTRY_WIDE)
		retire_wide(fib, entry & ENTRY_INDEX);
	else if (entry & ENTRY_LINE)
		retire_lines(fib, entry & ENTRY_INDEX, 1);
}

// Entries and wide blocks.

static void update_wide(struct fib *fib, struct fib_node6 *wide, struct place place);

static struct fib_node6 *make_wide(struct fib *fib, uint32_t *entry)
{
	uint32_t index = blocks_take(&fib->publish6.wide, 1);
	struct fib_node6 *wide = blocks_at(&fib->publish6.wide, index);

	assert(index);
	memset(wide, 0, WIDE_NODES * sizeof(*wide));
	*entry = ENTRY_WIDE | index;
	return wide;
}

// Returns the new entry for a place whose old entry is `old` and whose lookup result is `top`. An
// existing wide block is updated in place and its entry kept.
static uint32_t update_entry(struct fib *fib, struct place place, struct rib_top top, uint32_t old)
{
	bool was_wide = old & ENTRY_WIDE;
	uint32_t n_nodes = rib_count(&fib->rib, top.node, WIDE_FROM_NODES + 1);
	uint32_t entry = old;

	if (n_nodes <= (was_wide ? LINES_FROM_NODES : WIDE_FROM_NODES))
		return make_lines(fib, place.level, top);
	if (was_wide) {
		update_wide(fib, blocks_at(&fib->publish6.wide, old & ENTRY_INDEX), place);
		return old;
	}
	place.news = (struct news){NULL, 0};
	update_wide(fib, make_wide(fib, &entry), place);
	return entry;
}

// The edits of one slot, taken from the remaining ones, which may start with edits of earlier
// slots.
static struct news news_of_slot(struct news *left, unsigned level, unsigned slot)
{
	struct news news;

	while (left->n && key_slot(&left->edit->key, level) < slot) {
		left->edit++;
		left->n--;
	}
	news.edit = left->edit;
	for (news.n = 0; news.n < left->n; news.n++)
		if (key_slot(&left->edit[news.n].key, level) != slot)
			break;
	return news;
}

static bool test_bit(const uint64_t *bits, unsigned i)
{
	return bits[i / 64] >> i % 64 & 1;
}

// The edits to pass on to what is below a slot: its own, or "everything" if the slot's own result
// has changed.
static struct news news_below(struct fib *fib, struct news *left, unsigned level, unsigned slot)
{
	if (!left->edit || test_bit(fib->publish6.slots[level].whole, slot))
		return (struct news){NULL, 0};
	return news_of_slot(left, level, slot);
}

// Marks the slots of an edit and returns the last one.
static unsigned mark(struct slots6 *slots, const struct edit *edit, unsigned level)
{
	const unsigned end = LEVEL_BITS * (level + 1);
	unsigned first = key_slot(&edit->key, level);
	unsigned n = edit->len >= end ? 1 : 1u << MIN_OF(end - edit->len, LEVEL_BITS);

	for (unsigned slot = first; slot < first + n; slot++) {
		slots->touched[slot / 64] |= 1ull << slot % 64;
		if (edit->len <= end)
			slots->whole[slot / 64] |= 1ull << slot % 64;
	}
	return first + n - 1;
}

static void unpack(const struct fib *fib, const struct fib_node6 *node, uint32_t entry[64])
{
	const uint32_t *leaf = blocks_at(&fib->publish6.leaf, node->base);

	for (unsigned slot = 0; slot < 64; slot++)
		entry[slot] = leaf[node6_run(node->runs, slot)];
}

static struct fib_node6 pack(struct fib *fib, const uint32_t entry[64])
{
	struct fib_node6 node = {.base = entry[0]};
	uint32_t leaf[64];
	unsigned n = 0;

	leaf[n++] = entry[0];
	for (unsigned slot = 1; slot < 64; slot++) {
		if (entry[slot] == entry[slot - 1])
			continue;
		node.runs |= 1ull << slot;
		leaf[n++] = entry[slot];
	}
	if (!node.runs && entry[0] < IDENTITY_LEAVES)
		return node;
	node.base = blocks_take(&fib->publish6.leaf, n);
	assert(node.base);
	memcpy(blocks_at(&fib->publish6.leaf, node.base), leaf, n * sizeof(*leaf));
	return node;
}

static void put_node(struct fib *fib, struct fib_node6 *at, const uint32_t before[64],
	const uint32_t after[64])
{
	struct fib_node6 old = *at, node = pack(fib, after);
	word16 word;

	memcpy(&word, &node, sizeof(word));
	word16_store(at, word);
	retire_leaves(fib, &old);
	for (unsigned slot = 0; slot < 64; slot++)
		if (before[slot] != after[slot])
			retire_entry(fib, before[slot]);
}

// Updates the 64 slots of one node of a wide block; `prefix` is its place, and `left` are the edits
// for this node and later ones.
static void update_node(struct fib *fib, struct fib_node6 *node, const struct rib_prefix *prefix,
	struct news *left)
{
	const unsigned level = prefix->len / LEVEL_BITS;
	const unsigned number =
		rib_key_bits(prefix->key, LEVEL_BITS * level, LEVEL_BITS - NODE_SLOT_BITS);
	const struct slots6 *slots = &fib->publish6.slots[level];
	const uint64_t touched = left->edit ? slots->touched[number] : ~0ull;
	uint32_t before[64], after[64];
	struct rib_runs runs;

	unpack(fib, node, before);
	rib_expand(&fib->rib, rib_locate(&fib->rib, prefix),
		(struct rib_span){prefix->len, NODE_SLOT_BITS}, &runs);
	for (unsigned i = 0, slot = 0; i < runs.n; i++)
		for (; slot <= runs.run[i].last; slot++) {
			const struct rib_top top = runs.run[i].top;
			after[slot] = top.node ? before[slot] : top.hop;
			if (!top.node || !(touched >> slot & 1))
				continue;
			struct place below = {rib_key_with(prefix->key, prefix->len, NODE_SLOT_BITS,
						      slot),
				level + 1, prefix->tree,
				news_below(fib, left, level, 64 * number + slot)};
			after[slot] = update_entry(fib, below, top, before[slot]);
		}
	if (memcmp(before, after, sizeof(before)))
		put_node(fib, node, before, after);
}

// Marks the slots of all edits; returns the range of bitmap words that contain them.
static struct range mark_all(struct slots6 *slots, struct news news, unsigned level)
{
	if (!news.edit)
		return (struct range){0, WIDE_NODES};
	struct range range = {.first = key_slot(&news.edit->key, level) / 64};
	for (size_t i = 0; i < news.n; i++)
		range.end = MAX_OF(range.end, mark(slots, &news.edit[i], level) / 64 + 1);
	return range;
}

static void update_wide(struct fib *fib, struct fib_node6 *wide, struct place place)
{
	struct slots6 *slots = &fib->publish6.slots[place.level];
	const unsigned len = LEVEL_BITS * place.level;
	const struct range range = mark_all(slots, place.news, place.level);

	for (unsigned number = range.first; number < range.end; number++) {
		if (place.news.edit && !slots->touched[number])
			continue;
		struct rib_prefix prefix = {rib_key_with(place.key, len,
						    LEVEL_BITS - NODE_SLOT_BITS, number),
			place.tree, len + LEVEL_BITS - NODE_SLOT_BITS};
		update_node(fib, &wide[number], &prefix, &place.news);
		slots->touched[number] = slots->whole[number] = 0;
	}
}

static void update_root(struct fib *fib, uint16_t tree, unsigned slot, struct news *left)
{
	struct place below = {.key.high = (uint64_t)slot << 48, .level = 1, .tree = tree};
	const struct rib_prefix prefix = {below.key, tree, LEVEL_BITS};
	uint32_t *root = publish6_root(&fib->publish6, rib_tree_vrf(tree)) + slot, old = *root;

	below.news = news_below(fib, left, 0, slot);
	uint32_t entry = update_entry(fib, below, rib_locate(&fib->rib, &prefix), old);
	if (entry == old)
		return;
	__atomic_store_n(root, entry, __ATOMIC_RELEASE);
	retire_entry(fib, old);
}

void publish6_edits(struct fib *fib, const struct edit *edits, size_t n)
{
	struct slots6 *slots = &fib->publish6.slots[0];
	struct news left = {edits, n};

	if (!n)
		return;
	const struct range range = mark_all(slots, left, 0);
	for (unsigned word = range.first; word < range.end; word++) {
		for (uint64_t bits = slots->touched[word]; bits; bits &= bits - 1)
			update_root(fib, edits->tree, 64 * word + __builtin_ctzll(bits), &left);
		slots->touched[word] = slots->whole[word] = 0;
	}
}
