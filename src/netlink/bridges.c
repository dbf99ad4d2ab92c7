// Which ports of Linux's bridges workers serve: they forward frames between two addresses that
// Linux knows behind such ports, flood what floods.c says, and leave all others to Linux. So Linux
// learns and filters, and nothing is forwarded twice. A port, or a bridge, that does what workers
// do not is not served. Control thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/headers.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <net/if.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRY_AGAIN_S = 10, FLOODS_TEXT = 768 };
static const uint64_t SECOND_NS = 1000000000;

int bridges_open(struct bridges **out, struct mirror *mirror, struct error *error)
{
	struct bridges *bridges = calloc(1, sizeof(*bridges));

	if (bridges) {
		bridges->mirror = mirror;
		bridges->now.bridge = calloc(MAC_BRIDGES, sizeof(*bridges->now.bridge));
		bridges->next.bridge = calloc(MAC_BRIDGES, sizeof(*bridges->next.bridge));
		bridges->now.tunnel = calloc(SERVED_TUNNELS, sizeof(*bridges->now.tunnel));
		bridges->next.tunnel = calloc(SERVED_TUNNELS, sizeof(*bridges->next.tunnel));
	}
	if (!bridges || !bridges->now.bridge || !bridges->next.bridge || !bridges->now.tunnel ||
		!bridges->next.tunnel || fdb_open(&bridges->fdb) || mdb_open(&bridges->mdb) ||
		remotes_create(&bridges->remotes)) {
		bridges_close(bridges);
		return error_set(error, -ENOMEM,
			"not enough memory or random numbers for Linux's bridges");
	}
	*out = bridges;
	return 0;
}

void bridges_close(struct bridges *bridges)
{
	if (!bridges)
		return;
	fdb_close(&bridges->fdb);
	mdb_close(&bridges->mdb);
	remotes_destroy(&bridges->remotes);
	if (bridges->none)
		mac_drop(bridges->none);
	snooping_free(&bridges->snooping);
	free(bridges->now.bridge);
	free(bridges->next.bridge);
	free(bridges->now.iface);
	free(bridges->next.iface);
	free(bridges->now.tunnel);
	free(bridges->next.tunnel);
	free(bridges);
}

// Reasons that concern routing only, or that the port is in a bridge.
static const uint32_t harmless = 1u << REASON_MASTER | 1u << REASON_FORWARDING4 |
                                 1u << REASON_FORWARDING6 | 1u << REASON_NO_IPV6 |
                                 1u << REASON_PROXY_NDP;

const struct interface *bridges_of(const struct ifaces *ifaces, const struct interface *one)
{
	const struct interface *bridge =
		one->iface.master ? interfaces_find(&ifaces->all, one->iface.master) : NULL;

	return bridge && bridge->is_known && !strcmp(bridge->iface.kind, "bridge") ? bridge : NULL;
}

