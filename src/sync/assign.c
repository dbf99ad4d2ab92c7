// A flush: ids are taken back from interfaces that are no links of ours any more, or other ones,
// before others get theirs. Control thread.
#include "sync/assign.h"

#include "sync/judge.h"
#include "sync/routes.h"

#include <string.h>

// A read costs tens of microseconds: what is unknown is punted for some rounds.
enum { READS_A_FLUSH = 100, READS_A_TEND = 10 };
enum { MTU_DEFAULT = 1500 };

void assign_take_back(struct links *links, struct interface *one)
{
	struct fib *fib = links->mirror->settings.fib;
	uint16_t id = one->id;

	if (id == FIB_NO_LINK)
		return;
	one->id = FIB_NO_LINK;
	link_ids_give_up(&links->ids, id);
	if (id >= links->ids.n_ports)
		fib_link_delete(fib, id);
}

static bool same_macs(const struct fib_link *a, const struct fib_link *b)
{
	return wire_mac_equal(&a->mac, &b->mac) && a->n_macs == b->n_macs &&
	       !memcmp(a->macs, b->macs, a->n_macs * sizeof(a->macs[0]));
}

static bool same_tags(const struct fib_link *a, const struct fib_link *b)
{
	bool same = a->port == b->port && a->n_tags == b->n_tags;

	for (unsigned i = 0; same && i < a->n_tags; i++)
		same = a->tag[i].tpid == b->tag[i].tpid && a->tag[i].vid == b->tag[i].vid;
	return same;
}

static bool same_link(const struct fib_link *a, const struct fib_link *b)
{
	return same_tags(a, b) && same_macs(a, b) && a->vrf == b->vrf && a->flags == b->flags &&
	       a->mtu == b->mtu && a->mtu6 == b->mtu6 && a->has_peer == b->has_peer;
}

static int set(struct links *links, uint16_t id, const struct fib_link *link)
{
	struct fib *fib = links->mirror->settings.fib;
	const struct fib_link *old = fib_link(fib, id);

	return old && same_link(old, link) ? 0 : fib_link_set(fib, id, link);
}

static void take_back_ids(struct links *links)
{
	struct judgement found;

	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));) {
		if (one->id == FIB_NO_LINK)
			continue;
		judge(links, one, &found);
		const struct fib_link *old = fib_link(links->mirror->settings.fib, one->id);
		if (!found.is_ours || !old || !same_tags(old, &found.link))
			assign_take_back(links, one);
	}
}

static void give_id(struct links *links, struct interface *one, const struct judgement *found)
{
	if (found->link.n_tags) {
		one->id = link_ids_take(&links->ids, one->ifindex);
	} else {
		one->id = found->link.port;
		links->ids.ifindex[one->id] = one->ifindex;
	}
}

// The VRF or the MTU of a link.
static void tell_change(struct links *links, struct interface *one, const struct fib_link *now)
{
	bool is_same = one->vrf == now->vrf && one->mtu == now->mtu;

	one->vrf = now->vrf;
	one->mtu = now->mtu;
	if (!links_tell(links, one) && !is_same)
		routes_link_changed(links->mirror->routes, one->ifindex);
}

static void give_link(struct links *links, struct interface *one)
{
	struct judgement found;

	judge(links, one, &found);
	if (found.is_ours && one->id == FIB_NO_LINK)
		give_id(links, one, &found);
	if (one->id != FIB_NO_LINK && set(links, one->id, &found.link))
		assign_take_back(links, one);
	if (found.is_ours && one->id == FIB_NO_LINK)
		found.reasons |= 1u << REASON_NO_ID;
	one->reasons = found.reasons;
	tell_change(links, one, &found.link);
}

// A port without a twin takes nothing in.
static void set_orphan(struct links *links, uint16_t port)
{
	const struct fib_link *old = fib_link(links->mirror->settings.fib, port);
	struct fib_link link = {.mac = links->twins.has[port].mac, .mtu = MTU_DEFAULT};

	if (old)
		link = *old;
	link.port = (uint8_t)port;
	link.vrf = 0;
	link.flags = FIB_LINK_DOWN;
	set(links, port, &link);
}

static void give_ports(struct links *links)
{
	for (uint16_t port = 0; port < links->mirror->settings.n_ports; port++) {
		struct interface *twin = twins_find(links, port);

		if (twin)
			give_link(links, twin);
		else
			set_orphan(links, port);
	}
}

static void read_sysctls(struct links *links, struct interface *one)
{
	const struct mirror_hands *hands = &links->mirror->settings.hands;
	const char *name = one->link.name;
	const uint8_t before = one->sysctls;

	one->sysctls = 0;
	one->sysctls_read = true;
	if (!hands->disables_ipv6 || !hands->disables_ipv6(hands->hands, name))
		one->sysctls |= SYSCTL_IPV6;
	if (one->sysctls_known && (one->sysctls ^ before) & SYSCTL_IPV6)
		hands->dump_again(hands->hands); // next hops of IPv6 die and come back without news
	one->sysctls_known = true;
	one->mtu6 = hands->mtu6 ? hands->mtu6(hands->hands, name) : 0;
	one->tcx = hands->tcx ? hands->tcx(hands->hands, one->ifindex) : 0;
	if (!hands->sends_redirects)
		return;
	if (hands->sends_redirects(hands->hands, name, 4))
		one->sysctls |= FIB_LINK_REDIRECTS4;
	if (hands->sends_redirects(hands->hands, name, 6))
		one->sysctls |= FIB_LINK_REDIRECTS6;
}

void links_tend(struct links *links)
{
	for (unsigned tries = 0, n = 0; tries < FIB_MAX_LINKS && n < READS_A_TEND; tries++) {
		links->tended = (uint16_t)((links->tended + 1) % FIB_MAX_LINKS);
		int ifindex = links->ids.ifindex[links->tended];
		struct interface *one = ifindex ? interfaces_find(&links->all, ifindex) : NULL;

		if (!one || !one->sysctls_read)
			continue;
		uint8_t before = one->sysctls, tcx_before = one->tcx;
		unsigned mtu6_before = one->mtu6;
		read_sysctls(links, one);
		links->is_dirty |= one->sysctls != before || one->mtu6 != mtu6_before ||
		                   one->tcx != tcx_before;
		n++;
	}
	foreign_tend(links);
}

// Of links that lanes may know. True: some are still to be read.
static bool read_all_sysctls(struct links *links)
{
	struct judgement found;
	unsigned n = 0;

	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));) {
		if (one->sysctls_read || !one->is_known)
			continue;
		judge(links, one, &found);
		if (!found.is_ours && strcmp(one->link.kind, "macvlan") != 0)
			continue;
		if (n++ == READS_A_FLUSH)
			return true;
		read_sysctls(links, one);
	}
	return false;
}

void links_flush(struct links *links)
{
	if (!links->is_dirty)
		return;
	links->is_dirty = read_all_sysctls(links);
	foreign_judge(links);
	judge_above(links);
	vrfs_follow(links);
	twins_follow(links);
	take_back_ids(links);
	give_ports(links); // the fib wants to know a port before VLANs on it
	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));)
		give_link(links, one);
	twins_follow_filters(links);
}

bool links_settled(struct links *links)
{
	links->is_dirty |= link_ids_settled(&links->ids);
	vrfs_settled(links);
	return links->is_dirty;
}
