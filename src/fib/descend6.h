// IPv6 in bulk: all packets of a burst go down together, a step of memory at a time, each step's lines prefetched by the one before;
// those that arrived drop out of the lists. The file that includes this defines line_run before. Lane.
#pragma once

#include "fib/layout.h"

enum { BURST = 64 };

// A packet on its way: `at` is a leaf number, or a wide block or line to resolve next.
struct step {
	uint32_t at;
	uint8_t index, level;
};

struct steps {
	unsigned n;
	struct step step[BURST + 1];
};

struct descent {
	const struct fib_view *view;
	const struct fib_key6 *dst;
	uint16_t *hop;
	struct steps wide, leaf, line, next_line;
};

static inline void add(struct steps *to, struct step step, bool counts)
{
	to->step[to->n] = step;
	to->n += counts;
}

// What an entry says: a hop, or where to go on.
static inline void follow(struct descent *d, struct steps *lines, uint32_t entry, unsigned index, unsigned level)
{
	const struct line6 *line = d->view->line6;
	const struct fib_node(*wide)[WIDE_NODES] = d->view->node6;
	struct step step = {entry & ENTRY_INDEX, index, level};

	if (entry & ENTRY_LINE)
		rte_prefetch0(&line[step.at]);
	if (entry & ENTRY_WIDE)
		rte_prefetch0(&wide[step.at][key_slot(&d->dst[index], level) >> 6]);
	d->hop[index] = entry;
	add(lines, step, entry & ENTRY_LINE);
	add(&d->wide, step, entry & ENTRY_WIDE);
}

static void pass_wide(struct descent *d)
{
	const struct fib_node(*wide)[WIDE_NODES] = d->view->node6;
	const uint32_t *leaf = d->view->leaf6;

	for (unsigned i = 0; i < d->wide.n; i++) {
		struct step step = d->wide.step[i];
		unsigned slot = key_slot(&d->dst[step.index], step.level);
		struct fib_node node = fib_node_load(&wide[step.at][slot >> 6]);
		step.at = node.base + node_run(node.runs, slot & 63);
		rte_prefetch0(&leaf[step.at]);
		add(&d->leaf, step, true);
	}
	d->wide.n = 0;
}

static void pass_leaves(struct descent *d)
{
	const uint32_t *leaf = d->view->leaf6;

	for (unsigned i = 0; i < d->leaf.n; i++) {
		struct step step = d->leaf.step[i];
		follow(d, &d->line, leaf[step.at], step.index, step.level + 1);
	}
	d->leaf.n = 0;
}

static void pass_lines(struct descent *d)
{
	const struct line6 *lines = d->view->line6;

	d->next_line.n = 0;
	for (unsigned i = 0; i < d->line.n; i++) {
		struct step step = d->line.step[i];
		const struct line6 *line = &lines[step.at];
		unsigned run = line_run(line, key_slot(&d->dst[step.index], step.level));
		bool goes_on = line->below >> run & 1;
		step.at = line->base + __builtin_popcount(line->below & ((1u << run) - 1));
		step.level += !line->is_split;
		d->hop[step.index] = line->hop[run];
		if (goes_on)
			rte_prefetch0(&lines[step.at]);
		add(&d->next_line, step, goes_on);
	}
	d->line.n = d->next_line.n;
	memcpy(d->line.step, d->next_line.step, d->next_line.n * sizeof(struct step));
}

static inline void descend(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[], unsigned n)
{
	const uint32_t *root = view->root6;
	struct descent d;

	d.view = view;
	d.dst = dst;
	d.hop = hop;
	d.wide.n = d.leaf.n = d.line.n = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t entry = __atomic_load_n(&root[key_slot(&dst[i], 0)], __ATOMIC_ACQUIRE);
		follow(&d, &d.line, entry, i, 1);
	}
	while (d.wide.n || d.line.n) {
		pass_lines(&d);
		pass_wide(&d);
		pass_leaves(&d);
	}
}
