// Shared by methods: table-driven parameters, text conversion, the list of all methods. Control
// thread.
#include "rpc/rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct rpc_param *find(const struct rpc_param rows[], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static int take_number(const json_t *value, const struct rpc_param *row, struct error *error)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < row->min || number > row->max)
		return error_set(error, -EINVAL,
			"parameter \"%s\": expected a number from %ld to %ld", row->name, row->min,
			row->max);
	*(long *)row->out = number;
	return 0;
}

static int take_real(const json_t *value, const struct rpc_param *row, struct error *error)
{
	double number = json_number_value(value);

	if (!json_is_number(value) || !(number >= row->min && number <= row->max))
		return error_set(error, -EINVAL,
			"parameter \"%s\": expected a number from %ld to %ld", row->name, row->min,
			row->max);
	*(double *)row->out = number;
	return 0;
}

static int take_flag(const json_t *value, const struct rpc_param *row, struct error *error)
{
	if (!json_is_boolean(value))
		return error_set(error, -EINVAL, "parameter \"%s\": expected true or false",
			row->name);
	*(bool *)row->out = json_is_true(value);
	return 0;
}

static int take_text(const json_t *value, const struct rpc_param *row, struct error *error)
{
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return error_set(error, -EINVAL, "parameter \"%s\": expected text in quotes",
			row->name);
	*(const char **)row->out = json_string_value(value);
	return 0;
}

static int take_list(const json_t *value, const struct rpc_param *row, struct error *error)
{
	long n = json_array_size(value);

	if (!json_is_array(value) || n < row->min || n > row->max)
		return error_set(error, -EINVAL,
			"parameter \"%s\": expected a list of %ld to %ld members", row->name,
			row->min, row->max);
	*(const json_t **)row->out = value;
	return 0;
}

static int take(const json_t *value, const struct rpc_param *row, struct error *error)
{
	switch (row->type) {
	case RPC_NUMBER:
		return take_number(value, row, error);
	case RPC_REAL:
		return take_real(value, row, error);
	case RPC_FLAG:
		return take_flag(value, row, error);
	case RPC_TEXT:
		return take_text(value, row, error);
	case RPC_ANY:
		*(const json_t **)row->out = value;
		return 0;
	default:
		return take_list(value, row, error);
	}
}

int rpc_params_read(const json_t *params, const struct rpc_param rows[], size_t n,
	struct error *error)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)params, name, value) {
		const struct rpc_param *row = find(rows, n, name);

		if (!row)
			return error_set(error, -EINVAL,
				"unknown parameter \"%.60s\"; the method 'help' lists the "
				"parameters",
				name);
		int err = take(value, row, error);
		if (err)
			return err;
	}
	for (size_t i = 0; i < n; i++)
		if (rows[i].is_wanted && !json_object_get(params, rows[i].name))
			return error_set(error, -EINVAL, "missing parameter \"%s\"", rows[i].name);
	return 0;
}

int rpc_params_none(const json_t *params, struct error *error)
{
	return rpc_params_read(params, NULL, 0, error);
}

json_t *rpc_count_json(uint64_t count, bool is_known)
{
	return is_known ? json_integer((json_int_t)count) : json_null();
}

json_t *rpc_text_json(const char *text)
{
	if (!text)
		return json_null();
	json_t *whole = json_string(text);
	if (whole)
		return whole;
	char *plain = strdup(text);
	for (char *p = plain; p && *p; p++)
		*p = (unsigned char)*p < 0x80 ? *p : '?';
	whole = json_string(plain);
	free(plain);
	return whole;
}

json_t *rpc_help_json(const struct rpc_help rows[], size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s}", "name", rows[i].name, "params", rows[i].params,
				"text", rows[i].text));
	return json_pack("{s:o}", "methods", list);
}
