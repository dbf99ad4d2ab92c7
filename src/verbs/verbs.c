// The table of verbs, and those that are about the program itself. Control thread.
#include "verbs/inside.h"

#include "base/bits.h"
#include "base/log.h"

#include <errno.h>

#define VERB_ROW(verb, name, params, text) {name, verb_##verb},
static const struct ctl_verb verbs[] = {SCHEMA_VERBS(VERB_ROW)};

struct help_row {
	const char *name, *params, *text;
};

#define HELP_ROW(verb, name, params, text) {name, params, text},
static const struct help_row help_rows[] = {SCHEMA_VERBS(HELP_ROW)};

const struct ctl_verb *verbs_table(size_t *n)
{
	*n = ARRAY_LEN(verbs);
	return verbs;
}

int verbs_tend(struct verbs_house *house, struct complaint *why)
{
	int err = port_tend(house->ports, why);
	if (err)
		return err;
	if (!port_lanes_run(house->ports))
		return complain(why, -EIO, "a lane has ended by itself; all stop");
	int lane = fib_door_tend(house->door);
	if (lane >= 0 && lane != house->silent_lane)
		log_error("lane %d has not come round for a second; is its core taken?", lane);
	house->silent_lane = lane;
	return 0;
}

json_t *verb_help(void *house, const json_t *params, struct complaint *why)
{
	if (params_none(params, why))
		return NULL;
	json_t *list = json_array();
	for (size_t i = 0; i < ARRAY_LEN(help_rows); i++) {
		const struct help_row *row = &help_rows[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", row->name,
						    "params", row->params, "text", row->text));
	}
	return json_pack("{s:o}", "verbs", list);
}

json_t *verb_stop(void *house, const json_t *params, struct complaint *why)
{
	struct verbs_house *verbs_house = house;

	if (params_none(params, why))
		return NULL;
	verbs_house->stop = true;
	return json_pack("{s:b}", "stopping", 1);
}
