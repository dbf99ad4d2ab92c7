// Batches of route changes. Control thread.
#include "verbs/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANGES = 100000 };

static int read_op(const char *text)
{
	if (!strcmp(text, "add"))
		return FIB_ADD;
	if (!strcmp(text, "replace"))
		return FIB_REPLACE;
	return strcmp(text, "delete") ? -EINVAL : FIB_DELETE;
}

// A delete needs no more than the prefix.
static int read_change(const struct verbs_house *house, const json_t *json, struct fib_change *out,
	struct complaint *why)
{
	const char *op_text = NULL, *route = NULL;
	const struct ctl_param rows[] = {
		{"op", CTL_TEXT, true, 0, 0, &op_text},
		{"route", CTL_TEXT, true, 0, 0, &route},
	};

	memset(out, 0, sizeof(*out));
	if (!json_is_object(json))
		return complain(why, -EINVAL,
			"is no object; {\"op\": ..., \"route\": ...} is wanted");
	int err = ctl_params_read(json, rows, 2, why);
	if (err)
		return err;
	int op = read_op(op_text);
	if (op < 0)
		return complain(why, op, "\"op\" is \"%.60s\"; add, replace or delete is wanted",
			op_text);
	out->op = op;
	if (op == FIB_DELETE && !config_parse_prefix(route, &out->route.prefix))
		return 0;
	struct complaint inner;
	int refused = config_parse_route(house->config, house->fib, route, &out->route, &inner);
	return refused ? complain(why, refused, "%s \"%.80s\": %s", op_text, route, inner.text) : 0;
}

static int read_changes(const struct verbs_house *house, const json_t *list,
	struct fib_change out[], struct complaint *why)
{
	struct complaint inner;

	for (size_t i = 0; i < json_array_size(list); i++) {
		int err = read_change(house, json_array_get(list, i), &out[i], &inner);

		if (err)
			return complain(why, err, "changes[%zu]: %s; nothing was changed", i,
				inner.text);
	}
	return 0;
}

json_t *verb_routes_change(void *house_, const json_t *params, struct complaint *why)
{
	struct verbs_house *house = house_;
	const json_t *list = NULL;
	const struct ctl_param rows[] = {{"changes", CTL_LIST, true, 0, MAX_CHANGES, &list}};
	struct complaint inner;
	size_t bad = 0;

	if (ctl_params_read(params, rows, 1, why))
		return NULL;
	if (house->twins) {
		complain(why, -ENOTSUP,
			"routes belong to Linux here; tell it: ip -n NAMESPACE route add PREFIX "
			"via ADDRESS");
		return NULL;
	}
	size_t n = json_array_size(list);
	struct fib_change *changes = malloc((n + 1) * sizeof(*changes));
	if (!changes) {
		complain(why, -ENOMEM, "not enough memory for %zu changes; send fewer at a time",
			n);
		return NULL;
	}
	int err = read_changes(house, list, changes, why);
	// Without changes it lets go of the groups that were made for them.
	int applied = fib_change(house->fib, changes, err ? 0 : n, &bad, &inner);
	if (!err && applied)
		err = complain(why, applied, "changes[%zu]: %s; nothing was changed", bad,
			inner.text);
	free(changes);
	return err ? NULL : json_pack("{s:I}", "changed", (json_int_t)n);
}
