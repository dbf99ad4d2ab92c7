// Next hops, a page at a time. Control thread.
#include "verbs/inside.h"

// A reply's line is at most 1 MiB: next hops and members of groups are far below 250 bytes each.
enum { PAGE_HOPS = 1000, PAGE_MAX_LISTED = 4000 };

uint64_t hop_counted(const void *house_, uint16_t id)
{
	const struct verbs_house *house = house_;
	uint64_t sum = 0;
	unsigned n;
	struct stat_lane *const *lanes = path_stats(house->path, &n);

	for (unsigned i = 0; i < n; i++)
		sum += stat_read(&lanes[i]->hop[id]);
	return sum;
}

static json_t *hop_json(const struct verbs_house *house, unsigned id,
	const struct fib_hop_info *info, long *n_listed)
{
	bool has_mac = info->verdict == VERDICT_FORWARD && info->hop.kind != FIB_GROUP;
	json_t *json = json_pack("{s:i, s:I}", "id", (int)id, "routes", (json_int_t)info->n_routes);

	set_hop(json, house, &info->hop);
	*n_listed += 1 + set_members(json, house, &info->hop);
	json_object_set_new(json, "mac", has_mac ? mac_json(&info->mac) : json_null());
	json_object_set_new(json, "mtu", info->mtu ? number_json(info->mtu) : json_null());
	json_object_set_new(json, "verdict", ctl_text_json(verdict_name(info->verdict)));
	json_object_set_new(json, "packets",
		number_json(hop_counted(house, id) - info->counted_before));
	return json;
}

// A next hop is in the VRF of its link; what has none (blackholes, say) is in no particular one.
static bool is_in(const struct verbs_house *house, const struct fib_hop_info *info, uint8_t vrf)
{
	const struct fib_link *link =
		info->hop.link < FIB_MAX_LINKS ? fib_link(house->fib, info->hop.link) : NULL;

	return link && link->vrf == vrf;
}

json_t *verb_nexthops(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	long after = -1, limit = PAGE_HOPS;
	const char *vrf = NULL;
	uint8_t table = 0;
	const struct ctl_param rows[] = {
		{"after", CTL_NUMBER, false, 0, FIB_MAX_HOPS, &after},
		{"limit", CTL_NUMBER, false, 1, 10000, &limit},
		{"vrf", CTL_TEXT, false, 0, 0, &vrf},
	};
	struct fib_usage usage;
	struct fib_hop_info info;

	if (ctl_params_read(params, rows, 3, why) || vrf_find(house, vrf, &table, why))
		return NULL;
	fib_usage(house->fib, &usage);
	json_t *list = json_array(), *next = json_null();
	long n = 0, n_listed = 0, last = after;
	for (long id = after + 1; id <= usage.max_hop_id; id++) {
		if (!fib_hop_info(house->fib, id, &info) || (vrf && !is_in(house, &info, table)))
			continue;
		if (n++ == limit || n_listed >= PAGE_MAX_LISTED) {
			next = json_integer(last);
			break;
		}
		json_array_append_new(list, hop_json(house, id, &info, &n_listed));
		last = id;
	}
	return json_pack("{s:o, s:o}", "nexthops", list, "next", next);
}
