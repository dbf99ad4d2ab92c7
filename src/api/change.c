// Batches of route changes. Control thread.
#include "api/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANGES = 100000 };

static int read_op(const char *text)
{
	if (!strcmp(text, "add"))
		return FIB_ADD;
	if (!strcmp(text, "replace"))
		return FIB_REPLACE;
	return strcmp(text, "delete") ? -EINVAL : FIB_DELETE;
}

// A delete only needs the prefix.
static int read_change(const struct api_ctx *ctx, const json_t *json, struct fib_change *out,
	struct error *error)
{
	const char *op_text = NULL, *route = NULL;
	const struct rpc_param rows[] = {
		{"op", RPC_TEXT, true, 0, 0, &op_text},
		{"route", RPC_TEXT, true, 0, 0, &route},
	};

	memset(out, 0, sizeof(*out));
	if (!json_is_object(json))
		return error_set(error, -EINVAL,
			"expected an object, {\"op\": ..., \"route\": ...}");
	int err = rpc_params_read(json, rows, 2, error);
	if (err)
		return err;
	int op = read_op(op_text);
	if (op < 0)
		return error_set(error, op, "\"op\" is \"%.60s\"; expected add, replace or delete",
			op_text);
	out->op = op;
	if (op == FIB_DELETE && !config_parse_prefix(route, &out->route.prefix))
		return 0;
	struct error inner;
	int refused = config_parse_route(ctx->config, ctx->fib, route, &out->route, &inner);
	return refused ? error_set(error, refused, "%s \"%.80s\": %s", op_text, route, inner.text)
	               : 0;
}

static int read_changes(const struct api_ctx *ctx, const json_t *list, struct fib_change out[],
	struct error *error)
{
	struct error inner;

	for (size_t i = 0; i < json_array_size(list); i++) {
		int err = read_change(ctx, json_array_get(list, i), &out[i], &inner);

		if (err)
			return error_set(error, err, "changes[%zu]: %s; nothing was changed", i,
				inner.text);
	}
	return 0;
}

json_t *method_routes_change(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	const json_t *list = NULL;
	const struct rpc_param rows[] = {{"changes", RPC_LIST, true, 0, MAX_CHANGES, &list}};
	struct error inner;
	size_t bad = 0;

	if (rpc_params_read(params, rows, 1, error))
		return NULL;
	if (ctx->taps) {
		error_set(error, -ENOTSUP,
			"Linux is the control plane; configure routes there: ip -n NAMESPACE route "
			"add PREFIX via ADDRESS");
		return NULL;
	}
	size_t n = json_array_size(list);
	struct fib_change *changes = malloc((n + 1) * sizeof(*changes));
	if (!changes) {
		error_set(error, -ENOMEM, "not enough memory for %zu changes; send fewer at a time",
			n);
		return NULL;
	}
	int err = read_changes(ctx, list, changes, error);
	// Without changes it releases the groups allocated for them.
	int applied = fib_change(ctx->fib, changes, err ? 0 : n, &bad, &inner);
	if (!err && applied)
		err = error_set(error, applied, "changes[%zu]: %s; nothing was changed", bad,
			inner.text);
	free(changes);
	return err ? NULL : json_pack("{s:I}", "changed", (json_int_t)n);
}
