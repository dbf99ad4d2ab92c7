// Flush of interfaces and VRFs: ids are first taken back from those that are gone, no longer ours
// or different, before new ones are assigned. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/bits.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// A read takes tens of microseconds, so their number is bounded; packets of interfaces not read yet
// are punted. A flush goes through all interfaces, so with many of them it reads a share.
enum { READS_A_FLUSH = 100, READS_SHARE = 32, READS_A_POLL = 10 };
enum { MTU_DEFAULT = 1500 };

static void tell_name(const struct ifaces *ifaces, uint16_t id, const char *name)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	if (settings->iface_named)
		settings->iface_named(settings->arg, id, name);
}

// The name for which something else has the id; NULL: nothing has it.
static const char *kept_name(const struct ifaces *ifaces, uint16_t id)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	return settings->iface_kept ? settings->iface_kept(settings->arg, id) : NULL;
}

static void take_back(struct ifaces *ifaces, struct interface *one)
{
	struct fib *fib = ifaces->mirror->settings.fib;
	uint16_t id = one->id;

	if (id == IFACE_NONE)
		return;
	one->id = IFACE_NONE;
	queues_id_changed(ifaces, one);
	iface_ids_give_up(&ifaces->ids, id, kept_name(ifaces, id) != NULL);
	if (id >= ifaces->ids.n_ports)
		fib_iface_delete(fib, id);
	tell_name(ifaces, id, NULL);
}

static bool is_bridge(const struct interface *one)
{
	return !strcmp(one->iface.kind, "bridge");
}

// The fib finds a VLAN on a bridge by the id of that.
void assign_take_back(struct ifaces *ifaces, struct interface *one)
{
	for (struct interface *vlan = NULL; one->id != IFACE_NONE && is_bridge(one) &&
					    (vlan = interfaces_next(&ifaces->all, vlan));)
		if (vlan->iface.lower == one->ifindex && !strcmp(vlan->iface.kind, "vlan"))
			take_back(ifaces, vlan);
	take_back(ifaces, one);
}

static bool same_macs(const struct iface *a, const struct iface *b)
{
	return wire_mac_equal(&a->mac, &b->mac) && a->n_macs == b->n_macs &&
	       !memcmp(a->macs, b->macs, a->n_macs * sizeof(a->macs[0]));
}

static bool same_tags(const struct iface *a, const struct iface *b)
{
	bool same = a->port == b->port && a->n_tags == b->n_tags && a->is_bridge == b->is_bridge &&
	            iface_is_tunnel(a) == iface_is_tunnel(b);

	for (unsigned i = 0; same && i < a->n_tags; i++)
		same = a->tag[i].tpid == b->tag[i].tpid && a->tag[i].vid == b->tag[i].vid;
	return same;
}

static bool same_iface(const struct iface *a, const struct iface *b)
{
	return same_tags(a, b) && same_macs(a, b) && a->vrf == b->vrf && a->flags == b->flags &&
	       a->rpf4 == b->rpf4 && a->mtu == b->mtu && a->mtu6 == b->mtu6 &&
	       a->has_peer == b->has_peer && !memcmp(&a->tunnel, &b->tunnel, sizeof(a->tunnel));
}

static int set(struct ifaces *ifaces, uint16_t id, const struct iface *iface)
{
	struct fib *fib = ifaces->mirror->settings.fib;
	const struct iface *old = fib_iface(fib, id);

	return old && same_iface(old, iface) ? 0 : fib_iface_set(fib, id, iface);
}

static void take_back_ids(struct ifaces *ifaces)
{
	struct iface_verdict found;

	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		if (one->id == IFACE_NONE)
			continue;
		decide(ifaces, one, &found);
		const struct iface *old = fib_iface(ifaces->mirror->settings.fib, one->id);
		if (!found.is_ours || !old || !same_tags(old, &found.iface))
			assign_take_back(ifaces, one);
	}
}

// Its former id if something else still has that.
static uint16_t take_id(struct ifaces *ifaces, const struct interface *one)
{
	struct iface_ids *ids = &ifaces->ids;

	for (unsigned id = ids->n_ports; ids->n_kept && id < ids->end; id++) {
		if (!iface_ids_keeps(ids, id))
			continue;
		const char *name = kept_name(ifaces, id);
		if (name && !strcmp(name, one->iface.name))
			return iface_ids_take_kept(ids, id, one->ifindex);
	}
	return iface_ids_take(ids, one->ifindex);
}

static void give_id(struct ifaces *ifaces, struct interface *one, const struct iface_verdict *found)
{
	if (found->iface.n_tags || found->iface.is_bridge || iface_is_tunnel(&found->iface)) {
		one->id = take_id(ifaces, one);
	} else {
		one->id = found->iface.port;
		ifaces->ids.ifindex[one->id] = one->ifindex;
	}
}

