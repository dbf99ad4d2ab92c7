// The method flows.change: each change is applied or refused by itself. Control thread.
#include "api/flows.h"

#include "base/bits.h"

#include <errno.h>
#include <rte_cycles.h>
#include <string.h>

// A request is a line of at most 1 MiB; a response, too.
enum { MAX_CHANGES = 10000, MAX_LISTED = 1000, BATCH = 64, MAX_SECONDS = FLOW_MAX_LASTS_MS / 1000 };

// A batch of changes. Those that were refused when they were read are left out of `change`.
struct batch {
	struct api_ctx *ctx;
	struct flow_names *names;
	unsigned n;
	struct flow_change change[BATCH];
	size_t index[BATCH]; // in the request
	int result[BATCH];
	size_t n_applied, n_refused;
	json_t *refusals;
};

static void refuse(struct batch *batch, size_t index, const char *reason)
{
	if (batch->n_refused++ >= MAX_LISTED)
		return;
	json_array_append_new(batch->refusals, json_pack("{s:I, s:o}", "index", (json_int_t)index,
						       "reason", rpc_text_json(reason)));
}

static int read_op(const char *text)
{
	if (!strcmp(text, "add"))
		return FLOW_ADD;
	if (!strcmp(text, "replace"))
		return FLOW_REPLACE;
	return strcmp(text, "delete") ? -EINVAL : FLOW_DELETE;
}

static int unknown_timeout(const struct config_flow *config, long idle_s, struct error *error)
{
	char known[128] = "";
	size_t used = 0;

	if (!config->timeout_s[0])
		return error_set(error, -EINVAL,
			"parameter \"idle_s\": the configuration file has no timeouts (flow: "
			"timeouts)");
	for (unsigned i = 0; i < FLOW_TIMEOUTS && config->timeout_s[i]; i++)
		used += snprintf(known + used, sizeof(known) - used, "%s%u", used ? ", " : "",
			config->timeout_s[i]);
	return error_set(error, -EINVAL,
		"parameter \"idle_s\" is %ld; expected one of the timeouts in the configuration "
		"file: %s",
		idle_s, known);
}

// idle_s, ends_s: -1 if they are not given.
static int read_life(const struct api_ctx *ctx, long idle_s, long ends_s, struct flow_change *out,
	struct error *error)
{
	const struct config_flow *config = config_flow(ctx->config);

	if (idle_s >= 0 && ends_s >= 0)
		return error_set(error, -EINVAL,
			"\"idle_s\" and \"ends_s\" are both given; expected one of them");
	if (ends_s >= 0) {
		out->life = FLOW_FIXED_END;
		out->lasts_ms = ends_s * 1000;
		return 0;
	}
	for (unsigned i = 0; i < FLOW_TIMEOUTS && idle_s >= 0; i++)
		if (config->timeout_s[i] == idle_s)
			out->life = i + 1;
	return idle_s < 0 || out->life ? 0 : unknown_timeout(config, idle_s, error);
}

static int read_action(struct batch *batch, const json_t *json, uint32_t *number,
	struct error *error)
{
	struct flow_spec spec;
	struct error inner;

	if (!json)
		return error_set(error, -EINVAL, "missing parameter \"action\"");
	int err = flow_spec_read(batch->ctx, json, &batch->names, &spec, &inner);
	if (!err)
		err = flow_spec_use(batch->ctx, &spec, number, &inner);
	return err ? error_set(error, err, "action: %s", inner.text) : 0;
}

static int read_change(struct batch *batch, const json_t *json, struct flow_change *out,
	struct error *error)
{
	const char *op_text = NULL;
	const json_t *action = NULL;
	long idle_s = -1, ends_s = -1;
	struct flow_key_params key;
	struct rpc_param rows[FLOW_KEY_ROWS + 4] = {
		[FLOW_KEY_ROWS] = {"op", RPC_TEXT, true, 0, 0, &op_text},
		{"action", RPC_ANY, false, 0, 0, &action},
		{"idle_s", RPC_NUMBER, false, 1, MAX_SECONDS, &idle_s},
		{"ends_s", RPC_NUMBER, false, 0, MAX_SECONDS, &ends_s},
	};

	*out = (struct flow_change){.op = FLOW_ADD};
	flow_key_rows(&key, rows);
	if (!json_is_object(json))
		return error_set(error, -EINVAL, "expected an object, {\"op\": ...}");
	int err = rpc_params_read(json, rows, ARRAY_LEN(rows), error);
	if (err)
		return err;
	int op = read_op(op_text);
	if (op < 0)
		return error_set(error, op, "\"op\" is \"%.60s\"; expected add, replace or delete",
			op_text);
	out->op = op;
	err = flow_key_read(batch->ctx, &key, &out->key, error);
	if (err || op == FLOW_DELETE)
		return err;
	err = read_life(batch->ctx, idle_s, ends_s, out, error);
	return err ? err : read_action(batch, action, &out->action, error);
}

static void refuse_by_table(struct batch *batch, size_t index, int result)
{
	char text[128];

	snprintf(text, sizeof(text), "changes[%zu]: %s", index, flow_refusal_text(result));
	refuse(batch, index, text);
}

static void apply(struct batch *batch)
{
	struct flow_table *table = batch->ctx->flows->table;

	batch->n_applied += flow_change(table, batch->change, batch->n, rte_rdtsc(), batch->result);
	for (unsigned i = 0; i < batch->n; i++) {
		if (batch->change[i].action)
			flow_action_unuse(table, batch->change[i].action);
		if (batch->result[i])
			refuse_by_table(batch, batch->index[i], batch->result[i]);
	}
	batch->n = 0;
}

static void read_and_apply(struct batch *batch, const json_t *list)
{
	struct error error, whole;

	for (size_t i = 0; i < json_array_size(list); i++) {
		if (read_change(batch, json_array_get(list, i), &batch->change[batch->n], &error)) {
			error_set(&whole, 0, "changes[%zu]: %s", i, error.text);
			refuse(batch, i, whole.text);
			continue;
		}
		batch->index[batch->n++] = i;
		if (batch->n == BATCH)
			apply(batch);
	}
	apply(batch);
}

json_t *method_flows_change(void *ctx_, const json_t *params, struct error *error)
{
	const json_t *list = NULL;
	const struct rpc_param rows[] = {{"changes", RPC_LIST, true, 0, MAX_CHANGES, &list}};
	struct batch batch = {.ctx = ctx_};
	struct flows *flows;

	if (rpc_params_read(params, rows, 1, error))
		return NULL;
	flows = flows_of(ctx_, error);
	if (!flows)
		return NULL;
	if (!flow_ended_has_space(flows->ended)) {
		error_set(error, -EAGAIN,
			"the file of ended flows cannot be written fast enough; try again later");
		return NULL;
	}
	batch.refusals = json_array();
	read_and_apply(&batch, list);
	flow_names_free(batch.names);
	return json_pack("{s:I, s:I, s:o}", "applied", (json_int_t)batch.n_applied, "refused",
		(json_int_t)batch.n_refused, "results", batch.refusals);
}
