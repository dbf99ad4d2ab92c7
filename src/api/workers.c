// Workers: cores, queues, counters, and cycles by step. Control thread.
#include "api/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <rte_cycles.h>

static json_t *worker_verdicts(const struct stats_worker *stat)
{
	json_t *json = json_object();

	for (unsigned v = 0; v < N_VERDICTS; v++)
		json_object_set_new(json, verdict_name(v),
			number_json(stats_read(&stat->verdict[v])));
	return json;
}

// Counters of a worker by name.
#define SET_WORKER_FIELD(name, text)                                                               \
	json_object_set_new(json, #name, number_json(stats_read(&stat->name)));
#define SET_WORKER_LIST(name, n, text) json_object_set_new(json, #name, list_json(stat->name, n));
#define SET_QUEUE_FIELD(name, text)                                                                \
	json_object_set_new(json, #name, number_json(stats_read(&counters->name) - before->name));

static json_t *worker_counters(const struct stats_worker *stat)
{
	json_t *json = json_object();

	SCHEMA_WORKER_COUNTERS(SET_WORKER_FIELD)
	return json;
}

static json_t *list_json(const uint64_t counter[], unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, number_json(stats_read(&counter[i])));
	return list;
}

static json_t *worker_lists(const struct stats_worker *stat)
{
	json_t *json = json_object();

	SCHEMA_WORKER_LISTS(SET_WORKER_LIST)
	return json;
}

// Cycles per packet by step; null if nothing was timed yet.
static json_t *worker_steps(const struct stats_worker *stat)
{
	double packets = stats_read(&stat->timed_packets);
	json_t *json = json_object();

	if (packets < 1) {
		json_decref(json);
		return json_null();
	}
	for (unsigned i = 0; datapath_step_name(i); i++)
		json_object_set_new(json, datapath_step_name(i),
			json_real(stats_read(&stat->step_cycles[i]) / packets));
	return json;
}

// The longest time between two polls, and how long ago it ended.
static json_t *worker_gap(const struct stats_worker *stat)
{
	uint64_t gap = stats_read_first(&stat->longest_gap_cycles);
	uint64_t at = stats_read_first(&stat->longest_gap_at_cycles);
	double hz = rte_get_tsc_hz(), now = rte_rdtsc();

	if (!gap || hz < 1)
		return json_null();
	return json_pack("{s:f, s:f}", "longest_us", gap / hz * 1e6, "ago_s", (now - at) / hz);
}

static json_t *queue_json(const struct api_ctx *ctx, const struct port_queue *queue,
	const struct stats_queue *counters, const struct stats_queue *before)
{
	json_t *json = json_pack("{s:o, s:i}", "port", rpc_text_json(port_word(ctx, queue->port)),
		"queue", (int)queue->queue);

	SCHEMA_QUEUE_COUNTERS(SET_QUEUE_FIELD)
	return json;
}

static json_t *worker_queues(const struct api_ctx *ctx, const struct port_worker *worker,
	const struct stats_worker *stat)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < port_n_queues(worker); i++)
		if (worker->queues[i].port != PORT_NONE)
			json_array_append_new(list,
				queue_json(ctx, &worker->queues[i], &stat->queue[i],
					&ctx->baseline.queue[worker->id][i]));
	return list;
}

// Share of the time since the start.
static double asleep_share(const struct api_ctx *ctx, const struct stats_worker *stat)
{
	double slept =
		stats_read_first(&stat->slept_cycles); // before the clock: never more than all
	double lived = rte_rdtsc() - ctx->born.cycles;

	return lived > 0 ? slept / lived : 0;
}

// What wakes up a sleeping worker; null: it polls.
static json_t *woken_by(const struct port_worker *worker)
{
	if (!worker->may_sleep)
		return json_null();
	return json_string(port_wait_is_woken(worker->wait) ? "frames" : "time");
}

