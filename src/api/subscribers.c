// See subscribers.h. The methods subscribers, subscribers.list, .find and .change. Control thread.
#include "api/subscribers.h"

#include "base/bits.h"

#include <errno.h>
#include <rte_cycles.h>
#include <string.h>

enum { PAGE_MAX = 1000, MAX_CHANGES = 20000 };

static int stage_all(const struct config *config, struct qos *qos, struct error *error)
{
	int err;

	qos_begin(qos);
	err = config_stage_qos(config, qos, error);
	if (!err)
		err = qos_prepare(qos, error);
	if (err)
		qos_abort(qos);
	return err;
}

int api_open_subscribers(struct api_ctx *ctx, uint64_t hz, struct error *error)
{
	struct qos_settings settings = {.rcu = ctx->rcu,
		.n_workers = port_n_workers(ctx->ports),
		.hz = hz,
		.most_held = config_held_packets(ctx->config),
		.n_ifaces = IFACE_MAX,
		.iface_name = api_iface_name,
		.ctx = ctx};

	if (!config_has_qos(ctx->config))
		return 0;
	settings.n_shapers = config_shapers(ctx->config, settings.shaper);
	int err = qos_open(&ctx->qos, &settings, error);

	if (!err)
		err = subscribers_open_job(ctx, error);
	if (!err)
		err = stage_all(ctx->config, ctx->qos, error);
	if (!err)
		qos_commit(ctx->qos, rte_rdtsc());
	else
		api_close_subscribers(ctx);
	return err;
}

int api_check_subscribers(const struct config *config, struct error *error)
{
	const struct qos_settings settings = {.hz = 1000000000,
		.most_held = config_held_packets(config),
		.iface_name = api_iface_name};
	struct qos *qos;

	if (!config_has_qos(config))
		return 0;
	int err = qos_open(&qos, &settings, error);

	if (err)
		return err;
	err = stage_all(config, qos, error);
	if (!err)
		qos_abort(qos);
	qos_close(qos);
	return err;
}

const struct qos_live *api_qos_live(const struct api_ctx *ctx)
{
	return ctx->qos ? qos_live(ctx->qos) : NULL;
}

void api_close_subscribers(struct api_ctx *ctx)
{
	subscribers_close_job(ctx);
	qos_close(ctx->qos);
	ctx->qos = NULL;
}

int subscribers_prepare(struct api_ctx *ctx, const struct config *next, struct error *error)
{
	if (!ctx->qos)
		return 0;
	const int err = subscribers_check_job(ctx, error);

	return err ? err : stage_all(next, ctx->qos, error);
}

void subscribers_commit(struct api_ctx *ctx, struct config *next)
{
	struct config *now = ctx->config;

	if (!ctx->qos)
		return;
	ctx->config = next; // iface_name reads the current configuration
	qos_commit(ctx->qos, rte_rdtsc());
	qos_refresh(ctx->qos);
	ctx->config = now;
}

void subscribers_drop(struct api_ctx *ctx)
{
	if (ctx->qos)
		qos_abort(ctx->qos);
}

void subscribers_follow_ports(struct api_ctx *ctx, struct config *next)
{
	struct config *now = ctx->config;

	if (!ctx->qos)
		return;
	ctx->config = next;
	qos_refresh(ctx->qos);
	ctx->config = now;
}

void subscribers_port_gone(struct api_ctx *ctx, unsigned port)
{
	if (ctx->qos)
		qos_port_gone(ctx->qos, port);
}

void subscribers_iface_named(struct api_ctx *ctx, uint16_t iface, const char *name)
{
	if (ctx->qos && iface >= PORT_MAX) // ports: see subscribers_follow_ports
		qos_bind(ctx->qos, iface, name);
	if (ctx->qos && !name)
		qos_bind_tc(ctx->qos, iface, NULL);
}

struct qos *subscribers_of(const struct api_ctx *ctx, struct error *error)
{
	if (!ctx->qos)
		error_set(error, -ENOENT,
			"there are no subscribers: the configuration file has no key \"qos\"; add "
			"it "
			"and restart");
	return ctx->qos;
}

static json_t *lengths_json(const struct qos_usage *usage, unsigned family)
{
	json_t *list = json_array();

	for (unsigned k = 0; k < QOS_LENGTHS; k++)
		if (usage->length[family][k])
			json_array_append_new(list, json_integer(usage->length[family][k]));
	return list;
}

static json_t *profiles_json(const struct qos *qos)
{
	enum { MOST = 1000 };
	json_t *list = json_array();
	char text[QOS_PROFILE_TEXT];
	uint32_t number = 1, n_users;

	while (json_array_size(list) < MOST && qos_next_profile(qos, &number, text, &n_users))
		json_array_append_new(list,
			json_pack("{s:s, s:I}", "profile", text, "users", (json_int_t)n_users));
	return list;
}

json_t *method_subscribers(void *ctx, const json_t *params, struct error *error)
{
	struct qos_usage usage;
	const struct qos *qos;

	if (rpc_params_none(params, error))
		return NULL;
	qos = subscribers_of(ctx, error);
	if (!qos)
		return NULL;
	qos_usage(qos, &usage);
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o}", "subscribers",
		(json_int_t)usage.n_subscribers, "profiles", (json_int_t)usage.n_profiles,
		"addresses", (json_int_t)usage.n_addresses, "interfaces",
		(json_int_t)usage.n_ifaces, "bytes", (json_int_t)usage.n_bytes, "lengths4",
		lengths_json(&usage, QOS_IP4), "lengths6", lengths_json(&usage, QOS_IP6), "batches",
		(json_int_t)usage.n_batches, "changes", (json_int_t)usage.n_changes, "profile_list",
		profiles_json(qos));
}

