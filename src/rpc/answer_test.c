// Request lines and their response lines.
#include "rpc/answer.h"
#include "rpc/rpc.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned n_runs;

static json_t *echo(void *ctx, const json_t *params, struct error *error)
{
	n_runs++;
	return json_deep_copy(params);
}

static json_t *refuse(void *ctx, const json_t *params, struct error *error)
{
	error_set(error, -1, "prefix '%s' has host bits",
		json_string_value(json_object_get(params, "prefix")));
	return NULL;
}

static json_t *fail_silently(void *ctx, const json_t *params, struct error *error)
{
	return NULL;
}

static json_t *cut_a_character(void *ctx, const json_t *params, struct error *error)
{
	error_set(error, -1, "cut here: \xc3");
	return NULL;
}

static json_t *tell_ctx(void *ctx, const json_t *params, struct error *error)
{
	return json_integer(*(int *)ctx);
}

static const struct rpc_method table[] = {
	{"echo", echo},
	{"refuse", refuse},
	{"silent", fail_silently},
	{"cut", cut_a_character},
	{"context", tell_ctx},
};
static int ctx = 7;
static const struct rpc_methods methods = {.table = table, .n = ARRAY_LEN(table), .ctx = &ctx};

// Passes the line in an allocation of exactly its size, so that sanitizers detect overreads.
static char *answer(const char *line, size_t bytes)
{
	char *copy = malloc(bytes + 1), *out;

	memcpy(copy + 1, line, bytes);
	out = rpc_answer(&methods, copy + 1, bytes);
	free(copy);
	return out;
}

static void answers_each_request_with_the_right_line(void **state)
{
	static const char *const rows[][2] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"a\":[1,"
		 "\"\xc3\xa4\"]}}",
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,\"\xc3\xa4\"]}}"},
		{" {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"echo\"} \r\n",
			"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}"},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"echo\"}",
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"context\",\"params\":{}}",
			"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":7}"},
		{"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"refuse\",\"params\":{\"prefix\":\"10."
		 "0.0.1/8\"}}",
			"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32000,\"message\":"
			"\"prefix '10.0.0.1/8' has host bits\"}}"},
		{"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"cut\"}",
			"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32000,\"message\":"
			"\"cut here: ?\"}}"},
		{"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"nope\"}",
			"{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32601,\"message\":"
			"\"unknown method 'nope'; 'help' lists all methods\"}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *line = answer(rows[i][0], strlen(rows[i][0]));

		assert_non_null(line);
		assert_string_equal(line, rows[i][1]);
		free(line);
	}
}

// The error code in the response, whose id must be `id` as JSON.
static int code_of(const char *line, size_t bytes, const char *id)
{
	char *out = answer(line, bytes), *id_text;
	json_t *message;
	int code;

	if (!out)
		return 0;
	message = json_loads(out, 0, NULL);
	assert_non_null(message);
	assert_null(strchr(out, '\n'));
	id_text = json_dumps(json_object_get(message, "id"), JSON_ENCODE_ANY);
	assert_string_equal(id_text, id);
	assert_string_equal(json_string_value(json_object_get(message, "jsonrpc")), "2.0");
	code = json_integer_value(json_object_get(json_object_get(message, "error"), "code"));
	assert_true(json_string_length(
			    json_object_get(json_object_get(message, "error"), "message")) > 5);
	free(id_text);
	json_decref(message);
	free(out);
	return code;
}

