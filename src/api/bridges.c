// See bridges.h. The methods bridges, macs and macs.flush. Control thread.
#include "api/bridges.h"

#include "base/bits.h"
#include "base/log.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>

// A response line is at most 1 MiB, and takes a few ms: an address takes less than 120 bytes.
enum { PAGE_MACS = 500, PAGE_MAX_MACS = 5000 };

static const char *bridge_word(const struct bridges *bridges, uint16_t domain)
{
	struct mac_usage usage;

	return mac_usage(bridges->table, domain, &usage) ? usage.name : NULL;
}

static const char *member_word(const struct api_ctx *ctx, uint16_t member)
{
	const struct fib_overlay *overlay = fib_live_view(&ctx->live)->overlay;
	const struct fib_vxlan *vxlan = NULL;

	if (member < MAC_FIRST_TUNNEL)
		return port_word(ctx, member);
	if (ctx->netlink)
		vxlan = fib_vxlan_load(overlay, member - MAC_FIRST_TUNNEL);
	return vxlan ? iface_word(ctx, vxlan->iface) : "vxlan";
}

static void log_held(void *ctx_, const struct mac_info *info, uint16_t other)
{
	const struct api_ctx *ctx = ctx_;
	char text[WIRE_MAC_TEXT];

	log_warn("bridge %s: MAC address %s has moved more than %d times in %d s, now to port %s; "
		 "it is held at port %s for %d s: look for a loop, or a host that is there twice",
		bridge_word(ctx->bridges, info->domain), wire_mac_print(&info->mac, text),
		MAC_MOVES, MAC_MOVES_S, member_word(ctx, other), member_word(ctx, info->port),
		MAC_HOLD_S);
}

static void teach_linux(void *ctx_, const struct mac_info *info)
{
	const struct api_ctx *ctx = ctx_;

	if (ctx->netlink)
		netlink_learn(ctx->netlink, info);
}

int api_open_bridges(struct api_ctx *ctx, uint64_t hz, struct error *error)
{
	const struct mac_settings settings = {.hz = hz,
		.n_workers = port_n_workers(ctx->ports),
		.rcu = ctx->rcu,
		.held = log_held,
		.unknown = teach_linux,
		.remote = vxlans_find,
		.ctx = ctx};
	struct bridges *bridges = calloc(1, sizeof(*bridges));
	struct mac_pending *pending;

	if (!bridges)
		return error_set(error, -ENOMEM, "not enough memory for bridges");
	int err = mac_open(&bridges->table, &settings, error);
	if (err) {
		free(bridges);
		return err;
	}
	ctx->bridges = bridges;
	err = bridges_prepare(ctx, ctx->config, &pending, error);
	if (err)
		api_close_bridges(ctx);
	else
		bridges_commit(ctx, ctx->config, pending);
	return err;
}

void api_close_bridges(struct api_ctx *ctx)
{
	if (!ctx->bridges)
		return;
	mac_close(ctx->bridges->table);
	free(ctx->bridges->ends.end);
	free(ctx->bridges);
	ctx->bridges = NULL;
}

const struct mac_live *api_mac_live(const struct api_ctx *ctx)
{
	return mac_live(ctx->bridges->table);
}

int bridges_prepare(struct api_ctx *ctx, const struct config *next, struct mac_pending **out,
	struct error *error)
{
	unsigned n;

	*out = NULL;
	if (ctx->netlink) // Linux's bridges are in the table
		return 0;
	struct mac_bridge *list = vxlans_list(next, &n);
	if (!list)
		return error_set(error, -ENOMEM, "not enough memory for bridges");
	int err = vxlans_hold(ctx, next, error);
	if (!err) {
		err = mac_prepare(ctx->bridges->table, list, n, out, error);
		if (err)
			vxlans_drop(ctx);
	}
	vxlans_free_list(list, n);
	return err;
}

