// The table of methods, and the methods about the program itself. Control thread.
#include "api/inside.h"

#include "base/bits.h"

#define METHOD_ROW(method, name, params, text) {name, method_##method},
static const struct rpc_method methods[] = {SCHEMA_METHODS(METHOD_ROW)};

#define HELP_ROW(method, name, params, text) {name, params, text},
static const struct rpc_help help_rows[] = {SCHEMA_METHODS(HELP_ROW)};

const struct rpc_method *api_table(size_t *n)
{
	*n = ARRAY_LEN(methods);
	return methods;
}

json_t *method_help(void *ctx, const json_t *params, struct error *error)
{
	if (rpc_params_none(params, error))
		return NULL;
	return rpc_help_json(help_rows, ARRAY_LEN(help_rows));
}

json_t *method_stop(void *ctx, const json_t *params, struct error *error)
{
	struct api_ctx *api_ctx = ctx;

	if (rpc_params_none(params, error))
		return NULL;
	api_ctx->stop = true;
	return json_pack("{s:b}", "stopping", 1);
}
