// The table of the generator's verbs, and those that are about the program itself. Control thread.
#include "load/inside.h"

#include "base/bits.h"
#include "base/clock.h"

#include <rte_cycles.h>
#include <rte_version.h>
#include <unistd.h>

// Grows when a verb or field changes its meaning; new ones do not count.
enum { PROTOCOL = 1 };

#define VERB_ROW(verb, name, params, text) {name, load_verb_##verb},
static const struct ctl_verb verbs[] = {SCHEMA_GENERATOR_VERBS(VERB_ROW)};

#define HELP_ROW(verb, name, params, text) {name, params, text},
static const struct ctl_help help_rows[] = {SCHEMA_GENERATOR_VERBS(HELP_ROW)};

static const char *const state_words[] = {
	[LOAD_IDLE] = "idle",
	[LOAD_SENDING] = "sending",
	[LOAD_DONE] = "done",
};

const struct ctl_verb *load_verbs(size_t *n)
{
	*n = ARRAY_LEN(verbs);
	return verbs;
}

const char *load_state_word(enum load_state state)
{
	return state_words[state];
}

json_t *load_verb_help(void *house, const json_t *params, struct complaint *why)
{
	if (ctl_params_none(params, why))
		return NULL;
	return ctl_help_json(help_rows, ARRAY_LEN(help_rows));
}

json_t *load_verb_stop(void *house_, const json_t *params, struct complaint *why)
{
	struct load_house *house = house_;

	if (ctl_params_none(params, why))
		return NULL;
	house->stop = true;
	return json_pack("{s:b}", "stopping", 1);
}

static json_t *memory_json(const struct load_house *house)
{
	struct port_memory memory;

	port_memory(house->ports, &memory);
	return json_pack("{s:b, s:i, s:i, s:I, s:I}", "hugepages", memory.huge, "planned_mib",
		(int)memory.planned_mib, "mbuf_bytes", (int)memory.mbuf_bytes, "mbufs",
		(json_int_t)memory.n_mbufs, "mbufs_free", (json_int_t)memory.n_mbufs_free);
}

json_t *load_verb_status(void *house_, const json_t *params, struct complaint *why)
{
	const struct load_house *house = house_;

	if (ctl_params_none(params, why))
		return NULL;
	json_t *status = json_pack("{s:s, s:i, s:s, s:i}", "version", DL3_VERSION, "protocol",
		PROTOCOL, "dpdk", rte_version(), "pid", (int)getpid());
	json_object_set_new(status, "config", ctl_text_json(house->file));
	json_object_set_new(status, "uptime_s",
		json_real((clock_now_ns() - house->started_ns) / 1e9));
	json_object_set_new(status, "tsc_hz", json_integer(house->load->hz));
	json_object_set_new(status, "ports", json_integer(house->settings->n_ports));
	json_object_set_new(status, "lanes", json_integer(house->load->n_lanes));
	json_object_set_new(status, "memory", memory_json(house));
	json_object_set_new(status, "state", json_string(load_state_word(load_state(house->load))));
	json_object_set_new(status, "run", json_integer(house->load->current->number));
	return status;
}

json_t *load_verb_gaps(void *house_, const json_t *params, struct complaint *why)
{
	const struct load_house *house = house_;
	const struct load *load = house->load;
	struct ctl_lane lanes[STAT_MAX_LANES];
	struct ctl_gaps gaps = {.lane = lanes, .n_lanes = load->n_lanes, .born = house->born};

	for (unsigned i = 0; i < load->n_lanes; i++)
		lanes[i] = (struct ctl_lane){i, load->lane[i].io->core, &load->lane[i].pauses};
	gaps.now = clock_pair_take(rte_rdtsc);
	return ctl_gaps_json(&gaps, params, why);
}

json_t *load_verb_ports(void *house_, const json_t *params, struct complaint *why)
{
	const struct load_house *house = house_;

	if (ctl_params_none(params, why))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = 0; i < house->settings->n_ports; i++)
		json_array_append_new(list, load_port_json(house->load, i));
	return json_pack("{s:o}", "ports", list);
}
