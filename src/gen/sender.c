// One stream's frames: due time, flow and size, building and sending. Worker; creation: control
// thread.
#include "gen/run.h"

#include "gen/fields.h"
#include "gen/flows.h"
#include "gen/frame.h"
#include "gen/pace.h"
#include "gen/replay.h"
#include "gen/sizes.h"
#include "gen/timeline.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <stdlib.h>
#include <string.h>

struct sender {
	struct sender_counters counters LINE_ALIGNED;
	struct frame_values values;
	struct pace pace;
	struct fields fields;
	struct flows flows;
	struct sizes sizes;
	struct frame_form form;
	uint64_t sequence;     // of the next frame
	struct replay *replay; // NULL: generated frames
	const struct port_out *out;
	struct rte_mempool *pool;
	struct timeline *timeline;
	bool has_backpressure;
	uint32_t n_flows;
};

static int check_room(const struct sender *sender, const struct sender_terms *terms,
	struct error *error)
{
	unsigned room = rte_pktmbuf_data_room_size(terms->pool) - RTE_PKTMBUF_HEADROOM;

	for (unsigned i = 0; i < sender->form.n_sizes; i++)
		if (sender->form.sizes[i].n_lines * FRAME_LINE > room)
			return error_set(error, -EINVAL,
				"stream %s: frames of %u bytes exceed the MTU of its port; raise "
				"the MTU or use a smaller size",
				terms->stream->name, terms->stream->sizes[i].bytes);
	return 0;
}

static int make_frames(struct sender *sender, const struct sender_terms *terms, struct error *error)
{
	const struct gen_stream *stream = terms->stream;
	int err = frame_form_make(&sender->form, stream, terms->run);

	if (err == -EINVAL)
		return error_set(error, err, "stream %s: its frames have no room for the stamp",
			stream->name);
	if (err)
		return error_set(error, err, "stream %s: not enough memory for its frames",
			stream->name);
	err = sizes_make(&sender->sizes, stream);
	if (err)
		return error_set(error, err, "stream %s: not enough memory for its sizes",
			stream->name);
	err = flows_make(&sender->flows, stream, error);
	if (err)
		return err;
	fields_make(&sender->fields, stream);
	fields_fill_fixed(stream, &sender->values);
	sender->n_flows = stream->n_flows;
	return check_room(sender, terms, error);
}

// Refused frames of a capture without stamps are never counted as sent, because their loss could
// not be detected.
static int make(struct sender *sender, const struct sender_terms *terms, struct error *error)
{
	bool is_replay = terms->stream->capture.path[0];

	pace_make(&sender->pace, terms->stream, terms->tsc_hz);
	sender->out = terms->out;
	sender->pool = terms->pool;
	sender->timeline = terms->timeline;
	sender->has_backpressure =
		terms->has_backpressure && (!is_replay || terms->stream->capture.stamps);
	return is_replay ? replay_create(&sender->replay, terms, error)
	                 : make_frames(sender, terms, error);
}

int sender_create(struct sender **out, const struct sender_terms *terms, struct error *error)
{
	struct sender *sender = aligned_alloc(CACHE_LINE_BYTES, sizeof(*sender));

	if (!sender)
		return error_set(error, -ENOMEM, "stream %s: not enough memory for its sender",
			terms->stream->name);
	memset(sender, 0, sizeof(*sender));
	int err = make(sender, terms, error);
	if (err) {
		sender_destroy(sender);
		return err;
	}
	*out = sender;
	return 0;
}

void sender_destroy(struct sender *sender)
{
	if (!sender)
		return;
	frame_form_free(&sender->form);
	sizes_free(&sender->sizes);
	flows_free(&sender->flows);
	replay_destroy(sender->replay);
	free(sender);
}

void sender_prepare(struct sender *sender)
{
	port_tx_reclaim(sender->out);
}

void sender_begin(struct sender *sender, uint64_t start, uint64_t end)
{
	pace_begin(&sender->pace, start, end);
	if (sender->replay)
		replay_begin(sender->replay, start);
}

static inline void fill_fields(struct sender *sender, struct frame_values *values, unsigned n)
{
	uint32_t flow[GEN_MAX_BURST];

	if (likely(sender->flows.kind == GEN_SEQUENTIAL)) {
		fields_fill(&sender->fields, values, n);
		return;
	}
	flows_fill(&sender->flows, sender->sequence, flow, n);
	fields_fill_flows(&sender->fields, values, flow, n);
}

// An mbuf from the pool has one reference and no next segment; the other fields are set here.
// Returns the bytes with FCS.
static uint64_t prepare(const struct frame_form *form, struct frame_values *values,
	struct rte_mbuf *mbuf[])
{
	const unsigned n = values->n; // in a local, because mbufs may alias anything
	uint64_t bytes = n * RTE_ETHER_CRC_LEN;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = mbuf[i];
		uint16_t n_bytes = form->sizes[values->size[i]].n_bytes;

		m->data_off = RTE_PKTMBUF_HEADROOM;
		m->ol_flags = 0;
		m->data_len = n_bytes;
		m->pkt_len = n_bytes;
		values->to[i] = (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM;
		rte_prefetch0_write(values->to[i]); // another core may have read it last
		bytes += n_bytes;
	}
	return bytes;
}

