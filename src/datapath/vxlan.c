// Writes the headers of VXLAN in front of packets that were routed to a bridge, or a VXLAN device,
// and whose next hop is behind a remote end; bridge_out has found that, and that they can be sent.
// Called only for bursts with such packets, after their own MAC addresses were written. Worker.
#include "datapath/vxlan.h"

#include "datapath/steps.h"

void datapath_vxlan(struct worker *w, struct burst *b)
{
	uint64_t kept = burst_all(b);

	for (uint64_t rest = b->remote_mask & kept; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);
		struct rte_mbuf *m = b->mbuf[i];
		const struct vxlan_frame frame = {m, m->pkt_len};
		struct vxlan_way way;
		const enum verdict verdict =
			vxlan_find_way(w, &frame, mac_live_remote(w->macs, b->remote[i]), &way);

		if (unlikely(verdict != VERDICT_FORWARD)) {
			worker_drop(w, m, verdict);
			kept &= ~(1ull << i);
			continue;
		}
		vxlan_write(w, &way, m);
		b->frame[i] = rte_pktmbuf_mtod(m, uint8_t *);
		b->length[i] = m->pkt_len;
		b->port[i] = way.port;
	}
	burst_keep(b, kept);
}
