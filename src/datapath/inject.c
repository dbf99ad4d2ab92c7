// Sends frames that Linux sent on the TAP interfaces to the ports, in order and before anything
// that the worker forwards. Frames that a device refuses are retried in the next loops, for a
// limited time. Worker.
#include "datapath/steps.h"

enum { TAKEN_AT_ONCE = 32, PATIENCE_LOOPS = 1000 };

// Appends further frames to those waiting; returns the number waiting now.
static unsigned take(struct worker *w)
{
	struct injection *in = &w->injection;
	unsigned n = tap_take(w->tap, in->mbuf + in->n, MIN_OF(BURST_MAX - in->n, TAKEN_AT_ONCE));

	for (unsigned i = in->n; i < in->n + n; i++) {
		in->taken_at[i] = w->stat->loops;
		stats_add(&w->stat->port[in->mbuf[i]->port].injected_packets, 1);
	}
	in->n += n;
	return in->n;
}

// Sends those of `waiting` (one bit each) that leave through the oldest one's port and clears their
// bits; returns the bits of those still to wait.
static uint64_t send_group(struct worker *w, uint64_t *waiting)
{
	struct injection *in = &w->injection;
	uint8_t port = in->mbuf[__builtin_ctzll(*waiting)]->port;
	struct rte_mbuf *group[BURST_MAX];
	struct outgoing out = {.mbuf = group};
	uint64_t same = 0;

	for (uint64_t rest = *waiting; rest; rest &= rest - 1) {
		unsigned i = __builtin_ctzll(rest);
		if (in->mbuf[i]->port != port)
			continue;
		group[out.n++] = in->mbuf[i];
		out.bytes += in->mbuf[i]->pkt_len;
		same |= 1ull << i;
	}
	*waiting &= ~same;
	for (uint16_t sent = port_is_up(&w->states[port]) ? datapath_transmit(w, port, &out) : 0;
		sent; sent--)
		same &= same - 1;
	return same;
}

// Whether a frame that the device refused has waited too long, or its port cannot send.
static bool give_up(struct worker *w, unsigned i, uint64_t patience_loops)
{
	struct injection *in = &w->injection;

	if (!port_is_up(&w->states[in->mbuf[i]->port]))
		worker_drop(w, in->mbuf[i], VERDICT_PORT_DOWN);
	else if (w->stat->loops - in->taken_at[i] >= patience_loops)
		worker_drop(w, in->mbuf[i], VERDICT_TX_REFUSED);
	else
		return false;
	return true;
}

static void send_waiting(struct worker *w, uint64_t patience_loops)
{
	struct injection *in = &w->injection;
	uint64_t waiting = in->n == 64 ? UINT64_MAX : (1ull << in->n) - 1, refused = 0;

	while (waiting)
		refused |= send_group(w, &waiting);
	in->n = 0;
	for (; refused; refused &= refused - 1) {
		unsigned i = __builtin_ctzll(refused);
		if (give_up(w, i, patience_loops))
			continue;
		in->mbuf[in->n] = in->mbuf[i];
		in->taken_at[in->n++] = in->taken_at[i];
	}
	burst_free_dropped(w);
}

unsigned datapath_inject(struct worker *w)
{
	unsigned n = take(w);

	if (likely(!n))
		return 0;
	send_waiting(w, PATIENCE_LOOPS);
	return n - w->injection.n;
}

void datapath_inject_rest(struct worker *w)
{
	while (take(w))
		send_waiting(w, 0);
}
