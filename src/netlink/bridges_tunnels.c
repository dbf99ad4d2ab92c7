// VXLAN devices of Linux as members of bridges: as ports of a bridge, at most one in each VLAN, or,
// in no bridge, as bridges of their own, on whose interfaces workers route. Control thread.
#include "netlink/bridges_inside.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct interface *bridges_member(const struct mirror *mirror, uint16_t member)
{
	const struct ifaces *ifaces = mirror->ifaces;
	int ifindex = 0;

	if (member >= MAC_FIRST_TUNNEL)
		ifindex = ifaces->tunnels.vxlan[member - MAC_FIRST_TUNNEL];
	else if (member < mirror->settings.n_ports)
		ifindex = mirror->settings.tap[member];
	return ifindex ? interfaces_find(&ifaces->all, ifindex) : NULL;
}

uint16_t bridges_tunnel_member(const struct bridges *bridges, const struct served *served,
	int ifindex)
{
	const struct served_set *now = &bridges->now;
	const struct interface *one = interfaces_find(&bridges->mirror->ifaces->all, ifindex);
	const uint16_t at = one && one->vxlan ? now->of_number[one->vxlan - 1] : 0;

	return at && now->tunnel[at - 1].of == served - now->bridge &&
	                       now->tunnel[at - 1].ifindex == ifindex
	               ? now->tunnel[at - 1].member.port
	               : 0;
}

// Whether another device of the bridge has one of its VLANs.
static bool overlaps(const struct served_set *next, unsigned of, const struct served_tunnel *tunnel)
{
	for (unsigned i = 0; i < next->n_tunnels; i++) {
		const struct served_tunnel *other = &next->tunnel[i];

		if (other->of != of)
			continue;
		if (!tunnel->member.vlans)
			return true;
		for (unsigned k = 0; k < MAC_VIDS / 64; k++)
			if (tunnel->member.vlans->has[k] & other->member.vlans->has[k])
				return true;
	}
	return false;
}

static void add(struct bridges *bridges, struct served *served, const struct interface *one,
	uint8_t flags)
{
	struct served_set *next = &bridges->next;
	const struct iface *iface = fib_iface(bridges->mirror->settings.fib, one->id);
	struct served_tunnel *tunnel = &next->tunnel[next->n_tunnels];

	memset(tunnel, 0, sizeof(*tunnel)); // compared as bytes
	tunnel->ifindex = one->ifindex;
	tunnel->ageing_s = one->iface.tunnel.ageing_s;
	tunnel->vrf = iface->tunnel.vrf;
	tunnel->of = (uint16_t)(served - next->bridge);
	tunnel->member.port = MAC_FIRST_TUNNEL + one->vxlan - 1;
	tunnel->member.flags = flags | (one->iface.tunnel.learns ? MAC_LEARNS_REMOTES : 0);
	if (served->is.vlan_tag) {
		tunnel->vlans = one->vlans ? one->vlans->version : 0;
		tunnel->member.vlans = bridges_vlans_of(one);
	}
	if (overlaps(next, tunnel->of, tunnel))
		return;
	next->n_tunnels++;
	served->n_tunnels++;
}

// Reasons that concern routing only: they are flags of its interface.
static bool routes(const struct interface *one)
{
	static const uint32_t harmless = 1u << REASON_FORWARDING4 | 1u << REASON_FORWARDING6 |
	                                 1u << REASON_NO_IPV6 | 1u << REASON_PROXY_NDP;

	return one->iface.flags & IFF_UP && !(one->reasons & ~harmless) && !one->above.has_vlans;
}

static void choose_one(struct bridges *bridges, const struct interface *one)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	const struct interface *bridge = bridges_of(ifaces, one);
	struct served *served;

	if (one->id == IFACE_NONE || bridges->next.n_tunnels == SERVED_TUNNELS)
		return;
	if (bridge) {
		served = bridges_check(ifaces, one, bridge) ? NULL : bridges_get(bridges, bridge);
		if (served)
			add(bridges, served, one, bridges_flags(&one->iface.port));
		return;
	}
	if (one->iface.master && !vrfs_master(ifaces, one))
		return;
	served = routes(one) ? bridges_get(bridges, one) : NULL;
	if (!served)
		return;
	served->is_tunnel = true;
	add(bridges, served, one, MAC_OF_LINUX | (one->iface.tunnel.learns ? MAC_LEARNS : 0));
}

static int order(const void *a, const void *b)
{
	const struct served_tunnel *one = a, *other = b;

	return one->of != other->of ? one->of - other->of : one->member.port - other->member.port;
}

// In the order of their numbers, which they keep: so the same ones are chosen again.
void bridges_choose_tunnels(struct bridges *bridges)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	struct served_set *next = &bridges->next;

	memset(next->of_number, 0, sizeof(next->of_number));
	next->n_tunnels = 0;
	for (unsigned i = 0; i < ifaces->tunnels.end_vxlan; i++) {
		const struct interface *one = bridges_member(bridges->mirror, MAC_FIRST_TUNNEL + i);

		if (one)
			choose_one(bridges, one);
	}
	if (next->n_tunnels)
		qsort(next->tunnel, next->n_tunnels, sizeof(next->tunnel[0]), order);
	for (unsigned i = next->n_tunnels; i-- > 0;) {
		next->of_number[next->tunnel[i].member.port - MAC_FIRST_TUNNEL] = i + 1;
		next->bridge[next->tunnel[i].of].first_tunnel = i;
	}
}

struct mac_member *bridges_list_members(const struct served_set *set, struct mac_bridge list[])
{
	struct mac_member *member =
				  calloc(MAC_BRIDGES + PORT_MAX + set->n_tunnels, sizeof(*member)),
			  *at = member;

	for (unsigned i = 0; i < set->n && member; i++) {
		const struct served *one = &set->bridge[i];

		list[i].member = at;
		memcpy(at, one->member, one->is.n_members * sizeof(*at));
		at += one->is.n_members;
		for (unsigned k = 0; k < one->n_tunnels; k++)
			*at++ = set->tunnel[one->first_tunnel + k].member;
		list[i].n_members = (unsigned)(at - list[i].member);
	}
	return member;
}

bool bridges_tell_tunnel(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	const struct interface *bridge = one->vxlan ? bridges_of(ifaces, one) : NULL;
	struct netlink_unsupported reported = {.n = 1, .what = "port of a bridge left to Linux"};

	if (!bridge || ifaces->mirror->bridges->now.of_number[one->vxlan - 1])
		return true;
	const char *why = bridges_check(ifaces, one, bridge);

	snprintf(reported.where, sizeof(reported.where), "%s in %s", one->iface.name,
		bridge->iface.name);
	snprintf(reported.effect, sizeof(reported.effect),
		"all its frames are punted to Linux, which forwards them: %s",
		why ? why
		    : "another VXLAN device of the bridge has one of its VLANs, or there are more "
		      "than 1024 such ports, 64 bridges, or 15 bridges that filter by VLAN");
	return cb(arg, &reported);
}
