// Bridge: forwards frames between the ports of a bridge by their destination MAC addresses, floods
// those to groups and unknown addresses, and tells the control thread of unknown sources. All that
// happens to frames of a port in a bridge of the configuration file. Worker.
#include "datapath/bridge_inside.h"

#include "wire/headers.h"

#include <rte_cycles.h>

// Removes frames without a whole header, cut ones, and those of impossible senders.
static void read_addresses(struct worker *w, struct frames *f, uint16_t n)
{
	const struct port_state *state = &w->states[f->in];
	const uint16_t domain = f->from->domain;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = f->mbuf[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		bytes += m->pkt_len;
		if (unlikely(m->data_len < WIRE_ETHER_BYTES)) {
			worker_drop(w, m, VERDICT_RUNT);
			continue;
		}
		f->dst[f->n] = mac_key(domain, frame);
		f->src[f->n] = mac_key(domain, frame + 6);
		if (unlikely(is_no_source(f->src[f->n])))
			worker_drop(w, m, VERDICT_BRIDGE_SOURCE);
		else if (unlikely(state->cut_bytes && datapath_is_cut(state, m)))
			worker_drop(w, m, VERDICT_FRAME_CUT);
		else
			f->mbuf[f->n++] = m;
	}
	stats_add(&w->stat->port[f->in].rx_bytes, bytes);
}

static void learn(struct worker *w, const struct frames *f)
{
	const uint32_t tick = mac_tick(f->view, f->now);
	struct mac_found source[BURST_MAX];

	if (!(f->from->flags & MAC_LEARNS) || w->trace)
		return;
	mac_lookup(f->view->slots, f->src, f->n, source);
	for (uint16_t i = 0; i < f->n; i++) {
		const struct mac_found *found = &source[i];

		if (likely(found->slot && found->port == f->in))
			mac_mark(found, tick);
		else if ((!found->slot || !found->flags) &&
			 !mac_tell(w->macs, w->io->id,
				 &(struct mac_told){.key = f->src[i], .port = f->in, .tick = tick}))
			stats_add(&w->stat->mac_learn_lost, 1);
	}
}

// Frames that are flooded come first: if an address becomes known just now, the older ones of its
// frames were looked up when it was not.
static void forward(struct worker *w, const struct frames *f)
{
	uint64_t known = 0, reserved = 0, of[MAC_STORMS] = {0};

	for (uint16_t i = 0; i < f->n; i++) {
		const uint64_t bit = 1ull << i;

		if (likely(!is_group(f->dst[i]) && f->to[i].slot))
			known |= bit;
		else if (is_reserved(f->dst[i]))
			reserved |= bit;
		else
			of[frames_kind(f->dst[i])] |= bit;
	}
	if (unlikely(reserved | of[MAC_UNKNOWN] | of[MAC_BROADCAST] | of[MAC_MULTICAST])) {
		frames_drop(w, f, reserved, VERDICT_BRIDGE_RESERVED);
		for (unsigned kind = 0; kind < MAC_STORMS; kind++)
			of[kind] = frames_pass_storm_control(w, f, of[kind], kind);
		for (unsigned kind = 0; kind < MAC_STORMS; kind++)
			frames_flood(w, f, of[kind], f->from->copies[kind], false);
	}
	frames_send_known(w, f, known);
}

// A port that has just left its bridge has no domain, though it may still be taken for one: what
// comes in by it is Linux's, if that had the bridge.
void datapath_bridge(struct worker *w, struct received *r, struct received_on_bridge *own)
{
	const struct mac_view *view = mac_live_view(w->macs);
	struct frames f;

	f.view = view;
	f.in = r->from->port;
	f.from = &view->port[f.in];
	f.n = 0;
	f.has_offloads = r->has_offloads;
	f.now = rte_rdtsc();
	f.mbuf = r->mbuf;
	own->frames.n = 0;
	if (unlikely(!f.from->domain && w->tap))
		return;
	if (f.from->flags & MAC_OF_LINUX) {
		frames_of_linux(w, &f, r, own);
		return;
	}
	read_addresses(w, &f, r->n);
	r->n = 0;
	mac_lookup(view->slots, f.dst, f.n, f.to);
	learn(w, &f);
	forward(w, &f);
}
