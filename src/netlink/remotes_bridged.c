// Addresses that VXLAN devices have, in the bridges of the devices: a bridge that does not know an
// address floods frames to it, but its device sends them to one remote end. Control thread.
#include "netlink/bridges_inside.h"

enum { MOST_VLANS = 16 }; // of a device; one with more is taken to have no such addresses

static unsigned count_vlans(const struct event_vlans *set)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EVENT_VIDS / 64; i++)
		n += __builtin_popcountll(set->has[i]);
	return n;
}

void remotes_look_at(struct bridges *bridges, const struct event_remote *at, bool is_gone)
{
	const struct interface *one = interfaces_find(&bridges->mirror->ifaces->all, at->ifindex);
	struct event_fdb entry = {.ifindex = at->ifindex, .mac = at->mac};

	if (!one || !one->iface.master)
		return;
	entry.bridge = one->iface.master;
	fdb_look_at(bridges, &entry, !is_gone);
	if (!one->vlans)
		return;
	const bool is_shadow = !is_gone && count_vlans(&one->vlans->has) <= MOST_VLANS;
	for (unsigned i = 0; i < EVENT_VIDS / 64; i++)
		for (uint64_t rest = one->vlans->has.has[i]; rest; rest &= rest - 1) {
			entry.vlan = (uint16_t)(i * 64 + __builtin_ctzll(rest));
			fdb_look_at(bridges, &entry, is_shadow);
		}
}

void remotes_doubt(struct remotes *remotes)
{
	remotes->left = remotes->table.n ? remotes->table.n_buckets : 0;
}

// Entries have other places when the table has grown.
bool remotes_walk(struct bridges *bridges, unsigned n)
{
	struct remotes *remotes = &bridges->remotes;
	unsigned n_done = 0;

	if (remotes->left && remotes->n_buckets != remotes->table.n_buckets)
		remotes_doubt(remotes);
	remotes->n_buckets = remotes->table.n_buckets;
	for (; n_done < n && remotes->left; remotes->left--, n_done++) {
		const struct remote_entry *one =
			(const void *)remotes->table.bucket[remotes->left - 1];

		for (; one; one = (const void *)one->node.next, n_done++)
			remotes_look_at(bridges, &one->is, false);
	}
	return remotes->left;
}

// The next device of a bridge, in the VLAN of an address; NULL: there are no more.
static const struct served_tunnel *next_tunnel(const struct bridges *bridges,
	const struct event_fdb *at, unsigned *i)
{
	const struct served *served =
		bridges->now.n_tunnels ? served_find(&bridges->now, at->bridge) : NULL;

	while (served && !served->is_tunnel && *i < served->n_tunnels) {
		const struct served_tunnel *tunnel =
			&bridges->now.tunnel[served->first_tunnel + (*i)++];
		const struct mac_vlans *vlans = tunnel->member.vlans;

		if (!at->vlan || (vlans && mac_vlans_has(vlans->has, at->vlan)))
			return tunnel;
	}
	return NULL;
}

bool remotes_have(const struct bridges *bridges, const struct event_fdb *at)
{
	const struct served_tunnel *tunnel;

	for (unsigned i = 0; (tunnel = next_tunnel(bridges, at, &i));)
		if (remotes_knows(bridges, tunnel->ifindex, &at->mac))
			return true;
	return false;
}

static bool is_own(const struct bridges *bridges, int ifindex, const struct wire_mac *mac)
{
	const struct interface *one = interfaces_find(&bridges->mirror->ifaces->all, ifindex);

	return one && wire_mac_equal(&one->iface.mac, mac);
}

bool remotes_pin(const struct bridges *bridges, const struct event_fdb *at)
{
	const struct served_tunnel *tunnel;

	for (unsigned i = 0; (tunnel = next_tunnel(bridges, at, &i));) {
		if (is_own(bridges, tunnel->ifindex, &at->mac))
			return true;
		if (tunnel->member.flags & MAC_LEARNS_REMOTES &&
			remotes_knows(bridges, tunnel->ifindex, &at->mac) &&
			!remotes_has_learnt(bridges, tunnel->ifindex, &at->mac))
			return true;
	}
	return false;
}
