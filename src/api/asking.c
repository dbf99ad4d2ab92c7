// Calls methods, for their tests. Tests only.
#include "api/asking.h"

#include "api/fake_ctx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct api_ctx ctx;
char file[] = "/tmp/methods_XXXXXX";

void write_file(const char *text)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

int asking_open(const char *text)
{
	struct error error = {""};

	strcpy(strrchr(file, '_'), "_XXXXXX");
	close(mkstemp(file));
	fake_reset();
	ctx = (struct api_ctx){.silent_worker = -1, .wake = -1};
	write_file(text);
	if (config_load(&ctx.config, file, &error) ||
		api_build(ctx.config, port_states(NULL), &ctx.fib, &error))
		fail_msg("refused: %s", error.text);
	ctx.rcu = fib_rcu_create(2, &error);
	assert_non_null(ctx.rcu);
	assert_null(api_swap(&ctx, ctx.fib));
	return 0;
}

int asking_close(void **state)
{
	fib_rcu_swap(ctx.rcu, NULL);
	fib_rcu_destroy(ctx.rcu);
	fib_destroy(ctx.fib);
	config_free(ctx.config);
	unlink(file);
	return 0;
}

json_t *call(const char *method, const char *params)
{
	struct rpc_methods methods = {.ctx = &ctx};
	char line[4096];

	methods.table = api_table(&methods.n);
	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
	char *text = rpc_answer(&methods, line, strlen(line));
	json_t *reply = json_loads(text, 0, NULL),
	       *result = json_incref(json_object_get(reply, "result"));

	assert_non_null(reply);
	if (!result)
		result = json_pack("{s:O}", "error",
			json_object_get(json_object_get(reply, "error"), "message"));
	json_decref(reply);
	free(text);
	return result;
}

void expect(const json_t *reply, const char *path, const char *json)
{
	char *steps = strdup(path), *rest = steps, *step;
	const json_t *value = reply;
	json_t *wanted = json_loads(json, JSON_DECODE_ANY, NULL);

	while ((step = strsep(&rest, ".")))
		value = json_is_array(value) ? json_array_get(value, atoi(step))
		                             : json_object_get(value, step);
	if (!value && json_is_null(wanted)) {
		json_decref(wanted);
		free(steps);
		return;
	}
	if (!json_equal(value, wanted)) {
		char *is = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

		print_error("%s is %s, not %s\n", path, is, json);
		free(is);
		fail();
	}
	json_decref(wanted);
	free(steps);
}

void check(const char *method, const char *params, const char *path, const char *json)
{
	check_all(method, params, (struct wanted[]){{path, json}, {NULL, NULL}});
}

void check_all(const char *method, const char *params, const struct wanted rows[])
{
	json_t *reply = call(method, params);

	for (; rows->path; rows++)
		expect(reply, rows->path, rows->json);
	json_decref(reply);
}