static void set_port(struct api_ctx *ctx, unsigned port, bool is_in)
{
	struct error error;

	if (port_set_promiscuous(ctx->ports, port, is_in, &error))
		log_warn("%s; frames to other MAC addresses are lost", error.text);
	port_set_bridged(ctx->ports, port, is_in);
	ctx->bridges->is_in[port] = is_in;
	ctx->bridges->was_up[port] = false;
}

// Ports leave first and join last, so that no worker looks for a bridge of a port that has none.
void bridges_commit(struct api_ctx *ctx, const struct config *next, struct mac_pending *pending)
{
	struct bridges *bridges = ctx->bridges;

	if (!pending)
		return;
	for (unsigned i = 0; i < PORT_MAX; i++)
		if (bridges->is_in[i] && !config_bridge_of(next, i))
			set_port(ctx, i, false);
	vxlans_apply(ctx);
	mac_commit(bridges->table, pending, rte_rdtsc());
	vxlans_finish(ctx);
	for (unsigned i = 0; i < PORT_MAX; i++)
		if (!bridges->is_in[i] && config_bridge_of(next, i))
			set_port(ctx, i, true);
}

void bridges_drop(struct api_ctx *ctx, struct mac_pending *pending)
{
	if (!pending)
		return;
	mac_drop(pending);
	vxlans_drop(ctx);
}

static void follow_link(struct api_ctx *ctx, unsigned port)
{
	const bool is_up = port_is_up(&port_states(ctx->ports)[port]);

	if (ctx->bridges->was_up[port] && !is_up)
		mac_flush(ctx->bridges->table, &(struct mac_choice){0, port});
	ctx->bridges->was_up[port] = is_up;
}

void bridges_poll(struct api_ctx *ctx)
{
	struct bridges *bridges = ctx->bridges;

	for (unsigned i = 0; i < PORT_MAX; i++)
		if (bridges->is_in[i])
			follow_link(ctx, i);
	bridges->is_learning = mac_poll(bridges->table, rte_rdtsc());
}

bool bridges_are_learning(const struct api_ctx *ctx)
{
	return ctx->bridges && ctx->bridges->is_learning;
}

static json_t *limit_json(uint32_t limit)
{
	return limit ? number_json(limit) : json_null();
}

// Null: the bridge does not filter by VLAN, or, of a PVID, there is none.
static json_t *pvid_json(const struct mac_vlans *vlans)
{
	return vlans ? limit_json(vlans->pvid) : json_null();
}

static json_t *count_json(const struct mac_vlans *vlans)
{
	unsigned n = 0;

	if (!vlans)
		return json_null();
	for (unsigned i = 0; i < MAC_VIDS / 64; i++)
		n += __builtin_popcountll(vlans->has[i]);
	return number_json(n);
}

static json_t *storm_json(const uint32_t pps[MAC_STORMS])
{
	return json_pack("{s:o, s:o, s:o}", "broadcast", limit_json(pps[MAC_BROADCAST]),
		"multicast", limit_json(pps[MAC_MULTICAST]), "unknown",
		limit_json(pps[MAC_UNKNOWN]));
}

// What ports and VXLAN devices have in common.
static json_t *member_json(const struct mac_member *member, uint32_t n_learnt)
{
	return json_pack("{s:b, s:b, s:b, s:I, s:o, s:o, s:b, s:b}", "learning",
		(member->flags & MAC_LEARNS) != 0, "flood", (member->flags & MAC_FLOODS) != 0,
		"isolated", (member->flags & MAC_ISOLATED) != 0, "learnt_macs",
		(json_int_t)n_learnt, "pvid", pvid_json(member->vlans), "vlans",
		count_json(member->vlans), "broadcast_flood", !(member->flags & MAC_NO_BROADCASTS),
		"multicast_flood", !(member->flags & MAC_NO_MULTICASTS));
}