// Tells routes and labels of changes of an interface on which they depend.
static void tell_change(struct ifaces *ifaces, struct interface *one, const struct iface *now)
{
	const bool carries_labels = now->tunnel.flags & IFACE_TUNNEL_MPLS;
	const bool is_other = one->carries_labels != carries_labels;
	const bool is_same = one->vrf == now->vrf && one->mtu == now->mtu && !is_other;

	one->vrf = now->vrf;
	one->mtu = now->mtu;
	one->carries_labels = carries_labels;
	if (ifaces_tell(ifaces, one) || is_same)
		return;
	routes_iface_changed(ifaces->mirror->routes, one->ifindex);
	if (is_other)
		mpls_ifaces_changed(ifaces->mirror->mpls);
}

static void give_iface(struct ifaces *ifaces, struct interface *one)
{
	struct iface_verdict found;

	decide(ifaces, one, &found);
	const bool may_be = !found.iface.is_bridge || found.iface.port != IFACE_NONE;
	if (found.is_ours && one->id == IFACE_NONE && may_be) {
		give_id(ifaces, one, &found);
		queues_id_changed(ifaces, one);
	}
	if (one->id != IFACE_NONE)
		tell_name(ifaces, one->id, one->iface.name);
	if (one->id != IFACE_NONE && set(ifaces, one->id, &found.iface))
		assign_take_back(ifaces, one);
	if (found.is_ours && one->id == IFACE_NONE)
		found.reasons |= 1u << REASON_NO_ID;
	one->reasons = found.reasons;
	tell_change(ifaces, one, &found.iface);
}

// A port without a TAP interface drops all received packets.
static void set_orphan(struct ifaces *ifaces, uint16_t port)
{
	const struct iface *old = fib_iface(ifaces->mirror->settings.fib, port);
	struct iface iface = {.mac = ifaces->taps.has[port].mac, .mtu = MTU_DEFAULT};

	if (old)
		iface = *old;
	iface.port = (uint8_t)port;
	iface.vrf = 0;
	iface.flags = IFACE_DOWN;
	set(ifaces, port, &iface);
}

static void give_ports(struct ifaces *ifaces)
{
	for (uint16_t port = 0; port < ifaces->mirror->settings.n_ports; port++) {
		struct interface *tap = taps_find(ifaces, port);

		if (tap)
			give_iface(ifaces, tap);
		else if (!ifaces->mirror->settings.is_removed[port])
			set_orphan(ifaces, port);
	}
}

static void give_bridges(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_bridge(one))
			give_iface(ifaces, one);
}

static void read_sysctls(struct ifaces *ifaces, struct interface *one)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	const char *name = one->iface.name;
	const uint8_t before = one->sysctls;

	one->sysctls = 0;
	one->sysctls_read = true;
	if (!ops->disables_ipv6 || !ops->disables_ipv6(ops->ops, name))
		one->sysctls |= SYSCTL_IPV6;
	if (one->sysctls_known && (one->sysctls ^ before) & SYSCTL_IPV6)
		ops->dump_again(ops->ops); // IPv6 next hops die and revive without notifications
	one->sysctls_known = true;
	one->mtu6 = ops->mtu6 ? ops->mtu6(ops->ops, name) : 0;
	one->tcx = ops->tcx ? ops->tcx(ops->ops, one->ifindex) : 0;
	one->path_mtu = tunnels_path_mtu(ifaces, one);
	if (!ops->sends_redirects)
		return;
	if (ops->sends_redirects(ops->ops, name, 4))
		one->sysctls |= IFACE_REDIRECTS4;
	if (ops->sends_redirects(ops->ops, name, 6))
		one->sysctls |= IFACE_REDIRECTS6;
}

void ifaces_poll(struct ifaces *ifaces)
{
	const unsigned end = ifaces->ids.end;

	for (unsigned tries = 0, n = 0; tries < end && n < READS_A_POLL; tries++) {
		ifaces->polled = (uint16_t)((ifaces->polled + 1) % end);
		int ifindex = ifaces->ids.ifindex[ifaces->polled];
		struct interface *one = ifindex ? interfaces_find(&ifaces->all, ifindex) : NULL;

		if (!one || !one->sysctls_read)
			continue;
		uint8_t before = one->sysctls, tcx_before = one->tcx;
		unsigned mtu6_before = one->mtu6, path_before = one->path_mtu;
		read_sysctls(ifaces, one);
		ifaces->is_dirty |= one->sysctls != before || one->mtu6 != mtu6_before ||
		                    one->tcx != tcx_before || one->path_mtu != path_before;
		n++;
	}
	foreign_poll(ifaces);
	tunnels_poll(ifaces);
}

// For interfaces that may be published to workers. Returns true if some are still to be read.
static bool read_all_sysctls(struct ifaces *ifaces)
{
	const size_t most = MAX_OF(READS_A_FLUSH, ifaces->all.by_index.n / READS_SHARE);
	struct iface_verdict found;
	size_t n = 0;

	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		if (one->sysctls_read || !one->is_known)
			continue;
		decide(ifaces, one, &found);
		if (!found.is_ours && strcmp(one->iface.kind, "macvlan") != 0)
			continue;
		if (n++ == most)
			return true;
		read_sysctls(ifaces, one);
	}
	return false;
}

