// What workers do with frames to groups for bridges of Linux that snoop: the table that they get of
// its groups and router ports, and why they leave such frames to Linux. Control thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

// Publishing takes at most a tenth of the time.
enum { PUBLISH_SHARE = 10 };

static const enum mac_family family_of[] = {[0] = MAC_OF_MACS, [4] = MAC_OF_IP4, [6] = MAC_OF_IP6};

static bool is_port_of(const struct interface *one, const struct interface *bridge)
{
	return one->is_known && one->iface.master == bridge->ifindex;
}

static bool some_port_sends_to_each_host(const struct bridges *bridges, const struct served *served)
{
	for (unsigned i = 0; i < served->is.n_members; i++) {
		const struct interface *one =
			taps_find(bridges->mirror->ifaces, served->member[i].port);

		if (one && one->iface.port.to_unicast)
			return true;
	}
	return false;
}

// Linux lists no routers of a bridge that is none itself; those that are set by hand are known.
static bool hides_routers(const struct bridges *bridges, const struct interface *bridge)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;

	if (bridge->iface.bridge.snooping.router != MDB_RTR_TYPE_DISABLED)
		return false;
	for (const struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_port_of(one, bridge) && one->iface.port.router != MDB_RTR_TYPE_DISABLED &&
			one->iface.port.router != MDB_RTR_TYPE_PERM)
			return true;
	return false;
}

// Whether frames that workers leave to the group's ports depend on who sends them.
static bool depends_on_sources(const struct interface *bridge, const struct mdb_group *group)
{
	const struct event_snooping *is = &bridge->iface.bridge.snooping;

	if (!group->family || !is->sees_sources[group->family == 6])
		return false;
	for (size_t i = 0; i < group->n; i++)
		if (group->member[i].has_source || group->member[i].is_odd)
			return true;
	return false;
}

static bool has_sources(const struct bridges *bridges, const struct interface *bridge)
{
	const struct mdb_group *group = NULL;

	while ((group = hash_table_next(&bridges->mdb.table, group ? &group->node : NULL)))
		if (group->bridge == bridge->ifindex && depends_on_sources(bridge, group))
			return true;
	return false;
}

// Whether Linux's list of routers says less than all: kernels before 5.14 name no families.
static bool lacks_families(const struct bridges *bridges, const struct interface *bridge)
{
	for (size_t i = 0; i < bridges->mdb.routers.n; i++) {
		const struct mdb_router *one = &bridges->mdb.routers.list[i];

		if (one->bridge == bridge->ifindex && !one->for4 && !one->for6)
			return true;
	}
	return false;
}

const char *snooping_refuse(struct bridges *bridges, const struct served *served)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	const struct interface *bridge = interfaces_find(&ifaces->all, served->ifindex);
	const struct querier *querier = queriers_find(bridges, served->ifindex);
	const struct mdb *mdb = &bridges->mdb;

	if (!ops->guard_follows || !ops->guard_follows(ops->ops))
		return "the guard is the operator's, and cannot follow what the bridge learns";
	if (served->is.vlan_tag && bridge->iface.bridge.snooping.by_vlan)
		return "the bridge snoops in each VLAN for itself (mcast_vlan_snooping)";
	if (some_port_sends_to_each_host(bridges, served))
		return "a port has mcast_to_unicast";
	if (mdb->is_over || mdb->table.n > MAC_GROUPS || mdb->is_short)
		return "there are more than 16384 groups of bridges or 65536 memberships, or there "
		       "is not enough memory for them";
	if (!mdb->is_whole || !mdb->routers_known || lacks_families(bridges, bridge))
		return "Linux's groups or router ports have not been read";
	if (hides_routers(bridges, bridge))
		return "with mcast_router 0, Linux does not tell of router ports";
	if (has_sources(bridges, bridge))
		return "hosts want groups from certain senders only (IGMPv3, MLDv2)";
	if (!querier || querier->is[0] == SNOOPED_UNCLEAR || querier->is[1] == SNOOPED_UNCLEAR)
		return "a querier has come, so that Linux floods until hosts have answered, or it "
		       "may be gone soon";
	return NULL;
}

// Adds a port, or what else there is at the bridge, to a group.
static void add_place(const struct bridges *bridges, const struct served_set *set,
	const struct served *served, int ifindex, struct mac_out *out)
{
	const int port = taps_port(bridges->mirror->ifaces, ifindex);

	if (port >= 0 && set->of_port[port] == served - set->bridge + 1)
		out->ports[port / 64] |= 1ull << port % 64;
	else
		out->linux_too = true;
}

// Whether the bridge's own interface gets frames to groups that it does not want, too: somebody
// looks, or it is a router.
static bool takes_all(const struct interface *bridge)
{
	const struct event_snooping *is = &bridge->iface.bridge.snooping;
	const bool routes = bridge->conf[0].mc_forwarding || bridge->conf[1].mc_forwarding;

	return bridge->iface.promiscuity || bridge->iface.flags & (IFF_PROMISC | IFF_ALLMULTI) ||
	       is->router == MDB_RTR_TYPE_PERM || (is->router == MDB_RTR_TYPE_TEMP_QUERY && routes);
}

// Set by hand, which is known before routers are read again.
static bool is_disabled(const struct bridges *bridges, int ifindex)
{
	const struct interface *one = interfaces_find(&bridges->mirror->ifaces->all, ifindex);

	return one && one->iface.port.is_known && one->iface.port.router == MDB_RTR_TYPE_DISABLED;
}

