// Flows that have ended: the latest ones, for the method flows.ended; and a file that gets a line
// for each of them, written by a thread of its own. The control thread adds to the ring; of what
// both threads use, `written` and `n_lost` are written by the thread only, under the lock.
#include "api/flows.h"

#include "api/flow_ended_file.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A table tells RCU_DEFER_MAX flows at once at most, and as many again while it drains.
enum { RING = 1 << 18, MOST_AT_ONCE = 2 * RCU_DEFER_MAX, PAGE_ENDED = 1000, PAGE_MAX_ENDED = 2000 };

struct flow_ended {
	struct flow_ended_row *ring; // by sequence number, from 1 on
	uint64_t start;              // ms since 1970: sequence numbers belong to it
	uint64_t last;               // sequence number
	uint64_t n_dropped;          // that the file does not have, for want of space
	struct flow_ended_file *file;
};

struct flow_ended *flow_ended_open(const char *path, struct error *error)
{
	struct flow_ended *ended = calloc(1, sizeof(*ended));

	if (ended) {
		ended->start = clock_wall_ms();
		ended->ring = pages_alloc(RING * sizeof(*ended->ring));
	}
	if (!ended || !ended->ring) {
		error_set(error, -ENOMEM, "not enough memory for ended flows");
		goto close_ended;
	}
	int fd, err = flow_ended_open_file(path, &fd, error);
	if (err)
		goto close_ended;
	ended->file = flow_ended_file_start(ended->ring, RING, fd, error);
	if (ended->file)
		return ended;
close_ended:
	flow_ended_close(ended);
	return NULL;
}

void flow_ended_close(struct flow_ended *ended)
{
	if (!ended)
		return;
	if (ended->file) {
		flow_ended_publish(ended);
		flow_ended_file_stop(ended->file);
	}
	pages_free(ended->ring, RING * sizeof(*ended->ring));
	free(ended);
}

void flow_ended_set_file(struct flow_ended *ended, int fd)
{
	flow_ended_publish(ended);
	flow_ended_file_change(ended->file, fd);
}

void flow_ended_publish(struct flow_ended *ended)
{
	flow_ended_file_wake(ended->file, ended->last);
}

bool flow_ended_has_space(struct flow_ended *ended)
{
	return flow_ended_file_behind(ended->file, ended->last) + MOST_AT_ONCE <= RING ||
	       flow_ended_file_fails(ended->file);
}

void flow_ended_add(void *ctx_, const struct flow_info *info)
{
	struct api_ctx *ctx = ctx_;
	struct flow_ended *ended = ctx->flows->ended;
	const struct flow_action *action = flow_action_of(ctx->flows->table, info->action);

	if (flow_ended_file_behind(ended->file, ended->last) >= RING)
		flow_ended_file_lose(ended->file, ended->last);
	if (flow_ended_file_behind(ended->file, ended->last) >= RING) {
		ended->n_dropped++;
		return;
	}
	struct flow_ended_row *row = &ended->ring[++ended->last % RING];
	*row = (struct flow_ended_row){.start = ended->start,
		.seq = ended->last,
		.ended_ms = clock_wall_ms(),
		.key = info->key,
		.packets = info->packets,
		.bytes = info->bytes,
		.idle_ms = info->idle_ms,
		.reason = info->reason};
	if (action) {
		row->effect = action->effect;
		row->subscriber = action->subscriber;
	}
	struct flow_tuple tuple;
	flow_key_tuple(&info->key, &tuple);
	const char *vrf = vrf_word(ctx, tuple.vrf);
	strncpy(row->vrf, vrf ? vrf : "", sizeof(row->vrf) - 1);
}

json_t *flow_ended_usage_json(struct flow_ended *ended)
{
	struct flow_ended_file_usage usage;

	flow_ended_file_usage(ended->file, &usage);
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "start", (json_int_t)ended->start, "last",
		(json_int_t)ended->last, "written", (json_int_t)usage.n_written, "lost",
		(json_int_t)(usage.n_lost + ended->n_dropped), "error",
		rpc_text_json(usage.error.text[0] ? usage.error.text : NULL));
}

static json_t *row_json(const struct flow_ended_row *row)
{
	json_t *json = json_pack("{s:I, s:I, s:s}", "seq", (json_int_t)row->seq, "ended_ms",
		(json_int_t)row->ended_ms, "reason", flow_reason_word(row->reason));

	flow_set_key(json, &row->key, row->vrf);
	json_object_set_new(json, "do", json_string(flow_effect_word(row->effect)));
	json_object_set_new(json, "subscriber", number_json(row->subscriber));
	json_object_set_new(json, "idle_for_s", json_real(row->idle_ms / 1e3));
	json_object_set_new(json, "packets", number_json(row->packets));
	json_object_set_new(json, "bytes", number_json(row->bytes));
	return json;
}

json_t *method_flows_ended(void *ctx, const json_t *params, struct error *error)
{
	long after = 0, start = 0, limit = PAGE_ENDED;
	const struct rpc_param rows[] = {
		{"after", RPC_NUMBER, false, 0, INT64_MAX, &after},
		{"start", RPC_NUMBER, false, 0, INT64_MAX, &start},
		{"limit", RPC_NUMBER, false, 1, PAGE_MAX_ENDED, &limit},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	const struct flows *flows = flows_of(ctx, error);
	if (!flows)
		return NULL;
	const struct flow_ended *ended = flows->ended;
	if (start && (uint64_t)start != ended->start)
		after = 0; // of an earlier process: all of this one are unread
	const uint64_t first = ended->last > RING ? ended->last - RING + 1 : 1;
	uint64_t seq = MAX_OF((uint64_t)after + 1, first);
	const uint64_t end = MIN_OF(seq + limit, ended->last + 1);
	const uint64_t n_lost = seq - ((uint64_t)after + 1);
	json_t *list = json_array();
	for (; seq < end; seq++)
		json_array_append_new(list, row_json(&ended->ring[seq % RING]));
	return json_pack("{s:I, s:o, s:I, s:I, s:b}", "start", (json_int_t)ended->start, "ended",
		list, "next", (json_int_t)(seq - 1), "lost", (json_int_t)n_lost, "more",
		seq <= ended->last);
}
