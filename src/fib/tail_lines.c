// Makes tail lines of IPv4: what a /24 with longer prefixes, or with a wide hop, leads to. Control
// thread.
#include "fib/hops.h"
#include "fib/nodes4.h"

#include <string.h>

static void count_before(struct tail_runs *tail)
{
	unsigned n = 0;

	for (unsigned word = 0; word < ARRAY_LEN(tail->bits); word++) {
		tail->before[word] = n;
		n += __builtin_popcountll(tail->bits[word]);
	}
}

void tail_make_one(union tail_line *line, uint32_t hop)
{
	memset(line, 0, sizeof(*line));
	line->runs.bits[0] = 1;
	line->runs.wide[0] = hop;
	count_before(&line->runs);
}

static void make_runs(struct tail_runs *tail, const struct rib_runs *runs, bool is_wide)
{
	unsigned first = 0;

	memset(tail, 0, sizeof(*tail));
	for (uint32_t i = 0; i < runs->n; i++) {
		tail->bits[first >> 6] |= 1ull << (first & 63);
		if (is_wide)
			tail->wide[i] = runs->run[i].top.hop;
		else
			tail->hop[i] = runs->run[i].top.hop;
		first = runs->run[i].last + 1;
	}
	count_before(tail);
}

static void make_flat(union tail_line *lines, const struct rib_runs *runs, bool is_wide)
{
	uint16_t *narrow = (uint16_t *)lines;
	uint32_t *wide = (uint32_t *)lines;
	unsigned slot = 0;

	for (uint32_t i = 0; i < runs->n; i++)
		for (; slot <= runs->run[i].last; slot++)
			if (is_wide)
				wide[slot] = runs->run[i].top.hop;
			else
				narrow[slot] = runs->run[i].top.hop;
}

static bool has_wide(const struct rib_runs *runs)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < runs->n; i++)
		all |= runs->run[i].top.hop;
	return all >= HOP_WIDE;
}

uint16_t tail_make(union tail_line *lines, const struct rib_runs *runs)
{
	const bool is_wide = has_wide(runs);
	const uint16_t leaf = is_wide ? LEAF_WIDE : 0;

	if (runs->n <= (is_wide ? TAIL_WIDE_RUNS : TAIL_RUNS)) {
		make_runs(&lines->runs, runs, is_wide);
		return leaf;
	}
	make_flat(lines, runs, is_wide);
	return leaf | LEAF_FLAT;
}
