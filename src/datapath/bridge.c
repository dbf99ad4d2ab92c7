// Bridge: forwards frames between the ports of a bridge by their destination MAC addresses, floods
// those to groups and unknown addresses, and tells the control thread of unknown sources. All that
// happens to frames of a port in a bridge of the configuration file. Worker.
#include "datapath/bridge_inside.h"

#include "wire/headers.h"

#include <rte_cycles.h>
#include <string.h>

// Removes frames without a whole header, cut ones, and those of impossible senders.
static void read_addresses(struct worker *w, struct frames *f, uint16_t n)
{
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
		if (unlikely(is_no_source(f->src[f->n]))) {
			worker_drop(w, m, VERDICT_BRIDGE_SOURCE);
			continue;
		}
		if (unlikely(frames_is_cut(w, f, i))) {
			worker_drop(w, m, VERDICT_FRAME_CUT);
			continue;
		}
		if (unlikely(frames_are_remote(f)))
			memmove(f->end[f->n], f->end[i], sizeof(f->end[i]));
		f->mbuf[f->n++] = m;
	}
	frames_count(w, f, bytes);
}

bool frames_know_sender(const struct worker *w, const struct frames *f, uint16_t i,
	const struct mac_found *source)
{
	if (!source->slot || frames_member(w, source) != f->in)
		return false;
	if (likely(!frames_are_remote(f)) || !(f->from->flags & MAC_LEARNS_REMOTES) ||
		source->flags & MAC_STATIC)
		return true;
	const struct fib_view *view = fib_live_view(w->live);
	const struct mac_remote *remote = mac_live_remote(w->macs, source->port);

	return source->flags & MAC_REMOTE &&
	       !memcmp(view->overlay->vtep[remote->vtep].addr, f->end[i], sizeof(f->end[i]));
}

void frames_tell(struct worker *w, const struct frames *f, uint16_t i)
{
	struct mac_told told = {.key = f->src[i], .port = f->in, .tick = mac_tick(f->view, f->now)};

	if (unlikely(frames_are_remote(f))) {
		told.family = f->end_family;
		memcpy(told.end, f->end[i], sizeof(told.end));
	}
	if (!mac_tell(w->macs, w->io->id, &told))
		stats_add(&w->stat->mac_learn_lost, 1);
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

		if (likely(frames_know_sender(w, f, i, found)))
			mac_mark(found, tick);
		else if (!found->slot || !(found->flags & ~MAC_REMOTE))
			frames_tell(w, f, i);
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
			frames_flood(w, f, of[kind],
				&(struct flood_to){.ports = f->from->copies[kind], .kind = kind});
	}
	frames_send_known(w, f, known);
}

void frames_bridge(struct worker *w, struct frames *f, struct received *r,
	struct received_on_bridge *own)
{
	if (f->from->flags & MAC_OF_LINUX) {
		frames_of_linux(w, f, r, own);
		return;
	}
	read_addresses(w, f, r->n);
	r->n = 0;
	mac_lookup(f->view->slots, f->dst, f->n, f->to);
	learn(w, f);
	forward(w, f);
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
	frames_bridge(w, &f, r, own);
}