// Interfaces whose list goes with their name are left to Linux first.
static void bury_filters(struct ifaces *ifaces)
{
	struct iface_verdict found;

	if (!ifaces->filters.n_graves)
		return;
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		if (one->id == IFACE_NONE)
			continue;
		decide(ifaces, one, &found);
		set(ifaces, one->id, &found.iface); // if not, give_iface takes the id back
	}
	filters_bury(ifaces);
}

// After the interfaces to which they may be bound.
static void give_tunnels(struct ifaces *ifaces)
{
	for (struct interface *one = NULL;
		ifaces->tunnels.n_devices && (one = interfaces_next(&ifaces->all, one));)
		if (one->iface.tunnel.is_tunnel)
			give_iface(ifaces, one);
}

void ifaces_flush(struct ifaces *ifaces)
{
	if (!ifaces->is_dirty)
		return;
	ifaces->is_dirty = read_all_sysctls(ifaces);
	ifaces->judged++;
	foreign_check(ifaces);
	check_above(ifaces);
	vrfs_follow(ifaces);
	taps_follow(ifaces);
	tunnels_check(ifaces);
	queues_check(ifaces);
	take_back_ids(ifaces);
	bury_filters(ifaces);
	give_ports(ifaces); // the fib requires ports and bridges before VLANs on them
	give_bridges(ifaces);
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (!one->iface.tunnel.is_tunnel)
			give_iface(ifaces, one);
	give_tunnels(ifaces);
	taps_follow_filters(ifaces);
}

// Ids that nothing has any more are free for all.
static void give_up_kept(struct ifaces *ifaces)
{
	struct iface_ids *ids = &ifaces->ids;

	for (unsigned id = ids->n_ports; ids->n_kept && id < ids->end; id++)
		if (iface_ids_keeps(ids, id) && !kept_name(ifaces, id))
			iface_ids_give_up(ids, id, false);
}

bool ifaces_settled(struct ifaces *ifaces)
{
	give_up_kept(ifaces);
	ifaces->is_dirty |= iface_ids_settled(&ifaces->ids);
	vrfs_settled(ifaces);
	return ifaces->is_dirty;
}

// State of each fib interface id.

// ID_KEPT: something else, such as flows, has it for an interface of its name, which gets it back.
enum { ID_FREE, ID_USED, ID_RESTS, ID_RESTS_KEPT, ID_KEPT };

void iface_ids_open(struct iface_ids *ids, unsigned n_ports)
{
	*ids = (struct iface_ids){.n_ports = n_ports, .next = n_ports, .end = n_ports};
	memset(ids->state, ID_USED, n_ports);
}

uint16_t iface_ids_take(struct iface_ids *ids, int ifindex)
{
	for (unsigned tries = ids->n_ports; tries < IFACE_MAX; tries++) {
		unsigned id = ids->next;

		ids->next = id + 1 < IFACE_MAX ? id + 1 : ids->n_ports;
		if (ids->state[id] != ID_FREE)
			continue;
		ids->state[id] = ID_USED;
		ids->ifindex[id] = ifindex;
		ids->end = MAX_OF(ids->end, id + 1);
		return (uint16_t)id;
	}
	ids->lacked = true;
	return IFACE_NONE;
}

bool iface_ids_keeps(const struct iface_ids *ids, uint16_t id)
{
	return ids->state[id] == ID_KEPT || ids->state[id] == ID_RESTS_KEPT;
}

uint16_t iface_ids_take_kept(struct iface_ids *ids, uint16_t id, int ifindex)
{
	if (ids->state[id] != ID_KEPT) {
		ids->lacked = true; // it does not rest for long
		return IFACE_NONE;
	}
	ids->state[id] = ID_USED;
	ids->ifindex[id] = ifindex;
	ids->n_kept--;
	return id;
}

void iface_ids_give_up(struct iface_ids *ids, uint16_t id, bool is_kept)
{
	ids->ifindex[id] = 0;
	if (id < ids->n_ports)
		return;
	ids->n_kept -= iface_ids_keeps(ids, id);
	ids->n_kept += is_kept;
	ids->state[id] = is_kept ? ID_RESTS_KEPT : ID_RESTS;
}

bool iface_ids_settled(struct iface_ids *ids)
{
	bool were_lacked = false;

	for (unsigned id = ids->n_ports; id < ids->end; id++)
		if (ids->state[id] == ID_RESTS || ids->state[id] == ID_RESTS_KEPT) {
			ids->state[id] = ids->state[id] == ID_RESTS ? ID_FREE : ID_KEPT;
			were_lacked = ids->lacked;
		}
	ids->lacked &= !were_lacked;
	return were_lacked;
}