static bool some_port_answers(const struct ifaces *ifaces, const struct interface *bridge)
{
	for (const struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (one->iface.master == bridge->ifindex && one->iface.port.answers)
			return true;
	return false;
}

// Why workers serve no port of the bridge; NULL: they may.
static const char *check_bridge(const struct ifaces *ifaces, const struct interface *bridge)
{
	if (bridge->iface.bridge.is_odd)
		return "the bridge has an option that workers do not follow (mst_enabled or a "
		       "newer one)";
	if (bridge->iface.bridge.max_macs) // Linux does not count hosts of which it is told
		return "the bridge limits the addresses that it learns (fdb_max_learned)";
	if (ifaces->foreign.bridge_filters & FILTERS_TABLES)
		return "legacy ebtables or arptables are loaded";
	if (foreign_hooks_bridges(&ifaces->foreign,
		    bridge->iface.bridge.calls_hooks ||
			    ifaces->foreign.bridge_filters & FILTERS_CALLS))
		return "bridged frames pass a hook of nftables or iptables";
	if (ifaces->foreign.lacking)
		return "hooks and qdiscs could not be read";
	if (some_port_answers(ifaces, bridge))
		return "Linux answers for hosts behind a port of the bridge, and floods nothing to "
		       "it (proxy_arp)";
	return bridge->iface.flags & IFF_UP ? NULL : "the bridge is set down";
}

// Why workers do not serve the port; NULL: they do, if they serve the bridge.
static const char *check_port(const struct interface *one, const struct interface *bridge)
{
	const struct event_bridge_port *port = &one->iface.port;

	if (!port->is_known)
		return "its attributes are not known";
	if (port->is_odd)
		return "it has an attribute that workers do not follow (locked, mab, vlan_tunnel, "
		       "backup_port or a newer one)";
	// A refresh would add an entry for each.
	if (!bridge->iface.bridge.filters_vlans && one->vlans && one->vlans->n > 1)
		return "it has more than one VLAN (bridge vlan), by which the bridge does not "
		       "filter";
	if (one->above.has_vlans)
		return "there is a VLAN interface on it";
	if (one->tc || one->tc_above || one->queues || one->side[ACL_IN].n || one->side[ACL_OUT].n)
		return "it has tc filters or qdiscs";
	if (one->id == IFACE_NONE || one->reasons & ~harmless)
		return "workers leave the interface to Linux";
	if (port->state != BR_STATE_FORWARDING || !(one->iface.flags & IFF_UP))
		return "it is not in state forwarding";
	return NULL;
}

const char *bridges_check(const struct ifaces *ifaces, const struct interface *one,
	const struct interface *bridge)
{
	const char *why = check_bridge(ifaces, bridge);

	return why ? why : check_port(one, bridge);
}

uint8_t bridges_flags(const struct event_bridge_port *port)
{
	return MAC_OF_LINUX | (port->learns ? MAC_LEARNS : 0) | (port->floods ? MAC_FLOODS : 0) |
	       (port->is_isolated ? MAC_ISOLATED : 0) | (port->is_hairpin ? MAC_HAIRPIN : 0) |
	       (port->no_broadcasts ? MAC_NO_BROADCASTS : 0) |
	       (port->no_multicasts ? MAC_NO_MULTICASTS : 0);
}

uint16_t bridges_vlan_tag(const struct event_bridge *bridge)
{
	if (!bridge->filters_vlans)
		return 0;
	return bridge->vlan_protocol ? bridge->vlan_protocol : WIRE_ETHERTYPE_VLAN;
}

static bool is_one_too_many(const struct served_set *next, const struct interface *bridge)
{
	unsigned n_by_vlan = 0;

	for (unsigned i = 0; i < next->n; i++)
		n_by_vlan += next->bridge[i].is.vlan_tag != 0;
	return next->n == MAC_BRIDGES ||
	       (bridge->iface.bridge.filters_vlans && n_by_vlan == MAC_BRIDGES_BY_VLAN);
}

// Addresses for which bridges have space before they have any: the more bridges, the fewer in each.
enum { BIG_BRIDGES = 8, LATER_MAX = 2048 };

struct served *bridges_get(struct bridges *bridges, const struct interface *bridge)
{
	const struct served *was = served_find(&bridges->now, bridge->ifindex);
	struct served_set *next = &bridges->next;
	unsigned i = 0;

	while (i < next->n && next->bridge[i].ifindex != bridge->ifindex)
		i++;
	if (i == next->n && is_one_too_many(next, bridge))
		return NULL;
	struct served *served = &next->bridge[i];
	if (i < next->n)
		return served;
	next->n++;
	served->is.vlan_tag = bridges_vlan_tag(&bridge->iface.bridge);
	served->ifindex = bridge->ifindex;
	memcpy(served->is.name, bridge->iface.name, sizeof(served->is.name));
	served->runs_stp = bridge->iface.bridge.stp;
	served->snoops = bridge->iface.bridge.snoops;
	served->is.linux_id = (uint32_t)bridge->ifindex;
	served->is.ageing_s = tunnels_carry_frames(bridge)
	                              ? (uint32_t)MAC_DEFAULT_AGEING_S
	                              : MAX_OF(bridge->iface.bridge.ageing_cs / 100, 1u);
	served->wants = was ? was->wants : next->n <= BIG_BRIDGES ? MAC_DEFAULT_MAX : LATER_MAX;
	served->is.max = served->wants;
	bridges_set_routed(bridges, served, bridge);
	return served;
}
static_assert((int)EVENT_NAME_MAX == (int)MAC_NAME_MAX, "names are copied");

static void add_member(const struct bridges *bridges, struct served *served, unsigned port,
	const struct interface *one)
{
	const unsigned i = served->is.n_members++;

	served->member[i] = (struct mac_member){.port = (uint16_t)port,
		.flags = bridges_flags(&one->iface.port)};
	floods_limits(bridges, port, served->member[i].storm_pps);
	if (!served->is.vlan_tag)
		return;
	served->vlans[i] = one->vlans ? one->vlans->version : 0;
	served->member[i].vlans = bridges_vlans_of(one);
}

static void choose_port(struct bridges *bridges, unsigned port)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	const struct interface *one = taps_find(ifaces, port);
	const struct interface *bridge = one ? bridges_of(ifaces, one) : NULL;
	struct served *served =
		bridge && !bridges_check(ifaces, one, bridge) ? bridges_get(bridges, bridge) : NULL;

	if (!served)
		return;
	add_member(bridges, served, port, one);
	bridges->next.of_port[port] = served - bridges->next.bridge + 1;
}

