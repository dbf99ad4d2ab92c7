// The method tunnels: those of the configuration, and what went through them. Control thread.
#include "api/inside.h"

// A response line is at most 1 MiB: a tunnel takes less than 300 bytes.
enum { PAGE_TUNNELS = 1000 };

static const char *tunnel_word(const struct iface_tunnel *tunnel)
{
	static const char *const words[] = {[IFACE_IPIP] = "ipip",
		[IFACE_GRE] = "gre",
		[IFACE_VXLAN] = "vxlan",
		[IFACE_GRETAP] = "gretap"};

	return tunnel->flags & IFACE_TUNNEL_UDP ? "udp" : words[tunnel->kind];
}

// The VNI of VXLAN.
static json_t *key_json(const struct iface_tunnel *tunnel)
{
	const bool has_key = tunnel->kind == IFACE_VXLAN ||
	                     (tunnel->kind != IFACE_IPIP && tunnel->flags & IFACE_TUNNEL_KEY);

	return has_key ? number_json(tunnel->key) : json_null();
}

static void set_counters(const struct api_ctx *ctx, uint16_t iface, json_t *json)
{
	struct stats_tunnel sum = {0};
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	for (unsigned i = 0; i < n; i++) {
		const struct stats_tunnel *one = &workers[i]->tunnel[iface];

		sum.tx_packets += stats_read(&one->tx_packets);
		sum.tx_bytes += stats_read(&one->tx_bytes);
		sum.rx_packets += stats_read(&one->rx_packets);
		sum.rx_bytes += stats_read(&one->rx_bytes);
	}
	json_object_set_new(json, "tx_packets", number_json(sum.tx_packets));
	json_object_set_new(json, "tx_bytes", number_json(sum.tx_bytes));
	json_object_set_new(json, "rx_packets", number_json(sum.rx_packets));
	json_object_set_new(json, "rx_bytes", number_json(sum.rx_bytes));
}

// VXLAN has many ends, or none: nothing is said of the way to them.
static json_t *tunnel_json(const struct api_ctx *ctx, uint16_t iface, const struct iface *settings)
{
	const struct iface_tunnel *tunnel = &settings->tunnel;
	const bool has_port = tunnel->flags & IFACE_TUNNEL_UDP || tunnel->kind == IFACE_VXLAN;
	const bool has_end = tunnel->kind != IFACE_VXLAN;
	struct fib_answer under;

	json_t *json = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "name",
		rpc_text_json(iface_word(ctx, iface)), "kind", tunnel_word(tunnel), "local",
		addr_json(&tunnel->local), "remote",
		has_end ? addr_json(&tunnel->remote) : json_null(), "key", key_json(tunnel),
		"dport", has_port ? number_json(tunnel->dest_port) : json_null());
	if (has_end)
		rib_lookup(ctx->fib, tunnel->vrf, &tunnel->remote, &under);
	json_object_set_new(json, "via", has_end ? addr_json(&under.hop.via) : json_null());
	json_object_set_new(json, "port",
		has_end ? rpc_text_json(iface_word(ctx, under.hop.iface)) : json_null());
	json_object_set_new(json, "verdict",
		has_end ? rpc_text_json(verdict_name(under.verdict)) : json_null());
	set_counters(ctx, iface, json);
	return json;
}

static bool is_any_tunnel(const struct iface *iface)
{
	return iface_is_tunnel(iface) || iface_carries_frames(iface);
}

json_t *method_tunnels(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	unsigned n = 0;

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = json_array();
	for (unsigned iface = PORT_MAX; iface < IFACE_MAX; iface++) {
		const struct iface *settings = fib_iface(ctx->fib, iface);

		if (!settings || !is_any_tunnel(settings))
			continue;
		if (n++ < PAGE_TUNNELS)
			json_array_append_new(list, tunnel_json(ctx, iface, settings));
	}
	return json_pack("{s:i, s:o}", "n", (int)n, "tunnels", list);
}
