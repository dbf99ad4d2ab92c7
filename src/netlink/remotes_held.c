// The remote ends of Linux's VXLAN devices that workers have: each is held in the fib, which leads
// there, and in the MAC table. Control thread.
#include "netlink/bridges_inside.h"

bool remotes_use(const struct bridges *bridges, uint16_t number)
{
	return bridges->remotes.n_held[number] || bridges->now.of_number[number];
}

const struct iface_tunnel *remotes_tunnel(const struct bridges *bridges, int ifindex)
{
	const struct interface *one = interfaces_find(&bridges->mirror->ifaces->all, ifindex);
	const struct iface *iface = one && one->vxlan && one->id != IFACE_NONE
	                                    ? fib_iface(bridges->mirror->settings.fib, one->id)
	                                    : NULL;

	return iface && iface_carries_frames(iface) ? &iface->tunnel : NULL;
}

static bool is_host(const struct wire_addr *addr)
{
	return addr->family == 4 ? (addr->bytes[0] & 0xf0) != 0xe0 : addr->bytes[0] != 0xff;
}

bool remotes_can_hold(const struct bridges *bridges, const struct event_remote *from)
{
	const struct iface_tunnel *tunnel = remotes_tunnel(bridges, from->ifindex);

	return tunnel && !from->link && from->addr.family == tunnel->local.family &&
	       is_host(&from->addr);
}

bool remotes_hold(struct bridges *bridges, const struct event_remote *from, struct held_remote *out)
{
	const struct mirror_settings *settings = &bridges->mirror->settings;
	const struct iface_tunnel *tunnel = remotes_tunnel(bridges, from->ifindex);
	struct mac_remote remote = {.vni = from->vni,
		.udp_port = from->udp_port,
		.has_vni = from->has_vni};
	struct error error;

	*out = (struct held_remote){0};
	if (!remotes_can_hold(bridges, from) ||
		fib_vtep_hold(settings->fib, tunnel->vrf, &from->addr, &out->vtep, &error))
		return false;
	remote.vtep = out->vtep;
	remote.member = MAC_FIRST_TUNNEL + tunnel->vxlan;
	if (mac_remote_hold(settings->macs, &remote, &out->remote, &error)) {
		fib_vtep_release(settings->fib, out->vtep);
		*out = (struct held_remote){0};
		return false;
	}
	bridges->remotes.n_held[tunnel->vxlan]++;
	return true;
}

void remotes_release(struct bridges *bridges, struct held_remote *held)
{
	const struct mirror_settings *settings = &bridges->mirror->settings;
	struct mac_remote remote;

	if (!held->remote)
		return;
	if (mac_remote_at(settings->macs, held->remote, &remote))
		bridges->remotes.n_held[remote.member - MAC_FIRST_TUNNEL]--;
	mac_remote_release(settings->macs, held->remote);
	fib_vtep_release(settings->fib, held->vtep);
	*held = (struct held_remote){0};
}
