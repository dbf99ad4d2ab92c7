// The table of verbs, and those that are about the program itself. Control thread.
#include "verbs/inside.h"

#include "base/bits.h"

#define VERB_ROW(verb, name, params, text) {name, verb_##verb},
static const struct ctl_verb verbs[] = {SCHEMA_VERBS(VERB_ROW)};

#define HELP_ROW(verb, name, params, text) {name, params, text},
static const struct ctl_help help_rows[] = {SCHEMA_VERBS(HELP_ROW)};

const struct ctl_verb *verbs_table(size_t *n)
{
	*n = ARRAY_LEN(verbs);
	return verbs;
}

json_t *verb_help(void *house, const json_t *params, struct complaint *why)
{
	if (ctl_params_none(params, why))
		return NULL;
	return ctl_help_json(help_rows, ARRAY_LEN(help_rows));
}

json_t *verb_stop(void *house, const json_t *params, struct complaint *why)
{
	struct verbs_house *verbs_house = house;

	if (ctl_params_none(params, why))
		return NULL;
	verbs_house->stop = true;
	return json_pack("{s:b}", "stopping", 1);
}
