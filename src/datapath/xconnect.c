// Cross-connect: forwards frames from one port to another, unmodified or with MAC addresses
// rewritten as l2fwd does. Worker.
#include "datapath/steps.h"

#include "wire/check.h"
#include "wire/headers.h"

#include <string.h>

// Destination and source as l2fwd writes them: the peer's MAC, or 02:00:00:00:00:PORT.
static void write_macs(const struct port_state *out, uint8_t port, uint8_t macs[12])
{
	// The peer's MAC and its valid flag are in one aligned word, replaced as a whole.
	uint64_t peer = __atomic_load_n((const uint64_t *)out->peer, __ATOMIC_RELAXED);
	bool has_peer = peer >> 48 & 1;
	uint8_t made[6] = {0x02, 0, 0, 0, 0, port};

	memcpy(macs, has_peer ? (const uint8_t *)&peer : made, sizeof(made));
	memcpy(macs + 6, out->mac, sizeof(out->mac));
}
_Static_assert(offsetof(struct port_state, peer) % 8 == 0 &&
		       offsetof(struct port_state, has_peer) ==
			       offsetof(struct port_state, peer) + 6,
	"the word of peer");

static void update_macs(const struct port_state *out, uint8_t port, const struct outgoing *frames)
{
	struct rte_mbuf **const mbuf = frames->mbuf; // frames may alias anything
	const unsigned n = frames->n;
	uint8_t macs[12];

	write_macs(out, port, macs);
	for (unsigned i = 0; i < n; i++)
		memcpy(rte_pktmbuf_mtod(mbuf[i], uint8_t *), macs, sizeof(macs));
}

bool datapath_is_cut(const struct port_state *from, const struct rte_mbuf *m)
{
	const struct wire_check_rules rules = {.pass_martians = true};
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t left = m->data_len;

	if (!port_fills_slot(from, frame, m->pkt_len) || m->nb_segs > 1)
		return false;
	while (left >= WIRE_ETHER_BYTES + WIRE_VLAN_BYTES &&
		wire_check(frame, left, left, &rules) == WIRE_VLAN) {
		frame += WIRE_VLAN_BYTES;
		left -= WIRE_VLAN_BYTES;
	}
	enum wire_fault fault = wire_check(frame, left, left, &rules);
	return fault == WIRE_IP4_LENGTH || fault == WIRE_IP6_LENGTH;
}

// Drops frames without a whole Ethernet header, cut ones, and those with more segments than the
// output device supports.
static __attribute__((noinline)) void keep_sendable(struct worker *w, const struct port_state *from,
	const struct port_state *out, struct outgoing *frames)
{
	uint16_t alive = 0;

	frames->bytes = 0;
	for (uint16_t i = 0; i < frames->n; i++) {
		struct rte_mbuf *m = frames->mbuf[i];

		if (m->data_len < WIRE_ETHER_BYTES) {
			worker_drop(w, m, VERDICT_RUNT);
		} else if (!datapath_has_room(out, m)) {
			worker_drop(w, m, VERDICT_MULTI_SEGMENT);
		} else if (datapath_is_cut(from, m)) {
			worker_drop(w, m, VERDICT_FRAME_CUT);
		} else {
			frames->bytes += m->pkt_len;
			frames->mbuf[alive++] = m;
		}
	}
	frames->n = alive;
}

// Summed lengths of a burst: of packets and of their first segments. The mbuf word that holds both
// is read once.
struct lengths {
	uint64_t sum;  // pkt_len in the lower half, data_len in the upper one
	uint64_t runt; // top bit: a first segment is shorter than an Ethernet header
};

static inline struct lengths add_lengths(struct rte_mbuf *const mbuf[], unsigned n)
{
	const uint64_t both = (1ull << 48) - 1, header = (uint64_t)WIRE_ETHER_BYTES << 32;
	struct lengths lengths = {0, 0};

	for (unsigned i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, &mbuf[i]->pkt_len, sizeof(word));
		word &= both;
		lengths.sum += word;
		lengths.runt |= word - header;
	}
	return lengths;
}
_Static_assert(offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4 &&
		       BURST_MAX * UINT16_MAX < 1ull << 31,
	"the word of lengths");

void datapath_xconnect(struct worker *w, const struct received *r)
{
	const struct port_state *port_state = &w->states[r->from->port],
				*out = &w->states[port_state->xconnect];
	const struct lengths lengths = add_lengths(r->mbuf, r->n);
	const uint32_t bytes = lengths.sum;
	struct outgoing frames = {.mbuf = r->mbuf,
		.n = r->n,
		.bytes = bytes,
		.has_offloads = r->has_offloads};

	stats_add(&w->stat->port[r->from->port].rx_bytes, bytes);
	// No first segment is longer than its packet.
	if (unlikely(lengths.sum >> 32 != bytes || lengths.runt >> 63 || port_state->cut_bytes))
		keep_sendable(w, port_state, out, &frames);
	if (port_state->mac_update)
		update_macs(out, port_state->xconnect, &frames);
	if (frames.n)
		datapath_send_port(w, port_state->xconnect, &frames);
}
