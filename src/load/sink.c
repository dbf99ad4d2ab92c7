// The receiving half: takes bursts in three passes, which are find the stamps, verify the frames,
// account for them. Lane; streams are made by the control thread.
#include "load/recognise.h"
#include "load/window.h"

#include "base/pages.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <errno.h>
#include <string.h>

// What the lane alone knows of a stream.
struct sink_window {
	uint64_t last_delay; // of the frame before, in cycles from its sending
	bool has_last;
	struct window window; // its table of flows follows
} LINE_ALIGNED;

static size_t own_bytes(const struct load_stream *stream)
{
	return sizeof(struct sink_window) - sizeof(struct window) + window_bytes(stream->n_flows);
}

int sink_stream_create(struct sink_stream **out, const struct load_stream *stream,
	struct complaint *why)
{
	struct sink_stream *s = pages_alloc(sizeof(*s));
	struct sink_window *own = pages_alloc(own_bytes(stream));

	if (!s || !own) {
		if (s)
			pages_free(s, sizeof(*s));
		if (own)
			pages_free(own, own_bytes(stream));
		return complain(why, -ENOMEM,
			"stream %s: no memory for its counters; use fewer streams", stream->name);
	}
	// Written here, so that no lane is the first to touch a page.
	memset(s, 0, sizeof(*s));
	memset(own, 0, own_bytes(stream));
	window_begin(&own->window, stream->n_flows);
	histogram_clear(&s->due);
	histogram_clear(&s->sent);
	s->stream = stream;
	s->window = own;
	*out = s;
	return 0;
}

void sink_stream_destroy(struct sink_stream *stream)
{
	if (!stream)
		return;
	pages_free(stream->window, own_bytes(stream->stream));
	pages_free(stream, sizeof(*stream));
}

// Cycles from a stamp to `now`; 0 where the clocks of two cores put it into the future.
static inline uint64_t cycles_since(uint64_t stamp, uint64_t now)
{
	uint64_t cycles = (now - stamp) & STAMP_40_BITS;

	return cycles >> 39 ? 0 : cycles;
}

static inline void count_jitter(struct sink_stream *s, uint64_t delay)
{
	struct sink_window *own = s->window;
	uint64_t difference =
		delay > own->last_delay ? delay - own->last_delay : own->last_delay - delay;

	if (likely_to(own->has_last)) {
		stat_add(&s->counters.jitter_sum, difference);
		stat_add(&s->counters.n_jitter, 1);
		if (rarely(difference > s->counters.jitter_max))
			stat_set(&s->counters.jitter_max, difference);
	}
	own->last_delay = delay;
	own->has_last = true;
}

static inline void count_received(struct sink_stream *s, const struct whole *f, uint16_t i,
	uint64_t now)
{
	uint64_t since_sent = cycles_since(f->sent[i], now);
	struct sink_counters *c = &s->counters;

	if (rarely(!c->received))
		stat_set(&c->first_tsc, now);
	stat_set(&c->last_tsc, now);
	stat_add(&c->received, 1);
	stat_add(&c->received_bytes, f->bytes[i]);
	stat_set(&c->highest, s->window->window.next);
	stat_set(&c->missing, s->window->window.missing);
	histogram_add(&s->due, cycles_since(f->due[i], now));
	histogram_add(&s->sent, since_sent);
	count_jitter(s, since_sent);
}

static void account(const struct whole *f, uint64_t now)
{
	for (uint16_t i = 0; i < f->n; i++) {
		struct sink_stream *s = f->stream[i];

		switch (window_take(&s->window->window, f->sequence[i])) {
		case WINDOW_NEW_REORDERED:
			stat_add(&s->counters.reordered, 1);
			count_received(s, f, i, now);
			break;
		case WINDOW_NEW:
			count_received(s, f, i, now);
			break;
		case WINDOW_DUPLICATE:
			stat_add(&s->counters.duplicated, 1);
			break;
		case WINDOW_TOO_OLD:
			stat_add(&s->counters.too_old, 1);
			break;
		}
	}
}

void sink_take(struct sink *sink, struct sink_port *counters, const struct sink_burst *burst)
{
	uint64_t bytes = 0;

	for (uint16_t at = 0; at < burst->n; at += RECOGNISE_MAX) {
		struct recognise r = {
			.sink = sink,
			.counters = counters,
			.mbuf = burst->mbuf + at,
			.n = MIN_OF(burst->n - at, RECOGNISE_MAX),
			.port = burst->port,
		};
		struct stamped stamped;
		struct whole whole;

		recognise(&r, &stamped);
		recognise_verify(&stamped, &whole);
		account(&whole, burst->now);
		for (uint16_t i = 0; i < r.n; i++)
			bytes += r.mbuf[i]->pkt_len + WIRE_FCS_BYTES;
	}
	stat_add(&counters->rx_packets, burst->n);
	stat_add(&counters->rx_bytes, bytes);
	rte_pktmbuf_free_bulk(burst->mbuf, burst->n);
}
