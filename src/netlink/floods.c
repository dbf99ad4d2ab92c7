// Which frames workers flood for Linux's bridges, and of which Linux gets the frame itself, too.
// Workers flood for a bridge as long as the guard keeps Linux from doing it (guard.h). Control
// thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"
#include "netlink/guard.h"

#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

enum { GROUPS = 1 << MAC_BROADCAST | 1 << MAC_MULTICAST, UNKNOWN = 1 << MAC_UNKNOWN };

// Whether the bridge has a port that workers do not serve, which Linux floods to.
static bool has_others(const struct bridges *bridges, const struct interface *bridge)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;

	for (const struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		const int port = taps_port(ifaces, one->ifindex);

		if (!one->is_known || one->iface.master != bridge->ifindex)
			continue;
		if (one->vxlan ? !bridges->next.of_number[one->vxlan - 1]
			       : port < 0 || !bridges->next.of_port[port])
			return true;
	}
	return false;
}

static bool is_watched(const struct interface *bridge)
{
	return bridge->iface.promiscuity || bridge->iface.flags & IFF_PROMISC;
}

// Whether anybody listens on the bridge's own interface to frames to groups.
static bool is_heard(const struct ifaces *ifaces, const struct interface *bridge)
{
	const struct interface_above *above = &bridge->above;
	struct wire_prefix address;

	return is_watched(bridge) || bridge->iface.flags & IFF_ALLMULTI || above->has_vlans ||
	       above->n_macs || above->reasons ||
	       addresses_of(&ifaces->addresses, bridge->ifindex, &address, 1);
}

static bool judges(const struct bridges *bridges, unsigned port)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;

	return ops->is_judged && ops->is_judged(ops->ops, port);
}

static bool some_port_is_judged(const struct bridges *bridges, const struct served *served)
{
	for (unsigned i = 0; i < served->is.n_members; i++)
		if (judges(bridges, served->member[i].port))
			return true;
	return false;
}

// Such frames are Linux's where they come in; so it has to get those that leave there, too.
static bool some_vlan_is_odd(const struct bridges *bridges, const struct served *served)
{
	for (unsigned i = 0; i < served->is.n_members && served->is.vlan_tag; i++) {
		const struct interface *one =
			taps_find(bridges->mirror->ifaces, served->member[i].port);

		if (one && one->vlans && one->vlans->n_odd)
			return true;
	}
	return false;
}

// Of a set: that of `next` if `served` is of it.
static const struct served_tunnel *tunnels_of(const struct bridges *bridges,
	const struct served *served)
{
	const struct served *next = bridges->next.bridge;
	const bool is_next = served >= next && served < next + MAC_BRIDGES;

	return (is_next ? bridges->next.tunnel : bridges->now.tunnel) + served->first_tunnel;
}

static bool some_group_goes_elsewhere(const struct bridges *bridges, const struct served *served)
{
	const struct served_tunnel *tunnel = tunnels_of(bridges, served);

	for (unsigned i = 0; i < served->n_tunnels; i++)
		if (remotes_has_groups(bridges, tunnel[i].ifindex))
			return true;
	return false;
}

// Why Linux floods all kinds of frames; NULL: it does not.
static const char *refuse(const struct bridges *bridges, const struct served *served)
{
	const struct served_tunnel *tunnel = tunnels_of(bridges, served);

	for (unsigned i = 0; i < served->n_tunnels; i++) {
		const char *why = remotes_refuse(bridges, tunnel[i].ifindex);

		if (why)
			return why;
	}
	if (some_vlan_is_odd(bridges, served))
		return "a VLAN of one of its ports is not in state forwarding, or has an attribute "
		       "that workers do not follow";
	if (some_port_is_judged(bridges, served))
		return "an access list judges frames of one of its ports";
	return NULL;
}

// Who wants a group behind a VXLAN device is nothing that workers know.
static const char *leaves_groups(struct bridges *bridges, const struct served *served)
{
	if (served->snoops && served->n_tunnels)
		return "one of its ports is a VXLAN device";
	if (some_group_goes_elsewhere(bridges, served))
		return "a VXLAN device has entries for groups";
	return served->snoops ? snooping_refuse(bridges, served) : NULL;
}

