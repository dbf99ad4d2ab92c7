// Stores interface state as it is reported. At each flush, if anything has changed, all interfaces
// are judged from scratch, so that the order of events does not matter. Control thread.
#include "netlink/ifaces_inside.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

enum { CONF_ALL = -1, IP6_LEAST_MTU = 1280 };

int ifaces_create(struct ifaces **out, struct mirror *mirror, struct error *error)
{
	struct ifaces *ifaces = calloc(1, sizeof(*ifaces));

	if (!ifaces || interfaces_open(&ifaces->all) || addresses_open(&ifaces->addresses)) {
		if (ifaces)
			ifaces_destroy(ifaces);
		return error_set(error, -ENOMEM, "not enough memory for Linux's interfaces");
	}
	ifaces->mirror = mirror;
	ifaces->is_dirty = true;
	iface_ids_open(&ifaces->ids, PORT_MAX); // ports may be added
	taps_open(ifaces);
	foreign_poll(ifaces);
	*out = ifaces;
	return 0;
}

void ifaces_destroy(struct ifaces *ifaces)
{
	filters_close(ifaces);
	queues_close(ifaces);
	interfaces_close(&ifaces->all);
	addresses_close(&ifaces->addresses);
	foreign_close(&ifaces->foreign);
	free(ifaces);
}

void ifaces_lost(const struct ifaces *ifaces, enum event_kind kind)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;

	ops->lost(ops->ops, kind);
}

// IPv4: the setting applies if it is set for the interface or for all (Linux 5.11). IPv6: the value
// of "all" is copied to each interface.
static struct ifaces_state state_of(const struct ifaces *ifaces, const struct interface *one)
{
	bool all_ignore4 = ifaces->conf_all[0].ignore_linkdown > 0;

	if (!one || !one->is_known)
		return (struct ifaces_state){.iface = IFACE_NONE};
	return (struct ifaces_state){
		.is_known = true,
		.is_up = one->iface.flags & IFF_UP,
		.has_carrier = one->iface.carrier,
		.ignores_linkdown4 = all_ignore4 || one->conf[0].ignore_linkdown > 0,
		.ignores_linkdown6 = one->conf[1].ignore_linkdown > 0,
		.iface = check_lets_out(one->reasons) ? one->id : IFACE_NONE,
		.is_loopback = one->iface.flags & IFF_LOOPBACK,
	};
}

static bool same_state(const struct ifaces_state *a, const struct ifaces_state *b)
{
	return a->is_known == b->is_known && a->is_up == b->is_up &&
	       a->has_carrier == b->has_carrier && a->ignores_linkdown4 == b->ignores_linkdown4 &&
	       a->ignores_linkdown6 == b->ignores_linkdown6 && a->iface == b->iface &&
	       a->is_loopback == b->is_loopback;
}

// Called as soon as the event arrives: the kernel drops routes together with the state, and routes
// that it adds afterwards must not find the old ones.
bool ifaces_tell(struct ifaces *ifaces, struct interface *one)
{
	struct ifaces_state now = state_of(ifaces, one);

	if (same_state(&now, &one->reported))
		return false;
	if (now.iface != one->reported.iface)
		neighbours_iface_changed(ifaces->mirror->neighbours, one->ifindex);
	one->reported = now;
	routes_iface_changed(ifaces->mirror->routes, one->ifindex);
	mpls_ifaces_changed(ifaces->mirror->mpls);
	return true;
}

void ifaces_forget(struct ifaces *ifaces, struct interface *one)
{
	int ifindex = one->ifindex;
	bool was_known = one->is_known;

	ifaces->is_dirty = true;
	assign_take_back(ifaces, one);
	addresses_iface_gone(ifaces, ifindex);
	foreign_iface_gone(ifaces, ifindex);
	filters_iface_gone(ifaces, one);
	queues_iface_gone(ifaces, one);
	interfaces_remove(&ifaces->all, ifindex);
	if (!was_known)
		return;
	neighbours_iface_gone(ifaces->mirror->neighbours, ifindex);
	routes_iface_gone(ifaces->mirror->routes, ifindex);
	mpls_ifaces_changed(ifaces->mirror->mpls);
}

