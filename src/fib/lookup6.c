// IPv6 bulk lookup for any CPU. All packets of a burst descend together: first through root and
// wide blocks, whose few lines are usually cached, then from line to line, each prefetched one pass
// before it is read; packets that are done are removed from the list. Worker.
#include "fib/lookup.h"

#include "fib/layout.h"

enum { BURST = 64 };

// A packet in progress: the line to resolve next.
struct step {
	uint32_t line;
	uint8_t index, level;
};

// The run of a slot: the number of runs that end before it.
static inline unsigned line_run(const struct line6 *line, unsigned slot)
{
	unsigned run = 0;

	for (unsigned i = 0; i < LINE_RUNS; i++)
		run += line->last[i] < slot;
	return run;
}

static inline unsigned line_wide_run(const struct line6 *line, unsigned slot)
{
	unsigned run = 0;

	for (unsigned i = 0; i < LINE_WIDE_RUNS; i++)
		run += line->wide_last[i] < slot;
	return run;
}

// The run of a slot, and its hop.
struct found {
	uint32_t hop;
	unsigned run;
};

static inline struct found find_in(const struct line6 *line, unsigned slot)
{
	const bool is_wide = unlikely(line->flags & LINE_WIDE);
	const unsigned run = is_wide ? line_wide_run(line, slot) : line_run(line, slot);

	return (struct found){is_wide ? line->wide_hop[run] : line->hop[run], run};
}

static inline uint32_t wide_entry(const struct fib_view *view, uint32_t entry, unsigned slot)
{
	const struct fib_node6(*wide)[WIDE_NODES] = view->node6;
	const uint32_t *leaf = view->leaf6;
	struct fib_node6 node = fib_node6_load(&wide[entry & ENTRY_INDEX][slot >> 6]);

	return leaf[node.base + __builtin_popcountll(node.runs << (63 - (slot & 63)))];
}

// Looks up the first 16 bits of each packet in the root. True if all get the same entry.
static inline __attribute__((always_inline)) bool pass_root(const struct fib_view *view,
	const struct burst6 *burst, uint32_t entry[])
{
	uint32_t differ = 0;

	entry[0] = root6_entry(view, burst, 0);
	for (unsigned i = 1; i < burst->n; i++) {
		entry[i] = root6_entry(view, burst, i);
		differ |= entry[i] ^ entry[0];
	}
	return !differ;
}

// Descends through wide blocks; packets that reach a line form the list. Writes the hops of the
// others.
static inline unsigned pass_wide(const struct fib_view *view, const struct burst6 *burst,
	const uint32_t entries[], struct step steps[])
{
	const struct line6 *lines = view->line6;
	unsigned n_steps = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		uint32_t entry = entries[i];
		unsigned level = 1;
		for (; entry & ENTRY_WIDE; level++)
			entry = wide_entry(view, entry, key_slot(&burst->dst[i], level));
		burst->hop[i] = entry;
		steps[n_steps] = (struct step){entry & ENTRY_INDEX, i, level};
		rte_prefetch1(&lines[entry & ENTRY_LINE ? entry & ENTRY_INDEX : 0]);
		n_steps += entry >> 30;
	}
	return n_steps;
}

// Resolves one line for each packet; the list of n shrinks in place.
static inline unsigned pass_lines(const struct fib_view *view, const struct burst6 *burst,
	struct step steps[], unsigned n)
{
	const struct line6 *lines = view->line6;
	unsigned n_left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct step step = steps[i];
		const struct line6 *line = &lines[step.line];
		struct found found = find_in(line, key_slot(&burst->dst[step.index], step.level));
		unsigned below = line_below(line), goes_on = below >> found.run & 1;
		burst->hop[step.index] = found.hop;
		step.line = goes_on ? line_next(line, below, found.run) : step.line;
		step.level += !(line->flags & LINE_SPLIT);
		rte_prefetch1(&lines[step.line]);
		steps[n_left] = step;
		n_left += goes_on;
	}
	return n_left;
}

// A burst whose packets all have the same entry, as with few routes: resolves them in one line.
// False if one line is not enough.
static inline bool descend_together(const struct fib_view *view, uint32_t entry,
	const struct burst6 *burst)
{
	const struct line6 *line = (const struct line6 *)view->line6 + (entry & ENTRY_INDEX);

	if (!(entry & ENTRY_LINE) || line->below)
		return false;
	for (unsigned i = 0; i < burst->n; i++)
		burst->hop[i] = line->hop[line_run(line, key_slot(&burst->dst[i], 1))];
	return true;
}

static inline __attribute__((always_inline)) void lookup_burst(const struct fib_view *view,
	const struct burst6 *burst)
{
	uint32_t entry[BURST];
	struct step steps[BURST + 1];

	if (!burst->n)
		return;
	if (pass_root(view, burst, entry) && descend_together(view, entry[0], burst))
		return;
	unsigned n_left = pass_wide(view, burst, entry, steps);
	while (n_left)
		n_left = pass_lines(view, burst, steps, n_left);
}

void lookup6_scalar(const struct fib_view *view, const struct fib_key6 dst[], uint32_t hop[],
	unsigned n)
{
	lookup_burst(view, &(struct burst6){dst, hop, n, NULL});
}

void lookup6_mixed_scalar(const struct fib_view *view, const uint16_t vrf[],
	const struct fib_key6 dst[], uint32_t hop[], unsigned n)
{
	lookup_burst(view, &(struct burst6){dst, hop, n, vrf});
}
