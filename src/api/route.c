// How a packet to an address is forwarded and why, and whether Linux would do the same. Control
// thread.
#include "api/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <string.h>

static json_t *answer_json(const struct netlink_route_check *said)
{
	bool is_known = said->answered && said->prefix.addr.family;
	json_t *json = json_pack("{s:b, s:o, s:o, s:o}", "agrees", said->agrees, "differs",
		rpc_text_json(said->agrees ? NULL : said->differs), "error",
		rpc_text_json(said->answered ? NULL : strerror(-said->error)), "prefix",
		is_known ? prefix_json(&said->prefix) : json_null());

	if (!said->answered)
		return json;
	json_object_set_new(json, "table", is_known ? number_json(said->table) : json_null());
	json_object_set_new(json, "metric", is_known ? number_json(said->metric) : json_null());
	json_object_set_new(json, "type", rpc_text_json(netlink_type_name(said->type)));
	json_object_set_new(json, "via", addr_json(&said->via));
	json_object_set_new(json, "interface",
		rpc_text_json(said->interface[0] ? said->interface : NULL));
	return json;
}

// The kernel's own result; null if Linux is not the control plane.
static json_t *linux_json(const struct api_ctx *ctx, uint16_t vrf, const struct wire_addr *addr)
{
	struct netlink_route_check said = {0};
	struct error error = {""};

	if (!ctx->netlink)
		return json_null();
	if (netlink_explain(ctx->netlink, vrf, addr, &said, &error))
		return json_pack("{s:n, s:o}", "agrees", "error", rpc_text_json(error.text));
	return answer_json(&said);
}

// MAC addresses and VLAN tags of the transmitted packet.
static void set_rewrite(json_t *json, const struct api_ctx *ctx, const struct fib_answer *answer)
{
	const uint8_t family = answer->route.prefix.addr.family;
	const struct iface *iface =
		answer->hop.iface < IFACE_MAX ? fib_iface(ctx->fib, answer->hop.iface) : NULL;
	const bool is_tunnel = iface && iface_is_tunnel(iface);
	const bool has_mac =
		answer->verdict == VERDICT_FORWARD && answer->hop.kind != FIB_GROUP && !is_tunnel;
	const unsigned label_bytes = 4 * answer->hop.n_labels;
	struct fib_hop_info info;

	json_object_set_new(json, "mac", has_mac ? mac_json(&answer->mac) : json_null());
	json_object_set_new(json, "source_mac",
		has_mac && iface ? mac_json(&iface->mac) : json_null());
	json_object_set_new(json, "vlans", sent_tags_json(ctx, &answer->hop, &answer->mac));
	json_object_set_new(json, "mtu",
		iface ? number_json(iface_mtu(iface, family) - label_bytes) : json_null());
	if (is_tunnel && fib_hop_info(ctx->fib, answer->hop_id, &info))
		json_object_set_new(json, "mtu", number_json(info.mtu));
}

// A tunnel's ends, and the route to the other one; null: it is none.
static json_t *tunnel_json(const struct api_ctx *ctx, const struct fib_hop *hop)
{
	const struct iface *iface = hop->iface < IFACE_MAX ? fib_iface(ctx->fib, hop->iface) : NULL;
	struct fib_answer under;

	if (!iface || !iface_is_tunnel(iface))
		return json_null();
	rib_lookup(ctx->fib, iface->tunnel.vrf, &iface->tunnel.remote, &under);
	json_t *json = json_pack("{s:o, s:o, s:o, s:o}", "local", addr_json(&iface->tunnel.local),
		"remote", addr_json(&iface->tunnel.remote), "prefix",
		under.found ? prefix_json(&under.route.prefix) : json_null(), "verdict",
		rpc_text_json(verdict_name(under.verdict)));
	set_hop(json, ctx, &under.hop);
	set_members(json, ctx, &under.hop);
	set_rewrite(json, ctx, &under);
	return json;
}

static const char *text_of(const struct fib_answer *answer)
{
	return answer->hop.kind == FIB_GROUP ? "each flow uses one of the members"
	                                     : verdict_text(answer->verdict);
}

static json_t *decision_json(const struct api_ctx *ctx, uint16_t vrf, const struct wire_addr *addr)
{
	struct fib_answer answer;

	rib_lookup(ctx->fib, vrf, addr, &answer);
	const bool is_bridged =
		answer.verdict == VERDICT_FORWARD && hop_is_on_bridge(ctx, &answer.hop);
	const char *port = is_bridged ? port_behind_bridge(ctx, &answer.hop, &answer.mac) : NULL;
	bool agree = fib_lookup(ctx->fib, vrf, addr) == answer.hop_id;
	json_t *json = json_pack("{s:o, s:o, s:b}", "address", addr_json(addr), "vrf",
		rpc_text_json(vrf_word(ctx, vrf)), "found", answer.found);
	json_object_set_new(json, "prefix",
		answer.found ? prefix_json(&answer.route.prefix) : json_null());
	json_object_set_new(json, "route_kind",
		answer.found ? rpc_text_json(kind_word(answer.route.hop.kind)) : json_null());
	if (answer.found)
		set_hop(json, ctx, &answer.hop);
	if (is_bridged)
		json_object_set_new(json, "port", rpc_text_json(port));
	set_members(json, ctx, &answer.hop);
	json_object_set_new(json, "nexthop", number_json(answer.hop_id));
	set_rewrite(json, ctx, &answer);
	json_object_set_new(json, "tunnel", tunnel_json(ctx, &answer.hop));
	if (is_bridged && !port)
		answer.verdict = VERDICT_BRIDGE_UNKNOWN;
	json_object_set_new(json, "verdict", rpc_text_json(verdict_name(answer.verdict)));
	json_object_set_new(json, "class",
		rpc_text_json(ctx->taps ? class_word(verdict_class(answer.verdict)) : NULL));
	json_object_set_new(json, "text", rpc_text_json(text_of(&answer)));
	json_object_set_new(json, "workers_agree", json_boolean(agree));
	json_object_set_new(json, "linux", linux_json(ctx, vrf, addr));
	return json;
}

json_t *method_route(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const char *text = NULL, *vrf_name = NULL;
	const struct rpc_param rows[] = {
		{"address", RPC_TEXT, true, 0, 0, &text},
		{"vrf", RPC_TEXT, false, 0, 0, &vrf_name},
	};
	struct wire_addr addr;
	uint16_t vrf = 0;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	if (wire_addr_parse(text, &addr)) {
		error_set(error, -EINVAL,
			"invalid address \"%.60s\": expected an IPv4 or IPv6 address", text);
		return NULL;
	}
	return vrf_find(ctx, vrf_name, &vrf, error) ? NULL : decision_json(ctx, vrf, &addr);
}
