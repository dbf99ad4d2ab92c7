// The method tunnels: those of the configuration, and what went through them. Control thread.
#include "api/inside.h"

// A response line is at most 1 MiB: a tunnel takes less than 300 bytes.
enum { PAGE_TUNNELS = 1000 };

static json_t *tunnel_json(const struct api_ctx *ctx, uint16_t iface, const struct iface *settings)
{
	const struct iface_tunnel *tunnel = &settings->tunnel;
	const bool has_key = tunnel->kind == IFACE_GRE && tunnel->flags & IFACE_TUNNEL_KEY;
	struct stats_tunnel sum = {0};
	struct fib_answer under;
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	for (unsigned i = 0; i < n; i++) {
		const struct stats_tunnel *one = &workers[i]->tunnel[iface];

		sum.tx_packets += stats_read(&one->tx_packets);
		sum.tx_bytes += stats_read(&one->tx_bytes);
		sum.rx_packets += stats_read(&one->rx_packets);
		sum.rx_bytes += stats_read(&one->rx_bytes);
	}
	rib_lookup(ctx->fib, tunnel->vrf, &tunnel->remote, &under);
	json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:o}", "name",
		rpc_text_json(iface_word(ctx, iface)), "local", addr_json(&tunnel->local), "remote",
		addr_json(&tunnel->remote), "key", has_key ? number_json(tunnel->key) : json_null(),
		"dport",
		tunnel->flags & IFACE_TUNNEL_UDP ? number_json(tunnel->dest_port) : json_null());
	json_object_set_new(json, "via", addr_json(&under.hop.via));
	json_object_set_new(json, "port", rpc_text_json(iface_word(ctx, under.hop.iface)));
	json_object_set_new(json, "verdict", rpc_text_json(verdict_name(under.verdict)));
	json_object_set_new(json, "tx_packets", number_json(sum.tx_packets));
	json_object_set_new(json, "tx_bytes", number_json(sum.tx_bytes));
	json_object_set_new(json, "rx_packets", number_json(sum.rx_packets));
	json_object_set_new(json, "rx_bytes", number_json(sum.rx_bytes));
	return json;
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

		if (!settings || !iface_is_tunnel(settings))
			continue;
		if (n++ < PAGE_TUNNELS)
			json_array_append_new(list, tunnel_json(ctx, iface, settings));
	}
	return json_pack("{s:i, s:o}", "n", (int)n, "tunnels", list);
}
