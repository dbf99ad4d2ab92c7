// What workers capture: frames as they are received and sent, and packets as they are dropped or
// punted, with the bytes that they have at that moment. Only while a capture runs, or for a traced
// packet, which goes nowhere else. Worker; control thread.
#include "datapath/trace.h"

// A draft for each capture that runs, of up to 64 frames, before it is known what happens to them.
struct drafts {
	struct capture_draft of[CAPTURE_SLOTS];
};

// Copies frames for those captures that want one of two events.
static void copy(const struct worker *w, struct drafts *drafts, const struct capture_event *event,
	const struct capture_event *other, struct rte_mbuf *const mbuf[], unsigned n)
{
	const enum capture_sampled sampled =
		event->kind <= CAPTURE_OUT ? CAPTURE_FRAMES : CAPTURE_LOSSES;
	struct capture_draft *draft = drafts->of;

	for (struct capture_producer *p = w->capture; p; p = p->next, draft++)
		if (capture_wants(p, event) || capture_wants(p, other))
			capture_copy(p, draft, sampled, mbuf, n);
}

static void publish(struct worker *w, const struct drafts *drafts,
	const struct capture_event *event, unsigned n)
{
	const struct capture_draft *draft = drafts->of;

	for (struct capture_producer *p = w->capture; p; p = p->next, draft++)
		if (capture_wants(p, event))
			stats_add(&w->stat->capture_missed, capture_publish(p, draft, event, n));
}

static void capture(struct worker *w, const struct capture_event *event,
	struct rte_mbuf *const mbuf[], unsigned n)
{
	struct drafts drafts;

	copy(w, &drafts, event, event, mbuf, n);
	publish(w, &drafts, event, n);
}

__attribute__((cold, noinline)) void worker_capture_received(struct worker *w, uint16_t port,
	struct rte_mbuf *const mbuf[], uint16_t n)
{
	const struct capture_event event = {CAPTURE_IN, VERDICT_FORWARD, port};

	w->capture->in_port = port; // also of the polls that are in the pipeline: one queue
	capture(w, &event, mbuf, n);
}

__attribute__((cold, noinline)) void worker_capture_drop(struct worker *w, struct rte_mbuf *mbuf,
	enum verdict verdict)
{
	if (w->trace) {
		trace_drop(w, mbuf, verdict);
		return;
	}
	const bool is_received = w->capture->in_port != CAPTURE_PORT_UNKNOWN;
	const struct capture_event event = {CAPTURE_DROP, verdict,
		is_received ? w->capture->in_port : mbuf->port};

	capture(w, &event, &mbuf, 1);
}

// The device owns what it accepts, so frames are copied before.
__attribute__((cold, noinline)) uint16_t worker_capture_tx(struct worker *w, uint8_t port,
	struct rte_mbuf *mbuf[], uint16_t n)
{
	const struct capture_event event = {CAPTURE_OUT, VERDICT_FORWARD, port};
	struct drafts drafts;

	if (w->trace)
		return trace_send(w, port, mbuf, n);
	copy(w, &drafts, &event, &event, mbuf, n);
	uint16_t sent = port_tx(&w->io->out[port], mbuf, n);
	publish(w, &drafts, &event, sent);
	return sent;
}

// The tap thread owns what its ring accepts.
__attribute__((cold, noinline)) bool worker_capture_punt(struct worker *w, struct rte_mbuf *mbuf,
	uint16_t in_port, enum verdict verdict)
{
	const struct capture_event event = {CAPTURE_PUNT, verdict, in_port},
				   full = {CAPTURE_DROP, VERDICT_PUNT_RING_FULL, in_port};
	struct drafts drafts;

	if (w->trace)
		return trace_punt(w, mbuf, in_port, verdict);
	copy(w, &drafts, &event, &full, &mbuf, 1);
	const bool is_punted =
		tap_punt(w->tap, w->stat, mbuf, verdict | (unsigned)in_port << TAP_PORT_SHIFT);

	publish(w, &drafts, is_punted ? &event : &full, 1);
	return is_punted;
}