static void choose(struct bridges *bridges, struct served *served)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	const struct interface *bridge = interfaces_find(&ifaces->all, served->ifindex);
	const bool has_rest = has_others(bridges, bridge);

	served->is.linuxs = MAC_ALL_STORMS;
	if (served->is_tunnel) // Linux sends what is not routed
		return;
	if (served->snoops)
		queriers_look(bridges, bridge, clock_now_ns());
	if (refuse(bridges, served))
		return;
	// Which of its ports wants a group is what the bridge learns from IGMP and MLD.
	served->is.linuxs = leaves_groups(bridges, served) ? 1 << MAC_MULTICAST : 0;
	// No guard tells a unicast frame that workers have flooded from one that they have left to
	// Linux. So one of the two does all for such a frame.
	if (has_rest || is_watched(bridge) ||
		(served->is.vlan_tag && bridge->iface.bridge.has_common_macs))
		served->is.linuxs |= UNKNOWN;
	if (has_rest || is_heard(ifaces, bridge))
		served->is.linux_too = GROUPS & ~served->is.linuxs;
}

static void add_port(const struct bridges *bridges, uint16_t member, uint8_t linuxs,
	struct guard_port *out)
{
	const struct interface *one = bridges_member(bridges->mirror, member);

	*out = (struct guard_port){.has_multicasts = !(linuxs & 1 << MAC_MULTICAST)};
	snprintf(out->name, sizeof(out->name), "%s", one->iface.name);
}

// The ports of those bridges for which workers flood to groups.
static unsigned list_ports(const struct bridges *bridges, struct guard_port list[])
{
	unsigned n = 0;

	for (unsigned i = 0; i < bridges->next.n; i++) {
		const struct served *one = &bridges->next.bridge[i];
		const struct served_tunnel *tunnel = bridges->next.tunnel + one->first_tunnel;

		if ((one->is.linuxs & GROUPS) == GROUPS)
			continue;
		for (unsigned k = 0; k < one->is.n_members; k++)
			add_port(bridges, one->member[k].port, one->is.linuxs, &list[n++]);
		for (unsigned k = 0; k < one->n_tunnels; k++)
			add_port(bridges, tunnel[k].member.port, one->is.linuxs, &list[n++]);
	}
	return n;
}

static bool guards(struct bridges *bridges, const struct guard_port list[], unsigned n)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;

	bridges->floods.is_guarded = ops->guard && ops->guard(ops->ops, list, n);
	return bridges->floods.is_guarded;
}

static bool is_same(const struct guarded *guarded, const struct guard_port list[], unsigned n)
{
	return guarded->n == n && !memcmp(guarded->port, list, n * sizeof(*list));
}

// Both those that were guarded, and those that are to be.
static unsigned unite(const struct guarded *guarded, struct guard_port list[], unsigned n)
{
	const unsigned n_new = n;

	for (unsigned i = 0; i < guarded->n && n < GUARD_MAX; i++) {
		unsigned k = 0;

		while (k < n_new && memcmp(list[k].name, guarded->port[i].name, sizeof(list->name)))
			k++;
		if (k < n_new)
			list[k].has_multicasts |= guarded->port[i].has_multicasts;
		else
			list[n++] = guarded->port[i];
	}
	return n;
}

// Linux stops flooding before workers begin, and begins after they have stopped: so no frame comes
// twice.
void floods_choose(struct bridges *bridges)
{
	struct floods *floods = &bridges->floods;
	struct guard_port both[GUARD_MAX];
	unsigned n;

	for (unsigned i = 0; i < bridges->next.n; i++)
		choose(bridges, &bridges->next.bridge[i]);
	memset(&floods->next, 0, sizeof(floods->next));
	floods->next.n = list_ports(bridges, floods->next.port);
	floods->wanted = floods->next;
	memcpy(both, floods->next.port, sizeof(both));
	n = unite(&floods->now, both, floods->next.n);
	if (!n || guards(bridges, both, n))
		return;
	for (unsigned i = 0; i < bridges->next.n; i++) {
		bridges->next.bridge[i].is.linuxs = MAC_ALL_STORMS;
		bridges->next.bridge[i].is.linux_too = 0;
	}
	floods->next.n = 0;
}

