// Parses single values of a stream, and formats errors about them. Control thread.
#include "gen/read.h"

#include "base/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FOUND_TEXT = 64 };

// Describes a value for error messages.
static const char *found(const json_t *value, char text[FOUND_TEXT])
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		snprintf(text, FOUND_TEXT, "\"%.48s\"%s", json_string_value(value),
			strlen(json_string_value(value)) > 48 ? "..." : "");
		return text;
	case JSON_INTEGER:
		snprintf(text, FOUND_TEXT, "%lld", (long long)json_integer_value(value));
		return text;
	case JSON_REAL:
		snprintf(text, FOUND_TEXT, "%.15g", json_real_value(value));
		return text;
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
		return "(empty)";
	case JSON_ARRAY:
		return "(a list)";
	default:
		return "(a map)";
	}
}

int read_mistake(struct stream_reader *r, const json_t *value, const char *format, ...)
{
	char sentence[ERROR_MAX], text[FOUND_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return error_set(r->error, -EINVAL, "%s: %s%.60s%s%s: %s", r->where, r->inside, r->key,
		value ? " " : "", value ? found(value, text) : "", sentence);
}

static int check_keys(struct stream_reader *r, const json_t *map, const struct stream_key keys[],
	size_t n)
{
	char known[256] = "";
	json_t *value;
	size_t used = 0;

	json_object_foreach ((json_t *)map, r->key, value) {
		const char *nearest = nearest_word(r->key, &keys[0].name, n, sizeof(keys[0]));

		if (nearest[0] && !strcmp(nearest, r->key))
			continue;
		if (nearest[0])
			return read_mistake(r, NULL, "unknown key; did you mean \"%s\"?", nearest);
		for (size_t i = 0; i < n && used < sizeof(known); i++)
			used += snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
				keys[i].name);
		return read_mistake(r, NULL, "unknown key; expected one of %s", known);
	}
	return 0;
}

int read_map(struct stream_reader *r, const json_t *map, const struct stream_key keys[], size_t n)
{
	const char *outer_key = r->key;
	size_t outer = strlen(r->inside);

	if (outer_key)
		snprintf(r->inside + outer, sizeof(r->inside) - outer, "%s.", outer_key);
	int err = check_keys(r, map, keys, n);
	for (size_t i = 0; i < n && !err; i++) {
		r->key = keys[i].name;
		err = keys[i].read(r, json_object_get(map, keys[i].name));
	}
	r->key = outer_key;
	r->inside[outer] = 0;
	return err;
}

const char *read_text(const json_t *value)
{
	const char *text = json_string_value(value);

	return text ? text : "";
}

static bool digits(const char *text, uint64_t *out)
{
	uint64_t number = 0;

	if (!text[0] || strlen(text) > 18 || text[strspn(text, "0123456789")])
		return false;
	for (const char *p = text; *p; p++)
		number = number * 10 + (*p - '0');
	*out = number;
	return true;
}

static bool whole_number(const json_t *value, uint64_t *out)
{
	double real = json_real_value(value);

	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return json_integer_value(value) >= 0;
	}
	if (!json_is_real(value))
		return digits(read_text(value), out);
	if (!(real >= 0 && real < 1e15) || real != floor(real))
		return false;
	*out = real;
	return true;
}

int read_number(struct stream_reader *r, const json_t *value, uint64_t min, uint64_t max,
	uint64_t *out)
{
	uint64_t number;

	if (!whole_number(value, &number) || number < min || number > max)
		return read_mistake(r, value, "expected a whole number from %llu to %llu",
			(unsigned long long)min, (unsigned long long)max);
	*out = number;
	return 0;
}

int read_boolean(struct stream_reader *r, const json_t *value, bool *out)
{
	if (!json_is_boolean(value))
		return read_mistake(r, value, "expected true or false");
	*out = json_is_true(value);
	return 0;
}
