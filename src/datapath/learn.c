// Tells the control thread of packets without a flow that are forwarded by route, so that it may
// learn flows from them (flow/learn.c). Runs when nothing can stop them any more, so that packets
// that routing or access lists refuse give no flows. Worker.
#include "datapath/steps.h"

#include <rte_cycles.h>

// Packets of interfaces and VRFs that have as many learnt flows as they may: telling of them would
// take the place of others.
static uint64_t find_over(struct worker *w, const struct burst *b, uint64_t mask)
{
	uint64_t over = 0;

	for (; mask; mask &= mask - 1) {
		const uint16_t i = __builtin_ctzll(mask);

		over |= (uint64_t)flow_learn_is_over(w->learn, burst_iif(b, i), burst_vrf(b, i))
		        << i;
	}
	if (over)
		stats_add(&w->stat->flow_learn_over, __builtin_popcountll(over));
	return over;
}

void datapath_learn_from(struct worker *w, const struct burst *b, uint64_t mask)
{
	const struct flow_learn_from from = {.worker = w->io->id,
		.tick = flow_tick(w->flows, rte_rdtsc())};
	struct flow_unknown unknown[BURST_MAX];
	unsigned n = 0;

	mask &= ~find_over(w, b, mask);
	if (!mask)
		return;
	if (!flow_learn_has_space(w->learn, from.worker, from.tick)) {
		stats_add(&w->stat->flow_learn_lost, __builtin_popcountll(mask));
		return;
	}
	for (; mask; mask &= mask - 1) {
		const uint16_t i = __builtin_ctzll(mask);

		unknown[n].hop = datapath_ecmp_hop(b, i);
		unknown[n].iface = burst_iif(b, i);
		n += datapath_match_key(b, i, &unknown[n]);
	}
	stats_add(&w->stat->flow_learn_lost, flow_learn_put(w->flows, w->learn, &from, unknown, n));
}

void datapath_learn(struct worker *w, struct burst *b)
{
	const uint64_t mask = burst_all(b) & ~b->flow_mask;

	if (mask)
		datapath_learn_from(w, b, mask);
}