void floods_settle(struct bridges *bridges)
{
	struct floods *floods = &bridges->floods;
	const bool is_guarded = floods->is_guarded; // those that are wanted

	if (floods->now.n && !is_same(&floods->next, floods->now.port, floods->now.n))
		guards(bridges, floods->next.port, floods->next.n);
	if (floods->wanted.n && !floods->next.n)
		floods->is_guarded = is_guarded;
	floods->now = floods->next;
}

void floods_limits(const struct bridges *bridges, unsigned port, uint32_t pps[MAC_STORMS])
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;

	memset(pps, 0, MAC_STORMS * sizeof(pps[0]));
	if (ops->storm)
		ops->storm(ops->ops, port, pps);
}

void floods_poll(struct bridges *bridges)
{
	struct floods *floods = &bridges->floods;
	const bool was_guarded = floods->is_guarded;
	bool is_changed = false;

	for (unsigned port = 0; port < bridges->mirror->settings.n_ports; port++) {
		const bool is_served = bridges->now.of_port[port];
		const bool is_judged = is_served && judges(bridges, port);
		uint32_t pps[MAC_STORMS] = {0};

		if (is_served)
			floods_limits(bridges, port, pps);
		is_changed |= memcmp(pps, floods->storm_pps[port], sizeof(pps)) != 0;
		memcpy(floods->storm_pps[port], pps, sizeof(pps));
		is_changed |= is_judged != floods->is_judged[port];
		floods->is_judged[port] = is_judged;
	}
	if (floods->wanted.n)
		is_changed |= guards(bridges, floods->wanted.port, floods->wanted.n) != was_guarded;
	bridges->is_stale |= is_changed;
}

// Adds a part to a list of reasons.
static void add_text(char *out, size_t bytes, const char *text)
{
	const size_t n = strlen(out);

	snprintf(out + n, bytes - n, "%s%s", n ? "; " : "", text);
}

void floods_describe(struct bridges *bridges, const struct served *served, char *out, size_t bytes)
{
	const uint8_t linuxs = served->is.linuxs;
	const char *why = refuse(bridges, served);
	char text[300];

	out[0] = 0;
	if (linuxs == MAC_ALL_STORMS) {
		snprintf(out, bytes, "all others are punted to Linux, which floods: %s",
			why ? why : "the guard against flooding twice is missing");
		return;
	}
	if (linuxs & 1 << MAC_MULTICAST) {
		why = leaves_groups(bridges, served);
		snprintf(text, sizeof(text), "those to groups are punted to Linux%s%s%s",
			served->snoops ? ", which learns who wants them (mcast_snooping)" : "",
			why ? ": " : "", why ? why : "");
		add_text(out, bytes, text);
	}
	if (linuxs & UNKNOWN)
		add_text(out, bytes,
			"those to unknown addresses are punted to Linux: the bridge has ports that "
			"workers do not serve, its own interface is promiscuous, or it has "
			"fdb_local_vlan_0");
}

bool floods_tell(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	const struct bridges *bridges = ifaces->mirror->bridges;
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	struct netlink_unsupported one = {.n = 1,
		.what = "guard against flooding twice",
		.where = "table bridge " GUARD_TABLE};
	char statement[1500] = "";

	if (!ops->guard || !bridges->floods.wanted.n || bridges->floods.is_guarded)
		return true;
	if (ops->guard_statement)
		ops->guard_statement(ops->ops, statement, sizeof(statement));
	snprintf(one.effect, sizeof(one.effect), "Linux floods for its bridges, as %s%s",
		statement[0] ? "the table is not in this namespace; install it: "
			     : "it refuses the table",
		statement);
	return cb(arg, &one);
}
