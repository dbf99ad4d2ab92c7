// Reverse path filter (RFC 3704, 2.2 and 2.4): a packet passes if the route to its source leads to
// its input interface (strict), or if there is one (loose); rp_filter in Linux, see
// __fib_validate_source in net/ipv4/fib_frontend.c. Only packets that would be forwarded are
// checked here: Linux checks those that it gets. Called only for bursts with such packets. Worker.
#include "datapath/parse.h"

static uint8_t verdict_of(const struct fib_view *view, uint16_t hop)
{
	return fib_hop_load(&view->hops[hop]).verdict;
}

// Whether a packet with this hop leaves, or waits for a neighbour to do so.
static bool would_leave(const struct fib_view *view, uint16_t hop)
{
	switch (verdict_of(view, hop)) {
	case VERDICT_FORWARD:
	case VERDICT_NEIGHBOUR_UNRESOLVED:
	case FIB_VERDICT_TAGGED:
	case FIB_VERDICT_GROUP:
		return true;
	}
	return false;
}

// Writes the hop of the route to the source of each packet in `checked`.
static void look_up_sources(const struct burst *b, uint64_t checked, uint16_t hop[])
{
	uint32_t source[BURST_MAX] LINE_ALIGNED;

	for (unsigned i = 0; i < b->n; i++)
		source[i] = source4(b->frame[i]);
	if (likely(checked == burst_all(b) && b->has_one_vrf))
		fib_lookup4(burst_table(b, b->vrf[0]), source, hop, b->n);
	else
		datapath_lookup4_each(b, checked, source, hop);
}

// Returns a bit for each packet in `checked` whose source is not simply reached by its input
// interface (strict) or by any (loose).
static uint64_t find_suspects(const struct burst *b, uint64_t checked, const uint16_t hop[])
{
	uint64_t suspects = 0;

	for (uint64_t rest = checked; rest; rest &= rest - 1) {
		const unsigned i = __builtin_ctzll(rest);
		const uint16_t oif = fib_oif_load(b->view, hop[i]);
		const bool is_strict = b->strict_mask >> i & 1;
		const bool passes = is_strict ? oif == burst_iif(b, i) : oif != FIB_NO_OIF;

		suspects |= (uint64_t)!passes << i;
	}
	return suspects;
}

// Any member of a group counts.
static enum verdict judge_group(const struct burst *b, uint16_t i,
	const struct fib_hop_entry *group)
{
	bool is_known, found;

	if (!(b->strict_mask >> i & 1))
		return VERDICT_FORWARD;
	found = fib_group_leads_to(b->view, group, burst_iif(b, i), &is_known);
	if (found)
		return VERDICT_FORWARD;
	return is_known ? VERDICT_RPF_FAILED : VERDICT_LINUX;
}

// A packet whose source is not simply reached. `hop` is that of the route to it. Linux decides
// about sources with routes that only it knows, and about its own addresses (accept_local).
static enum verdict judge(const struct burst *b, uint16_t i, uint16_t hop)
{
	const struct fib_hop_entry entry = fib_hop_load(&b->view->hops[hop]);

	switch (entry.verdict) {
	case FIB_VERDICT_GROUP:
		return judge_group(b, i, &entry);
	case VERDICT_FORWARD:
	case VERDICT_NEIGHBOUR_UNRESOLVED:
	case FIB_VERDICT_TAGGED:
	case VERDICT_NO_ROUTE:
	case VERDICT_BLACKHOLE:
	case VERDICT_UNREACHABLE:
	case VERDICT_PROHIBIT:
		return VERDICT_RPF_FAILED;
	case VERDICT_NOT_SYNCED:
		return VERDICT_NOT_SYNCED;
	}
	return VERDICT_LINUX;
}

static __attribute__((noinline)) void drop_suspects(struct worker *w, struct burst *b,
	uint64_t suspects, const uint16_t hop[])
{
	uint64_t kept = burst_all(b);

	for (; suspects; suspects &= suspects - 1) {
		const uint16_t i = __builtin_ctzll(suspects);
		enum verdict verdict = VERDICT_FORWARD;

		if (would_leave(b->view, b->hop[i]))
			verdict = judge(b, i, hop[i]);
		if (verdict == VERDICT_FORWARD)
			continue;
		burst_drop(w, b, i, verdict);
		kept &= ~(1ull << i);
	}
	burst_keep(b, kept);
}

void datapath_rpf(struct worker *w, struct burst *b)
{
	const uint64_t checked = (b->strict_mask | b->loose_mask) & ~b->linux_mask & burst_all(b);
	uint16_t hop[BURST_MAX] LINE_ALIGNED;

	if (!checked)
		return;
	look_up_sources(b, checked, hop);
	uint64_t suspects = find_suspects(b, checked, hop);
	if (unlikely(suspects))
		drop_suspects(w, b, suspects, hop);
}
