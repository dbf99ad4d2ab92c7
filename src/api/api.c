// The table of methods, and the methods about the program itself. Control thread.
#include "api/bridges.h"
#include "api/flows.h"

#include "base/bits.h"
#include "base/clock.h"
#include "capture/capture.h"

#include <rte_version.h>
#include <unistd.h>

// Incremented when a method or field changes its meaning; additions do not count.
enum { PROTOCOL = 1 };

#define METHOD_ROW(method, name, params, text) {name, method_##method},
static const struct rpc_method methods[] = {SCHEMA_METHODS(METHOD_ROW)};

#define HELP_ROW(method, name, params, text) {name, params, text},
static const struct rpc_help help_rows[] = {SCHEMA_METHODS(HELP_ROW)};

const struct rpc_method *api_table(size_t *n)
{
	*n = ARRAY_LEN(methods);
	return methods;
}

json_t *method_help(void *ctx, const json_t *params, struct error *error)
{
	if (rpc_params_none(params, error))
		return NULL;
	return rpc_help_json(help_rows, ARRAY_LEN(help_rows));
}

json_t *method_stop(void *ctx, const json_t *params, struct error *error)
{
	struct api_ctx *api_ctx = ctx;

	if (rpc_params_none(params, error))
		return NULL;
	api_ctx->stop = true;
	return json_pack("{s:b}", "stopping", 1);
}

static json_t *memory_json(const struct api_ctx *ctx)
{
	struct port_memory memory;

	port_memory(ctx->ports, &memory);
	return json_pack("{s:b, s:i, s:i, s:I, s:I}", "hugepages", memory.huge, "planned_mib",
		(int)memory.planned_mib, "mbuf_bytes", (int)memory.mbuf_bytes, "mbufs",
		(json_int_t)memory.n_mbufs, "mbufs_free", (json_int_t)memory.n_mbufs_free);
}

static void set_table(json_t *status, const struct api_ctx *ctx)
{
	struct fib_usage usage;

	fib_usage(ctx->fib, &usage);
	json_object_set_new(status, "routes",
		json_pack("{s:I, s:I}", "ip4", (json_int_t)usage.n_routes4, "ip6",
			(json_int_t)usage.n_routes6));
	json_object_set_new(status, "nexthops", number_json(usage.n_hops));
	json_object_set_new(status, "neighbours", number_json(usage.n_neighbours));
	json_object_set_new(status, "labels", number_json(usage.n_labels));
	json_t *table = json_pack("{s:I, s:I, s:I}", "worker_bytes4",
		(json_int_t)usage.worker_bytes4, "worker_bytes6", (json_int_t)usage.worker_bytes6,
		"worker_bytes_nexthops", (json_int_t)usage.worker_bytes_hops);
	json_object_set_new(table, "worker_bytes_labels", number_json(usage.worker_bytes_labels));
	json_object_set_new(table, "worker_bytes_vxlan", number_json(usage.worker_bytes_vxlan));
	if (ctx->bridges)
		json_object_set_new(table, "worker_bytes_macs",
			number_json(mac_worker_bytes(ctx->bridges->table)));
	json_object_set_new(table, "control_bytes", number_json(usage.control_bytes));
	json_object_set_new(table, "pending_frees", number_json(usage.pending_frees));
	if (ctx->flows) {
		struct flow_usage flows;

		flow_usage(ctx->flows->table, &flows);
		json_object_set_new(table, "flow_bytes", number_json(flows.bytes));
	}
	json_object_set_new(status, "table", table);
}

static unsigned count_ports(const struct api_ctx *ctx)
{
	const struct port_table_settings *ports = config_ports(ctx->config);
	unsigned n = 0;

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		n++;
	return n;
}

json_t *method_status(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct stats_account account;

	if (rpc_params_none(params, error))
		return NULL;
	account_read(ctx, &account);
	json_t *status = json_pack("{s:s, s:i, s:s, s:i}", "version", DL3_VERSION, "protocol",
		PROTOCOL, "dpdk", rte_version(), "pid", (int)getpid());
	json_object_set_new(status, "config", rpc_text_json(config_path(ctx->config)));
	json_object_set_new(status, "control", rpc_text_json(ctx->taps ? "linux" : "static"));
	json_object_set_new(status, "mirror",
		rpc_text_json(ctx->netlink ? mirror_word(ctx->netlink) : NULL));
	json_object_set_new(status, "ready", json_boolean(ctx->ready_ns));
	json_object_set_new(status, "ready_after_s",
		ctx->ready_ns ? json_real((ctx->ready_ns - ctx->started_ns) / 1e9) : json_null());
	json_object_set_new(status, "started_ms", number_json(ctx->started_ms));
	json_object_set_new(status, "uptime_s",
		json_real((clock_now_ns() - ctx->started_ns) / 1e9));
	json_object_set_new(status, "capturing",
		json_boolean(capture_runs(ctx->capture, CAPTURE_READ)));
	json_object_set_new(status, "exporting",
		json_boolean(capture_runs(ctx->capture, CAPTURE_EXPORT)));
	json_object_set_new(status, "reloads", number_json(ctx->n_reloads));
	json_object_set_new(status, "ports", number_json(count_ports(ctx)));
	json_object_set_new(status, "workers", number_json(port_n_workers(ctx->ports)));
	json_object_set_new(status, "memory", memory_json(ctx));
	set_table(status, ctx);
	json_object_set_new(status, "account", account_json(&account));
	return status;
}