static json_t *bridge_port_json(const struct api_ctx *ctx, unsigned port,
	const struct mac_member *member, uint32_t n_learnt)
{
	json_t *json = member_json(member, n_learnt);

	json_object_set_new(json, "port", json_string(port_word(ctx, port)));
	json_object_set_new(json, "link_up",
		json_boolean(port_is_up(&port_states(ctx->ports)[port])));
	json_object_set_new(json, "hairpin", json_boolean(member->flags & MAC_HAIRPIN));
	json_object_set_new(json, "max_macs", limit_json(member->max));
	json_object_set_new(json, "storm", storm_json(member->storm_pps));
	return json;
}

static json_t *vxlan_json(const struct api_ctx *ctx, uint16_t at, const struct mac_member *member,
	uint32_t n_learnt)
{
	const struct fib_overlay *overlay = fib_live_view(&ctx->live)->overlay;
	const struct fib_vxlan *vxlan = fib_vxlan_load(overlay, at - MAC_FIRST_TUNNEL);
	const struct mac_flood *flood = mac_live_flood(mac_live(ctx->bridges->table), at);
	json_t *json = member_json(member, n_learnt);

	json_object_set_new(json, "device", json_string(member_word(ctx, at)));
	json_object_set_new(json, "vni", vxlan ? number_json(vxlan->vni) : json_null());
	json_object_set_new(json, "flood_remotes", number_json(flood ? flood->n : 0));
	json_object_set_new(json, "learning_remotes",
		json_boolean(member->flags & MAC_LEARNS_REMOTES));
	return json;
}

static void add_members(const struct api_ctx *ctx, uint16_t domain, json_t *bridge)
{
	json_t *ports = json_array(), *vxlans = json_array();
	struct mac_member member;
	uint32_t n_learnt;
	uint16_t of;

	for (unsigned i = 0; i < MAC_MEMBERS; i++) {
		if (!mac_member(ctx->bridges->table, i, &member, &of, &n_learnt) || of != domain)
			continue;
		if (i < MAC_FIRST_TUNNEL)
			json_array_append_new(ports, bridge_port_json(ctx, i, &member, n_learnt));
		else
			json_array_append_new(vxlans, vxlan_json(ctx, i, &member, n_learnt));
	}
	json_object_set_new(bridge, "ports", ports);
	json_object_set_new(bridge, "vxlans", vxlans);
}

// What Linux decides for its bridges, so that there is no number of ours.
static json_t *unless_linux_json(const struct mac_usage *u, uint64_t number)
{
	return u->is_linux ? json_null() : number_json(number);
}

static json_t *bridge_json(const struct api_ctx *ctx, uint16_t domain, const struct mac_usage *u)
{
	const struct mac_vlans *own = mac_own_vlans(ctx->bridges->table, domain);
	json_t *json = json_pack("{s:s, s:I, s:o, s:I, s:I}", "name", u->name, "ageing_s",
		(json_int_t)u->ageing_s, "max_macs", unless_linux_json(u, u->max), "static_macs",
		(json_int_t)u->n_static, "learnt_macs", (json_int_t)u->n_learnt);

	json_object_set_new(json, "filters_vlans", json_boolean(u->filters_vlans));
	json_object_set_new(json, "added", number_json(u->n_added));
	json_object_set_new(json, "moved", number_json(u->n_moved));
	json_object_set_new(json, "aged", unless_linux_json(u, u->n_aged));
	json_object_set_new(json, "held", unless_linux_json(u, u->n_held));
	json_object_set_new(json, "refused", number_json(u->n_refused));
	json_object_set_new(json, "evicted", unless_linux_json(u, u->n_evicted));
	json_object_set_new(json, "snooping", snooping_json(ctx->bridges->table, domain));
	json_object_set_new(json, "storm", storm_json(u->storm_pps));
	json_object_set_new(json, "pvid", pvid_json(own));
	json_object_set_new(json, "vlans", count_json(own));
	add_members(ctx, domain, json);
	return json;
}

// Frames that the guard has kept Linux from flooding; null: there is none.
static json_t *guarded_json(const struct api_ctx *ctx)
{
	uint64_t n;

	return ctx->netlink && netlink_guarded(ctx->netlink, &n) ? number_json(n) : json_null();
}

