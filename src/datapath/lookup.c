// Lookups of a burst, which write hop[]: one bulk lookup, also if packets have several tables, of
// the packets whose flow does not give the next hop. Worker.
#include "datapath/steps.h"

void datapath_lookup4_in(const struct fib_view *table, uint64_t mask, const uint32_t addr[],
	uint32_t hop[])
{
	uint32_t dense[BURST_MAX], found[BURST_MAX];
	uint64_t rest = mask;
	unsigned n = 0;

	if (!mask)
		return;
	do
		dense[n++] = addr[__builtin_ctzll(rest)];
	while (rest &= rest - 1);
	fib_lookup4(table, dense, found, n);
	for (n = 0; mask; mask &= mask - 1)
		hop[__builtin_ctzll(mask)] = found[n++];
}

void datapath_lookup4_each(const struct burst *b, uint64_t mask, const uint32_t addr[],
	uint32_t hop[])
{
	uint32_t dense[BURST_MAX], found[BURST_MAX];
	uint16_t vrf[BURST_MAX];
	uint64_t rest = mask;
	unsigned n = 0;

	if (!mask)
		return; // an earlier step has removed the packets
	do {
		vrf[n] = burst_vrf(b, __builtin_ctzll(rest));
		dense[n++] = addr[__builtin_ctzll(rest)];
	} while (rest &= rest - 1);
	fib_lookup4_mixed(b->view, vrf, dense, found, n);
	for (n = 0; mask; mask &= mask - 1)
		hop[__builtin_ctzll(mask)] = found[n++];
}

void datapath_lookup6_each(const struct burst *b, uint64_t mask, const struct fib_key6 addr[],
	uint32_t hop[])
{
	struct fib_key6 dense[BURST_MAX];
	uint32_t found[BURST_MAX];
	uint16_t vrf[BURST_MAX];
	uint64_t rest = mask;
	unsigned n = 0;

	if (!mask)
		return; // an earlier step has removed the packets
	do {
		vrf[n] = burst_vrf(b, __builtin_ctzll(rest));
		dense[n++] = addr[__builtin_ctzll(rest)];
	} while (rest &= rest - 1);
	fib_lookup6_mixed(b->view, vrf, dense, found, n);
	for (n = 0; mask; mask &= mask - 1)
		hop[__builtin_ctzll(mask)] = found[n++];
}

static __attribute__((noinline)) void look_up_each(struct burst *b)
{
	if (b->is_ip6)
		fib_lookup6_mixed(b->view, b->vrf, b->dst6, b->hop, b->n);
	else
		fib_lookup4_mixed(b->view, b->vrf, b->dst4, b->hop, b->n);
}

// Some flows gave the next hop.
static __attribute__((noinline)) void look_up_rest(struct burst *b)
{
	const uint64_t rest = burst_all(b) & ~b->flow_hop_mask;

	if (!rest)
		return;
	if (b->is_ip6)
		datapath_lookup6_each(b, rest, b->dst6, b->hop);
	else if (b->has_one_vrf)
		datapath_lookup4_in(burst_table(b, b->vrf[0]), rest, b->dst4, b->hop);
	else
		datapath_lookup4_each(b, rest, b->dst4, b->hop);
}

void datapath_lookup(struct worker *w, struct burst *b)
{
	if (unlikely(b->flow_hop_mask))
		look_up_rest(b);
	else if (unlikely(!b->has_one_vrf))
		look_up_each(b);
	else if (b->is_ip6)
		fib_lookup6(burst_table(b, b->vrf[0]), b->dst6, b->hop, b->n);
	else
		fib_lookup4(burst_table(b, b->vrf[0]), b->dst4, b->hop, b->n);
}

// With many routes, all of IPv4 is looked up while the flows are: which packets need it is known
// too late.
void datapath_lookup_begin(struct worker *w, struct poll *p)
{
	struct burst *b = &p->ip4;
	const struct fib_view *table = burst_table(b, b->vrf[0]);

	if (p->flows)
		datapath_match_begin(w, p);
	p->lookup_started =
		b->n && b->has_one_vrf && table->begin4 && (!p->flows || fib_waits4(b->view));
	if (!p->lookup_started)
		return;
	p->lookup.n = b->n;
	fib_lookup4_begin(table, b->dst4, b->hop, &p->lookup);
}

void datapath_lookup_continue(struct worker *w, struct poll *p)
{
	if (p->flows)
		datapath_match_continue(w, p);
	if (p->lookup_started)
		fib_lookup4_continue(burst_table(&p->ip4, p->ip4.vrf[0]), p->ip4.hop, &p->lookup);
}

void datapath_lookup_end(struct worker *w, struct poll *p)
{
	struct burst *b = &p->ip4;

	if (p->lookup_started)
		fib_lookup4_end(burst_table(b, b->vrf[0]), b->dst4, b->hop, &p->lookup);
	if (p->flows)
		datapath_match_end(w, p);
	if (!p->lookup_started && b->n)
		datapath_lookup(w, b);
	if (p->ip6.n)
		datapath_lookup(w, &p->ip6);
}
