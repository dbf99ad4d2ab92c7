// Packets from our own addresses: Linux considers them forged and drops them unless accept_local is
// set on the input interface (fib_validate_source in net/ipv4/fib_frontend.c), so they are punted
// to it. IPv6 is not checked, since Linux does not check its sources. Worker.
#include "datapath/judge.h"
#include "datapath/parse.h"

// Returns a bit for each of the packets in `mask` whose hop is local.
static uint64_t find_local(const struct fib_view *view, uint64_t mask, const uint32_t hop[])
{
	uint64_t found = 0;

	for (; mask; mask &= mask - 1) {
		unsigned i = __builtin_ctzll(mask);

		found |= (uint64_t)(fib_verdict_load(view, hop[i]) == VERDICT_LOCAL) << i;
	}
	return found;
}

// In a VRF, addresses of the main table count too: Linux looks up local addresses before VRFs.
// (Where that order has been changed, Linux forwards such packets itself.)
static uint64_t find_ours(const struct burst *b, uint64_t mask)
{
	const bool is_main = b->has_one_vrf && !b->vrf[0];
	uint32_t source[BURST_MAX] = {0};
	uint32_t hop[BURST_MAX];

	for (uint64_t rest = mask; rest; rest &= rest - 1)
		source[__builtin_ctzll(rest)] = source4(b->frame[__builtin_ctzll(rest)]);
	datapath_lookup4_each(b, mask, source, hop);
	uint64_t ours = find_local(b->view, mask, hop);
	if (is_main)
		return ours;
	datapath_lookup4_in(b->view, mask & ~ours, source, hop);
	return ours | find_local(b->view, mask & ~ours, hop);
}

__attribute__((noinline)) void datapath_source(struct worker *w, struct burst *b)
{
	const enum verdict verdict = w->tap ? VERDICT_OWN_SOURCE : VERDICT_MARTIAN_SOURCE;
	uint64_t kept = burst_all(b);

	for (uint64_t ours = find_ours(b, b->own_source_mask); ours; ours &= ours - 1) {
		uint16_t i = __builtin_ctzll(ours);

		if (!judge_leaves(fib_verdict_load(b->view, b->hop[i])))
			continue; // left to check
		burst_drop(w, b, i, verdict);
		kept &= ~(1ull << i);
	}
	burst_keep(b, kept);
}
