// A port tied to another: frames go out as they came, or with MAC addresses rewritten as l2fwd
// does. Lane.
#include "path/steps.h"

#include "wire/headers.h"

#include <string.h>

// Destination and source as l2fwd writes them: the box at the other end, or 02:00:00:00:00:PORT.
static void write_macs(const struct port_face *out, uint8_t port, uint8_t macs[12])
{
	// The peer and whether there is one are one aligned word, replaced as a whole.
	uint64_t peer = __atomic_load_n((const uint64_t *)out->peer, __ATOMIC_RELAXED);
	bool has_peer = peer >> 48 & 1;
	uint8_t made[6] = {0x02, 0, 0, 0, 0, port};

	memcpy(macs, has_peer ? (const uint8_t *)&peer : made, sizeof(made));
	memcpy(macs + 6, out->mac, sizeof(out->mac));
}
_Static_assert(offsetof(struct port_face, peer) % 8 == 0 &&
		       offsetof(struct port_face, has_peer) == offsetof(struct port_face, peer) + 6,
	"the word of peer");

static void update_macs(const struct port_face *out, uint8_t port, const struct outgoing *frames)
{
	struct rte_mbuf **const mbuf = frames->mbuf; // frames may alias anything
	const unsigned n = frames->n;
	uint8_t macs[12];

	write_macs(out, port, macs);
	for (unsigned i = 0; i < n; i++)
		memcpy(rte_pktmbuf_mtod(mbuf[i], uint8_t *), macs, sizeof(macs));
}

// Frames without a whole Ethernet header, or in more segments than the other device takes, stay
// behind.
static __attribute__((noinline)) void keep_sendable(struct worker *w, const struct port_face *out,
	struct outgoing *frames)
{
	uint16_t alive = 0;

	frames->bytes = 0;
	for (uint16_t i = 0; i < frames->n; i++) {
		struct rte_mbuf *m = frames->mbuf[i];

		if (m->data_len < WIRE_ETHER_BYTES) {
			burst_drop(w, m, VERDICT_RUNT);
		} else if (m->nb_segs > 1 && !out->tx_multi_segment) {
			burst_drop(w, m, VERDICT_MULTI_SEGMENT);
		} else {
			frames->bytes += m->pkt_len;
			frames->mbuf[alive++] = m;
		}
	}
	frames->n = alive;
}

void path_xconnect(struct worker *w, const struct received *r)
{
	const struct port_face *face = &w->faces[r->from->port], *out = &w->faces[face->xconnect];
	struct outgoing frames = {.mbuf = r->mbuf, .n = r->n};
	bool is_odd = false;

	for (uint16_t i = 0; i < r->n; i++) {
		const struct rte_mbuf *m = r->mbuf[i];

		frames.bytes += m->pkt_len;
		is_odd |= (m->data_len != m->pkt_len) | (m->data_len < WIRE_ETHER_BYTES);
	}
	stat_add(&w->stat->port[r->from->port].rx_bytes, frames.bytes);
	if (rarely(is_odd))
		keep_sendable(w, out, &frames);
	if (face->mac_update)
		update_macs(out, face->xconnect, &frames);
	if (frames.n)
		path_send_port(w, face->xconnect, &frames);
}
