// Next hops and neighbours, in pages. Control thread.
#include "api/inside.h"

#include "base/log.h"

// A response line is at most 1 MiB: next hops and group members take far less than 250 bytes each.
enum { PAGE_HOPS = 1000, PAGE_MAX_LISTED = 4000 };

uint64_t hop_counted(const void *ctx_, uint32_t id)
{
	const struct api_ctx *ctx = ctx_;
	uint64_t sum = 0;
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	for (unsigned i = 0; i < n; i++)
		sum += stats_read(&workers[i]->hop[id]);
	return sum;
}

static json_t *hop_json(const struct api_ctx *ctx, unsigned id, const struct fib_hop_info *info,
	long *n_listed)
{
	bool has_mac = info->verdict == VERDICT_FORWARD && info->hop.kind != FIB_GROUP;
	json_t *json = json_pack("{s:i, s:I}", "id", (int)id, "routes", (json_int_t)info->n_routes);

	set_hop(json, ctx, &info->hop);
	if (has_mac && hop_is_on_bridge(ctx, &info->hop))
		json_object_set_new(json, "port",
			rpc_text_json(port_behind_bridge(ctx, &info->hop, &info->mac)));
	*n_listed += 1 + set_members(json, ctx, &info->hop);
	json_object_set_new(json, "mac", has_mac ? mac_json(&info->mac) : json_null());
	json_object_set_new(json, "mtu", info->mtu ? number_json(info->mtu) : json_null());
	json_object_set_new(json, "verdict", rpc_text_json(verdict_name(info->verdict)));
	json_object_set_new(json, "packets",
		number_json(hop_counted(ctx, id) - info->counted_before));
	return json;
}

// A next hop is in the VRF of its interface; those without one (e.g. blackholes) are in no
// particular VRF.
static bool is_in(const struct api_ctx *ctx, const struct fib_hop_info *info, uint16_t vrf)
{
	const struct iface *iface =
		info->hop.iface < IFACE_MAX ? fib_iface(ctx->fib, info->hop.iface) : NULL;

	return iface && iface->vrf == vrf;
}

static json_t *neighbour_json(const struct api_ctx *ctx, unsigned id,
	const struct fib_hop_info *info, long *n_listed)
{
	const struct iface *iface = fib_iface(ctx->fib, info->hop.iface);
	json_t *json = json_pack("{s:i, s:o}", "id", (int)id, "address", addr_json(&info->hop.via));

	json_object_set_new(json, "interface", rpc_text_json(iface_word(ctx, info->hop.iface)));
	json_object_set_new(json, "vrf", rpc_text_json(iface ? vrf_word(ctx, iface->vrf) : NULL));
	json_object_set_new(json, "mac", mac_json(&info->mac));
	++*n_listed;
	return json;
}

// A list of next hops, or of neighbours only.
static json_t *read_hop_page(const struct api_ctx *ctx, const json_t *params, bool only_neighbours,
	struct error *error)
{
	long after = -1, limit = PAGE_HOPS;
	const char *vrf = NULL;
	uint16_t table = 0;
	const struct rpc_param rows[] = {
		{"after", RPC_NUMBER, false, 0, FIB_MAX_HOPS, &after},
		{"limit", RPC_NUMBER, false, 1, 10000, &limit},
		{"vrf", RPC_TEXT, false, 0, 0, &vrf},
	};
	struct fib_usage usage;
	struct fib_hop_info info;

	if (rpc_params_read(params, rows, 3, error) || vrf_find(ctx, vrf, &table, error))
		return NULL;
	fib_usage(ctx->fib, &usage);
	json_t *list = json_array(), *next = json_null();
	long n = 0, n_listed = 0, last = after;
	for (long id = after + 1; id <= usage.max_hop_id; id++) {
		if (!fib_hop_info(ctx->fib, id, &info) ||
			(only_neighbours && (!info.is_neighbour || info.hop.n_labels)) ||
			(vrf && !is_in(ctx, &info, table)))
			continue;
		if (n++ == limit || n_listed >= PAGE_MAX_LISTED) {
			next = json_integer(last);
			break;
		}
		json_array_append_new(list, only_neighbours
						    ? neighbour_json(ctx, id, &info, &n_listed)
						    : hop_json(ctx, id, &info, &n_listed));
		last = id;
	}
	return json_pack("{s:o, s:o}", only_neighbours ? "neighbours" : "nexthops", list, "next",
		next);
}

json_t *method_neighbours(void *ctx, const json_t *params, struct error *error)
{
	return read_hop_page(ctx, params, true, error);
}

json_t *method_nexthops(void *ctx, const json_t *params, struct error *error)
{
	return read_hop_page(ctx, params, false, error);
}

static bool is_connected(const struct fib *fib, const struct fib_hop *hop)
{
	struct fib_answer answer;

	rib_lookup(fib, 0, &hop->via, &answer);
	return wire_addr_is_link_local(&hop->via) ||
	       (answer.found && answer.route.hop.kind == FIB_CONNECTED &&
		       answer.route.hop.iface == hop->iface);
}

void api_warn_of_hops(const struct api_ctx *ctx)
{
	struct fib_hop_info info;
	struct fib_usage usage;
	char via[WIRE_ADDR_TEXT];
	struct wire_prefix any;

	fib_usage(ctx->fib, &usage);
	for (unsigned id = 1; id <= usage.max_hop_id; id++) {
		if (!fib_hop_info(ctx->fib, id, &info) || info.hop.kind != FIB_VIA ||
			!info.n_routes)
			continue;
		const char *port = iface_word(ctx, info.hop.iface);

		wire_addr_print(&info.hop.via, via);
		if (!info.is_neighbour)
			log_warn("next hop %s dev %s has no MAC address: add it to neighbours, or "
				 "packets to it are dropped (neighbour_unresolved)",
				via, port);
		else if (config_addresses(ctx->config, info.hop.iface, &any, 1) &&
			 !is_connected(ctx->fib, &info.hop))
			log_warn("next hop %s dev %s is not in a connected network of that port; "
				 "check ports: addresses",
				via, port);
	}
}
