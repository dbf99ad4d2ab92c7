// A port tied to another: frames go out as they came, or with MAC addresses rewritten as l2fwd
// does. Lane.
#include "path/steps.h"

#include "wire/headers.h"

#include <string.h>

static void update_macs(const struct port_face *out, uint8_t port, struct rte_mbuf *const mbuf[],
	uint16_t n)
{
	uint8_t macs[12] = {0x02, 0, 0, 0, 0, port};

	if (out->has_peer)
		memcpy(macs, out->peer, sizeof(out->peer));
	memcpy(macs + 6, out->mac, sizeof(out->mac));
	for (uint16_t i = 0; i < n; i++)
		memcpy(rte_pktmbuf_mtod(mbuf[i], uint8_t *), macs, sizeof(macs));
}

// Frames without a whole Ethernet header, or in more segments than the other device takes, stay
// behind.
static __attribute__((noinline)) uint16_t keep_sendable(struct worker *w,
	const struct port_face *out, struct rte_mbuf *mbuf[], uint16_t n, uint64_t *bytes)
{
	uint16_t alive = 0;

	*bytes = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (rarely(mbuf[i]->data_len < WIRE_ETHER_BYTES))
			burst_drop(w, mbuf[i], VERDICT_RUNT);
		else if (rarely(mbuf[i]->nb_segs > 1 && !out->tx_multi_segment))
			burst_drop(w, mbuf[i], VERDICT_MULTI_SEGMENT);
		else {
			*bytes += mbuf[i]->pkt_len;
			mbuf[alive++] = mbuf[i];
		}
	}
	return alive;
}

void path_xconnect(struct worker *w, const struct received *r)
{
	const struct port_face *face = &w->faces[r->from->port], *out = &w->faces[face->xconnect];
	uint64_t bytes = 0;
	uint16_t n = r->n;
	bool is_odd = false;

	for (uint16_t i = 0; i < n; i++) {
		const struct rte_mbuf *m = r->mbuf[i];

		bytes += m->pkt_len;
		is_odd |= (m->data_len != m->pkt_len) | (m->data_len < WIRE_ETHER_BYTES);
	}
	stat_add(&w->stat->port[r->from->port].rx_bytes, bytes);
	if (rarely(is_odd))
		n = keep_sendable(w, out, r->mbuf, n, &bytes);
	if (face->mac_update)
		update_macs(out, face->xconnect, r->mbuf, n);
	if (n)
		path_send_port(w, face->xconnect, r->mbuf, n, bytes);
}
