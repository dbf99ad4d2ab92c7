// The receiving side: processes bursts in three passes: find and verify stamped frames, account for
// them, free all. Worker; streams are created by the control thread.
#include "gen/account.h"

#include "base/pages.h"
#include "gen/per_flow.h"
#include "wire/headers.h"

#include <errno.h>
#include <string.h>

// Shared by all sinks; set to the same value with each stream.
static recognise_fn *recognise = recognise_scalar;

static size_t own_bytes(uint32_t n_flows)
{
	return sizeof(struct sink_window) - sizeof(struct window) + window_bytes(n_flows);
}

// Gives the window the distribution of flows that are not sequential.
static int add_flows(struct sink_window *own, const struct gen_stream *stream, struct error *error)
{
	int err = 0;

	if (stream->distribution == GEN_SEQUENTIAL || own->window.n_flows == 1)
		return 0;
	err = flows_make(&own->flows, stream, error);
	own->window.flows = &own->flows;
	return err;
}

int sink_stream_create(struct sink_stream **out, const struct gen_stream *stream,
	struct error *error)
{
	struct sink_stream *s = pages_alloc(sizeof(*s));
	struct sink_window *own = pages_alloc(own_bytes(stream->n_flows));

	if (!s || !own) {
		if (s)
			pages_free(s, sizeof(*s));
		if (own)
			pages_free(own, own_bytes(stream->n_flows));
		return error_set(error, -ENOMEM,
			"stream %s: not enough memory for its counters; use fewer streams",
			stream->name);
	}
	// Touched here, so that no worker takes the page faults.
	memset(s, 0, sizeof(*s));
	memset(own, 0, own_bytes(stream->n_flows));
	__atomic_store_n(&recognise, recognise_choose(), __ATOMIC_RELAXED);
	window_begin(&own->window, stream->n_flows);
	histogram_clear(&s->due);
	histogram_clear(&s->sent);
	s->stream = stream;
	s->window = own;
	if (add_flows(own, stream, error) || per_flow_create(&s->per_flow, stream, error)) {
		sink_stream_destroy(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void sink_stream_destroy(struct sink_stream *stream)
{
	if (!stream)
		return;
	per_flow_destroy(stream->per_flow);
	flows_free(&stream->window->flows);
	pages_free(stream->window, own_bytes(stream->window->window.n_flows));
	pages_free(stream, sizeof(*stream));
}

// Result of the first pass over all mbufs.
struct look {
	uint64_t bytes;     // with FCS
	bool is_returnable; // plain mbufs of one pool, which can be returned without reset
};

// Reads each mbuf once and prefetches the start of its frame.
static struct look look_at(struct recognise *r)
{
	const uint64_t lent = RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	uint64_t bytes = 0, odd = 0, shorts = 0;

	for (uint16_t i = 0; i < r->n; i++) {
		const struct rte_mbuf *m = r->mbuf[i];

		r->at[i] = rte_pktmbuf_mtod(m, const uint8_t *);
		rte_prefetch1(r->at[i]);
		r->length[i] = m->pkt_len;
		bytes += m->pkt_len;
		shorts |= (m->data_len ^ m->pkt_len) | (m->data_len < RECOGNISE_LONG_BYTES);
		odd |= (m->ol_flags & lent) | (m->nb_segs ^ 1) | (rte_mbuf_refcnt_read(m) ^ 1) |
		       ((uintptr_t)m->pool ^ (uintptr_t)r->mbuf[0]->pool);
	}
	for (uint16_t i = r->n; i % 16; i++) {
		r->at[i] = r->at[0];
		r->length[i] = r->length[0];
	}
	r->is_long = !shorts;
	return (struct look){bytes + r->n * WIRE_FCS_BYTES, !odd};
}

// Frames of streams with expectations are checked at the port where they arrive.
static __attribute__((noinline)) void check_expected(const struct recognise *r,
	const struct whole *whole)
{
	for (uint16_t i = 0; i < whole->n; i++) {
		struct sink_stream *s = r->sink->by_id[whole->id[i]];

		if (s->per_flow)
			per_flow_check(s->per_flow, r->mbuf[whole->from[i]],
				window_whole(&s->window->window, whole->sequence[i]), r->port);
	}
}

static void take_part(struct recognise *r, uint64_t now)
{
	struct look look = look_at(r);
	struct whole whole;

	// Before what becomes of them: results of ports are read after those of streams.
	stats_add(&r->counters->rx_packets, r->n);
	stats_add(&r->counters->rx_bytes, look.bytes);
	__atomic_load_n(&recognise, __ATOMIC_RELAXED)(r, &whole);
	if (unlikely(r->sink->expects))
		check_expected(r, &whole);
	account(r->sink, &whole, now);
	if (likely(look.is_returnable))
		rte_mempool_put_bulk(r->mbuf[0]->pool, (void **)r->mbuf, r->n);
	else
		rte_pktmbuf_free_bulk(r->mbuf, r->n);
}

void sink_take(struct sink *sink, struct sink_port *counters, struct rte_mbuf *mbuf[], uint16_t n,
	uint8_t port, uint64_t now)
{
	for (uint16_t at = 0; at < n; at += RECOGNISE_MAX) {
		struct recognise r;

		r.sink = sink;
		r.counters = counters;
		r.mbuf = mbuf + at;
		r.n = MIN_OF(n - at, RECOGNISE_MAX);
		r.port = port;
		take_part(&r, now);
	}
}
