// What Linux says of interfaces is kept as it comes; at each flush all of it is judged from scratch
// where anything has changed, so that the order in which it came does not matter. Control thread.
#include "sync/links.h"

#include "sync/assign.h"
#include "sync/judge.h"
#include "sync/neighbours.h"
#include "sync/routes.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

enum { CONF_ALL = -1 };

int links_create(struct links **out, struct mirror *mirror, struct complaint *why)
{
	struct links *links = calloc(1, sizeof(*links));

	if (!links || interfaces_open(&links->all) || addresses_open(&links->addresses)) {
		if (links)
			links_destroy(links);
		return complain(why, -ENOMEM, "no memory for Linux's interfaces");
	}
	links->mirror = mirror;
	links->is_dirty = true;
	link_ids_open(&links->ids, mirror->settings.n_ports);
	twins_open(links);
	foreign_tend(links);
	*out = links;
	return 0;
}

void links_destroy(struct links *links)
{
	interfaces_close(&links->all);
	addresses_close(&links->addresses);
	foreign_close(&links->foreign);
	free(links);
}

// IPv4's setting counts where it is on for the interface or for all (Linux 5.11); with IPv6 that
// for all is written to each interface.
static struct links_state state_of(const struct links *links, const struct interface *one)
{
	bool all_ignore4 = links->conf_all[0].ignore_linkdown > 0;

	if (!one || !one->is_known)
		return (struct links_state){.link = FIB_NO_LINK};
	return (struct links_state){
		.is_known = true,
		.is_up = one->link.flags & IFF_UP,
		.has_carrier = one->link.carrier,
		.ignores_linkdown4 = all_ignore4 || one->conf[0].ignore_linkdown > 0,
		.ignores_linkdown6 = one->conf[1].ignore_linkdown > 0,
		.link = judge_lets_out(one->reasons) ? one->id : FIB_NO_LINK,
		.is_loopback = one->link.flags & IFF_LOOPBACK,
	};
}

static bool same_state(const struct links_state *a, const struct links_state *b)
{
	return a->is_known == b->is_known && a->is_up == b->is_up &&
	       a->has_carrier == b->has_carrier && a->ignores_linkdown4 == b->ignores_linkdown4 &&
	       a->ignores_linkdown6 == b->ignores_linkdown6 && a->link == b->link &&
	       a->is_loopback == b->is_loopback;
}

// At once when Linux tells of it: the kernel drops routes with the state, and those that it puts in
// afterwards must find the old ones gone.
bool links_tell(struct links *links, struct interface *one)
{
	struct links_state now = state_of(links, one);

	if (same_state(&now, &one->told))
		return false;
	if (now.link != one->told.link)
		neighbours_link_changed(links->mirror->neighbours, one->ifindex);
	one->told = now;
	routes_link_changed(links->mirror->routes, one->ifindex);
	return true;
}

void links_forget(struct links *links, struct interface *one)
{
	int ifindex = one->ifindex;
	bool was_known = one->is_known;

	links->is_dirty = true;
	assign_take_back(links, one);
	addresses_link_gone(links, ifindex);
	foreign_link_gone(links, ifindex);
	interfaces_remove(&links->all, ifindex);
	if (!was_known)
		return;
	neighbours_link_gone(links->mirror->neighbours, ifindex);
	routes_link_gone(links->mirror->routes, ifindex);
}

static void link_event(struct links *links, const struct event *event)
{
	struct interface *one = event->is_delete ? interfaces_find(&links->all, event->link.ifindex)
	                                         : interfaces_get(&links->all, event->link.ifindex);

	if (!one)
		return;
	if (event->is_delete) {
		links_forget(links, one);
		return;
	}
	const struct interface *vrf_before = vrfs_master(links, one);
	one->sysctls_read &= one->is_known && !strcmp(one->link.name, event->link.name) &&
	                     one->link.mtu == event->link.mtu; // Linux sets IPv6's to it
	one->link = event->link;
	one->is_known = true;
	one->seen = links->dump;
	links->is_dirty = true;
	if (!strcmp(one->link.kind, "vrf"))
		vrfs_follow(links); // what comes next may be about its table
	// Its addresses stay, and Linux puts their routes into the other table when it comes up.
	if (!event->is_dump && vrfs_master(links, one) != vrf_before)
		routes_ip4_gone(links->mirror->routes, one->ifindex);
	links_tell(links, one);
}

