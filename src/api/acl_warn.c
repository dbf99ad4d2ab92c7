// What is valid in access lists, but does not do what was meant: told by --check. Control thread.
#include "api/acl.h"

#include "base/bits.h"
#include "base/log.h"

#include <string.h>

static bool is_port(const struct api_ctx *ctx, const char *name)
{
	const struct port_table_settings *ports = config_ports(ctx->config);

	for (unsigned port = 0; port < PORT_MAX; port++)
		if (port_is_configured(ports, port) && !strcmp(ports->ports[port].name, name))
			return true;
	return false;
}

// Nothing of a packet matters to it, or only whether the packet is for the router itself.
static bool matches_all(const struct acl_rule *rule)
{
	const struct acl_range *const ranges[] = {&rule->from_port, &rule->to_port,
		&rule->icmp_type, &rule->icmp_code, &rule->dscp};

	for (unsigned i = 0; i < ARRAY_LEN(ranges); i++)
		if (ranges[i]->is_set)
			return false;
	return !rule->from.addr.family && !rule->to.addr.family && !rule->family &&
	       !rule->tcp_mask && rule->protocol == ACL_ANY_PROTOCOL &&
	       rule->fragments == ACL_ANY_FRAGMENT;
}

// The first rule that no packet reaches, since the one at *of decides about all of them; else n.
static size_t first_hidden(const struct acl_source *list, size_t *of)
{
	bool is_hidden[2] = {false, false};
	size_t by[2] = {0, 0};

	for (size_t i = 0; i < list->n; i++) {
		const struct acl_rule *rule = &list->rule[i];

		if (is_hidden[rule->is_local]) {
			*of = by[rule->is_local];
			return i;
		}
		is_hidden[rule->is_local] = matches_all(rule);
		by[rule->is_local] = i;
	}
	return list->n;
}

void api_warn_of_acls(const struct api_ctx *ctx)
{
	const struct acl_set *set = config_acl(ctx->config);
	size_t of;

	for (size_t i = 0; i < set->n_lists; i++) {
		const struct acl_source *list = &set->list[i];
		const size_t hidden = first_hidden(list, &of);

		if (hidden < list->n)
			log_warn("acl.lists.%s: rule %zu never matches, since rule %zu matches "
				 "all of its packets; change their order",
				list->name, hidden + 1, of + 1);
	}
	for (size_t i = 0; i < set->n_uses; i++)
		if (!is_port(ctx, set->use[i].iface))
			log_warn("acl.use[%zu]: there is no port %s; list %s %s", i,
				set->use[i].iface, set->use[i].list,
				config_taps(ctx->config)->is_on
					? "takes effect if Linux has a VLAN interface of this name"
					: "has no effect there");
}
