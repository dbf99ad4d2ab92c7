#include "api/flows_fixture.h"

#include "api/flows.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char flows_path[64], ended_path[64];
static char folder[] = "/tmp/flows_test_XXXXXX";

void open_flows(void)
{
	struct error error = {""};

	if (api_open_flows(&ctx, HZ, &error))
		fail_msg("refused: %s", error.text);
}

static int make_ctx_with(bool has_ended_file)
{
	char text[1024];

	strcpy(strrchr(folder, '_'), "_XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(flows_path, sizeof(flows_path), "%s/flows", folder);
	snprintf(ended_path, sizeof(ended_path), "%s/ended", folder);
	snprintf(text, sizeof(text), PORTS FLOW ", file: %s%s%s}\n", flows_path,
		has_ended_file ? ", ended_file: " : "", has_ended_file ? ended_path : "");
	fixture_open(text);
	open_flows();
	api_has_become_ready(&ctx);
	poll_once();
	return 0;
}

int make_ctx(void **state)
{
	return make_ctx_with(false);
}

int make_ctx_with_ended_file(void **state)
{
	return make_ctx_with(true);
}

int close_ctx(void **state)
{
	char command[128];

	api_close_flows(&ctx);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	return fixture_close(state);
}

void poll_once(void)
{
	struct error error = {""};

	assert_int_equal(api_poll(&ctx, &error), 0);
}

void wait_for(const char *method, const char *params, const char *key, const char *json)
{
	const uint64_t until_ns = clock_now_ns() + PATIENCE_S * 1000000000ull;
	json_t *wanted = json_loads(json, JSON_DECODE_ANY, NULL);
	bool is_there = false;

	while (!is_there && clock_now_ns() < until_ns) {
		poll_once();
		json_t *reply = call(method, params);
		is_there = json_equal(json_object_get(reply, key), wanted);
		json_decref(reply);
	}
	json_decref(wanted);
	if (!is_there)
		check(method, params, key, json);
}

void change(const char *changes, unsigned n_applied)
{
	char params[4096], wanted[16];

	snprintf(params, sizeof(params), "{\"changes\": [%s]}", changes);
	snprintf(wanted, sizeof(wanted), "%u", n_applied);
	json_t *reply = call("flows.change", params);
	expect(reply, "results", "[]");
	expect(reply, "applied", wanted);
	json_decref(reply);
}

unsigned count_pages(const char *vrf, unsigned limit)
{
	unsigned seen = 0;
	json_int_t next = 0;

	for (bool more = true; more;) {
		char params[128];
		snprintf(params, sizeof(params), "{\"limit\": %u, \"after\": %d%s}", limit,
			(int)next, vrf);
		json_t *page = call("flows.list", params);
		assert_true(json_array_size(json_object_get(page, "flows")) <= limit);
		seen += json_array_size(json_object_get(page, "flows"));
		more = json_is_integer(json_object_get(page, "next"));
		next = json_integer_value(json_object_get(page, "next"));
		json_decref(page);
	}
	return seen;
}