static void refuses_each_mistake_with_its_code(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *id;
	} rows[] = {
		{"", RPC_PARSE_ERROR, "null"},
		{"hello", RPC_PARSE_ERROR, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"", RPC_PARSE_ERROR, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}x", RPC_PARSE_ERROR, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}{}", RPC_PARSE_ERROR, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", RPC_PARSE_ERROR, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\u0000\"}", RPC_PARSE_ERROR, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"echo\"}", RPC_PARSE_ERROR, "null"},
		{"{\"id\":1,\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"echo\"}", RPC_INVALID_REQUEST,
			"null"},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":{\"a\":1,\"a\":2}}",
			RPC_INVALID_REQUEST, "null"},
		{"[]", RPC_INVALID_REQUEST, "null"},
		{"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}]", RPC_INVALID_REQUEST,
			"null"},
		{"1", RPC_INVALID_REQUEST, "null"},
		{"null", RPC_INVALID_REQUEST, "null"},
		{"{}", RPC_INVALID_REQUEST, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"echo\"}", RPC_INVALID_REQUEST,
			"null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"echo\"}", RPC_INVALID_REQUEST,
			"null"},
		{"{\"id\":1,\"method\":\"echo\"}", RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"echo\"}", RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"echo\"}", RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}", RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":1}",
			RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":null}",
			RPC_INVALID_REQUEST, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}",
			RPC_INVALID_PARAMS, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", RPC_METHOD_NOT_FOUND, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ECHO\"}", RPC_METHOD_NOT_FOUND, "1"},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"silent\"}", RPC_INTERNAL_ERROR,
			"\"a\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"refuse\"}", RPC_METHOD_FAILED,
			"\"a\""},
	};

	n_runs = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int code = code_of(rows[i].line, strlen(rows[i].line), rows[i].id);

		if (code != rows[i].code)
			fail_msg("'%s' is answered with %d, wanted %d", rows[i].line, code,
				rows[i].code);
	}
	assert_int_equal(n_runs, 0);
}

static void refuses_a_zero_byte(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\0\"}";

	assert_int_equal(code_of(line, sizeof(line) - 1, "null"), RPC_PARSE_ERROR);
}

static void refuses_what_is_nested_too_deep(void **state)
{
	enum { DEPTH = 500000 };
	char *line = malloc(DEPTH);

	memset(line, '[', DEPTH);
	assert_int_equal(code_of(line, DEPTH, "null"), RPC_PARSE_ERROR);
	for (int i = 0; i + 5 <= DEPTH; i += 5)
		memcpy(line + i, "{\"a\":", 5);
	assert_int_equal(code_of(line, DEPTH, "null"), RPC_PARSE_ERROR);
	free(line);
}

static void runs_a_notification_and_says_nothing(void **state)
{
	static const char *const lines[] = {
		"{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"refuse\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"nope\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[1]}",
	};

	n_runs = 0;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_null(answer(lines[i], strlen(lines[i])));
	assert_int_equal(n_runs, 1);
}

static void tells_a_method_name_that_is_longer_than_a_sentence(void **state)
{
	char line[2000];
	int n = snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");

	for (; n < 1500; n += 2)
		memcpy(line + n, "\xc3\xa4", 2);
	n += snprintf(line + n, sizeof(line) - n, "\"}");
	assert_int_equal(code_of(line, n, "1"), RPC_METHOD_NOT_FOUND);
}

// The id is returned in the response, whose line must stay within its limit.
static void gives_back_an_id_of_1024_bytes_and_no_longer_one(void **state)
{
	enum { MOST = 1024 };
	char line[2000], id[MOST + 3] = "\"";

	for (int extra = 0; extra <= 1; extra++) {
		memset(id + 1, 'x', MOST);
		memcpy(id + 1 + MOST, "\"", 2);
		int n = snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":\"%s%s,\"method\":\"nope\"}", extra ? "x" : "",
			id + 1);
		assert_int_equal(code_of(line, n, extra ? "null" : id),
			extra ? RPC_INVALID_REQUEST : RPC_METHOD_NOT_FOUND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_request_with_the_right_line),
		cmocka_unit_test(refuses_each_mistake_with_its_code),
		cmocka_unit_test(refuses_a_zero_byte),
		cmocka_unit_test(refuses_what_is_nested_too_deep),
		cmocka_unit_test(runs_a_notification_and_says_nothing),
		cmocka_unit_test(gives_back_an_id_of_1024_bytes_and_no_longer_one),
		cmocka_unit_test(tells_a_method_name_that_is_longer_than_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