static void set_bridged(const struct bridges *bridges, unsigned port, bool is_bridged)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;

	ops->port_set_bridged(ops->ops, port, is_bridged);
}

static void clear(struct served_set *set)
{
	memset(set->bridge, 0, MAC_BRIDGES * sizeof(*set->bridge));
	memset(set->of_port, 0, sizeof(set->of_port));
	set->n = 0;
	set->n_ifaces = 0;
	set->n_tunnels = 0;
}

static bool same(const struct served_set *a, const struct served_set *b)
{
	return a->n == b->n && !memcmp(a->of_port, b->of_port, sizeof(a->of_port)) &&
	       !memcmp(a->bridge, b->bridge, a->n * sizeof(*a->bridge)) &&
	       a->n_tunnels == b->n_tunnels &&
	       !memcmp(a->tunnel, b->tunnel, a->n_tunnels * sizeof(*a->tunnel)) &&
	       a->n_ifaces == b->n_ifaces &&
	       (!a->n_ifaces || !memcmp(a->iface, b->iface, a->n_ifaces * sizeof(*a->iface)));
}

// What takes all bridges from workers needs no memory, once one is served.
static bool has_spare(struct bridges *bridges)
{
	struct error error;

	return bridges->none ||
	       !mac_prepare(bridges->mirror->settings.macs, NULL, 0, &bridges->none, &error);
}

// NULL: there is not enough memory.
static struct mac_pending *try_to_prepare(struct bridges *bridges)
{
	const struct served_set *next = &bridges->next;
	struct mac_bridge list[MAC_BRIDGES];
	struct mac_pending *pending = NULL;
	struct snooping snooping;
	struct error error;

	for (unsigned i = 0; i < next->n; i++) {
		list[i] = next->bridge[i].is;
		list[i].vlan_iface = next->iface + next->bridge[i].first_iface;
	}
	struct mac_member *member = bridges_list_members(next, list);
	if (!member || !has_spare(bridges)) {
		free(member);
		return NULL;
	}
	const int err =
		snooping_build(bridges, next, &snooping, list) ||
		mac_prepare(bridges->mirror->settings.macs, list, next->n, &pending, &error);
	free(member);
	if (err) {
		snooping_free(&snooping);
		return NULL;
	}
	snooping_free(&bridges->snooping);
	bridges->snooping = snooping;
	return pending;
}