// Whether Linux removes all IPv6 routes of an interface that stays up.
static bool loses_ip6(const struct event_link *before, const struct event_link *now)
{
	return before->mtu >= IP6_LEAST_MTU && now->mtu < IP6_LEAST_MTU;
}

static void doubt_ip6(struct ifaces *ifaces)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;

	if (ops->hides_lost_routes && ops->hides_lost_routes(ops->ops))
		ops->dump_again(ops->ops);
}

static void link_event(struct ifaces *ifaces, const struct event *event)
{
	struct interface *one = event->is_delete
	                                ? interfaces_find(&ifaces->all, event->iface.ifindex)
	                                : interfaces_get(&ifaces->all, event->iface.ifindex);

	if (!one && !event->is_delete)
		ifaces_lost(ifaces, EVENT_LINK);
	if (!one)
		return;
	if (event->is_delete) {
		ifaces_forget(ifaces, one);
		return;
	}
	const struct interface *vrf_before = vrfs_master(ifaces, one);
	bool loses_routes6 = one->is_known && loses_ip6(&one->iface, &event->iface);
	one->sysctls_read &= one->is_known && !strcmp(one->iface.name, event->iface.name) &&
	                     one->iface.mtu == event->iface.mtu; // Linux sets the IPv6 MTU to it
	if (strcmp(one->iface.name, event->iface.name) != 0)
		filters_iface_renamed(ifaces, one);
	one->iface = event->iface;
	queues_iface_changed(ifaces, one);
	one->is_known = true;
	one->seen = ifaces->dump;
	ifaces->is_dirty = true;
	if (!strcmp(one->iface.kind, "vrf"))
		vrfs_follow(ifaces); // subsequent events may refer to its table
	// Its addresses stay, and Linux adds their routes to the other table when it comes up.
	if (!event->is_dump && vrfs_master(ifaces, one) != vrf_before) {
		routes_ip4_gone(ifaces->mirror->routes, one->ifindex);
		loses_routes6 = true;
	}
	if (!event->is_dump && loses_routes6)
		doubt_ip6(ifaces);
	ifaces_tell(ifaces, one);
}

// The event contains only what has changed: -1 means not reported.
static void take_conf(struct interface_conf *conf, const struct event *event, uint32_t dump)
{
	const struct event_netconf *reported = &event->netconf;

	if (event->is_delete || !conf->is_known)
		*conf = (struct interface_conf){.forwarding = -1,
			.rp_filter = -1,
			.ignore_linkdown = -1,
			.proxy_neigh = -1};
	if (event->is_delete)
		return;
	conf->is_known = true;
	conf->seen = dump;
	if (reported->forwarding >= 0)
		conf->forwarding = reported->forwarding;
	if (reported->rp_filter >= 0)
		conf->rp_filter = reported->rp_filter;
	if (reported->ignore_linkdown >= 0)
		conf->ignore_linkdown = reported->ignore_linkdown;
	if (reported->proxy_neigh >= 0)
		conf->proxy_neigh = reported->proxy_neigh;
	if (reported->mc_forwarding >= 0)
		conf->mc_forwarding = reported->mc_forwarding;
}

// Whether frames with MPLS labels are taken.
static void labels_event(struct ifaces *ifaces, const struct event *event)
{
	struct interface *one = event->is_delete
	                                ? interfaces_find(&ifaces->all, event->netconf.ifindex)
	                                : interfaces_get(&ifaces->all, event->netconf.ifindex);

	if (!one && !event->is_delete)
		ifaces_lost(ifaces, EVENT_NETCONF);
	if (!one)
		return;
	one->takes_labels = !event->is_delete && event->netconf.input > 0;
	ifaces->is_dirty = true;
}

