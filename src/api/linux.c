// Linux as the control plane: TAP interfaces and classes, mirrored state, unsupported objects, and
// whether workers forward as Linux would. Control thread.
#include "api/inside.h"

#include <errno.h>

// A response line is at most 1 MiB.
enum { MAX_UNSUPPORTED = 2000, MAX_DIFFERENCES = 1000, DEFAULT_DIFFERENCES = 100 };

// Called after parameter checks, so that invalid parameters are reported in any case.
static int check_linux(const struct api_ctx *ctx, struct error *error)
{
	if (ctx->taps && ctx->netlink)
		return 0;
	return error_set(error, -ENOTSUP,
		"Linux is not the control plane: the configuration file has no key \"linux\"");
}

static json_t *tap_json(const struct api_ctx *ctx, unsigned port)
{
	struct stats_port sum;
	struct tap_info info;

	tap_info(ctx->taps, port, &info);
	port_counters(ctx, port, &sum);
	json_t *json = json_pack("{s:o, s:o, s:i, s:b, s:b, s:b}", "port",
		rpc_text_json(port_word(ctx, port)), "name", rpc_text_json(info.name), "ifindex",
		info.ifindex, "carrier", info.carrier, "adopted", info.adopted, "held", info.held);
	uint64_t punted = stats_read(&tap_stats(ctx->taps)->punted_by_port[port]) -
	                  ctx->baseline.punted[port];
	json_object_set_new(json, "punted", number_json(punted));
	json_object_set_new(json, "injected", number_json(sum.injected_packets));
	return json;
}

#define SET_CLASS_FIELD(name, text)                                                                \
	json_object_set_new(json, #name, number_json(stats_read(&counters->name)));

static json_t *class_json(const struct api_ctx *ctx, enum punt_class class)
{
	const struct class_row *row = class_row(class);
	const struct stats_class *counters = &tap_stats(ctx->taps)->class[class];
	struct tap_class_settings limit = tap_class(ctx->taps, class);
	uint64_t ring_full = 0;
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	for (unsigned i = 0; i < n; i++)
		ring_full += stats_read(&workers[i]->ring_full[class]);
	json_t *json = json_pack("{s:s, s:I, s:I, s:s, s:I, s:s}", "name", row->name, "rate_pps",
		(json_int_t)limit.rate, "burst", (json_int_t)limit.burst, "overflow",
		limit.forwards ? "forward" : "drop", "ring_full", (json_int_t)ring_full, "text",
		row->text);
	SCHEMA_CLASS_COUNTERS(SET_CLASS_FIELD)
	return json;
}

json_t *method_taps(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const struct port_table_settings *ports = config_ports(ctx->config);
	struct tap_info info;

	if (rpc_params_none(params, error) || check_linux(ctx, error))
		return NULL;
	json_t *taps = json_array(), *classes = json_array();
	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		json_array_append_new(taps, tap_json(ctx, i));
	for (unsigned c = 0; c < N_CLASSES; c++)
		json_array_append_new(classes, class_json(ctx, c));
	tap_info(ctx->taps, 0, &info);
	return json_pack("{s:o, s:b, s:b, s:o, s:o}", "namespace",
		rpc_text_json(info.namespace_name), "namespace_is_own", info.namespace_is_own,
		"keep", info.keep, "taps", taps, "classes", classes);
}

const char *mirror_word(const struct netlink *netlink)
{
	struct netlink_info info;

	netlink_info(netlink, &info);
	return info.state == NETLINK_DUMPING      ? "dumping"
	       : info.state == NETLINK_INCOMPLETE ? "incomplete"
	                                          : "following";
}

static json_t *iface_json(const struct api_ctx *ctx, unsigned id, const struct iface *iface)
{
	json_t *json = json_pack("{s:i, s:o, s:o, s:o, s:i, s:o}", "interface", (int)id, "name",
		rpc_text_json(iface_word(ctx, id)), "port",
		rpc_text_json(port_word(ctx, iface->port)), "vrf",
		rpc_text_json(vrf_word(ctx, iface->vrf)), "mtu", (int)iface->mtu, "mac",
		mac_json(&iface->mac));

	json_object_set_new(json, "vlans", tags_json(iface));
	json_object_set_new(json, "up", json_boolean(!(iface->flags & IFACE_DOWN)));
	json_object_set_new(json, "all_to_linux", json_boolean(iface->flags & IFACE_LINUX));
	json_object_set_new(json, "ip4_to_linux", json_boolean(iface->flags & IFACE_LINUX4));
	json_object_set_new(json, "ip6_to_linux", json_boolean(iface->flags & IFACE_LINUX6));
	return json;
}

#define MIRROR_FIELD(name) json_object_set_new(json, #name, number_json(info.name));

static void set_mirror_numbers(json_t *json, const struct netlink *netlink)
{
	struct netlink_info info;

	netlink_info(netlink, &info);
	MIRROR_FIELD(messages)
	MIRROR_FIELD(ignored)
	MIRROR_FIELD(malformed)
	MIRROR_FIELD(overruns)
	MIRROR_FIELD(dumps)
	MIRROR_FIELD(dumps_restarted)
	MIRROR_FIELD(dumps_partial)
	MIRROR_FIELD(routes4)
	MIRROR_FIELD(routes6)
	MIRROR_FIELD(neighbours)
	MIRROR_FIELD(nexthops)
	MIRROR_FIELD(control_bytes)
	MIRROR_FIELD(audited)
	MIRROR_FIELD(drifted)
	MIRROR_FIELD(drift_lasting)
	MIRROR_FIELD(managed)
	json_object_set_new(json, "last_dump_s", json_real(info.last_dump_ns / 1e9));
	json_object_set_new(json, "receive_buffer_bytes", number_json(info.receive_buffer));
}

static json_t *bursts_json(const struct netlink *netlink)
{
	struct netlink_burst bursts[NETLINK_BURSTS];
	unsigned n = netlink_bursts(netlink, bursts);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list,
			json_pack("{s:o, s:f, s:o}", "at_ns", number_json(bursts[i].end_ns), "us",
				(bursts[i].end_ns - bursts[i].begin_ns) / 1e3, "messages",
				number_json(bursts[i].messages)));
	return list;
}

