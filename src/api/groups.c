// The method groups, and how a bridge snoops. Control thread.
#include "api/bridges.h"

#include "base/bits.h"

#include <errno.h>
#include <string.h>

enum { PAGE_GROUPS = 500, PAGE_MAX_GROUPS = 5000 };

json_t *snooping_json(const struct mac_table *table, uint16_t domain)
{
	const struct mac_snoop *snoop = mac_snoop_of(mac_live_view(mac_live(table)), domain);

	if (!snoop)
		return json_null();
	return json_pack("{s:b, s:b, s:I}", "ip4_querier", snoop->has_querier[MAC_OF_IP4],
		"ip6_querier", snoop->has_querier[MAC_OF_IP6], "groups",
		(json_int_t)snoop->n_groups);
}

static json_t *ports_json(const struct api_ctx *ctx, const struct mac_out *out)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < PORT_MAX; i++)
		if (out->ports[i / 64] >> i % 64 & 1)
			json_array_append_new(list, json_string(port_word(ctx, i)));
	return list;
}

static json_t *address_json(const struct mac_group *group)
{
	struct wire_addr addr = {.family = group->family == MAC_OF_IP4 ? 4 : 6};
	char text[WIRE_ADDR_TEXT];
	struct wire_mac mac;

	if (group->family == MAC_OF_MACS) {
		memcpy(mac.bytes, group->addr, sizeof(mac.bytes));
		return mac_json(&mac);
	}
	memcpy(addr.bytes, group->addr, group->family == MAC_OF_IP4 ? 4 : 16);
	return json_string(wire_addr_print(&addr, text));
}

static json_t *group_json(const struct api_ctx *ctx, const struct mac_group *group,
	const char *bridge)
{
	return json_pack("{s:o, s:s, s:o, s:o, s:b}", "group", address_json(group), "bridge",
		bridge, "vlan", group->vlan ? number_json(group->vlan) : json_null(), "ports",
		ports_json(ctx, &group->out), "linux", group->out.linux_too);
}

json_t *method_groups(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const struct mac_table *table = ctx->bridges->table;
	const char *bridge = NULL;
	long after = 0, limit = PAGE_GROUPS;
	const struct rpc_param rows[] = {
		{"bridge", RPC_TEXT, false, 0, 0, &bridge},
		{"after", RPC_NUMBER, false, 0, UINT32_MAX, &after},
		{"limit", RPC_NUMBER, false, 1, PAGE_MAX_GROUPS, &limit},
	};
	struct mac_usage usage;
	struct mac_group group;
	uint16_t domain;
	uint32_t place;
	bool more = false;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	if (bridge && !mac_domain(table, bridge)) {
		error_set(error, -ENOENT,
			"unknown bridge \"%.60s\"; 'bridges' lists those that there are", bridge);
		return NULL;
	}
	place = after;
	json_t *list = json_array();
	while ((long)json_array_size(list) < limit &&
		(more = mac_group_page(table, &place, &group, &domain)))
		if (mac_usage(table, domain, &usage) && (!bridge || !strcmp(usage.name, bridge)))
			json_array_append_new(list, group_json(ctx, &group, usage.name));
	return json_pack("{s:o, s:o}", "groups", list, "next",
		more ? number_json(place) : json_null());
}