static void conf_event(struct ifaces *ifaces, const struct event *event)
{
	const struct event_netconf *reported = &event->netconf;
	unsigned family = reported->family == 6;
	struct interface_conf *conf = NULL;
	struct interface *one = NULL;

	if (reported->ifindex == CONF_ALL) {
		conf = &ifaces->conf_all[family];
	} else if (reported->ifindex > 0) {
		one = event->is_delete ? interfaces_find(&ifaces->all, reported->ifindex)
		                       : interfaces_get(&ifaces->all, reported->ifindex);
		conf = one ? &one->conf[family] : NULL;
		if (!one && !event->is_delete)
			ifaces_lost(ifaces, EVENT_NETCONF);
	}
	if (!conf)
		return;
	ifaces->is_dirty = true;
	take_conf(conf, event, ifaces->dump);
	if (one && one->is_known)
		ifaces_tell(ifaces, one);
}

// A bridge tells of a port before or after its interface does: both say what is true by then.
static void port_event(struct ifaces *ifaces, const struct event *event)
{
	struct interface *one = interfaces_find(&ifaces->all, event->port.ifindex);

	if (!one || !one->is_known || one->iface.master != event->port.master)
		return;
	one->iface.port = event->port.port;
	ifaces->is_dirty = true;
}

static void address_event(struct ifaces *ifaces, const struct event *event)
{
	struct interface *one = interfaces_find(&ifaces->all, event->address.ifindex);

	addresses_event(ifaces, event);
	if (!one || event->address.prefix.addr.family != 6)
		return;
	one->sysctls_read = false; // disabling IPv6 removes its addresses
	ifaces->is_dirty = true;
}

void ifaces_event(struct ifaces *ifaces, const struct event *event)
{
	switch (event->kind) {
	case EVENT_LINK:
		link_event(ifaces, event);
		break;
	case EVENT_ADDRESS:
		address_event(ifaces, event);
		break;
	case EVENT_NETCONF:
		if (event->netconf.family != EVENT_MPLS)
			conf_event(ifaces, event);
		else if (event->netconf.ifindex > 0 &&
			 (event->netconf.input >= 0 || event->is_delete))
			labels_event(ifaces, event);
		break;
	case EVENT_BRIDGE_PORT:
		port_event(ifaces, event);
		break;
	case EVENT_VLANS:
		port_vlans_event(ifaces, event);
		break;
	case EVENT_FILTER:
	case EVENT_ACTION:
		filters_event(ifaces, event);
		break;
	case EVENT_CLASS:
		queues_event(ifaces, event);
		break;
	default:
		foreign_event(ifaces, event);
	}
}

void ifaces_tap_changed(struct ifaces *ifaces, unsigned port, int ifindex)
{
	ifaces->mirror->settings.tap[port] = ifindex;
	ifaces->is_dirty = true;
}

void ifaces_port_added(struct ifaces *ifaces, unsigned port, const struct mirror_port *added)
{
	ifaces->taps.has[port] = ifaces->taps.asked[port] = *added;
}

// Its VLANs go when Linux reports that they are gone, or at the next flush.
void ifaces_port_removed(struct ifaces *ifaces, unsigned port)
{
	int ifindex = ifaces->ids.ifindex[port];
	struct interface *one = ifindex ? interfaces_find(&ifaces->all, ifindex) : NULL;

	if (one && one->id == port)
		assign_take_back(ifaces, one);
	fib_iface_delete(ifaces->mirror->settings.fib, port);
}

void ifaces_dump_begins(struct ifaces *ifaces)
{
	ifaces->dump++;
}

void ifaces_dump_lacks(struct ifaces *ifaces, enum event_kind kind)
{
	foreign_lacks(ifaces, kind);
}

// An interface created by its settings alone never existed.
static bool is_stale(const struct ifaces *ifaces, const struct interface *one, uint32_t partial)
{
	if (one->is_known)
		return one->seen != ifaces->dump && !event_kinds_have(partial, EVENT_LINK);
	return one->conf[0].seen != ifaces->dump && one->conf[1].seen != ifaces->dump &&
	       !event_kinds_have(partial, EVENT_NETCONF);
}

static struct interface *find_stale(const struct ifaces *ifaces, uint32_t partial)
{
	struct interface *one = NULL;

