// Packets from our own addresses: Linux considers them forged and drops them unless accept_local is
// set on the input interface (fib_validate_source in net/ipv4/fib_frontend.c), so they are punted
// to it. IPv6 is not checked, since Linux does not check its sources. Worker.
#include "datapath/parse.h"

// Places of packets in the burst and their sources.
struct asked {
	uint16_t n;
	uint8_t place[BURST_MAX];
	uint32_t source[BURST_MAX];
};

static void ask_for(struct asked *asked, const struct burst *b)
{
	asked->n = 0;
	for (uint64_t rest = b->own_source_mask; rest; rest &= rest - 1) {
		uint8_t i = __builtin_ctzll(rest);

		asked->place[asked->n] = i;
		asked->source[asked->n++] = source4(b->frame[i]);
	}
}

static uint8_t verdict_of(const struct fib_view *view, uint16_t hop)
{
	return fib_hop_load(&view->hops[hop]).verdict;
}

// Returns a bit for each packet whose source is local in a table.
static uint64_t find_local(const struct fib_view *view, const struct asked *asked)
{
	uint16_t hop[BURST_MAX];
	uint64_t found = 0;

	fib_lookup4(view, asked->source, hop, asked->n);
	for (uint16_t i = 0; i < asked->n; i++)
		found |= (uint64_t)(verdict_of(view, hop[i]) == VERDICT_LOCAL) << asked->place[i];
	return found;
}

// In a VRF, addresses of the main table count too: Linux looks up local addresses before VRFs.
// (Where that order has been changed, Linux forwards such packets itself.)
static uint64_t find_ours(const struct fib_view *view, const struct burst *b)
{
	const bool is_main = !view->root4;
	struct asked asked;

	ask_for(&asked, b);
	uint64_t ours = find_local(view, &asked);
	return is_main ? ours : ours | find_local(view->vrfs, &asked);
}

// All other verdicts are left to check.
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

static void drop(struct worker *w, const struct fib_view *view, struct burst *b, uint64_t ours)
{
	const enum verdict verdict = w->tap ? VERDICT_OWN_SOURCE : VERDICT_MARTIAN_SOURCE;
	uint64_t kept = burst_all(b);

	for (; ours; ours &= ours - 1) {
		uint16_t i = __builtin_ctzll(ours);

		if (!would_leave(view, b->hop[i]))
			continue;
		burst_drop(w, b, i, verdict);
		kept &= ~(1ull << i);
	}
	burst_keep(b, kept);
}

__attribute__((noinline)) void datapath_source(struct worker *w, const struct fib_view *view,
	struct burst *b)
{
	bool passes = __atomic_load_n(&w->states[b->in_port].pass_martians, __ATOMIC_RELAXED);

	if (passes || b->for_linux)
		return;
	uint64_t ours = find_ours(view, b);
	if (ours)
		drop(w, view, b, ours);
}
