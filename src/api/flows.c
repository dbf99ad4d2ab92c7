// The flow table of dl3d: opened at start, closed at the end, aged by the control loop; and the
// method flows. Control thread.
#include "api/flows.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// How long ageing may take in a turn of the control loop if it is late.
enum { LATE_SLICE_NS = 4000000 };

static void add_ended(void *ctx, const struct flow_info *info)
{
	flow_learning_forget(ctx, info->number, &info->key);
	flow_ended_add(ctx, info);
}

static struct flow_settings settings_of(const struct config_flow *config, unsigned n_workers,
	uint64_t hz)
{
	struct flow_settings settings = {.max4 = config->max4,
		.max6 = config->max6,
		.n_workers = n_workers,
		.hz = hz,
		.ended = add_ended,
		.action_freed = flow_actions_freed,
		.replaced = flow_learning_forget};

	for (unsigned i = 0; i < FLOW_TIMEOUTS; i++)
		settings.timeout_ms[i] = config->timeout_s[i] * 1000;
	settings.beside_bytes = flow_learning_bytes(&settings, config);
	return settings;
}

static uint64_t memory_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

// A save would replace the file of ended flows.
static int check_files(const struct config_flow *config, struct error *error)
{
	if (!config->file[0] || !flow_is_same_file(config->file, config->ended_file))
		return 0;
	return error_set(error, -EINVAL,
		"flow: ended_file: %s is the file of the key \"file\", too; expected another one",
		config->ended_file);
}

int api_check_flows(const struct config *config, unsigned n_workers, struct error *error)
{
	enum { ANY_HZ = 1000000000 };
	const struct config_flow *flow = config_flow(config);
	struct flow_settings settings;

	if (!flow)
		return 0;
	settings = settings_of(flow, n_workers, ANY_HZ);
	int err = check_files(flow, error);
	if (!err)
		err = flow_check(&settings, error);
	if (err != -ENOMEM || flow_bytes(&settings) > memory_bytes())
		return err;
	// A dl3d that runs with this file has a table, too.
	log_warn("%s, or stop other programs first, such as a dl3d that runs with this file",
		error->text);
	return 0;
}

int api_open_flows(struct api_ctx *ctx, uint64_t hz, struct error *error)
{
	const struct config_flow *config = config_flow(ctx->config);

	if (!config)
		return 0;
	int err = check_files(config, error);
	if (err)
		return err;
	struct flow_settings settings = settings_of(config, port_n_workers(ctx->ports), hz);
	struct flows *flows = calloc(1, sizeof(*flows));
	if (flows)
		flows->iface = calloc(IFACE_MAX, sizeof(*flows->iface));
	if (!flows || !flows->iface) {
		free(flows);
		return error_set(error, -ENOMEM, "not enough memory for flows");
	}
	settings.ctx = ctx;
	flows->drops_missing = config->drops_missing;
	memcpy(flows->timeout_s, config->timeout_s, sizeof(flows->timeout_s));
	flows->ended = flow_ended_open(config->ended_file, error);
	if (flows->ended)
		flows->learning = flow_learning_open(&settings, error);
	if (flows->learning)
		flows->table = flow_create(&settings, rte_rdtsc(), error);
	if (!flows->table) {
		flow_learning_close(flows->learning);
		flow_ended_close(flows->ended);
		free(flows->iface);
		free(flows);
		return -ENOMEM;
	}
	flow_attach(flows->table, ctx->rcu);
	ctx->flows = flows;
	flow_learning_set(ctx, config);
	return 0;
}

void api_close_flows(struct api_ctx *ctx)
{
	struct flows *flows = ctx->flows;

	if (!flows)
		return;
	flow_job_close(ctx);
	flow_detach(flows->table);
	flow_ended_close(flows->ended);
	flow_destroy(flows->table);
	flow_learning_close(flows->learning);
	free(flows->iface);
	free(flows);
	ctx->flows = NULL;
}

void api_set_flow_tables(const struct api_ctx *ctx, struct datapath_tables *tables)
{
	tables->flows = ctx->flows ? flow_view(ctx->flows->table) : NULL;
	tables->learn = ctx->flows ? flow_learning_rings(ctx->flows->learning) : NULL;
	tables->drops_missing = ctx->flows ? &ctx->flows->drops_missing : NULL;
}

int flows_prepare(const struct api_ctx *ctx, const struct config *next, int *fd,
	struct error *error)
{
	const struct config_flow *config = config_flow(next);

	*fd = -1;
	if (!ctx->flows || !config)
		return 0;
	int err = check_files(config, error);
	return err ? err : flow_ended_open_file(config->ended_file, fd, error);
}

void flows_apply(struct api_ctx *ctx, const struct config *next, int fd)
{
	const struct config_flow *config = config_flow(next);
	struct flows *flows = ctx->flows;

	if (!flows || !config)
		return;
	flow_ended_set_file(flows->ended, fd);
	flows_follow_ports(ctx);
	// Pairs with the relaxed load by workers.
	__atomic_store_n(&flows->drops_missing, (bool)config->drops_missing, __ATOMIC_RELAXED);
	flow_learning_set(ctx, config);
	// One that is not in the file any more remains for the flows that have it.
	for (unsigned i = 0; i < FLOW_TIMEOUTS; i++) {
		if (!config->timeout_s[i] || config->timeout_s[i] == flows->timeout_s[i])
			continue;
		flows->timeout_s[i] = config->timeout_s[i];
		flow_set_timeout(flows->table, i + 1, config->timeout_s[i] * 1000);
	}
}

