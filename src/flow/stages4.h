// The stages of the IPv4 lookup, around a probe of one line. Worker.
#pragma once

#include "flow/line.h"
#include "flow/lookup.h"

#include <rte_prefetch.h>

// What a line says about a key. Only valid if it did not change while it was read.
struct probe4 {
	uint32_t flow, action; // flow 0: not found
	uint32_t state;
	bool is_sure;
};
typedef struct probe4 probe4_fn(const struct line4 *line, const struct flow_key4 *key);

// Fetches the second lines of what was not found, and the counters of what was.
static inline __attribute__((always_inline)) void fetch4(const struct flow_view *view,
	const struct flow_lookup *lookup)
{
	const struct line4 *lines = view->lines4;

	for (uint64_t left = lookup->missed; left; left &= left - 1)
		rte_prefetch1(&lines[lookup->line[1][__builtin_ctzll(left)]]);
	for (unsigned i = 0; lookup->count && i < lookup->n; i++)
		rte_prefetch1(&lookup->count[lookup->flow[i]]);
}

static inline __attribute__((always_inline)) void continue4(const struct flow_view *view,
	const struct flow_key4 key[], struct flow_lookup *lookup, probe4_fn *probe_line)
{
	const struct line4 *lines = view->lines4;
	const unsigned n = lookup->n;
	uint64_t missed = 0, unsure = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct probe4 probe = probe_line(&lines[lookup->line[0][i]], &key[i]);

		lookup->flow[i] = probe.flow;
		lookup->action[i] = probe.action;
		lookup->seen[i] = probe.state;
		missed |= (uint64_t)!probe.flow << i;
		unsure |= (uint64_t)!probe.is_sure << i;
	}
	lookup->missed = missed;
	lookup->unsure = unsure;
	fetch4(view, lookup);
}

static __attribute__((noinline)) void resolve4(const struct flow_view *view,
	const struct flow_key4 key[], struct flow_lookup *lookup)
{
	for (uint64_t left = lookup->unsure; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		uint64_t hash;

		view->hash4(view, &key[i], &hash, 1);
		lookup->flow[i] = line4_find(view, &key[i], hash, &lookup->action[i]);
	}
}

// As in line4_find(): what is in neither line is not in the table if the first one has not changed
// since it was read.
static inline __attribute__((always_inline)) void end4(const struct flow_view *view,
	const struct flow_key4 key[], struct flow_lookup *lookup, probe4_fn *probe_line)
{
	const struct line4 *lines = view->lines4;

	for (uint64_t left = lookup->missed; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		const struct probe4 probe = probe_line(&lines[lookup->line[1][i]], &key[i]);
		const bool is_sure = probe.is_sure &&
		                     (probe.flow || state_load(&lines[lookup->line[0][i]].state) ==
							    lookup->seen[i]);

		lookup->flow[i] = probe.flow;
		lookup->action[i] = probe.action;
		lookup->unsure |= (uint64_t)!is_sure << i;
		if (lookup->count)
			rte_prefetch1(&lookup->count[probe.flow]);
	}
	if (unlikely(lookup->unsure))
		resolve4(view, key, lookup);
}