json_t *method_bridges(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct mac_usage usage;

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = json_array();
	for (uint16_t domain = 1; domain <= MAC_BRIDGES; domain++)
		if (mac_usage(ctx->bridges->table, domain, &usage))
			json_array_append_new(list, bridge_json(ctx, domain, &usage));
	return json_pack("{s:o, s:o}", "bridges", list, "guarded", guarded_json(ctx));
}

// Which addresses a request is about: their names, NULL: any.
struct choice {
	const char *bridge, *port;
	struct mac_choice of;
};

static int choose(const struct api_ctx *ctx, struct choice *choice, struct error *error)
{
	const struct port_table_settings *ports = config_ports(ctx->config);

	choice->of.port = MAC_PORTS;
	choice->of.domain = choice->bridge ? mac_domain(ctx->bridges->table, choice->bridge) : 0;
	if (choice->bridge && !choice->of.domain)
		return error_set(error, -ENOENT,
			"unknown bridge \"%.60s\"; 'bridges' lists those that there are",
			choice->bridge);
	for (unsigned i = port_next(ports, 0); choice->port && i < ports->n_ports;
		i = port_next(ports, i + 1))
		if (!strcmp(ports->ports[i].name, choice->port))
			choice->of.port = i;
	if (choice->port && choice->of.port == MAC_PORTS)
		return error_set(error, -ENOENT,
			"unknown port \"%.60s\"; 'ports' lists those that there are", choice->port);
	return 0;
}

static json_t *info_json(const struct api_ctx *ctx, const struct mac_info *info)
{
	const char *kind = info->is_static  ? "static"
	                   : info->is_linux ? "linux"
	                   : info->is_held  ? "held"
	                                    : "learnt";

	return json_pack("{s:o, s:s?, s:o, s:s?, s:s, s:o}", "mac", mac_json(&info->mac), "bridge",
		bridge_word(ctx->bridges, info->domain), "vlan", limit_json(info->vlan), "port",
		member_word(ctx, info->port), "kind", kind, "idle_s",
		info->is_static || info->is_unseen ? json_null() : number_json(info->idle_s));
}

json_t *method_macs(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct choice choice = {.bridge = NULL};
	long after = 0, limit = PAGE_MACS;
	const struct rpc_param rows[] = {
		{"bridge", RPC_TEXT, false, 0, 0, &choice.bridge},
		{"port", RPC_TEXT, false, 0, 0, &choice.port},
		{"after", RPC_NUMBER, false, 0, UINT32_MAX, &after},
		{"limit", RPC_NUMBER, false, 1, PAGE_MAX_MACS, &limit},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) || choose(ctx, &choice, error))
		return NULL;
	struct mac_info *page = calloc(limit, sizeof(*page));
	if (!page) {
		error_set(error, -ENOMEM, "not enough memory for %ld MAC addresses", limit);
		return NULL;
	}
	uint32_t place = after;
	const unsigned n =
		mac_page(ctx->bridges->table, &choice.of, rte_rdtsc(), &place, page, limit);
	json_t *list = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, info_json(ctx, &page[i]));
	free(page);
	return json_pack("{s:o, s:o}", "macs", list, "next",
		place ? number_json(place) : json_null());
}

json_t *method_macs_flush(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct choice choice = {.bridge = NULL};
	const struct rpc_param rows[] = {
		{"bridge", RPC_TEXT, false, 0, 0, &choice.bridge},
		{"port", RPC_TEXT, false, 0, 0, &choice.port},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) || choose(ctx, &choice, error))
		return NULL;
	if (ctx->taps) {
		error_set(error, -EOPNOTSUPP,
			"Linux has the addresses of its bridges: use 'ip link set dev BRIDGE type "
			"bridge fdb_flush' in the namespace of the TAP interfaces");
		return NULL;
	}
	return json_pack("{s:I}", "flushed",
		(json_int_t)mac_flush(ctx->bridges->table, &choice.of));
}
