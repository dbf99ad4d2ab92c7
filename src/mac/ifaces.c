// The interfaces of bridges that workers route on: where the neighbours on each are. Control
// thread.
#include "mac/inside.h"

#include <stdlib.h>

// At most half of the places are in use, so that a search ends soon, at a free one.
bool ifaces_alloc(struct mac_view *view, const struct mac_bridge bridges[], unsigned n)
{
	unsigned n_ifaces = 0, n_places = 2;

	for (unsigned i = 0; i < n; i++)
		n_ifaces += bridges[i].is_routed ? 1 + bridges[i].n_vlan_ifaces : 0;
	while (n_places < 2 * n_ifaces)
		n_places *= 2;
	view->iface = calloc(n_places, sizeof(*view->iface));
	view->last_iface = n_places - 1;
	return view->iface;
}

static void add(struct mac_view *view, const struct mac_iface *iface)
{
	unsigned at = iface->iface & view->last_iface;

	while (view->iface[at].domain)
		at = (at + 1) & view->last_iface;
	view->iface[at] = *iface;
}

// What it sends in a VLAN of a bridge that filters by them, and is in only if its own interface is.
static void add_in_vlan(struct mac_pending *pending, const struct mac_vlans *own, uint16_t iface,
	uint16_t vid)
{
	if (mac_vlans_has(own->has, vid))
		add(pending->view, &(struct mac_iface){iface, own->domain + vid, 0, vid});
}

void ifaces_add(struct mac_pending *pending, const struct mac_bridge *bridge, uint16_t domain)
{
	const struct mac_vlans *own = pending->bridge[domain - 1].own_vlans;

	if (own)
		add_in_vlan(pending, own, bridge->iface, own->pvid);
	else
		add(pending->view, &(struct mac_iface){bridge->iface, domain, 0, 0});
	for (unsigned i = 0; i < bridge->n_vlan_ifaces; i++) {
		const struct mac_vlan_iface *vlan = &bridge->vlan_iface[i];

		if (own)
			add_in_vlan(pending, own, vlan->iface, vlan->vid);
		else
			add(pending->view,
				&(struct mac_iface){vlan->iface, domain, vlan->tag, vlan->vid});
	}
}