static uint64_t bytes_of(struct rte_mbuf *const mbuf[], unsigned n)
{
	uint64_t bytes = n * RTE_ETHER_CRC_LEN;

	for (unsigned i = 0; i < n; i++)
		bytes += mbuf[i]->pkt_len;
	return bytes;
}

// The device accepted no more. These frames were not sent: flows and sizes continue from the first
// of them. Returns their bytes.
static __attribute__((noinline)) uint64_t take_back(struct sender *sender, struct rte_mbuf *mbuf[],
	unsigned n)
{
	uint64_t bytes = bytes_of(mbuf, n);

	if (sender->replay) {
		replay_take_back(sender->replay, n, sender->values.n);
	} else {
		sender->sequence -= n;
		fields_seek(&sender->fields, sender->sequence % sender->n_flows);
		sizes_seek(&sender->sizes, sender->sequence);
	}
	pace_refuse(&sender->pace, n);
	stats_set(&sender->counters.late, sender->pace.late); // before busy: results are read so
	if (!sender->pace.is_max)
		stats_add(&sender->counters.busy, n);
	return bytes;
}

static void account(struct sender *sender, unsigned n, uint64_t bytes)
{
	struct sender_counters *counters = &sender->counters;
	uint64_t sent = sender->values.sent, lag = sent - sender->values.due[0];

	if (!n)
		return;
	if (unlikely(!counters->first_tsc))
		stats_set(&counters->first_tsc, sent);
	stats_set(&counters->last_tsc, sent);
	stats_add(&counters->sent_bytes, bytes);
	if (unlikely(sender->replay != NULL)) {
		unsigned n_stamped = replay_pick_stamped(sender->replay, n, sender->values.due);

		stats_add(&counters->unstamped, n - n_stamped);
		n = n_stamped;
	}
	stats_add(&counters->sent, n);
	if (likely(n))
		timeline_add(sender->timeline, sender->values.due, n, sender->values.due[0]);
	if (unlikely(lag > counters->longest_lag))
		stats_set(&counters->longest_lag, lag);
}

// The last `n` keep their numbers and count as lost; of a capture's frames, those that have a
// number.
static __attribute__((noinline)) void refuse(struct sender *sender, unsigned n)
{
	stats_add(&sender->counters.refused,
		sender->replay ? replay_count_stamped(sender->replay, n, sender->values.n) : n);
}

static void hand_over(struct sender *sender, struct rte_mbuf *mbuf[], unsigned n, uint64_t bytes)
{
	unsigned accepted = port_tx(sender->out, mbuf, n), n_refused = n - accepted;

	if (unlikely(n_refused && !sender->has_backpressure)) {
		bytes -= take_back(sender, mbuf + accepted, n_refused);
		n = accepted;
	}
	account(sender, n, bytes);
	if (likely(!n_refused))
		return;
	if (sender->has_backpressure)
		refuse(sender, n_refused); // after sent: results are read so
	// They are unchanged since allocation: one reference, one segment.
	rte_mempool_put_bulk(sender->pool, (void **)mbuf + accepted, n_refused);
}

// Takes due frames, at most GEN_MAX_BURST; `before`: the pace to restore if they are not sent.
static unsigned take_due(struct sender *sender, uint64_t now, struct pace *before)
{
	bool is_recorded = sender->replay && sender->replay->is_recorded;

	if (unlikely(is_recorded))
		replay_skip(sender->replay, &sender->pace, now);
	*before = sender->pace;
	return unlikely(is_recorded)
	               ? replay_take(sender->replay, &sender->pace, now, sender->values.due)
	               : pace_take(&sender->pace, now, sender->values.due);
}

// Writes the frames of a burst. Returns their bytes with FCS.
static uint64_t build(struct sender *sender, struct rte_mbuf *mbuf[], unsigned n)
{
	struct frame_values *values = &sender->values;

	values->n = n;
	if (unlikely(sender->replay != NULL)) {
		values->sent = rte_rdtsc();
		return replay_build(sender->replay, mbuf, n, values->due);
	}
	values->sequence = sender->sequence;
	values->size = sizes_take(&sender->sizes, n);
	fill_fields(sender, values, n);
	sender->sequence += n;
	uint64_t bytes = prepare(&sender->form, values, mbuf);

	values->sent = rte_rdtsc();
	frame_build(&sender->form, values);
	return bytes;
}

bool sender_turn(struct sender *sender, uint64_t now)
{
	struct rte_mbuf *mbuf[GEN_MAX_BURST] LINE_ALIGNED;
	struct pace before;

	if (now < sender->pace.due.cycles)
		return !pace_is_over(&sender->pace, now);
	unsigned n = take_due(sender, now, &before);

	if (!n)
		return !pace_is_over(&sender->pace, now);
	if (unlikely(rte_mempool_get_bulk(sender->pool, (void **)mbuf, n) != 0)) {
		// They stay due until buffers are available, or until they are late.
		if (now < sender->pace.end)
			sender->pace = before;
		else
			pace_refuse(&sender->pace, n);
		stats_set(&sender->counters.late, sender->pace.late);
		return !pace_is_over(&sender->pace, now);
	}
	hand_over(sender, mbuf, n, build(sender, mbuf, n));
	stats_set(&sender->counters.late, sender->pace.late);
	return !pace_is_over(&sender->pace, now);
}

const struct sender_counters *sender_counters(const struct sender *sender)
{
	return &sender->counters;
}
