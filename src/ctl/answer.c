// One line in, one line out: JSON-RPC 2.0 without any I/O. Control thread.
#include "ctl/answer.h"

#include "base/bits.h"
#include "ctl/ctl.h"

#include <string.h>

enum { MOST_ID_BYTES = 1024 };

// What is left of a message after its form was judged. `id` and `params` are owned, the rest points
// into the message.
struct request {
	json_t *id; // NULL: a notification, which nobody wants answered
	json_t *params;
	const char *method;
};

// A sentence as a JSON string: input that it quotes may have been cut in the middle of a character.
static json_t *make_text(const char *text)
{
	json_t *string = json_string(text);
	char ascii[COMPLAINT_MAX];
	size_t n = 0;

	if (string)
		return string;
	for (; text[n] && n < sizeof(ascii) - 1; n++)
		ascii[n] = (signed char)text[n] < 0 ? '?' : text[n];
	return json_stringn(ascii, n);
}

// Takes `id` (NULL stands for null) and `body`.
static char *dump(json_t *id, const char *key, json_t *body)
{
	json_t *answer = json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id ? id : json_null(),
		key, body);
	char *line = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	json_decref(answer);
	return line;
}

// Takes `id`.
static char *dump_error(json_t *id, int code, const char *message)
{
	json_t *error = json_pack("{s:i, s:o}", "code", code, "message", make_text(message));

	return dump(id, "error", error);
}

char *ctl_error_line(int code, const char *message)
{
	return dump_error(NULL, code, message);
}

static json_t *read_message(const char *line, size_t bytes, int *code, struct complaint *why)
{
	json_error_t error;
	json_t *message = json_loadb(line, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

	if (message)
		return message;
	*code = json_error_code(&error) == json_error_duplicate_key ? CTL_INVALID_REQUEST
	                                                            : CTL_PARSE_ERROR;
	complain(why, 0, "this line is not JSON as wanted here: %s (byte %d)", error.text,
		error.position);
	return NULL;
}

// The id is read first, so that all later mistakes can be told to the one who made them.
static int read_id(const json_t *message, struct request *request, struct complaint *why)
{
	json_t *id = json_object_get(message, "id");

	if (id && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		return complain(why, CTL_INVALID_REQUEST, "'id' has to be a string or a number");
	if (json_string_length(id) > MOST_ID_BYTES) // it comes back in a line of limited length
		return complain(why, CTL_INVALID_REQUEST,
			"'id' has more than %d bytes; choose "
			"a shorter one",
			MOST_ID_BYTES);
	request->id = json_incref(id);
	return 0;
}

static int read_params(const json_t *message, struct request *request, struct complaint *why)
{
	json_t *params = json_object_get(message, "params");

	if (json_is_array(params))
		return complain(why, CTL_INVALID_PARAMS,
			"'params' has to be an object: parameters have names here");
	if (params && !json_is_object(params))
		return complain(why, CTL_INVALID_REQUEST, "'params' has to be an object");
	request->params = params ? json_incref(params) : json_object();
	return request->params ? 0 : complain(why, CTL_INTERNAL_ERROR, "out of memory");
}

// 0, or the error's code with a complaint.
static int read_request(const json_t *message, struct request *request, struct complaint *why)
{
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	int code;

	if (json_is_array(message))
		return complain(why, CTL_INVALID_REQUEST,
			"batches are not taken; send each request on a line of its own");
	if (!json_is_object(message))
		return complain(why, CTL_INVALID_REQUEST, "a request has to be an object");
	code = read_id(message, request, why);
	if (code)
		return code;
	if (!version || strcmp(version, "2.0"))
		return complain(why, CTL_INVALID_REQUEST, "'jsonrpc' has to be \"2.0\"");
	request->method = json_string_value(json_object_get(message, "method"));
	if (!request->method)
		return complain(why, CTL_INVALID_REQUEST, "'method' has to name a verb");
	return read_params(message, request, why);
}

static const struct ctl_verb *find_verb(const struct ctl_verbs *verbs, const char *name)
{
	for (size_t i = 0; i < verbs->n; i++)
		if (!strcmp(verbs->table[i].name, name))
			return &verbs->table[i];
	return NULL;
}

// Runs the verb. Takes the request's id. NULL: a notification, or out of memory.
static char *run_verb(const struct ctl_verb *verb, void *house, struct request *request)
{
	struct complaint why = {""};
	json_t *result = verb->run(house, request->params, &why), *id = request->id;
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
		complain(&why, 0, "the result of '%s' could not be written as JSON", verb->name);
	else if (why.text[0])
		return dump_error(id, CTL_VERB_FAILED, why.text);
	else
		complain(&why, 0, "'%s' failed without a reason", verb->name);
	return dump_error(id, CTL_INTERNAL_ERROR, why.text);
}

char *ctl_answer(const struct ctl_verbs *verbs, const char *line, size_t bytes)
{
	struct request request = {NULL, NULL, NULL};
	struct complaint why = {""};
	const struct ctl_verb *verb = NULL;
	int code = 0;
	json_t *message = read_message(line, bytes, &code, &why);
	char *answer = NULL;

	if (message)
		code = read_request(message, &request, &why);
	if (!code) {
		verb = find_verb(verbs, request.method);
		if (!verb)
			code = complain(&why, CTL_METHOD_NOT_FOUND,
				"there is no verb '%s'; 'help' lists them", request.method);
	}
	if (verb)
		answer = run_verb(verb, verbs->house, &request);
	else if (request.id || code == CTL_PARSE_ERROR || code == CTL_INVALID_REQUEST)
		answer = dump_error(json_incref(request.id), code, why.text);
	json_decref(request.id);
	json_decref(request.params);
	json_decref(message);
	return answer;
}
