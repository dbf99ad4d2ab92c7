// Lanes: cores, queues, what each counted, where its cycles go. Control thread.
#include "verbs/inside.h"

#include <rte_cycles.h>

static json_t *lane_verdicts(const struct stat_lane *stat)
{
	json_t *json = json_object();

	for (unsigned v = 0; v < N_VERDICTS; v++)
		json_object_set_new(json, verdict_name(v),
			number_json(stat_read(&stat->verdict[v])));
	return json;
}

// Counters of a lane by name.
#define SET_LANE_FIELD(name, text)                                                                 \
	json_object_set_new(json, #name, number_json(stat_read(&stat->name)));
#define SET_STEP_FIELD(name, text)                                                                 \
	json_object_set_new(json, #name, json_real(stat_read(&stat->step.name) / packets));
#define SET_QUEUE_FIELD(name, text)                                                                \
	json_object_set_new(json, #name, number_json(stat_read(&counters->name)));

static json_t *lane_counters(const struct stat_lane *stat)
{
	json_t *json = json_object();

	SCHEMA_LANE_COUNTERS(SET_LANE_FIELD)
	return json;
}

// Cycles per packet by step; null while nothing was timed.
static json_t *lane_steps(const struct stat_lane *stat)
{
	double packets = stat_read(&stat->timed_packets);
	json_t *json = json_object();

	if (packets < 1) {
		json_decref(json);
		return json_null();
	}
	SCHEMA_STEP_COUNTERS(SET_STEP_FIELD)
	return json;
}

// The longest time between two polls, and how long ago it ended.
static json_t *lane_gap(const struct stat_lane *stat)
{
	double hz = rte_get_tsc_hz(), now = rte_rdtsc();
	uint64_t gap = stat_read(&stat->longest_gap_cycles);
	uint64_t at = stat_read(&stat->longest_gap_at_cycles);

	if (!gap || hz < 1)
		return json_null();
	return json_pack("{s:f, s:f}", "longest_us", gap / hz * 1e6, "ago_s", (now - at) / hz);
}

static json_t *queue_json(const struct verbs_house *house, const struct port_queue *queue,
	const struct stat_queue *counters)
{
	json_t *json = json_pack("{s:o, s:i}", "port", ctl_text_json(port_word(house, queue->port)),
		"queue", (int)queue->queue);

	SCHEMA_QUEUE_COUNTERS(SET_QUEUE_FIELD)
	return json;
}

static json_t *lane_queues(const struct verbs_house *house, const struct port_lane *lane,
	const struct stat_lane *stat)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < lane->n_queues; i++)
		json_array_append_new(list, queue_json(house, &lane->queues[i], &stat->queue[i]));
	return list;
}

// Of the time since the start.
static double asleep_share(const struct verbs_house *house, const struct stat_lane *stat)
{
	double lived = rte_rdtsc() - house->born.cycles;

	return lived > 0 ? stat_read(&stat->slept_cycles) / lived : 0;
}

// What ends the sleep of a lane; null: it polls.
static json_t *woken_by(const struct port_lane *lane)
{
	if (!lane->may_sleep)
		return json_null();
	return json_string(port_wait_is_woken(lane->wait) ? "frames" : "time");
}

static json_t *lane_json(const struct verbs_house *house, const struct port_lane *lane,
	const struct stat_lane *stat)
{
	json_t *json = json_pack("{s:i, s:i, s:i, s:i}", "lane", (int)lane->id, "core", lane->core,
		"numa", lane->numa, "burst", (int)lane->burst);
	uint64_t loops = stat_read(&stat->loops), empty = stat_read(&stat->empty_loops);

	json_object_set_new(json, "idle", json_string(lane->may_sleep ? "sleep" : "poll"));
	json_object_set_new(json, "woken_by", woken_by(lane));
	json_object_set_new(json, "queues", lane_queues(house, lane, stat));
	json_object_set_new(json, "counters", lane_counters(stat));
	json_object_set_new(json, "empty_share", json_real(loops ? (double)empty / loops : 0));
	json_object_set_new(json, "asleep_share", json_real(asleep_share(house, stat)));
	json_object_set_new(json, "poll_gap", lane_gap(stat));
	json_object_set_new(json, "cycles_per_packet", lane_steps(stat));
	json_object_set_new(json, "verdicts", lane_verdicts(stat));
	return json;
}

json_t *verb_gaps(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	struct ctl_lane lanes[STAT_MAX_LANES];
	struct ctl_gaps gaps = {.lane = lanes, .born = house->born};
	struct stat_lane *const *stats = path_stats(house->path, &gaps.n_lanes);

	for (unsigned i = 0; i < gaps.n_lanes; i++)
		lanes[i] =
			(struct ctl_lane){i, port_lane(house->ports, i)->core, &stats[i]->pauses};
	gaps.now = clock_pair_take(rte_rdtsc);
	return ctl_gaps_json(&gaps, params, why);
}

json_t *verb_lanes(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	unsigned n;
	struct stat_lane *const *stats = path_stats(house->path, &n);

	if (ctl_params_none(params, why))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, lane_json(house, port_lane(house->ports, i), stats[i]));
	return json_pack("{s:o, s:I}", "lanes", list, "tsc_hz", (json_int_t)rte_get_tsc_hz());
}
