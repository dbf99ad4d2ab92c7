// The method flow_counts. Control thread; workers continue counting.
#include "gen/inside.h"
#include "gen/per_flow.h"

#include <errno.h>

static int find_stream(const struct run *run, const char *name, struct error *error)
{
	for (unsigned i = 0; i < run->streams.n; i++) {
		const struct per_flow *per_flow = run->received[i]->per_flow;

		if (strcmp(run->streams.stream[i].name, name) != 0)
			continue;
		if (per_flow && per_flow->received)
			return i;
		return error_set(error, -EINVAL,
			"the flows of stream %s are not counted; add \"count_flows: true\" to it",
			name);
	}
	return error_set(error, -ENOENT, "the latest run has no stream %s", name);
}

json_t *gen_method_flow_counts(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;
	const struct run *run = ctx->gen->current;
	const char *name = NULL, *path = NULL;
	const struct rpc_param rows[] = {{"stream", RPC_TEXT, true, 0, 0, &name},
		{"path", RPC_TEXT, true, 0, 0, &path}};
	uint64_t total = 0;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	if (path[0] != '/') {
		error_set(error, -EINVAL, "path \"%.200s\": expected an absolute path", path);
		return NULL;
	}
	int i = find_stream(run, name, error);
	if (i < 0 || per_flow_write(run->received[i]->per_flow, path, &total, error))
		return NULL;
	return json_pack("{s:i, s:s, s:o, s:I, s:I}", "run", (int)run->number, "stream", name,
		"path", rpc_text_json(path), "flows", (json_int_t)run->streams.stream[i].n_flows,
		"received", (json_int_t)total);
}
