// Interfaces and VRFs by name. Control thread.
#include "api/bridges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char MAIN[] = "main";

const char *iface_word(const struct api_ctx *ctx, unsigned iface)
{
	const char *name =
		ctx->netlink && iface < IFACE_MAX ? netlink_iface_name(ctx->netlink, iface) : NULL;

	if (!name && iface >= PORT_MAX && iface < IFACE_MAX && !ctx->netlink) {
		static char tunnel[CONFIG_TUNNEL_NAME]; // until the next call

		return config_tunnel_name(ctx->config, iface, tunnel) ? tunnel : NULL;
	}
	return name ? name : port_word(ctx, iface);
}

// A port has the name that the configuration gives it, which its TAP interface has, too.
const char *api_iface_name(void *ctx_, unsigned iface)
{
	const struct api_ctx *ctx = ctx_;
	const struct port_table_settings *ports = config_ports(ctx->config);

	if (iface < PORT_MAX)
		return port_is_configured(ports, iface) ? ports->ports[iface].name : NULL;
	return ctx->netlink && fib_iface(ctx->fib, iface) ? netlink_iface_name(ctx->netlink, iface)
	                                                  : NULL;
}

const char *port_of_iface(const struct api_ctx *ctx, unsigned iface)
{
	const struct iface *reported = iface < IFACE_MAX ? fib_iface(ctx->fib, iface) : NULL;

	if (reported && (reported->is_bridge || iface_is_tunnel(reported)))
		return NULL;
	return port_word(ctx, reported ? reported->port : iface);
}

bool hop_is_on_bridge(const struct api_ctx *ctx, const struct fib_hop *hop)
{
	const struct iface *iface = hop->iface < IFACE_MAX ? fib_iface(ctx->fib, hop->iface) : NULL;

	return iface && iface->is_bridge && (hop->kind == FIB_VIA || hop->kind == FIB_PEER);
}

const char *port_behind_bridge(const struct api_ctx *ctx, const struct fib_hop *hop,
	const struct wire_mac *mac)
{
	struct mac_way way;

	return mac_way_to(ctx->bridges->table, hop->iface, mac, &way) ? port_word(ctx, way.port)
	                                                              : NULL;
}

const char *vrf_word(const struct api_ctx *ctx, unsigned vrf)
{
	if (!vrf)
		return MAIN;
	return ctx->netlink && vrf < FIB_MAX_VRFS ? netlink_vrf_name(ctx->netlink, vrf) : NULL;
}

int port_named(const struct api_ctx *ctx, const char *name, int *out, struct error *error)
{
	const struct port_table_settings *ports = config_ports(ctx->config);

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		if (!strcmp(ports->ports[i].name, name)) {
			*out = i;
			return 0;
		}
	return error_set(error, -EINVAL, "there is no port '%.60s': 'dl3 show ports' lists them",
		name);
}

int iface_find(const struct api_ctx *ctx, const char *name, int *out, struct error *error)
{
	if (!name)
		return 0;
	for (unsigned iface = 0; iface < IFACE_MAX; iface++) {
		const char *has = fib_iface(ctx->fib, iface) ? iface_word(ctx, iface) : NULL;

		if (has && !strcmp(has, name)) {
			*out = iface;
			return 0;
		}
	}
	return error_set(error, -EINVAL,
		ctx->netlink ? "parameter \"port\": expected the name of a port or VLAN interface; "
			       "'dl3 show mirror' lists them"
			     : "parameter \"port\": expected the name of a port; 'dl3 show ports' "
			       "lists them");
}

int vrf_find(const struct api_ctx *ctx, const char *name, uint16_t *out, struct error *error)
{
	if (!name || !strcmp(name, MAIN))
		return 0;
	if (!ctx->netlink)
		return error_set(error, -EINVAL,
			"unknown VRF \"%.60s\": VRFs require the key \"linux\" in the "
			"configuration file",
			name);
	int vrf = netlink_vrf_find(ctx->netlink, name);
	if (vrf < 0)
		return error_set(error, -EINVAL,
			"unknown VRF \"%.60s\": no VRF device in the namespace of the TAP "
			"interfaces has this name; 'dl3 show mirror' lists them",
			name);
	*out = vrf;
	return 0;
}

static void append_tag(json_t *list, uint16_t tpid, uint16_t vid)
{
	char text[24];

	snprintf(text, sizeof(text), "%s %u", tpid == 0x88a8 ? "802.1ad" : "802.1Q", vid);
	json_array_append_new(list, json_string(text));
}

json_t *tags_json(const struct iface *iface)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < iface->n_tags; i++)
		append_tag(list, iface->tag[i].tpid, iface->tag[i].vid);
	return list;
}

json_t *sent_tags_json(const struct api_ctx *ctx, const struct fib_hop *hop,
	const struct wire_mac *mac)
{
	const struct iface *iface = hop->iface < IFACE_MAX ? fib_iface(ctx->fib, hop->iface) : NULL;
	struct mac_way way;

	if (!hop_is_on_bridge(ctx, hop) || !mac_way_to(ctx->bridges->table, hop->iface, mac, &way))
		return iface ? tags_json(iface) : json_array();
	json_t *list = json_array();
	if (way.tag)
		append_tag(list, way.tag >> 16, way.tag & 0xfff);
	return list;
}