static json_t *counts_json(const struct qos_count *count)
{
	static const char *const colours[POLICE_COLOURS] = {"green", "yellow", "red"};
	json_t *json = json_object();

	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		json_object_set_new(json, colours[i],
			json_pack("{s:o, s:o}", "packets", number_json(count->packets[i]), "bytes",
				number_json(count->bytes[i])));
	return json;
}

static json_t *class_json(const struct shape_class_stats *class)
{
	static const char *const reasons[SHAPE_DROPS_OF_CLASS] = {"codel", "limit", "pool",
		"flushed"};
	json_t *dropped = json_object(), *delays = json_array();

	for (unsigned i = 0; i < SHAPE_DROPS_OF_CLASS; i++)
		json_object_set_new(dropped, reasons[i], number_json(class->dropped[i]));
	for (unsigned i = 0; i < SHAPE_DELAYS; i++)
		json_array_append_new(delays, number_json(class->delays[i]));
	return json_pack("{s:o, s:o, s:o, s:o}", "packets", number_json(class->packets), "bytes",
		number_json(class->bytes), "dropped", dropped, "delays", delays);
}

// null: packets of this direction are not shaped.
static json_t *shaping_json(const struct qos *qos, uint32_t number, enum qos_direction direction)
{
	json_t *classes, *bounds;
	struct qos_shaping shaping;

	if (!qos_shaping(qos, number, direction, &shaping))
		return json_null();
	classes = json_array();
	bounds = json_array();
	for (unsigned i = 0; i < SHAPE_CLASSES; i++)
		json_array_append_new(classes, class_json(&shaping.class[i]));
	for (unsigned i = 0; i < SHAPE_DELAYS - 1; i++)
		json_array_append_new(bounds, number_json(shaping.delay_us[i]));
	return json_pack("{s:I, s:I, s:o, s:o}", "worker", (json_int_t)shaping.worker, "held",
		(json_int_t)shaping.held, "delay_us", bounds, "classes", classes);
}

static json_t *direction_json(const struct qos *qos, const struct qos_info *info,
	enum qos_direction direction)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "profile", rpc_text_json(info->profile[direction]),
		"parent", rpc_text_json(info->parent[direction]), "counts",
		counts_json(&info->count[direction]), "shaping",
		shaping_json(qos, info->number, direction));
}

static json_t *info_json(const struct qos *qos, const struct qos_info *info)
{
	json_t *addresses = json_array(), *ifaces = json_array();

	for (unsigned i = 0; i < info->n_addresses; i++) {
		const struct wire_prefix prefix = qos_address(qos, info->number, i);

		json_array_append_new(addresses, prefix_json(&prefix));
	}
	for (unsigned i = 0; i < info->n_ifaces; i++)
		json_array_append_new(ifaces, rpc_text_json(qos_iface(qos, info->number, i)));
	return json_pack("{s:s, s:I, s:b, s:o, s:o, s:o, s:o}", "name", info->name, "number",
		(json_int_t)info->number, "of_file", info->is_of_file, "addresses", addresses,
		"interfaces", ifaces, "up", direction_json(qos, info, QOS_UP), "down",
		direction_json(qos, info, QOS_DOWN));
}

json_t *method_subscribers_list(void *ctx, const json_t *params, struct error *error)
{
	long after = 0, limit = 100;
	const struct rpc_param rows[] = {
		{"after", RPC_NUMBER, false, 0, QOS_MAX, &after},
		{"limit", RPC_NUMBER, false, 1, PAGE_MAX, &limit},
	};
	struct qos_info info;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	const struct qos *qos = subscribers_of(ctx, error);
	uint32_t number = after + 1;
	bool is_more = true;

	if (!qos)
		return NULL;
	json_t *list = json_array();
	while (limit-- && (is_more = qos_next(qos, &number, &info)))
		json_array_append_new(list, info_json(qos, &info));
	return json_pack("{s:o, s:o}", "subscribers", list, "next",
		is_more ? number_json(number - 1) : json_null());
}

json_t *method_subscribers_find(void *ctx, const json_t *params, struct error *error)
{
	const char *name;
	const struct rpc_param rows[] = {{"name", RPC_TEXT, true, 0, 0, &name}};
	struct qos_info info;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	const struct qos *qos = subscribers_of(ctx, error);

	if (!qos)
		return NULL;
	if (qos_find_name(qos, name, &info))
		return info_json(qos, &info);
	error_set(error, -ENOENT, "there is no subscriber '%.60s'", name);
	return NULL;
}

static int stage_changes(struct qos *qos, const json_t *list, struct error *error)
{
	struct error inner;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *text = json_array_get(list, i);
		int err = json_is_string(text)
		                  ? qos_stage(qos, json_string_value(text), false, &inner)
		                  : error_set(&inner, -EINVAL, "expected text");

		if (err)
			return error_set(error, err, "changes[%zu]: %s; nothing was changed", i,
				inner.text);
	}
	return qos_prepare(qos, error);
}

json_t *method_subscribers_change(void *ctx, const json_t *params, struct error *error)
{
	const json_t *list = NULL;
	const struct rpc_param rows[] = {{"changes", RPC_LIST, true, 0, MAX_CHANGES, &list}};

	if (rpc_params_read(params, rows, 1, error))
		return NULL;
	struct qos *qos = subscribers_of(ctx, error);

	if (!qos || subscribers_check_job(ctx, error))
		return NULL;
	qos_begin(qos);
	if (stage_changes(qos, list, error)) {
		qos_abort(qos);
		return NULL;
	}
	qos_commit(qos, rte_rdtsc());
	return json_pack("{s:I}", "applied", (json_int_t)json_array_size(list));
}