// Bridges get no more space than they have. Returns whether one should have had more.
static bool give_up_growth(struct bridges *bridges)
{
	bool should = false;

	for (unsigned i = 0; i < bridges->next.n; i++) {
		struct served *served = &bridges->next.bridge[i];
		const struct served *was = served_find(&bridges->now, served->ifindex);

		if (!was || was->is.max >= served->is.max)
			continue;
		served->is.max = was->is.max;
		should = true;
	}
	return should;
}

static void set_short(struct bridges *bridges, bool is_short)
{
	if (is_short && !bridges->is_short)
		log_warn("not enough memory for the MAC addresses of Linux's bridges: Linux "
			 "forwards frames to and from those that workers do not know; this is "
			 "tried again every %d s; free some memory",
			TRY_AGAIN_S);
	if (!is_short && bridges->is_short)
		log_info("there is memory for the MAC addresses of Linux's bridges again");
	bridges->is_short = is_short;
	bridges->tried_ns = 0;
}

// NULL: there is not enough memory, or nothing but space was wanted.
static struct mac_pending *prepare(struct bridges *bridges)
{
	struct mac_pending *pending = try_to_prepare(bridges);

	set_short(bridges, !pending);
	if (!pending && give_up_growth(bridges) && !same(&bridges->now, &bridges->next))
		pending = try_to_prepare(bridges);
	return pending;
}

// Ports leave first and join last. A worker that has read before that a port is served may still
// look for its bridge, and leaves the frames to Linux when there is none.
static void replace(struct bridges *bridges, struct mac_pending *pending)
{
	const struct served_set was = bridges->now;
	struct mac_table *macs = bridges->mirror->settings.macs;

	for (unsigned i = 0; i < PORT_MAX; i++)
		if (was.of_port[i] && !bridges->next.of_port[i])
			set_bridged(bridges, i, false);
	bridges->now = bridges->next;
	bridges->next = was;
	mac_commit(macs, pending, rte_rdtsc());
	for (unsigned i = 0; i < bridges->now.n; i++)
		bridges->domain[i] = mac_domain(macs, bridges->now.bridge[i].is.name);
	for (unsigned i = 0; i < PORT_MAX; i++)
		if (!was.of_port[i] && bridges->now.of_port[i])
			set_bridged(bridges, i, true);
}

// Without memory, bridges keep what they have, unless their ports change: then Linux does all.
static void give(struct bridges *bridges)
{
	struct mac_pending *pending = prepare(bridges);

	mac_set_partial(bridges->mirror->settings.macs, true); // until fdb.c has gone over all
	if (!pending && bridges->now.n && !same(&bridges->now, &bridges->next)) {
		clear(&bridges->next);
		bridges->floods.next.n = 0;
		pending = bridges->none;
		bridges->none = NULL;
	}
	if (pending)
		replace(bridges, pending);
	fdb_doubt(&bridges->fdb);
	remotes_doubt(&bridges->remotes);
}

void bridges_retry(struct bridges *bridges, uint64_t now_ns)
{
	if (!bridges->is_short)
		return;
	if (!bridges->tried_ns)
		bridges->tried_ns = now_ns;
	bridges->is_stale |= now_ns - bridges->tried_ns >= TRY_AGAIN_S * SECOND_NS;
}

void bridges_choose(struct bridges *bridges)
{
	const uint64_t began_ns = clock_now_ns();

	bridges->mdb.is_changed = false;
	clear(&bridges->next);
	for (unsigned port = 0; port < bridges->mirror->settings.n_ports; port++)
		choose_port(bridges, port);
	bridges_choose_tunnels(bridges);
	floods_choose(bridges);
	if (bridges->is_stale || !same(&bridges->now, &bridges->next))
		give(bridges);
	floods_settle(bridges);
	bridges->is_stale = false;
	snooping_publish(bridges);
	snooping_done(bridges, began_ns);
}

// Its number may soon be another port's.
void bridges_port_removed(struct bridges *bridges, unsigned port)
{
	if (bridges->now.of_port[port])
		set_bridged(bridges, port, false);
	bridges->now.of_port[port] = 0;
	bridges->is_stale = true;
}

