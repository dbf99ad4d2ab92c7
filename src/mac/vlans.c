// Bridges that filter by VLAN: each of their VLANs has a domain in the table. Control thread.
#include "mac/inside.h"

#include <stdlib.h>

bool vlans_alloc(struct mac_pending *pending, const struct mac_bridge bridges[], unsigned n)
{
	unsigned n_members = 0;

	for (unsigned i = 0; i < n; i++)
		if (bridges[i].vlan_tag)
			n_members += bridges[i].n_members + 1;
	if (!n_members)
		return true;
	pending->vlans = calloc(n_members, sizeof(*pending->vlans));
	return pending->vlans;
}

unsigned vlans_count(const struct mac_vlans *vlans)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAC_VIDS / 64; i++)
		n += __builtin_popcountll(vlans->has[i]);
	return n;
}

// Domains that no bridge has now are preferred to those of one that goes.
static unsigned choose(const struct mac_pending *now, const struct mac_pending *next)
{
	for (unsigned i = 1; i <= MAC_BRIDGES_BY_VLAN; i++)
		if (!now->of_vlans[i] && !next->of_vlans[i])
			return i;
	for (unsigned i = 1; i <= MAC_BRIDGES_BY_VLAN; i++)
		if (!next->of_vlans[i])
			return i;
	return 0;
}

void vlans_choose(const struct mac_table *table, struct mac_pending *pending, uint16_t domain)
{
	const struct bridge *was = &table->now->bridge[domain - 1];
	struct bridge *is = &pending->bridge[domain - 1];
	const bool stays = was->is_used && was->vlan_domain && !strcmp(was->name, is->name) &&
	                   !pending->of_vlans[was->vlan_domain / MAC_VIDS];
	const unsigned at = stays ? was->vlan_domain / MAC_VIDS : choose(table->now, pending);

	pending->of_vlans[at] = domain;
	is->vlan_domain = at * MAC_VIDS;
}

const struct mac_vlans *vlans_add(struct mac_pending *pending, const struct mac_bridge *bridge,
	uint16_t domain, const struct mac_vlans *vlans)
{
	struct mac_vlans *to = &pending->vlans[pending->n_vlans++];

	*to = *vlans;
	to->domain = pending->bridge[domain - 1].vlan_domain;
	to->tag = bridge->vlan_tag;
	return to;
}
