// Reverse path filter (RFC 3704, 2.2 and 2.4): a packet passes if the route to its source leads to
// its input interface (strict), or if there is one (loose). IPv4: rp_filter of Linux, see
// __fib_validate_source in net/ipv4/fib_frontend.c; IPv6: key `rpf6` of the port. Only packets that
// would be forwarded are checked here: of IPv4, Linux checks those that it gets. Worker.
#include "datapath/judge.h"
#include "datapath/parse.h"

static struct fib_key6 source6(const uint8_t *frame)
{
	return (struct fib_key6){rte_be_to_cpu_64(load64(frame + 22)),
		rte_be_to_cpu_64(load64(frame + 30))};
}

static void look_up4(const struct burst *b, uint64_t checked, uint32_t hop[])
{
	uint32_t source[BURST_MAX] LINE_ALIGNED;

	for (unsigned i = 0; i < b->n; i++)
		source[i] = source4(b->frame[i]);
	if (likely(checked == burst_all(b) && b->has_one_vrf))
		fib_lookup4(burst_table(b, b->vrf[0]), source, hop, b->n);
	else
		datapath_lookup4_each(b, checked, source, hop);
}

static void look_up6(const struct burst *b, uint64_t checked, uint32_t hop[])
{
	struct fib_key6 source[BURST_MAX] LINE_ALIGNED;

	for (unsigned i = 0; i < b->n; i++)
		source[i] = source6(b->frame[i]);
	if (likely(checked == burst_all(b) && b->has_one_vrf))
		fib_lookup6(burst_table(b, b->vrf[0]), source, hop, b->n);
	else
		datapath_lookup6_each(b, checked, source, hop);
}

// Whether a route with a single next hop leads to the input interface (strict) or to any (loose).
static inline bool is_reached(const struct burst *b, unsigned i, uint32_t hop)
{
	const uint16_t oif = fib_oif_load(b->view, hop);

	return b->strict_mask >> i & 1 ? oif == burst_iif(b, i) : oif != FIB_NO_OIF;
}

// Returns a bit for each packet in `checked` whose source is not simply reached.
static uint64_t find_suspects(const struct burst *b, uint64_t checked, const uint32_t hop[])
{
	uint64_t suspects = 0;

	for (uint64_t rest = checked; rest; rest &= rest - 1) {
		const unsigned i = __builtin_ctzll(rest);

		suspects |= (uint64_t)!is_reached(b, i, hop[i]) << i;
	}
	return suspects;
}

// Any member of a group counts.
static enum verdict decide_group(const struct burst *b, uint16_t i,
	const struct fib_hop_entry *group)
{
	bool is_known, found;

	if (!(b->strict_mask >> i & 1))
		return VERDICT_FORWARD;
	found = fib_group_leads_to(b->view, group, burst_iif(b, i), &is_known);
	if (found)
		return VERDICT_FORWARD;
	if (is_known)
		return VERDICT_RPF_FAILED;
	return b->is_ip6 ? VERDICT_FORWARD : VERDICT_LINUX;
}

// Linux decides about sources with routes that only it knows, and about its own addresses
// (accept_local).
static enum verdict decide4(uint8_t source_verdict)
{
	switch (source_verdict) {
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

// Linux does not check IPv6 sources, so nothing is left to it: a route that only Linux knows is
// taken as one that leads anywhere.
static enum verdict decide6(uint8_t source_verdict)
{
	switch (source_verdict) {
	case VERDICT_LINUX:
	case VERDICT_NOT_SYNCED:
		return VERDICT_FORWARD;
	}
	return VERDICT_RPF_FAILED;
}

// Where the table of a VRF has no route, not even an unreachable one, Linux goes on with the main
// table.
static uint32_t go_on(const struct burst *b, uint16_t i, uint32_t hop)
{
	if (!burst_vrf(b, i) || fib_verdict_load(b->view, hop) != VERDICT_NO_ROUTE)
		return hop;
	if (b->is_ip6)
		fib_lookup6(b->view, (struct fib_key6[]){source6(b->frame[i])}, &hop, 1);
	else
		fib_lookup4(b->view, (uint32_t[]){source4(b->frame[i])}, &hop, 1);
	return hop;
}

// A packet whose source is not simply reached; `hop` is that of the route to it.
static enum verdict decide(const struct burst *b, uint16_t i, uint32_t hop)
{
	const struct fib_hop_entry entry = fib_hop_load(&b->view->hops[hop]);
	const uint8_t verdict = fib_entry_verdict(&entry);

	if (is_reached(b, i, hop)) // in the main table
		return VERDICT_FORWARD;
	if (entry.kind == FIB_HOP_GROUP)
		return decide_group(b, i, &entry);
	if (judge_leaves(verdict))
		return VERDICT_RPF_FAILED;
	return b->is_ip6 ? decide6(verdict) : decide4(verdict);
}

// Of IPv6 also what Linux forwards: it does not check it.
static bool is_transit(const struct burst *b, uint16_t i)
{
	const uint8_t verdict = fib_verdict_load(b->view, b->hop[i]);

	return judge_leaves(verdict) ||
	       (b->is_ip6 && (verdict == VERDICT_LINUX || verdict == VERDICT_NOT_SYNCED));
}

static __attribute__((noinline)) void drop_suspects(struct worker *w, struct burst *b,
	uint64_t suspects, const uint32_t hop[])
{
	uint64_t kept = burst_all(b);

	for (; suspects; suspects &= suspects - 1) {
		const uint16_t i = __builtin_ctzll(suspects);
		enum verdict verdict = VERDICT_FORWARD;

		if (is_transit(b, i))
			verdict = decide(b, i, go_on(b, i, hop[i]));
		if (verdict == VERDICT_FORWARD)
			continue;
		burst_drop(w, b, i, verdict);
		kept &= ~(1ull << i);
	}
	burst_keep(b, kept);
}

void datapath_rpf(struct worker *w, struct burst *b)
{
	const uint64_t linuxs = b->is_ip6 ? 0 : b->linux_mask;
	const uint64_t checked = (b->strict_mask | b->loose_mask) & ~linuxs & burst_all(b);
	uint32_t hop[BURST_MAX] LINE_ALIGNED;

	if (!checked)
		return;
	if (b->is_ip6)
		look_up6(b, checked, hop);
	else
		look_up4(b, checked, hop);
	uint64_t suspects = find_suspects(b, checked, hop);
	if (unlikely(suspects))
		drop_suspects(w, b, suspects, hop);
}
