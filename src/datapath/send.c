// Groups packets by output port and passes them to the devices; those that a device refuses are
// dropped and counted. The burst is empty afterwards. Worker.
#include "datapath/steps.h"

#include <string.h>

static void drop_all(struct worker *w, struct rte_mbuf *mbuf[], uint16_t n, enum verdict verdict)
{
	for (uint16_t i = 0; i < n; i++)
		worker_drop(w, mbuf[i], verdict);
}

uint16_t datapath_transmit(struct worker *w, uint8_t port, const struct outgoing *out)
{
	struct stats_port *stat = &w->stat->port[port];
	uint16_t sent = likely(!w->capture) ? port_tx(&w->io->out[port], out->mbuf, out->n)
	                                    : worker_capture_tx(w, port, out->mbuf, out->n);
	uint64_t bytes = out->bytes;

	for (uint16_t i = sent; i < out->n; i++)
		bytes -= out->mbuf[i]->pkt_len;
	stats_add(&stat->tx_packets, sent);
	stats_add(&stat->tx_bytes, bytes);
	stats_add(&w->stat->verdict[VERDICT_FORWARD], sent);
	return sent;
}

void datapath_send_port(struct worker *w, uint8_t port, const struct outgoing *out)
{
	if (unlikely(!port_is_up(&w->states[port]))) {
		drop_all(w, out->mbuf, out->n, VERDICT_PORT_DOWN);
		return;
	}
	if (unlikely(out->has_offloads)) {
		offload_send(w, port, out);
		return;
	}
	uint16_t sent = datapath_transmit(w, port, out);
	drop_all(w, out->mbuf + sent, out->n - sent, VERDICT_TX_REFUSED);
}

// Drops frames in several mbufs whose output device cannot send them.
static __attribute__((noinline)) void drop_segmented(struct worker *w, struct burst *b)
{
	uint64_t kept = 0;

	for (uint16_t i = 0; i < b->n; i++) {
		if (!datapath_has_room(&w->states[burst_port(b, i)], b->mbuf[i]))
			burst_drop(w, b, i, VERDICT_MULTI_SEGMENT);
		else
			kept |= 1ull << i;
	}
	burst_keep(b, kept);
}

// For several ports: each round sends the packets of the first one's port, in order.
static void send_mixed(struct worker *w, struct burst *b)
{
	struct rte_mbuf *group[BURST_MAX];
	uint64_t left = burst_all(b);

	while (left) {
		uint8_t to = b->port[__builtin_ctzll(left)];
		struct outgoing out = {.mbuf = group, .has_offloads = b->has & BURST_OFFLOADS};

		for (uint64_t rest = left; rest; rest &= rest - 1) {
			unsigned i = __builtin_ctzll(rest);
			if (b->port[i] != to)
				continue;
			group[out.n++] = b->mbuf[i];
			out.bytes += b->length[i];
			left &= ~(1ull << i);
		}
		datapath_send_port(w, to, &out);
	}
}

static inline uint64_t sum_of(const uint16_t length[], unsigned n)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += length[i];
	return bytes;
}

// The loop of a full burst has a constant length, so it needs no scalar remainder.
static uint64_t sum_lengths(const struct burst *b)
{
	return b->n == BURST_MAX ? sum_of(b->length, BURST_MAX) : sum_of(b->length, b->n);
}

void datapath_send(struct worker *w, struct burst *b)
{
	if (unlikely(b->has & BURST_SEGMENTS))
		drop_segmented(w, b);
	if (b->has_one_port && b->n)
		datapath_send_port(w, b->port[0],
			&(struct outgoing){.mbuf = b->mbuf,
				.n = b->n,
				.bytes = sum_lengths(b),
				.has_offloads = b->has & BURST_OFFLOADS});
	else
		send_mixed(w, b);
	burst_clear(b);
}
