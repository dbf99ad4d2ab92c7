// Removes packets from a burst; poisons bursts. Worker.
#include "datapath/burst.h"

#include <string.h>

// As a pointer it is not canonical; as a hop id it is beyond the last one.
enum { POISON = 0xa5 };

void burst_poison(struct burst *b)
{
	memset(b, POISON, sizeof(*b));
}

// Moves packet `from` to index `to`, in each array. Values that are the same for all packets stay
// where they are.
static void move(struct burst *b, uint16_t to, uint16_t from)
{
	b->mbuf[to] = b->mbuf[from];
	b->frame[to] = b->frame[from];
	if (b->is_ip6)
		b->dst6[to] = b->dst6[from];
	else
		b->dst4[to] = b->dst4[from];
	b->length[to] = b->length[from];
	b->ttl[to] = b->ttl[from];
	b->hop[to] = b->hop[from];
	if (!b->has_one_port)
		b->port[to] = b->port[from];
	if (!b->has_one_iif)
		b->iif[to] = b->iif[from];
	if (!b->has_one_vrf)
		b->vrf[to] = b->vrf[from];
	if (b->flow_mask) {
		b->flow[to] = b->flow[from];
		b->action[to] = b->action[from];
	}
	if (b->mirror_mask)
		b->mirror[to] = b->mirror[from];
	if (b->mark_mask)
		b->dscp[to] = b->dscp[from];
	if (b->priority_mask)
		b->priority[to] = b->priority[from];
	if (b->tag_mask)
		b->tag[to] = b->tag[from];
	if (b->has & BURST_REMOTES)
		b->remote[to] = b->remote[from];
}

// Moves the bits of `bits` that are set in `mask` to the lowest positions.
static uint64_t squeeze(uint64_t bits, uint64_t mask)
{
	uint64_t squeezed = 0;

	for (unsigned to = 0; mask; mask &= mask - 1, to++)
		squeezed |= (bits >> __builtin_ctzll(mask) & 1) << to;
	return squeezed;
}

void burst_keep(struct burst *b, uint64_t mask)
{
	const uint64_t kept = mask & burst_all(b);
	uint16_t n = 0;

	if (kept == burst_all(b))
		return;
	if (!kept)
		b->has = 0;
	for (uint64_t rest = kept; rest; rest &= rest - 1)
		move(b, n++, __builtin_ctzll(rest));
	b->own_source_mask = squeeze(b->own_source_mask, kept);
	b->linux_mask = squeeze(b->linux_mask, kept);
	b->redirect_mask = squeeze(b->redirect_mask, kept);
	b->discovery_mask = squeeze(b->discovery_mask, kept);
	b->strict_mask = squeeze(b->strict_mask, kept);
	b->loose_mask = squeeze(b->loose_mask, kept);
	b->fragment_mask = squeeze(b->fragment_mask, kept);
	b->template_mask = squeeze(b->template_mask, kept);
	b->flow_mask = squeeze(b->flow_mask, kept);
	b->flow_hop_mask = squeeze(b->flow_hop_mask, kept);
	b->mark_mask = squeeze(b->mark_mask, kept);
	b->mirror_mask = squeeze(b->mirror_mask, kept);
	b->priority_mask = squeeze(b->priority_mask, kept);
	b->tag_mask = squeeze(b->tag_mask, kept);
	b->shape_mask = squeeze(b->shape_mask, kept);
	if (b->has & BURST_REMOTES)
		b->remote_mask = squeeze(b->remote_mask, kept);
	b->n = n;
}