// Says only what has changed: -1 is "not told".
static void take_conf(struct interface_conf *conf, const struct event *event, uint32_t dump)
{
	const struct event_netconf *told = &event->netconf;

	if (event->is_delete || !conf->is_known)
		*conf = (struct interface_conf){.forwarding = -1,
			.rp_filter = -1,
			.ignore_linkdown = -1,
			.proxy_neigh = -1};
	if (event->is_delete)
		return;
	conf->is_known = true;
	conf->seen = dump;
	if (told->forwarding >= 0)
		conf->forwarding = told->forwarding;
	if (told->rp_filter >= 0)
		conf->rp_filter = told->rp_filter;
	if (told->ignore_linkdown >= 0)
		conf->ignore_linkdown = told->ignore_linkdown;
	if (told->proxy_neigh >= 0)
		conf->proxy_neigh = told->proxy_neigh;
}

static void conf_event(struct links *links, const struct event *event)
{
	const struct event_netconf *told = &event->netconf;
	unsigned family = told->family == 6;
	struct interface_conf *conf = NULL;
	struct interface *one = NULL;

	if (told->ifindex == CONF_ALL) {
		conf = &links->conf_all[family];
	} else if (told->ifindex > 0) {
		one = event->is_delete ? interfaces_find(&links->all, told->ifindex)
		                       : interfaces_get(&links->all, told->ifindex);
		conf = one ? &one->conf[family] : NULL;
	}
	if (!conf)
		return;
	links->is_dirty = true;
	take_conf(conf, event, links->dump);
	if (one && one->is_known)
		links_tell(links, one);
}

static void address_event(struct links *links, const struct event *event)
{
	struct interface *one = interfaces_find(&links->all, event->address.ifindex);

	addresses_event(links, event);
	if (!one || event->address.prefix.addr.family != 6)
		return;
	one->sysctls_read = false; // IPv6 that is disabled loses its addresses
	links->is_dirty = true;
}

void links_event(struct links *links, const struct event *event)
{
	switch (event->kind) {
	case EVENT_LINK:
		link_event(links, event);
		break;
	case EVENT_ADDRESS:
		address_event(links, event);
		break;
	case EVENT_NETCONF:
		conf_event(links, event);
		break;
	default:
		foreign_event(links, event);
	}
}

void links_twin_changed(struct links *links, unsigned port, int ifindex)
{
	links->mirror->settings.twin[port] = ifindex;
	links->is_dirty = true;
}

void links_dump_begins(struct links *links)
{
	links->dump++;
}

void links_dump_lacks(struct links *links, enum event_kind kind)
{
	foreign_lacks(links, kind);
}

// An interface that came into being by its settings alone was never there.
static bool is_stale(const struct links *links, const struct interface *one, uint32_t partial)
{
	if (one->is_known)
		return one->seen != links->dump && !event_kinds_have(partial, EVENT_LINK);
	return one->conf[0].seen != links->dump && one->conf[1].seen != links->dump &&
	       !event_kinds_have(partial, EVENT_NETCONF);
}

static struct interface *find_stale(const struct links *links, uint32_t partial)
{
	struct interface *one = NULL;

	while ((one = interfaces_next(&links->all, one)))
		if (is_stale(links, one, partial))
			break;
	return one;
}

static void sweep_confs(const struct links *links, struct interface *one)
{
	for (unsigned family = 0; family < 2; family++)
		if (one->conf[family].seen != links->dump)
			one->conf[family] = (struct interface_conf){0};
}

void links_dump_ends(struct links *links, uint32_t partial)
{
	struct interface *one;

	while ((one = find_stale(links, partial)))
		links_forget(links, one);
	for (one = NULL; (one = interfaces_next(&links->all, one));) {
		if (!event_kinds_have(partial, EVENT_NETCONF))
			sweep_confs(links, one);
		one->sysctls_read = false;
		links_tell(links, one);
	}
	if (!event_kinds_have(partial, EVENT_ADDRESS))
		addresses_sweep(links);
	foreign_sweep(links, partial);
}

struct links_state links_state(const struct mirror *mirror, int ifindex)
{
	return state_of(mirror->links, interfaces_find(&mirror->links->all, ifindex));
}

const char *links_name(const struct mirror *mirror, int ifindex)
{
	const struct interface *one = interfaces_find(&mirror->links->all, ifindex);

	return one && one->is_known ? one->link.name : "?";
}

int links_ifindex(const struct mirror *mirror, uint16_t link)
{
	return link < FIB_MAX_LINKS ? mirror->links->ids.ifindex[link] : 0;
}

void links_info(const struct links *links, struct sync_info *out)
{
	out->links = 0;
	for (const struct interface *one = NULL; (one = interfaces_next(&links->all, one));)
		out->links += one->is_known;
	out->control_bytes += sizeof(*links) + links->all.n * sizeof(struct interface);
}
