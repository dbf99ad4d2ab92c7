// The table of the generator's methods, and the methods about the program itself. Control thread.
#include "gen/inside.h"

#include "base/bits.h"
#include "base/clock.h"

#include <rte_cycles.h>
#include <rte_version.h>
#include <unistd.h>

// Incremented when a method or field changes its meaning; additions do not count.
enum { PROTOCOL = 1 };

#define METHOD_ROW(method, name, params, text) {name, gen_method_##method},
static const struct rpc_method methods[] = {SCHEMA_GENERATOR_METHODS(METHOD_ROW)};

#define HELP_ROW(method, name, params, text) {name, params, text},
static const struct rpc_help help_rows[] = {SCHEMA_GENERATOR_METHODS(HELP_ROW)};

static const char *const state_words[] = {
	[GEN_IDLE] = "idle",
	[GEN_SENDING] = "sending",
	[GEN_DONE] = "done",
};

const struct rpc_method *gen_methods(size_t *n)
{
	*n = ARRAY_LEN(methods);
	return methods;
}

const char *gen_state_word(enum gen_state state)
{
	return state_words[state];
}

json_t *gen_method_help(void *ctx, const json_t *params, struct error *error)
{
	if (rpc_params_none(params, error))
		return NULL;
	return rpc_help_json(help_rows, ARRAY_LEN(help_rows));
}

json_t *gen_method_stop(void *ctx_, const json_t *params, struct error *error)
{
	struct gen_ctx *ctx = ctx_;

	if (rpc_params_none(params, error))
		return NULL;
	ctx->stop = true;
	return json_pack("{s:b}", "stopping", 1);
}

static json_t *memory_json(const struct gen_ctx *ctx)
{
	struct port_memory memory;

	port_memory(ctx->ports, &memory);
	return json_pack("{s:b, s:i, s:i, s:I, s:I}", "hugepages", memory.huge, "planned_mib",
		(int)memory.planned_mib, "mbuf_bytes", (int)memory.mbuf_bytes, "mbufs",
		(json_int_t)memory.n_mbufs, "mbufs_free", (json_int_t)memory.n_mbufs_free);
}

json_t *gen_method_status(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;

	if (rpc_params_none(params, error))
		return NULL;
	json_t *status = json_pack("{s:s, s:i, s:s, s:i}", "version", DL3_VERSION, "protocol",
		PROTOCOL, "dpdk", rte_version(), "pid", (int)getpid());
	json_object_set_new(status, "config", rpc_text_json(ctx->file));
	json_object_set_new(status, "started_ms", json_integer(ctx->started_ms));
	json_object_set_new(status, "uptime_s",
		json_real((clock_now_ns() - ctx->started_ns) / 1e9));
	json_object_set_new(status, "tsc_hz", json_integer(ctx->gen->hz));
	json_object_set_new(status, "ports", json_integer(ctx->settings->n_ports));
	json_object_set_new(status, "workers", json_integer(ctx->gen->n_workers));
	json_object_set_new(status, "memory", memory_json(ctx));
	json_object_set_new(status, "state", json_string(gen_state_word(gen_state(ctx->gen))));
	json_object_set_new(status, "run", json_integer(ctx->gen->current->number));
	return status;
}

json_t *gen_method_gaps(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;
	const struct gen *gen = ctx->gen;
	struct rpc_worker workers[STATS_MAX_WORKERS];
	struct rpc_gaps gaps = {.worker = workers, .n_workers = gen->n_workers, .born = ctx->born};

	for (unsigned i = 0; i < gen->n_workers; i++)
		workers[i] =
			(struct rpc_worker){i, gen->worker[i].io->core, &gen->worker[i].stalls};
	gaps.now = clock_pair_take(rte_rdtsc);
	return rpc_gaps_json(&gaps, params, error);
}

json_t *gen_method_ports(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = 0; i < ctx->settings->n_ports; i++)
		json_array_append_new(list, gen_port_json(ctx->gen, i));
	return json_pack("{s:o}", "ports", list);
}
