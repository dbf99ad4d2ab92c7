// Ports and workers with their counters. Control thread.
#include "api/inside.h"

#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

enum { MAX_ADDRESSES = 64 };

#define SET_FIELD(name, text) json_object_set_new(json, #name, number_json(sum.name));

// The losses of a device; null for those that it does not count.
static void set_losses(json_t *json, const struct port_info *info)
{
	const struct {
		const char *name;
		enum port_loss loss;
		uint64_t n;
	} rows[] = {
		{"rx_missed", PORT_RX_MISSED, info->rx_missed},
		{"rx_no_mbuf", PORT_RX_NO_MBUF, info->rx_no_mbuf},
		{"rx_errors", PORT_RX_ERRORS, info->rx_errors},
		{"tx_errors", PORT_TX_ERRORS, info->tx_errors},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		json_object_set_new(json, rows[i].name,
			rpc_count_json(rows[i].n, !(info->uncounted & rows[i].loss)));
}

#define SUBTRACT(name, text) out->name -= ctx->baseline.port[port].name;

void port_counters(const struct api_ctx *ctx, unsigned port, struct stats_port *out)
{
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	stats_sum_port(out, workers, n, port);
	SCHEMA_PORT_COUNTERS(SUBTRACT)
}

static void set_counters(json_t *json, const struct api_ctx *ctx, unsigned port,
	const struct port_info *info)
{
	struct stats_port sum;

	port_counters(ctx, port, &sum);
	SCHEMA_PORT_COUNTERS(SET_FIELD)
	set_losses(json, info);
}

// Those of the TAP interface; if Linux is not the control plane, those of the file.
static json_t *addresses_json(const struct api_ctx *ctx, unsigned port)
{
	struct wire_prefix address[MAX_ADDRESSES];
	char text[WIRE_PREFIX_TEXT];
	json_t *list = json_array();
	unsigned n = ctx->netlink ? netlink_addresses(ctx->netlink, port, address, MAX_ADDRESSES)
	                          : config_addresses(ctx->config, port, address, MAX_ADDRESSES);

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, json_string(wire_prefix_print(&address[i], text)));
	return list;
}

// Words for the features of virtio that decide what frames look like or how fast they move.
static const struct {
	uint8_t bit;
	const char *word;
} features[] = {
	{VIRTIO_NET_F_CSUM, "checksum"},
	{VIRTIO_NET_F_GUEST_CSUM, "guest_checksum"},
	{VIRTIO_NET_F_MTU, "mtu"},
	{VIRTIO_NET_F_GUEST_TSO4, "guest_tso4"},
	{VIRTIO_NET_F_GUEST_TSO6, "guest_tso6"},
	{VIRTIO_NET_F_HOST_TSO4, "tso4"},
	{VIRTIO_NET_F_HOST_TSO6, "tso6"},
	{VIRTIO_NET_F_HOST_UFO, "ufo"},
	{VIRTIO_NET_F_MRG_RXBUF, "mergeable"},
	{VIRTIO_NET_F_MQ, "multiqueue"},
	{VIRTIO_RING_F_INDIRECT_DESC, "indirect"},
	{VIRTIO_RING_F_EVENT_IDX, "event_index"},
	{VIRTIO_F_VERSION_1, "virtio1"},
	{VIRTIO_F_RING_PACKED, "packed"},
	{VIRTIO_F_IN_ORDER, "in_order"},
};

static json_t *features_json(uint64_t negotiated)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ARRAY_LEN(features); i++)
		if (negotiated >> features[i].bit & 1)
			json_array_append_new(list, json_string(features[i].word));
	return list;
}

// The peer of a vhost-user port; null for other ports.
static json_t *vhost_json(const struct api_ctx *ctx, unsigned port)
{
	static const char *const states[] = {
		[PORT_VHOST_WAITING] = "waiting",
		[PORT_VHOST_STARTING] = "starting",
		[PORT_VHOST_CONNECTED] = "connected",
	};
	struct port_vhost vhost;
	json_t *queues;

	if (!port_vhost(ctx->ports, port, &vhost))
		return json_null();
	queues = json_array();
	for (unsigned i = 0; i < vhost.n_queues; i++)
		json_array_append_new(queues,
			json_pack("{s:i, s:b, s:b, s:i, s:i}", "queue", (int)i, "receives",
				vhost.queues[i].receives, "sends", vhost.queues[i].sends,
				"rx_slots", (int)vhost.queues[i].rx_slots, "tx_slots",
				(int)vhost.queues[i].tx_slots));
	return json_pack("{s:o, s:s, s:s, s:i, s:o, s:o, s:o}", "socket",
		rpc_text_json(vhost.socket), "mode", vhost.is_server ? "server" : "client", "state",
		states[vhost.state], "connections", (int)vhost.n_connections, "features",
		features_json(vhost.features), "queues", queues, "remark",
		rpc_text_json(vhost.remark));
}

json_t *port_json(const struct api_ctx *ctx, unsigned i)
{
	const struct port_settings *settings = &config_ports(ctx->config)->ports[i];
	struct port_info info;

	port_info(ctx->ports, i, &info);
	json_t *port = json_pack("{s:i, s:s, s:i, s:b, s:i, s:b}", "port", (int)i, "name",
		settings->name, "mtu", (int)info.mtu, "link_up", info.link_up, "numa", info.numa,
		"rss", info.rss);
	json_object_set_new(port, "device", rpc_text_json(settings->device));
	json_object_set_new(port, "driver", rpc_text_json(info.driver));
	json_object_set_new(port, "device_id", number_json(info.device_id));
	json_object_set_new(port, "device_present", json_boolean(info.device_present));
	json_object_set_new(port, "device_losses", number_json(info.n_losses));
	json_object_set_new(port, "device_resets", number_json(info.n_resets));
	json_object_set_new(port, "mac", mac_json(&info.mac));
	json_object_set_new(port, "peer",
		settings->has_peer ? mac_json(&settings->peer) : json_null());
	json_object_set_new(port, "mode",
		rpc_text_json(settings->mode == PORT_XCONNECT ? "xconnect" : "route"));
	json_object_set_new(port, "to",
		rpc_text_json(settings->xconnect[0] ? settings->xconnect : NULL));
	json_object_set_new(port, "martians",
		rpc_text_json(settings->pass_martians ? "pass" : "drop"));
	json_object_set_new(port, "speed_mbps",
		info.link_mbps ? number_json(info.link_mbps) : json_null());
	json_object_set_new(port, "rx_queues", number_json(info.n_rx_queues));
	json_object_set_new(port, "tx_queues", number_json(info.n_tx_queues));
	json_object_set_new(port, "rx_descriptors", number_json(info.n_rx_descriptors));
	json_object_set_new(port, "tx_descriptors", number_json(info.n_tx_descriptors));
	json_object_set_new(port, "addresses", addresses_json(ctx, i));
	json_object_set_new(port, "vhost", vhost_json(ctx, i));
	set_counters(port, ctx, i, &info);
	return port;
}

json_t *method_ports(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const struct port_table_settings *ports = config_ports(ctx->config);

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		json_array_append_new(list, port_json(ctx, i));
	return json_pack("{s:o}", "ports", list);
}