bool bridges_flush(struct bridges *bridges)
{
	if (!bridges->mirror->settings.macs)
		return false;
	if (bridges->mdb.routers_told && bridges->now.n)
		mdb_poll(bridges, clock_now_ns());
	remotes_flush(bridges, bridges->judged != bridges->mirror->ifaces->judged);
	if (bridges->is_stale || bridges->judged != bridges->mirror->ifaces->judged ||
		snooping_is_due(bridges, clock_now_ns())) {
		bridges->judged = bridges->mirror->ifaces->judged;
		bridges_choose(bridges);
	}
	return fdb_flush(bridges) || bridges->is_stale;
}

// What of a served port is different by VLAN. `reported` says where.
static bool tell_of_vlans(const struct interface *one, const struct interface *bridge,
	struct netlink_unsupported *reported,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	const struct event_bridge *is = &bridge->iface.bridge;
	bool goes_on = true;

	if (is->filters_vlans && one->vlans && one->vlans->n_odd) {
		reported->n = one->vlans->n_odd;
		snprintf(reported->what, sizeof(reported->what), "VLANs of a port left to Linux");
		snprintf(reported->effect, sizeof(reported->effect),
			"frames of these VLANs are punted to Linux: they are not in state "
			"forwarding, or have an attribute that workers do not follow");
		goes_on = cb(arg, reported);
	}
	if (is->filters_vlans && is->counts_vlans && goes_on) {
		reported->n = 1;
		snprintf(reported->what, sizeof(reported->what), "counters of VLANs");
		snprintf(reported->effect, sizeof(reported->effect),
			"Linux counts only the frames that it forwards itself "
			"(vlan_stats_enabled)");
		goes_on = cb(arg, reported);
	}
	return goes_on;
}

// What of a served port's frames is Linux's. `reported` says where.
static bool tell_of_served(struct bridges *bridges, const struct interface *one,
	const struct interface *bridge, struct netlink_unsupported *reported,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	const struct served *served = served_find(&bridges->now, bridge->ifindex);
	const bool is_over = fdb_is_over(&bridges->fdb, bridge->ifindex);
	char floods[FLOODS_TEXT] = "";

	if (served)
		floods_describe(bridges, served, floods, sizeof(floods));
	if (bridges_route_on(bridge) && !floods[0] && !is_over)
		return tell_of_vlans(one, bridge, reported, cb, arg);
	snprintf(reported->what, sizeof(reported->what), "%s%s by a bridge",
		floods[0] ? "flooding" : "all", bridges_route_on(bridge) ? "" : " and routing");
	snprintf(reported->effect, sizeof(reported->effect),
		"workers forward frames between addresses that the bridge knows%s, unless an "
		"access list of a port has to judge them%s%s%s",
		bridges_route_on(bridge) ? ", and route those to and from the bridge itself" : "",
		floods[0] ? "; " : "", floods,
		is_over ? "; the bridge knows more than workers, who know 1000000: Linux has the "
			  "frames of the others"
			: "");
	return cb(arg, reported) && tell_of_vlans(one, bridge, reported, cb, arg);
}

bool bridges_tell(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told)
{
	struct bridges *bridges = ifaces->mirror->bridges;
	const struct interface *bridge = bridges_of(ifaces, one);
	const int port = taps_port(ifaces, one->ifindex);
	struct netlink_unsupported reported = {.n = 1};
	const char *why = NULL;

	*told = bridge && port >= 0;
	if (!*told)
		return true;
	snprintf(reported.where, sizeof(reported.where), "%s in %s", one->iface.name,
		bridge->iface.name);
	if (bridges->now.of_port[port])
		return tell_of_served(bridges, one, bridge, &reported, cb, arg);
	why = bridges_check(ifaces, one, bridge);
	snprintf(reported.what, sizeof(reported.what), "port of a bridge left to Linux");
	snprintf(reported.effect, sizeof(reported.effect),
		"all its frames are punted to Linux, which forwards them: %s",
		why ? why
		    : "there are more than 64 bridges, or more than 15 that filter by VLAN, or "
		      "there is not enough memory");
	return cb(arg, &reported);
}
