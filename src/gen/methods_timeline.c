// Frames of a run by due time, sent and received, as JSON. Control thread.
#include "gen/inside.h"

#include "base/clock.h"

#include <rte_cycles.h>
#include <stdlib.h>

// The sum over all workers for one direction, and a buffer to read one into.
struct sum {
	struct timeline all, one;
};

static void add(struct sum *sum, const struct timeline *worker)
{
	timeline_read(worker, &sum->one);
	if (!sum->all.start)
		sum->all = sum->one;
	else
		timeline_merge(&sum->all, &sum->one);
}

static json_t *counts_json(const struct timeline *t, unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, json_integer(t->count[i]));
	return list;
}

static json_t *sums_json(const struct gen_ctx *ctx, struct timeline *sent,
	struct timeline *received)
{
	const struct clock_pair now = clock_pair_take(rte_rdtsc);
	unsigned n = MAX_OF(1, MAX_OF(timeline_length(sent), timeline_length(received)));
	uint64_t start = sent->first << sent->shift, end = (sent->first + n) << sent->shift;
	uint64_t start_ns = clock_ns_at(&ctx->born, &now, start);
	uint64_t span_ns = clock_ns_at(&ctx->born, &now, end) - start_ns;

	return json_pack("{s:I, s:I, s:o, s:o}", "start_ns", (json_int_t)start_ns, "bucket_ns",
		(json_int_t)((span_ns + n / 2) / n), "sent", counts_json(sent, n), "received",
		counts_json(received, n));
}

// Received frames are read first, so that none appears to be received before it was sent. A burst
// may arrive before its sender has counted it: while sending, at least those are sent that have
// arrived.
static void sum_workers(const struct run *run, struct sum *sent, struct sum *received)
{
	for (unsigned i = 0; i < run->n_workers; i++)
		if (run->lines[i])
			add(received, &run->lines[i]->received);
	bool is_sent = run_is_sent(run);

	for (unsigned i = 0; i < run->n_workers; i++)
		if (run->lines[i])
			add(sent, &run->lines[i]->sent);
	timeline_match(&sent->all, &received->all);
	for (unsigned i = 0; i < TIMELINE_BUCKETS && !is_sent; i++)
		sent->all.count[i] = MAX_OF(sent->all.count[i], received->all.count[i]);
}

json_t *gen_timeline_json(const struct gen_ctx *ctx)
{
	struct sum *sent = calloc(1, sizeof(*sent)), *received = calloc(1, sizeof(*received));
	json_t *json = NULL;

	if (sent && received)
		sum_workers(ctx->gen->current, sent, received);
	if (sent && received && sent->all.start)
		json = sums_json(ctx, &sent->all, &received->all);
	free(sent);
	free(received);
	return json ? json : json_null();
}
