// See acl.h. The methods acls and acl.change. Control thread.
#include "api/acl.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFRESH_NS = 200 * 1000 * 1000, VALUE_MAX = 64 };

int api_open_acls(struct api_ctx *ctx, struct error *error)
{
	const struct acl_settings settings = {
		.n_workers = port_n_workers(ctx->ports),
		.rcu = ctx->rcu,
		.iface_name = api_iface_name,
		.n_ifaces = IFACE_MAX,
		.n_ports = PORT_MAX,
		.ctx = ctx,
	};
	int err = acl_open(&ctx->acls, &settings, error);

	if (!err)
		err = acl_apply(ctx->acls, config_acl(ctx->config), error);
	if (!err && ctx->taps)
		err = acls_open_filters(ctx, error);
	if (err)
		api_close_acls(ctx);
	return err;
}

void api_close_acls(struct api_ctx *ctx)
{
	acls_close_filters(ctx);
	acl_close(ctx->acls);
	ctx->acls = NULL;
}

int acls_prepare(struct api_ctx *ctx, const struct config *next, struct acl_pending **out,
	struct error *error)
{
	return acl_prepare(ctx->acls, config_acl(next), out, error);
}

// iface_name reads the current configuration.
void acls_commit(struct api_ctx *ctx, struct config *next, struct acl_pending *pending)
{
	struct config *now = ctx->config;

	ctx->config = next;
	acl_commit(ctx->acls, pending);
	ctx->config = now;
}

void acls_drop(struct api_ctx *ctx, struct acl_pending *pending)
{
	acl_drop(ctx->acls, pending);
}

void acls_follow_ports(struct api_ctx *ctx, struct config *next)
{
	struct config *now = ctx->config;

	ctx->config = next;
	acl_refresh(ctx->acls);
	ctx->config = now;
}

void acls_iface_named(struct api_ctx *ctx, uint16_t iface, const char *name)
{
	if (iface < PORT_MAX) // see acls_follow_ports
		return;
	if (name)
		acl_bind(ctx->acls, iface, name);
	else
		ctx->acls_are_stale = true;
}

void acls_poll(struct api_ctx *ctx)
{
	const uint64_t now_ns = clock_now_ns();

	if (!ctx->acls_are_stale || now_ns - ctx->acls_refreshed_ns < REFRESH_NS)
		return;
	ctx->acls_are_stale = false;
	ctx->acls_refreshed_ns = now_ns;
	acl_refresh(ctx->acls);
}

static json_t *rule_json(const struct acl_table *table, const struct acl_source *list, size_t i)
{
	const struct acl_count count = acl_rule_count(table, list->name, i + 1);
	const struct acl_count red = acl_rule_red(table, list->name, i + 1);
	char text[ACL_RULE_TEXT];
	json_t *json = json_pack("{s:s?, s:s, s:o, s:o}", "name",
		list->rule[i].name[0] ? list->rule[i].name : NULL, "rule",
		acl_rule_print(&list->rule[i], text), "packets", number_json(count.packets),
		"bytes", number_json(count.bytes));

	if (list->rule[i].police.rate)
		json_object_set_new(json, "red",
			json_pack("{s:o, s:o}", "packets", number_json(red.packets), "bytes",
				number_json(red.bytes)));
	return json;
}

// The rules of a page of one list; without a list, none.
static json_t *list_json(const struct acl_table *table, const char *source,
	const struct acl_source *list, size_t from, size_t limit)
{
	const struct acl_count rest = acl_rule_count(table, list->name, 0);
	const size_t end = MIN_OF(list->n, from + limit);
	json_t *rules = json_array();

	for (size_t i = from; i < end; i++)
		json_array_append_new(rules, rule_json(table, list, i));
	return json_pack("{s:s, s:s, s:I, s:f, s:s, s:{s:o, s:o}, s:o, s:o}", "name", list->name,
		"source", source, "n_rules", (json_int_t)list->n, "build_s",
		acl_list_seconds(table, list->name), "default",
		list->denies_rest ? "deny" : "permit", "rest", "packets", number_json(rest.packets),
		"bytes", number_json(rest.bytes), "rules", rules, "next",
		end < list->n ? json_integer(end) : json_null());
}

static void add_uses(const struct acl_table *table, json_t *uses)
{
	const struct acl_set *set = acl_current(table);

	for (size_t i = 0; i < set->n_uses; i++)
		json_array_append_new(uses,
			json_pack("{s:s, s:s, s:s, s:b}", "interface", set->use[i].iface,
				"direction", set->use[i].direction == ACL_IN ? "in" : "out", "list",
				set->use[i].list, "exists", acl_use_is_bound(table, &set->use[i])));
}

// What the method acls was asked for.
struct wanted {
	const char *name; // NULL: all lists, without rules
	long after, limit;
	bool is_found;
	json_t *lists, *uses;
};

