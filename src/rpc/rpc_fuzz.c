// Arbitrary bytes as a request line to a small table of methods: the response is always one line of
// JSON-RPC, or none.
#include "rpc/rpc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static json_t *echo(void *ctx, const json_t *params, struct error *error)
{
	return json_deep_copy(params);
}

static json_t *refuse(void *ctx, const json_t *params, struct error *error)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)params, key, value)
		error_set(error, -1, "%s: %s", key,
			json_is_string(value) ? json_string_value(value) : "no text");
	return NULL;
}

static const struct rpc_method table[] = {{"echo", echo}, {"refuse", refuse}};
static const struct rpc_methods methods = {.table = table, .n = 2};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *line = rpc_answer(&methods, (const char *)data, n);
	json_t *answer;

	if (!line)
		return 0;
	answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	if (!answer || strchr(line, '\n') || !json_object_get(answer, "id") ||
		json_object_size(answer) != 3)
		abort();
	if (!json_object_get(answer, "result") == !json_object_get(answer, "error"))
		abort();
	json_decref(answer);
	free(line);
	return 0;
}
