// A client of the verbs, for their tests. Test.
#include "verbs/asking.h"

#include "verbs/fake_house.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct verbs_house house;
char file[] = "/tmp/verbs_XXXXXX";

void write_file(const char *text)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

int asking_open(const char *text)
{
	struct complaint why = {""};

	strcpy(strrchr(file, '_'), "_XXXXXX");
	close(mkstemp(file));
	fake_reset();
	house = (struct verbs_house){.silent_lane = -1, .wake = -1};
	write_file(text);
	if (config_load(&house.config, file, &why) ||
		verbs_build(house.config, port_faces(NULL), &house.fib, &why))
		fail_msg("refused: %s", why.text);
	house.door = fib_door_create(2, &why);
	assert_non_null(house.door);
	assert_null(verbs_swap(&house, house.fib));
	return 0;
}

int asking_close(void **state)
{
	fib_door_swap(house.door, NULL);
	fib_door_destroy(house.door);
	fib_destroy(house.fib);
	config_free(house.config);
	unlink(file);
	return 0;
}

json_t *call(const char *verb, const char *params)
{
	struct ctl_verbs verbs = {.house = &house};
	char line[4096];

	verbs.table = verbs_table(&verbs.n);
	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", verb, params);
	char *text = ctl_answer(&verbs, line, strlen(line));
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

void check(const char *verb, const char *params, const char *path, const char *json)
{
	check_all(verb, params, (struct wanted[]){{path, json}, {NULL, NULL}});
}

void check_all(const char *verb, const char *params, const struct wanted rows[])
{
	json_t *reply = call(verb, params);

	for (; rows->path; rows++)
		expect(reply, rows->path, rows->json);
	json_decref(reply);
}
