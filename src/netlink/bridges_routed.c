// What workers route on Linux's bridges: to and from the bridge itself, and VLAN interfaces on it.
// Control thread.
#include "netlink/bridges_inside.h"

#include "base/vector.h"

bool bridges_route_on(const struct interface *bridge)
{
	return bridge->id != IFACE_NONE;
}

const struct mac_vlans *bridges_vlans_of(const struct interface *one)
{
	static const struct mac_vlans none;

	return one->vlans ? &one->vlans->workers : &none;
}

// A VLAN interface for which there is no memory is left to Linux, until they are chosen again.
static void add_vlan_ifaces(struct bridges *bridges, struct served *served,
	const struct interface *bridge)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	struct served_set *next = &bridges->next;

	served->first_iface = next->n_ifaces;
	for (const struct interface *one = NULL;
		bridge->above.has_vlans && (one = interfaces_next(&ifaces->all, one));) {
		const struct iface *iface =
			one->id == IFACE_NONE || one->iface.lower != bridge->ifindex
				? NULL
				: fib_iface(bridges->mirror->settings.fib, one->id);

		if (!iface || !iface->is_bridge || !iface->n_tags ||
			vector_reserve(&next->iface, &next->iface_capacity, next->n_ifaces + 1,
				sizeof(*next->iface)))
			continue;
		next->iface[next->n_ifaces++] =
			(struct mac_vlan_iface){one->id, iface->tag[0].tpid, iface->tag[0].vid};
		served->is.n_vlan_ifaces++;
	}
}

void bridges_set_routed(struct bridges *bridges, struct served *served,
	const struct interface *bridge)
{
	served->is.is_routed = bridges_route_on(bridge);
	if (!served->is.is_routed)
		return;
	served->is.iface = bridge->id;
	served->is.mac = bridge->iface.mac;
	if (served->is.vlan_tag) {
		served->own_vlans = bridge->vlans ? bridge->vlans->version : 0;
		served->is.own_vlans = bridges_vlans_of(bridge);
	}
	add_vlan_ifaces(bridges, served, bridge);
}
