// The verb neighbours. Control thread; lanes go on counting.
#include "load/inside.h"

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

static json_t *port_json(const struct load *load, unsigned i)
{
	const struct port_settings *port = &load->settings->ports[i];
	const struct neighbours *n = &load->neighbours;
	const struct post *post = n->post[i];
	char mac[WIRE_MAC_TEXT];

	return json_pack("{s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "port",
		ctl_text_json(port->name), "mac", wire_mac_print(&n->mac[i], mac), "addresses",
		addresses_json(port), "next_hops", wanted_json(n, i), "heard",
		(json_int_t)stat_read(&post->n_heard), "answered",
		(json_int_t)stat_read(&post->n_answered), "malformed",
		(json_int_t)n->n_malformed[i], "overflow", (json_int_t)stat_read(&post->n_overflow),
		"unsent", (json_int_t)stat_read(&post->n_unsent));
}

json_t *load_verb_neighbours(void *house_, const json_t *params, struct complaint *why)
{
	const struct load_house *house = house_;

	if (ctl_params_none(params, why))
		return NULL;
	json_t *list = json_array();
	for (unsigned i = 0; i < house->settings->n_ports; i++)
		if (house->load->neighbours.post[i])
			json_array_append_new(list, port_json(house->load, i));
	return json_pack("{s:o}", "ports", list);
}
