// Answers one line with one line: JSON-RPC 2.0 without any I/O. Control thread.
#include "rpc/answer.h"

#include "base/bits.h"
#include "rpc/rpc.h"

#include <string.h>

enum { MOST_ID_BYTES = 1024 };

// The parsed fields of a message after validation. `id` and `params` are owned, the rest points
// into the message.
struct request {
	json_t *id; // NULL: a notification, which gets no response
	json_t *params;
	const char *method;
};

// Makes a JSON string of a message: input quoted in it may have been truncated inside a UTF-8
// sequence.
static json_t *make_text(const char *text)
{
	json_t *string = json_string(text);
	char ascii[ERROR_MAX];
	size_t n = 0;

	if (string)
		return string;
	for (; text[n] && n < sizeof(ascii) - 1; n++)
		ascii[n] = (signed char)text[n] < 0 ? '?' : text[n];
	return json_stringn(ascii, n);
}

// Takes ownership of `id` (NULL: null) and `body`.
static char *dump(json_t *id, const char *key, json_t *body)
{
	json_t *answer = json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id ? id : json_null(),
		key, body);
	char *line = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	json_decref(answer);
	return line;
}

// Takes ownership of `id`.
static char *dump_error(json_t *id, int code, const char *message)
{
	json_t *error = json_pack("{s:i, s:o}", "code", code, "message", make_text(message));

	return dump(id, "error", error);
}

char *rpc_error_line(int code, const char *message)
{
	return dump_error(NULL, code, message);
}

static json_t *read_message(const char *line, size_t bytes, int *code, struct error *error)
{
	json_error_t json_error;
	json_t *message =
		json_loadb(line, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &json_error);

	if (message)
		return message;
	*code = json_error_code(&json_error) == json_error_duplicate_key ? RPC_INVALID_REQUEST
	                                                                 : RPC_PARSE_ERROR;
	error_set(error, 0, "this line is not valid JSON: %s (byte %d)", json_error.text,
		json_error.position);
	return NULL;
}

// The id is read first, so that all later errors can be returned to the requester.
static int read_id(const json_t *message, struct request *request, struct error *error)
{
	json_t *id = json_object_get(message, "id");

	if (id && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		return error_set(error, RPC_INVALID_REQUEST, "'id' must be a string or a number");
	if (json_string_length(id) > MOST_ID_BYTES) // it is returned in a line of limited length
		return error_set(error, RPC_INVALID_REQUEST,
			"'id' has more than %d bytes; use a shorter one", MOST_ID_BYTES);
	request->id = json_incref(id);
	return 0;
}

static int read_params(const json_t *message, struct request *request, struct error *error)
{
	json_t *params = json_object_get(message, "params");

	if (json_is_array(params))
		return error_set(error, RPC_INVALID_PARAMS,
			"'params' must be an object: positional parameters are not supported");
	if (params && !json_is_object(params))
		return error_set(error, RPC_INVALID_REQUEST, "'params' must be an object");
	request->params = params ? json_incref(params) : json_object();
	return request->params ? 0 : error_set(error, RPC_INTERNAL_ERROR, "out of memory");
}

// 0, or the JSON-RPC error code with `error` set.
static int read_request(const json_t *message, struct request *request, struct error *error)
{
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	int code;

	if (json_is_array(message))
		return error_set(error, RPC_INVALID_REQUEST,
			"batches are not supported; send each request on a line of its own");
	if (!json_is_object(message))
		return error_set(error, RPC_INVALID_REQUEST, "a request must be an object");
	code = read_id(message, request, error);
	if (code)
		return code;
	if (!version || strcmp(version, "2.0"))
		return error_set(error, RPC_INVALID_REQUEST, "'jsonrpc' must be \"2.0\"");
	request->method = json_string_value(json_object_get(message, "method"));
	if (!request->method)
		return error_set(error, RPC_INVALID_REQUEST,
			"'method' must be a string, the name of a method");
	return read_params(message, request, error);
}

static const struct rpc_method *find_method(const struct rpc_methods *methods, const char *name)
{
	for (size_t i = 0; i < methods->n; i++)
		if (!strcmp(methods->table[i].name, name))
			return &methods->table[i];
	return NULL;
}

// Runs the method. Takes ownership of the request's id. NULL: a notification, or out of memory.
static char *run_method(const struct rpc_method *method, void *ctx, struct request *request)
{
	struct error error = {""};
	json_t *result = method->run(ctx, request->params, &error), *id = request->id;
	char *line = NULL;

	request->id = NULL;
	if (!id) {
		json_decref(result);
		return NULL;
	}
	if (result)
		line = dump(json_incref(id), "result", result);
	if (line) {
		json_decref(id);
		return line;
	}
	if (result)
		error_set(&error, 0, "the result of '%s' could not be written as JSON",
			method->name);
	else if (error.text[0])
		return dump_error(id, RPC_METHOD_FAILED, error.text);
	else
		error_set(&error, 0, "'%s' failed without a reason", method->name);
	return dump_error(id, RPC_INTERNAL_ERROR, error.text);
}

char *rpc_answer(const struct rpc_methods *methods, const char *line, size_t bytes)
{
	struct request request = {NULL, NULL, NULL};
	struct error error = {""};
	const struct rpc_method *method = NULL;
	int code = 0;
	json_t *message = read_message(line, bytes, &code, &error);
	char *answer = NULL;

	if (message)
		code = read_request(message, &request, &error);
	if (!code) {
		method = find_method(methods, request.method);
		if (!method)
			code = error_set(&error, RPC_METHOD_NOT_FOUND,
				"unknown method '%s'; 'help' lists all methods", request.method);
	}
	if (method)
		answer = run_method(method, methods->ctx, &request);
	else if (request.id || code == RPC_PARSE_ERROR || code == RPC_INVALID_REQUEST)
		answer = dump_error(json_incref(request.id), code, error.text);
	json_decref(request.id);
	json_decref(request.params);
	json_decref(message);
	return answer;
}
