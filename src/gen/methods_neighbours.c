// The method neighbours. Control thread; workers continue counting.
#include "gen/inside.h"

static json_t *addresses_json(const struct port_settings *port)
{
	char text[WIRE_PREFIX_TEXT];
	json_t *list = json_array();

	for (unsigned i = 0; i < port->n_addresses; i++)
		json_array_append_new(list,
			json_string(wire_prefix_print(&port->addresses[i], text)));
	return list;
}

static json_t *wanted_json(const struct neighbours *n, unsigned port)
{
	char addr[WIRE_ADDR_TEXT], mac[WIRE_MAC_TEXT];
	json_t *list = json_array();

	for (unsigned i = 0; i < n->n_wanted; i++) {
		const struct neighbour *one = &n->wanted[i];

		if (one->port != port)
			continue;
		json_t *known =
			one->is_known ? json_string(wire_mac_print(&one->mac, mac)) : json_null();
		json_t *vlan = one->has_vlan ? json_integer(one->vlan_tag & 0xfff) : json_null();
		json_array_append_new(list,
			json_pack("{s:s, s:o, s:o}", "address", wire_addr_print(&one->addr, addr),
				"mac", known, "vlan", vlan));
	}
	return list;
}

static json_t *port_json(const struct gen *load, unsigned i)
{
	const struct port_settings *port = &load->settings->ports[i];
	const struct neighbours *n = &load->neighbours;
	const struct post *post = n->post[i];
	char mac[WIRE_MAC_TEXT];

	return json_pack("{s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "port",
		rpc_text_json(port->name), "mac", wire_mac_print(&n->mac[i], mac), "addresses",
		addresses_json(port), "next_hops", wanted_json(n, i), "received",
		(json_int_t)stats_read(&post->n_received), "answered",
		(json_int_t)stats_read(&post->n_answered), "malformed",
		(json_int_t)n->n_malformed[i], "overflow",
		(json_int_t)stats_read(&post->n_overflow), "unsent",
		(json_int_t)stats_read(&post->n_unsent));
}

json_t *gen_method_neighbours(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = 0; i < ctx->settings->n_ports; i++)
		if (ctx->load->neighbours.post[i])
			json_array_append_new(list, port_json(ctx->load, i));
	return json_pack("{s:o}", "ports", list);
}
