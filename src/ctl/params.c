// What verbs share: parameters by tables, words, the list of all verbs. Control thread.
#include "ctl/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct ctl_param *find(const struct ctl_param rows[], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static int take_number(const json_t *value, const struct ctl_param *row, struct complaint *why)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < row->min || number > row->max)
		return complain(why, -EINVAL,
			"parameter \"%s\" is no number from %ld to %ld; give one", row->name,
			row->min, row->max);
	*(long *)row->out = number;
	return 0;
}

static int take_real(const json_t *value, const struct ctl_param *row, struct complaint *why)
{
	double number = json_number_value(value);

	if (!json_is_number(value) || !(number >= row->min && number <= row->max))
		return complain(why, -EINVAL,
			"parameter \"%s\" is no number from %ld to %ld; give one", row->name,
			row->min, row->max);
	*(double *)row->out = number;
	return 0;
}

static int take_flag(const json_t *value, const struct ctl_param *row, struct complaint *why)
{
	if (!json_is_boolean(value))
		return complain(why, -EINVAL,
			"parameter \"%s\" is neither true nor false; give one", row->name);
	*(bool *)row->out = json_is_true(value);
	return 0;
}

static int take_text(const json_t *value, const struct ctl_param *row, struct complaint *why)
{
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return complain(why, -EINVAL, "parameter \"%s\" is no text; give one in quotes",
			row->name);
	*(const char **)row->out = json_string_value(value);
	return 0;
}

static int take_list(const json_t *value, const struct ctl_param *row, struct complaint *why)
{
	long n = json_array_size(value);

	if (!json_is_array(value) || n < row->min || n > row->max)
		return complain(why, -EINVAL,
			"parameter \"%s\" is no list of %ld to %ld members; give one", row->name,
			row->min, row->max);
	*(const json_t **)row->out = value;
	return 0;
}

static int take(const json_t *value, const struct ctl_param *row, struct complaint *why)
{
	switch (row->type) {
	case CTL_NUMBER:
		return take_number(value, row, why);
	case CTL_REAL:
		return take_real(value, row, why);
	case CTL_FLAG:
		return take_flag(value, row, why);
	case CTL_TEXT:
		return take_text(value, row, why);
	default:
		return take_list(value, row, why);
	}
}

int ctl_params_read(const json_t *params, const struct ctl_param rows[], size_t n,
	struct complaint *why)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)params, name, value) {
		const struct ctl_param *row = find(rows, n, name);

		if (!row)
			return complain(why, -EINVAL,
				"unknown parameter \"%.60s\"; the verb help tells which there are",
				name);
		int err = take(value, row, why);
		if (err)
			return err;
	}
	for (size_t i = 0; i < n; i++)
		if (rows[i].is_wanted && !json_object_get(params, rows[i].name))
			return complain(why, -EINVAL, "parameter \"%s\" is missing; give it",
				rows[i].name);
	return 0;
}

int ctl_params_none(const json_t *params, struct complaint *why)
{
	return ctl_params_read(params, NULL, 0, why);
}

json_t *ctl_text_json(const char *text)
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

json_t *ctl_help_json(const struct ctl_help rows[], size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s}", "name", rows[i].name, "params", rows[i].params,
				"text", rows[i].text));
	return json_pack("{s:o}", "verbs", list);
}
