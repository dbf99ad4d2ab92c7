// Next hops, a page at a time. Control thread.
#include "verbs/inside.h"

enum { PAGE_HOPS = 1000, PAGE_MAX_HOPS = 4000 };

// Packets over all lanes.
static uint64_t hop_packets(const struct verbs_house *house, unsigned id)
{
	uint64_t sum = 0;
	unsigned n;
	struct stat_lane *const *lanes = path_stats(house->path, &n);

	for (unsigned i = 0; i < n; i++)
		sum += stat_read(&lanes[i]->hop[id]);
	return sum;
}

static json_t *hop_json(const struct verbs_house *house, unsigned id,
	const struct fib_hop_info *info)
{
	bool forwards = info->verdict == VERDICT_FORWARD;
	json_t *json = json_pack("{s:i, s:s, s:I}", "id", (int)id, "kind",
		kind_word(info->hop.kind), "routes", (json_int_t)info->n_routes);

	json_object_set_new(json, "packets", number_json(hop_packets(house, id)));
	json_object_set_new(json, "via", addr_json(&info->hop.via));
	json_object_set_new(json, "port", text_json(port_word(house, info->hop.port)));
	json_object_set_new(json, "mac", forwards ? mac_json(&info->mac) : json_null());
	json_object_set_new(json, "mtu", info->mtu ? number_json(info->mtu) : json_null());
	json_object_set_new(json, "verdict", text_json(verdict_name(info->verdict)));
	return json;
}

json_t *verb_nexthops(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	long after = -1, limit = PAGE_HOPS;
	const struct param rows[] = {
		{"after", PARAM_NUMBER, false, 0, FIB_MAX_HOPS, &after},
		{"limit", PARAM_NUMBER, false, 1, 10000, &limit},
	};
	struct fib_usage usage;
	struct fib_hop_info info;

	if (params_read(params, rows, 2, why))
		return NULL;
	fib_usage(house->fib, &usage);
	json_t *list = json_array(), *next = json_null();
	long most = limit < PAGE_MAX_HOPS ? limit : PAGE_MAX_HOPS, n = 0, last = after;
	for (long id = after + 1; id <= usage.max_hop_id; id++) {
		if (!fib_hop_info(house->fib, id, &info))
			continue;
		if (n++ == most) {
			next = json_integer(last);
			break;
		}
		json_array_append_new(list, hop_json(house, id, &info));
		last = id;
	}
	return json_pack("{s:o, s:o}", "nexthops", list, "next", next);
}