void flows_follow_ports(struct api_ctx *ctx)
{
	if (ctx->flows)
		ctx->flows->n_renamed++;
}

void flows_find_kept(const struct api_ctx *ctx, struct config_numbers *out)
{
	for (unsigned port = 0; ctx->flows && port < PORT_MAX; port++)
		out->is_kept[port] |= ctx->flows->iface[port].n_actions != 0;
}

const char *flows_iface_kept(const struct api_ctx *ctx, uint16_t iface)
{
	const struct flow_iface *used = ctx->flows ? &ctx->flows->iface[iface] : NULL;

	return used && used->n_actions ? used->name : NULL;
}

void flows_iface_named(struct api_ctx *ctx, uint16_t iface, const char *name)
{
	struct flows *flows = ctx->flows;

	if (!flows)
		return;
	flows->n_renamed++;
	if (name && flows->iface[iface].n_actions && strlen(name) < IF_NAMESIZE)
		snprintf(flows->iface[iface].name, IF_NAMESIZE, "%s", name);
}

// As long as a job has in a turn: many flows may be due while others are loaded. If it is late, it
// has more than all others that change the table.
static bool age(struct flows *flows)
{
	const uint64_t start_ns = clock_now_ns();
	bool is_behind = false;
	uint64_t most_ns;

	do {
		if (!flow_ended_has_space(flows->ended))
			return false;
		is_behind = flow_age(flows->table, rte_rdtsc());
		most_ns = flow_age_is_late(flows->table) ? LATE_SLICE_NS : FLOWS_SLICE_NS;
	} while (is_behind && clock_now_ns() - start_ns < most_ns);
	return is_behind;
}

bool flows_poll(struct api_ctx *ctx)
{
	struct flows *flows = ctx->flows;

	if (!flows)
		return false;
	bool is_behind = age(flows);
	if (flow_ended_has_space(flows->ended))
		is_behind |= flow_learning_end_gone(ctx);
	if (!flows->was_loaded && ctx->ready_ns) {
		flows->was_loaded = true;
		flow_job_load_at_start(ctx);
	}
	is_behind |= flow_learning_step(ctx);
	is_behind |= flow_job_step(ctx);
	flow_ended_publish(flows->ended);
	return is_behind;
}

struct flows *flows_of(const struct api_ctx *ctx, struct error *error)
{
	if (!ctx->flows)
		error_set(error, -ENOTSUP,
			"there is no flow table: the configuration file has no key \"flow\"");
	return ctx->flows;
}

static json_t *family_json(const struct flow_usage_family *family)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "flows", (json_int_t)family->n, "max",
		(json_int_t)family->max, "ending", (json_int_t)family->n_ending, "lines",
		(json_int_t)family->n_lines, "moved", (json_int_t)family->n_moves, "refused",
		(json_int_t)family->n_full);
}

static json_t *timeouts_json(const struct config_flow *config)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < FLOW_TIMEOUTS && config->timeout_s[i]; i++)
		json_array_append_new(list, number_json(config->timeout_s[i]));
	return list;
}

json_t *method_flows(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const struct config_flow *config = config_flow(ctx->config);
	struct flow_settings settings;
	struct flow_usage usage;
	struct fib_usage fib;

	if (rpc_params_none(params, error) || !flows_of(ctx, error))
		return NULL;
	flow_usage(ctx->flows->table, &usage);
	fib_usage(ctx->fib, &fib);
	settings = settings_of(config, port_n_workers(ctx->ports), 0);
	json_t *json = json_pack("{s:o, s:o, s:I}", "ipv4", family_json(&usage.four), "ipv6",
		family_json(&usage.six), "bytes",
		(json_int_t)(usage.bytes + settings.beside_bytes));
	json_object_set_new(json, "actions", number_json(usage.n_actions));
	json_object_set_new(json, "nexthops", number_json(fib.n_held));
	json_object_set_new(json, "added", number_json(usage.n_added));
	json_object_set_new(json, "deleted", number_json(usage.n_deleted));
	json_object_set_new(json, "idle", number_json(usage.n_idle));
	json_object_set_new(json, "reached_end", number_json(usage.n_reached_end));
	json_object_set_new(json, "missing", json_string(config->drops_missing ? "drop" : "route"));
	json_object_set_new(json, "timeouts_s", timeouts_json(config));
	json_object_set_new(json, "file", rpc_text_json(config->file[0] ? config->file : NULL));
	json_object_set_new(json, "ended_file",
		rpc_text_json(config->ended_file[0] ? config->ended_file : NULL));
	json_object_set_new(json, "ended", flow_ended_usage_json(ctx->flows->ended));
	json_object_set_new(json, "learning", flow_learning_json(ctx));
	json_object_set_new(json, "lookup", json_string(usage.lookup));
	json_object_set_new(json, "hash", json_string(usage.hash));
	return json;
}