// Frames that are not IP go to routers of IPv4.
static void add_routers(const struct bridges *bridges, const struct served_set *set,
	const struct served *served, struct mac_snooping *to)
{
	for (size_t i = 0; i < bridges->mdb.routers.n; i++) {
		const struct mdb_router *one = &bridges->mdb.routers.list[i];

		if (one->bridge != served->ifindex || is_disabled(bridges, one->ifindex))
			continue;
		if (one->for4)
			add_place(bridges, set, served, one->ifindex, &to->routers[MAC_OF_IP4]);
		if (one->for6)
			add_place(bridges, set, served, one->ifindex, &to->routers[MAC_OF_IP6]);
	}
	for (const struct interface *one = NULL;
		(one = interfaces_next(&bridges->mirror->ifaces->all, one));)
		for (unsigned family = MAC_OF_IP4; family <= MAC_OF_IP6; family++)
			if (one->is_known && one->iface.master == served->ifindex &&
				one->iface.port.router == MDB_RTR_TYPE_PERM)
				add_place(bridges, set, served, one->ifindex, &to->routers[family]);
	to->routers[MAC_OF_MACS] = to->routers[MAC_OF_IP4];
}

static bool fill_group(const struct bridges *bridges, const struct served_set *set,
	const struct served *served, const struct mdb_group *from, struct mac_group *to)
{
	bool is_wanted = false;

	if (from->bridge != served->ifindex || !served->is.vlan_tag != !from->vlan)
		return false;
	to->family = family_of[from->family];
	to->vlan = from->vlan;
	memcpy(to->addr, from->addr, sizeof(to->addr));
	for (size_t i = 0; i < from->n; i++) {
		if (from->member[i].has_source) // Linux looks at none, else it is refused
			continue;
		is_wanted = true;
		add_place(bridges, set, served, from->member[i].ifindex, &to->out);
	}
	return is_wanted;
}

static void fill(struct bridges *bridges, const struct served_set *set, const struct served *served,
	struct snooping *out, struct mac_snooping *to)
{
	const struct interface *bridge =
		interfaces_find(&bridges->mirror->ifaces->all, served->ifindex);
	const struct querier *querier = queriers_find(bridges, served->ifindex);
	const struct mdb_group *group = NULL;

	to->group = &out->group[out->n];
	to->has_querier[MAC_OF_MACS] = true;
	for (unsigned i = 0; querier && i < 2; i++)
		to->has_querier[MAC_OF_IP4 + i] = querier->is[i] == SNOOPED_BY_TABLE;
	add_routers(bridges, set, served, to);
	for (unsigned i = 0; i < MAC_FAMILIES; i++)
		to->routers[i].linux_too |= takes_all(bridge);
	while ((group = hash_table_next(&bridges->mdb.table, group ? &group->node : NULL))) {
		memset(&out->group[out->n], 0, sizeof(*out->group));
		if (fill_group(bridges, set, served, group, &out->group[out->n]))
			out->n++;
	}
	to->n_groups = &out->group[out->n] - to->group;
}

void snooping_free(struct snooping *snooping)
{
	free(snooping->group);
	*snooping = (struct snooping){.group = NULL};
}

int snooping_build(struct bridges *bridges, const struct served_set *set, struct snooping *out,
	struct mac_bridge list[])
{
	memset(out, 0, sizeof(*out)); // padding, too
	for (unsigned i = 0; i < set->n; i++) {
		const struct served *served = &set->bridge[i];

		if (!served->snoops || served->is.linuxs & 1 << MAC_MULTICAST)
			continue;
		// One more place, which is filled before it is known whether it is needed.
		if (!out->group)
			out->group = calloc(bridges->mdb.table.n + 1, sizeof(*out->group));
		if (!out->group)
			return -ENOMEM;
		fill(bridges, set, served, out, &out->of[i]);
		list[i].snooping = &out->of[i];
	}
	return 0;
}

static bool is_same(const struct snooping *a, const struct snooping *b)
{
	if (a->n != b->n || !a->group != !b->group ||
		(a->n && memcmp(a->group, b->group, a->n * sizeof(*a->group))))
		return false;
	for (unsigned i = 0; i < MAC_BRIDGES; i++) {
		const struct mac_snooping *left = &a->of[i], *right = &b->of[i];

		if (left->n_groups != right->n_groups ||
			memcmp(left->has_querier, right->has_querier, sizeof(left->has_querier)) ||
			memcmp(left->routers, right->routers, sizeof(left->routers)))
			return false;
	}
	return true;
}

void snooping_publish(struct bridges *bridges)
{
	struct mac_bridge list[MAC_BRIDGES];
	struct snooping next;
	struct error error;
	int err;

	for (unsigned i = 0; i < bridges->now.n; i++) {
		list[i] = bridges->now.bridge[i].is;
		list[i].snooping = NULL;
	}
	err = snooping_build(bridges, &bridges->now, &next, list);
	if (!err && is_same(&next, &bridges->snooping)) {
		snooping_free(&next);
		return;
	}
	if (!err)
		err = mac_set_groups(bridges->mirror->settings.macs, list, bridges->now.n, &error);
	if (err) {
		snooping_free(&next);
		bridges->mdb.is_short = bridges->is_stale = true;
		return;
	}
	snooping_free(&bridges->snooping);
	bridges->snooping = next;
}

// Whether it is time to give workers what has changed. Else a later call does.
bool snooping_is_due(struct bridges *bridges, uint64_t now_ns)
{
	return bridges->mdb.is_changed && now_ns >= bridges->publish_ns;
}

void snooping_done(struct bridges *bridges, uint64_t began_ns)
{
	const uint64_t now_ns = clock_now_ns();

	bridges->publish_ns = now_ns + (now_ns - began_ns) * PUBLISH_SHARE;
}
