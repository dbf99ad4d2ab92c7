// The methods flow_counts and arrivals. Control thread; workers continue counting.
#include "gen/inside.h"
#include "gen/per_flow.h"

#include <errno.h>

static int find_stream(const struct run *run, const char *name, struct error *error)
{
	for (unsigned i = 0; i < run->streams.n; i++)
		if (!strcmp(run->streams.stream[i].name, name))
			return i;
	return error_set(error, -ENOENT, "the latest run has no stream %s", name);
}

struct wanted {
	const char *name, *path;
	const struct per_flow *per_flow; // NULL: the stream has none
	unsigned place;
};

static int read_wanted(const struct run *run, const json_t *params, struct wanted *w,
	struct error *error)
{
	const struct rpc_param rows[] = {{"stream", RPC_TEXT, true, 0, 0, &w->name},
		{"path", RPC_TEXT, true, 0, 0, &w->path}};
	int err = rpc_params_read(params, rows, ARRAY_LEN(rows), error);

	if (err)
		return err;
	if (w->path[0] != '/')
		return error_set(error, -EINVAL, "path \"%.200s\": expected an absolute path",
			w->path);
	int i = find_stream(run, w->name, error);
	if (i < 0)
		return i;
	w->place = i;
	w->per_flow = run->received[i]->per_flow;
	return 0;
}

json_t *gen_method_flow_counts(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;
	const struct run *run = ctx->gen->current;
	struct wanted w = {0};
	uint64_t total = 0;

	if (read_wanted(run, params, &w, error))
		return NULL;
	if (!w.per_flow || !w.per_flow->received) {
		error_set(error, -EINVAL,
			"the flows of stream %s are not counted; add \"count_flows: true\" to it",
			w.name);
		return NULL;
	}
	if (per_flow_write(w.per_flow, w.path, &total, error))
		return NULL;
	return json_pack("{s:i, s:s, s:o, s:I, s:I}", "run", (int)run->number, "stream", w.name,
		"path", rpc_text_json(w.path), "flows",
		(json_int_t)run->streams.stream[w.place].n_flows, "received", (json_int_t)total);
}

json_t *gen_method_arrivals(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;
	const struct run *run = ctx->gen->current;
	const struct arrivals_clock clock = {run->start, run->hz};
	struct arrivals_written written = {0};
	struct wanted w = {0};

	if (read_wanted(run, params, &w, error))
		return NULL;
	if (!w.per_flow || !w.per_flow->arrivals) {
		error_set(error, -EINVAL,
			"the arrivals of stream %s are not logged; add \"log_arrivals: N\" to it",
			w.name);
		return NULL;
	}
	if (arrivals_write(w.per_flow->arrivals, w.path, &clock, &written, error))
		return NULL;
	return json_pack("{s:i, s:s, s:o, s:I, s:I}", "run", (int)run->number, "stream", w.name,
		"path", rpc_text_json(w.path), "frames", (json_int_t)written.frames, "missed",
		(json_int_t)written.missed);
}
