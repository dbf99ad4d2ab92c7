// The stages of the IPv6 lookup, around a probe of one line. Worker.
#pragma once

#include "flow/line.h"
#include "flow/lookup.h"

#include <rte_prefetch.h>

// The first record with this tag, 0: none. What a record says is true by itself, since its key is
// compared and it is reused only after a grace period; that there is none is true only if the line
// did not change while it was read.
struct probe6 {
	uint32_t record;
	uint32_t state;
	bool is_sure;
};
typedef struct probe6 probe6_fn(const struct line6 *line, uint16_t tag);

static inline void fetch_found6(const struct flow_view *view, const struct flow_lookup *lookup,
	uint32_t record)
{
	rte_prefetch1((const struct record6 *)view->records6 + record);
	if (lookup->count)
		rte_prefetch1(&lookup->count[view->first6 + record]);
}

static inline __attribute__((always_inline)) void continue6(const struct flow_view *view,
	struct flow_lookup *lookup, probe6_fn *probe_line)
{
	const struct line6 *lines = view->lines6;

	lookup->missed = lookup->unsure = 0;
	for (unsigned i = 0; i < lookup->n; i++) {
		struct probe6 probe = probe_line(&lines[lookup->line[0][i]], lookup->tag[i]);

		lookup->seen[i] = probe.state;
		lookup->record[i] = probe.record;
		lookup->missed |= (uint64_t)!probe.record << i;
		lookup->unsure |= (uint64_t)(!probe.record && !probe.is_sure) << i;
		if (probe.record)
			fetch_found6(view, lookup, probe.record);
		else
			rte_prefetch1(&lines[lookup->line[1][i]]);
	}
}

static __attribute__((noinline)) void resolve6(const struct flow_view *view,
	const struct flow_key6 key[], struct flow_lookup *lookup)
{
	for (uint64_t left = lookup->unsure; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		uint64_t hash;

		view->hash6(view, &key[i], &hash, 1);
		lookup->flow[i] = line6_find(view, &key[i], hash, &lookup->action[i]);
	}
}

// The second line of those that were not found in the first one.
static inline __attribute__((always_inline)) void probe_second6(const struct flow_view *view,
	struct flow_lookup *lookup, probe6_fn *probe_line)
{
	const struct line6 *lines = view->lines6;

	for (uint64_t left = lookup->missed; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		struct probe6 probe = probe_line(&lines[lookup->line[1][i]], lookup->tag[i]);

		probe.is_sure &= state_load(&lines[lookup->line[0][i]].state) == lookup->seen[i];
		lookup->record[i] = probe.record;
		if (probe.record)
			fetch_found6(view, lookup, probe.record);
		else
			lookup->unsure |= (uint64_t)!probe.is_sure << i;
	}
}

static inline __attribute__((always_inline)) void end6(const struct flow_view *view,
	const struct flow_key6 key[], struct flow_lookup *lookup, probe6_fn *probe_line)
{
	const struct record6 *records = view->records6;

	probe_second6(view, lookup, probe_line);
	for (unsigned i = 0; i < lookup->n; i++) {
		const struct record6 *record = &records[lookup->record[i]];

		lookup->flow[i] = lookup->record[i] ? view->first6 + lookup->record[i] : FLOW_NONE;
		lookup->action[i] = __atomic_load_n(&record->action, __ATOMIC_ACQUIRE);
		// Another key with the same tag.
		if (lookup->record[i] && unlikely(!key6_equal(&record->key, &key[i])))
			lookup->unsure |= (uint64_t)1 << i;
	}
	if (unlikely(lookup->unsure))
		resolve6(view, key, lookup);
}