json_t *method_mirror(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;

	if (rpc_params_none(params, error) || check_linux(ctx, error))
		return NULL;
	json_t *json = json_pack("{s:s}", "state", mirror_word(ctx->netlink)),
	       *ifaces = json_array(), *vrfs = json_array();
	set_mirror_numbers(json, ctx->netlink);
	for (unsigned id = 0; id < IFACE_MAX; id++) {
		const struct iface *iface = fib_iface(ctx->fib, id);

		if (iface)
			json_array_append_new(ifaces, iface_json(ctx, id, iface));
	}
	for (unsigned vrf = 0; vrf < FIB_MAX_VRFS; vrf++)
		if (vrf_word(ctx, vrf))
			json_array_append_new(vrfs, rpc_text_json(vrf_word(ctx, vrf)));
	json_object_set_new(json, "interfaces", ifaces);
	json_object_set_new(json, "vrfs", vrfs);
	json_object_set_new(json, "bursts", bursts_json(ctx->netlink));
	return json;
}

// Collects reported items in a list up to its limit, and counts all of them.
struct listing {
	json_t *list;
	size_t n, max;
};

static bool list_unsupported(void *arg, const struct netlink_unsupported *one)
{
	struct listing *listing = arg;

	if (listing->n++ < listing->max)
		json_array_append_new(listing->list,
			json_pack("{s:o, s:o, s:o, s:I}", "what", rpc_text_json(one->what), "where",
				rpc_text_json(one->where), "effect", rpc_text_json(one->effect),
				"alike", (json_int_t)one->n));
	return true;
}

json_t *method_unsupported(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct listing listing = {.max = MAX_UNSUPPORTED};

	if (rpc_params_none(params, error) || check_linux(ctx, error))
		return NULL;
	listing.list = json_array();
	netlink_unsupported(ctx->netlink, list_unsupported, &listing);
	return json_pack("{s:I, s:o}", "found", (json_int_t)listing.n, "unsupported", listing.list);
}

static bool list_difference(void *arg, const char *difference)
{
	struct listing *listing = arg;

	if (listing->n++ < listing->max)
		json_array_append_new(listing->list, rpc_text_json(difference));
	return true;
}

json_t *method_verify(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	long sample = 0, limit = DEFAULT_DIFFERENCES;
	const struct rpc_param rows[] = {
		{"sample", RPC_NUMBER, false, 1, INT32_MAX, &sample},
		{"limit", RPC_NUMBER, false, 1, MAX_DIFFERENCES, &limit},
	};

	if (rpc_params_read(params, rows, 2, error) || check_linux(ctx, error))
		return NULL;
	struct listing listing = {.list = json_array(), .max = limit};
	struct netlink_verification how = {.sample = sample,
		.cb = list_difference,
		.arg = &listing};
	int found = netlink_verify(ctx->netlink, &how, error);
	if (found < 0) {
		json_decref(listing.list);
		return NULL;
	}
	return json_pack("{s:I, s:I, s:i, s:o}", "compared", (json_int_t)how.compared, "macs",
		(json_int_t)how.macs, "differences", found, "listed", listing.list);
}