// The workers to which a worker hands what it receives.
static json_t *worker_hands(const struct api_ctx *ctx, unsigned worker)
{
	json_t *list = json_array();
	struct datapath_hand hand;

	for (unsigned i = 0; datapath_hand(ctx->path, worker, i, &hand); i++) {
		json_t *slots = json_array(), *came = json_array();

		for (unsigned slot = 0; slot < DATAPATH_SLOTS; slot++)
			if (hand.slots[slot]) {
				json_array_append_new(slots, json_integer(slot));
				json_array_append_new(came, number_json(hand.n_came[slot]));
			}
		json_array_append_new(list,
			json_pack("{s:i, s:o, s:o, s:o, s:o}", "worker", (int)hand.worker,
				"packets", number_json(hand.handed), "waiting",
				number_json(hand.handed - hand.processed), "slots", slots,
				"slot_packets", came));
	}
	return list;
}

static json_t *worker_json(const struct api_ctx *ctx, const struct port_worker *worker,
	const struct stats_worker *stat)
{
	json_t *json = json_pack("{s:i, s:i, s:i, s:i}", "worker", (int)worker->id, "core",
		worker->core, "numa", worker->numa, "burst", (int)worker->burst);
	uint64_t empty = stats_read_first(&stat->empty_loops), loops = stats_read(&stat->loops);

	json_object_set_new(json, "idle", json_string(worker->may_sleep ? "sleep" : "poll"));
	json_object_set_new(json, "woken_by", woken_by(worker));
	json_object_set_new(json, "queues", worker_queues(ctx, worker, stat));
	json_object_set_new(json, "hands_to", worker_hands(ctx, worker->id));
	json_object_set_new(json, "counters", worker_counters(stat));
	json_object_set_new(json, "counter_lists", worker_lists(stat));
	json_object_set_new(json, "empty_share", json_real(loops ? (double)empty / loops : 0));
	json_object_set_new(json, "asleep_share", json_real(asleep_share(ctx, stat)));
	json_object_set_new(json, "poll_gap", worker_gap(stat));
	json_object_set_new(json, "cycles_per_packet", worker_steps(stat));
	json_object_set_new(json, "verdicts", worker_verdicts(stat));
	return json;
}

json_t *method_gaps(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct rpc_worker workers[STATS_MAX_WORKERS];
	struct rpc_gaps gaps = {.worker = workers, .born = ctx->born};
	struct stats_worker *const *stats = datapath_stats(ctx->path, &gaps.n_workers);

	for (unsigned i = 0; i < gaps.n_workers; i++)
		workers[i] =
			(struct rpc_worker){i, port_worker(ctx->ports, i)->core, &stats[i]->stalls};
	gaps.now = clock_pair_take(rte_rdtsc);
	return rpc_gaps_json(&gaps, params, error);
}

json_t *method_workers(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	unsigned n;
	struct stats_worker *const *stats = datapath_stats(ctx->path, &n);

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, worker_json(ctx, port_worker(ctx->ports, i), stats[i]));
	return json_pack("{s:o, s:I}", "workers", list, "tsc_hz", (json_int_t)rte_get_tsc_hz());
}

static int read_slots(const json_t *list, bool slots[DATAPATH_SLOTS], struct error *error)
{
	for (unsigned i = 0; i < json_array_size(list); i++) {
		const json_t *slot = json_array_get(list, i);
		const json_int_t number = json_is_integer(slot) ? json_integer_value(slot) : -1;

		if (number < 0 || number >= DATAPATH_SLOTS)
			return error_set(error, -ERANGE,
				"slots[%u]: expected the number of a slot, 0 to %d", i,
				DATAPATH_SLOTS - 1);
		slots[number] = true;
	}
	return 0;
}

json_t *method_workers_move(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const long most = port_n_workers(ctx->ports) - 1;
	const json_t *list = NULL;
	long from = -1, to = -1;
	const struct rpc_param rows[] = {{"from", RPC_NUMBER, true, 0, most, &from},
		{"to", RPC_NUMBER, true, 0, most, &to},
		{"slots", RPC_LIST, true, 1, DATAPATH_SLOTS, &list}};
	bool slots[DATAPATH_SLOTS] = {false};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) ||
		read_slots(list, slots, error) || datapath_move(ctx->path, from, slots, to, error))
		return NULL;
	return json_pack("{s:b}", "moved", datapath_has_moved(ctx->path, from));
}