	while ((one = interfaces_next(&ifaces->all, one)))
		if (is_stale(ifaces, one, partial))
			break;
	return one;
}

static void sweep_confs(const struct ifaces *ifaces, struct interface *one)
{
	for (unsigned family = 0; family < 2; family++)
		if (one->conf[family].seen != ifaces->dump)
			one->conf[family] = (struct interface_conf){0};
}

void ifaces_dump_ends(struct ifaces *ifaces, uint32_t partial)
{
	struct interface *one;

	while ((one = find_stale(ifaces, partial)))
		ifaces_forget(ifaces, one);
	for (one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		if (!event_kinds_have(partial, EVENT_NETCONF))
			sweep_confs(ifaces, one);
		one->sysctls_read = false;
		ifaces_tell(ifaces, one);
	}
	if (!event_kinds_have(partial, EVENT_ADDRESS))
		addresses_sweep(ifaces);
	if (!event_kinds_have(partial, EVENT_VLANS))
		port_vlans_sweep(ifaces);
	foreign_sweep(ifaces, partial);
	if (!event_kinds_have(partial, EVENT_QDISC))
		queues_sweep(ifaces);
	filters_doubt(ifaces);
}

struct ifaces_state ifaces_state(const struct mirror *mirror, int ifindex)
{
	return state_of(mirror->ifaces, interfaces_find(&mirror->ifaces->all, ifindex));
}

bool ifaces_has_own_rules(const struct mirror *mirror, uint8_t family, uint16_t vrf)
{
	return foreign_has_own_rules(&mirror->ifaces->foreign, family, vrf != 0);
}

bool ifaces_take_labels(const struct mirror *mirror, int ifindex)
{
	const struct interface *one = interfaces_find(&mirror->ifaces->all, ifindex);

	return one && one->takes_labels;
}

const char *ifaces_name(const struct mirror *mirror, int ifindex)
{
	const struct interface *one = interfaces_find(&mirror->ifaces->all, ifindex);

	return one && one->is_known ? one->iface.name : "?";
}

int ifaces_ifindex(const struct mirror *mirror, uint16_t iface)
{
	return iface < IFACE_MAX ? mirror->ifaces->ids.ifindex[iface] : 0;
}

void ifaces_info(const struct ifaces *ifaces, struct netlink_info *out)
{
	out->ifaces = 0;
	for (const struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		out->ifaces += one->is_known;
		out->control_bytes += one->vlans ? sizeof(*one->vlans) : 0;
	}
	out->control_bytes += sizeof(*ifaces) + ifaces->all.by_index.n * sizeof(struct interface);
}

// The table of interfaces, keyed by index.

enum { FIRST_BUCKETS = 64 };

// The kernel assigns indices sequentially: an index is its own hash.
static_assert(offsetof(struct interface, node) == 0, "the table returns nodes as entries");

static void free_interface(void *one)
{
	free(((struct interface *)one)->vlans);
	free(one);
}

int interfaces_open(struct interfaces *all)
{
	return hash_table_init(&all->by_index, FIRST_BUCKETS);
}

void interfaces_close(struct interfaces *all)
{
	hash_table_free(&all->by_index, free_interface);
}

struct interface *interfaces_find(const struct interfaces *all, int ifindex)
{
	return hash_table_find(&all->by_index, (uint32_t)ifindex);
}

struct interface *interfaces_get(struct interfaces *all, int ifindex)
{
	struct interface *one = interfaces_find(all, ifindex);

	if (one)
		return one;
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->ifindex = ifindex;
	one->id = one->queue_id = IFACE_NONE;
	one->reported.iface = IFACE_NONE;
	hash_table_insert(&all->by_index, &one->node, (uint32_t)ifindex);
	return one;
}

void interfaces_remove(struct interfaces *all, int ifindex)
{
	struct interface *gone = interfaces_find(all, ifindex);

	if (!gone)
		return;
	hash_table_remove(&all->by_index, &gone->node);
	free_interface(gone);
}

struct interface *interfaces_next(const struct interfaces *all, const struct interface *after)
{
	return hash_table_next(&all->by_index, after ? &after->node : NULL);
}