static void add_table(const struct acl_table *table, const char *source, struct wanted *wanted)
{
	const struct acl_set *set = acl_current(table);

	for (size_t i = 0; i < set->n_lists; i++) {
		if (wanted->name && strcmp(set->list[i].name, wanted->name) != 0)
			continue;
		if (wanted->name && wanted->is_found)
			continue;
		wanted->is_found = true;
		json_array_append_new(wanted->lists,
			list_json(table, source, &set->list[i], wanted->after,
				wanted->name ? wanted->limit : 0));
	}
	add_uses(table, wanted->uses);
}

json_t *method_acls(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct wanted wanted = {.limit = 1000};
	const struct rpc_param rows[] = {
		{"list", RPC_TEXT, false, 0, 0, &wanted.name},
		{"after", RPC_NUMBER, false, 0, ACL_MAX_RULES, &wanted.after},
		{"limit", RPC_NUMBER, false, 1, 1000, &wanted.limit},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	wanted.lists = json_array();
	wanted.uses = json_array();
	add_table(ctx->acls, "acl", &wanted);
	if (ctx->filters)
		add_table(ctx->filters, "tc", &wanted);
	if (wanted.is_found || !wanted.name)
		return json_pack("{s:o, s:o}", "lists", wanted.lists, "use", wanted.uses);
	json_decref(wanted.lists);
	json_decref(wanted.uses);
	error_set(error, -ENOENT, "unknown list \"%.60s\"; 'dl3 acl show' lists them", wanted.name);
	return NULL;
}

// A value of a rule as text.
static int value_text(const json_t *value, char text[VALUE_MAX])
{
	if (json_is_string(value) && json_string_length(value) < VALUE_MAX)
		strcpy(text, json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, VALUE_MAX, "%lld", json_integer_value(value));
	else if (json_is_boolean(value))
		strcpy(text, json_is_true(value) ? "true" : "false");
	else
		return -EINVAL;
	return 0;
}

static int read_value(const char *key, const json_t *value, struct acl_rule *rule,
	struct error *error)
{
	char text[VALUE_MAX];

	if (value_text(value, text))
		return error_set(error, -EINVAL, "%.40s: expected a word, a number, true or false",
			key);
	return acl_rule_set(rule, key, text, error);
}

// {"rate": ...} of "police" is "police.rate".
static int read_parts(const char *key, const json_t *parts, struct acl_rule *rule,
	struct error *error)
{
	char full[VALUE_MAX];
	const char *part;
	json_t *value;
	int err = 0;

	if (!json_object_size(parts))
		return error_set(error, -EINVAL, "%.30s: expected its keys, such as %.30s.rate",
			key, key);
	json_object_foreach ((json_t *)parts, part, value) {
		snprintf(full, sizeof(full), "%.30s.%.30s", key, part);
		err = err ? err : read_value(full, value, rule, error);
	}
	return err;
}

static int read_rule(const json_t *json, struct acl_rule *rule, struct error *error)
{
	const char *key;
	json_t *value;
	int err = 0;

	if (json_is_string(json))
		return acl_rule_parse(rule, json_string_value(json), error);
	if (!json_is_object(json))
		return error_set(error, -EINVAL, "expected a rule: text, or an object of its keys");
	acl_rule_start(rule);
	json_object_foreach ((json_t *)json, key, value) {
		if (!err)
			err = (json_is_object(value) ? read_parts : read_value)(key, value, rule,
				error);
	}
	return err ? err : acl_rule_end(rule, error);
}

static int read_rules(const json_t *rules, struct acl_source *list, struct error *error)
{
	const size_t n = json_array_size(rules);
	struct error inner;

	if (n > ACL_MAX_RULES)
		return error_set(error, -EINVAL, "list '%s': %zu rules, expected at most %d",
			list->name, n, ACL_MAX_RULES);
	list->rule = malloc((n + 1) * sizeof(*list->rule));
	if (!list->rule)
		return error_set(error, -ENOMEM, "not enough memory for %zu rules", n);
	for (; list->n < n; list->n++)
		if (read_rule(json_array_get(rules, list->n), &list->rule[list->n], &inner))
			return error_set(error, -EINVAL, "list '%s', rules[%zu]: %s", list->name,
				list->n, inner.text);
	return 0;
}

// A list of rules, {rules, default}, or null: remove it.
static int read_list(const char *name, const json_t *json, struct acl_source *list,
	struct error *error)
{
	const json_t *rules = NULL;
	const char *rest = "permit";
	const struct rpc_param rows[] = {
		{"rules", RPC_LIST, true, 0, ACL_MAX_RULES, &rules},
		{"default", RPC_TEXT, false, 0, 0, &rest},
	};
	struct acl_rule named;

	acl_rule_start(&named);
	if (acl_rule_set(&named, "name", name, error))
		return -EINVAL;
	memcpy(list->name, named.name, sizeof(named.name));
	if (json_is_null(json))
		return 0;
	if (json_is_array(json))
		return read_rules(json, list, error);
	if (!json_is_object(json))
		return error_set(error, -EINVAL,
			"list '%s': expected a list of rules, {rules, default}, or null", name);
	int err = rpc_params_read(json, rows, ARRAY_LEN(rows), error);

	if (!err && strcmp(rest, "permit") && strcmp(rest, "deny"))
		err = error_set(error, -EINVAL,
			"list '%s': \"default\" is \"%.40s\"; expected permit or deny", name, rest);
	list->denies_rest = !strcmp(rest, "deny");
	return err ? err : read_rules(rules, list, error);
}

static int read_use(const json_t *json, struct acl_use *use, struct error *error)
{
	const char *iface = NULL, *direction = NULL, *list = "";
	const struct rpc_param rows[] = {
		{"interface", RPC_TEXT, true, 0, 0, &iface},
		{"direction", RPC_TEXT, true, 0, 0, &direction},
		{"list", RPC_TEXT, false, 0, 0, &list},
	};

	if (!json_is_object(json))
		return error_set(error, -EINVAL,
			"expected an object, {\"interface\": ..., \"direction\": ..., \"list\": "
			"...}");
	int err = rpc_params_read(json, rows, ARRAY_LEN(rows), error);

	if (err)
		return err;
	if (strcmp(direction, "in") && strcmp(direction, "out"))
		return error_set(error, -EINVAL, "\"direction\" is \"%.40s\"; expected in or out",
			direction);
	if (strlen(iface) >= ACL_NAME_MAX || strlen(list) >= ACL_NAME_MAX)
		return error_set(error, -EINVAL, "names have at most %d characters",
			ACL_NAME_MAX - 1);
	use->direction = strcmp(direction, "in") ? ACL_OUT : ACL_IN;
	strcpy(use->iface, iface);
	strcpy(use->list, list);
	return 0;
}

static int read_uses(const json_t *uses, struct acl_set *change, struct error *error)
{
	struct error inner;

	for (size_t i = 0; i < json_array_size(uses); i++) {
		if (read_use(json_array_get(uses, i), &change->use[i], &inner))
			return error_set(error, -EINVAL, "use[%zu]: %s", i, inner.text);
		change->n_uses++;
	}
	return 0;
}

static int read_change(const json_t *lists, const json_t *uses, struct acl_set *change,
	struct error *error)
{
	const char *name;
	json_t *list;
	int err = 0;

	if (json_object_size(lists) > ACL_MAX_LISTS || json_array_size(uses) > ACL_MAX_USES)
		return error_set(error, -EINVAL,
			"%zu lists and %zu uses, expected at most %d and %d",
			json_object_size(lists), json_array_size(uses), ACL_MAX_LISTS,
			ACL_MAX_USES);
	change->list = calloc(json_object_size(lists) + 1, sizeof(*change->list));
	change->use = calloc(json_array_size(uses) + 1, sizeof(*change->use));
	if (!change->list || !change->use)
		return error_set(error, -ENOMEM, "not enough memory for the change");
	json_object_foreach ((json_t *)lists, name, list) {
		if (!err)
			err = read_list(name, list, &change->list[change->n_lists++], error);
	}
	return err ? err : read_uses(uses, change, error);
}

static int change_all(struct api_ctx *ctx, const struct acl_set *change, struct error *error)
{
	struct acl_set next;
	int err = config_check_acl_uses(ctx->config, change, error);

	if (!err)
		err = config_check_acl_mirrors(ctx->config, change, error);
	if (!err)
		err = acl_set_merge(&next, acl_current(ctx->acls), change, error);
	if (err)
		return err;
	err = acl_set_check_buckets(&next, error);
	if (!err)
		err = acl_apply(ctx->acls, &next, error);
	acl_set_free(&next);
	return err;
}

json_t *method_acl_change(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	const json_t *lists = json_object_get(params, "lists");
	const json_t *uses = json_object_get(params, "use");
	const size_t n_known = !!lists + !!uses;
	struct acl_set change = {.n_lists = 0};
	struct error inner;

	if (!n_known || json_object_size(params) != n_known || (lists && !json_is_object(lists)) ||
		(uses && !json_is_array(uses))) {
		error_set(error, -EINVAL,
			"expected parameters \"lists\", an object, and \"use\", a list, or one of "
			"them");
		return NULL;
	}
	int err = read_change(lists, uses, &change, &inner);

	if (!err)
		err = change_all(ctx, &change, &inner);
	acl_set_free(&change);
	if (err) {
		error_set(error, err, "%s; nothing was changed", inner.text);
		return NULL;
	}
	return json_pack("{s:I, s:I}", "lists", (json_int_t)acl_current(ctx->acls)->n_lists, "uses",
		(json_int_t)acl_current(ctx->acls)->n_uses);
}
