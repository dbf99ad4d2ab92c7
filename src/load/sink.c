// The receiving half: takes bursts in three passes, which are find and verify stamped frames,
// account for them, free them all. Lane; streams are made by the control thread.
#include "load/account.h"

#include "base/pages.h"
#include "wire/headers.h"

#include <errno.h>
#include <string.h>

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

// Received mbufs are mostly plain ones of one pool, which takes them back as they are.
static void free_burst(struct rte_mbuf *mbuf[], uint16_t n)
{
	const uint64_t lent = RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	struct rte_mempool *pool = n ? mbuf[0]->pool : NULL;
	uint64_t odd = 0;

	for (uint16_t i = 0; i < n; i++)
		odd |= (mbuf[i]->ol_flags & lent) | (mbuf[i]->nb_segs ^ 1) |
		       (rte_mbuf_refcnt_read(mbuf[i]) ^ 1) |
		       ((uintptr_t)mbuf[i]->pool ^ (uintptr_t)pool);
	if (likely_to(!odd && pool))
		rte_mempool_put_bulk(pool, (void **)mbuf, n);
	else
		rte_pktmbuf_free_bulk(mbuf, n);
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
		struct whole whole;

		recognise(&r, &whole);
		account(sink, &whole, burst->now);
		for (uint16_t i = 0; i < r.n; i++)
			bytes += r.mbuf[i]->pkt_len + WIRE_FCS_BYTES;
	}
	stat_add(&counters->rx_packets, burst->n);
	stat_add(&counters->rx_bytes, bytes);
	free_burst(burst->mbuf, burst->n);
}
