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

void assign_take_back(struct ifaces *ifaces, struct interface *one)
{
	struct fib *fib = ifaces->mirror->settings.fib;
	uint16_t id = one->id;

	if (id == IFACE_NONE)
		return;
	one->id = IFACE_NONE;
	iface_ids_give_up(&ifaces->ids, id);
	if (id >= ifaces->ids.n_ports)
		fib_iface_delete(fib, id);
	tell_name(ifaces, id, NULL);
}

static bool same_macs(const struct iface *a, const struct iface *b)
{
	return wire_mac_equal(&a->mac, &b->mac) && a->n_macs == b->n_macs &&
	       !memcmp(a->macs, b->macs, a->n_macs * sizeof(a->macs[0]));
}

static bool same_tags(const struct iface *a, const struct iface *b)
{
	bool same = a->port == b->port && a->n_tags == b->n_tags;

	for (unsigned i = 0; same && i < a->n_tags; i++)
		same = a->tag[i].tpid == b->tag[i].tpid && a->tag[i].vid == b->tag[i].vid;
	return same;
}

static bool same_iface(const struct iface *a, const struct iface *b)
{
	return same_tags(a, b) && same_macs(a, b) && a->vrf == b->vrf && a->flags == b->flags &&
	       a->rpf4 == b->rpf4 && a->mtu == b->mtu && a->mtu6 == b->mtu6 &&
	       a->has_peer == b->has_peer;
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

static void give_id(struct ifaces *ifaces, struct interface *one, const struct iface_verdict *found)
{
	if (found->iface.n_tags) {
		one->id = iface_ids_take(&ifaces->ids, one->ifindex);
	} else {
		one->id = found->iface.port;
		ifaces->ids.ifindex[one->id] = one->ifindex;
	}
}

// Logs changes of the VRF or the MTU of an interface.
static void tell_change(struct ifaces *ifaces, struct interface *one, const struct iface *now)
{
	bool is_same = one->vrf == now->vrf && one->mtu == now->mtu;

	one->vrf = now->vrf;
	one->mtu = now->mtu;
	if (!ifaces_tell(ifaces, one) && !is_same)
		routes_iface_changed(ifaces->mirror->routes, one->ifindex);
}

static void give_iface(struct ifaces *ifaces, struct interface *one)
{
	struct iface_verdict found;

	decide(ifaces, one, &found);
	if (found.is_ours && one->id == IFACE_NONE)
		give_id(ifaces, one, &found);
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
		unsigned mtu6_before = one->mtu6;
		read_sysctls(ifaces, one);
		ifaces->is_dirty |= one->sysctls != before || one->mtu6 != mtu6_before ||
		                    one->tcx != tcx_before;
		n++;
	}
	foreign_poll(ifaces);
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

void ifaces_flush(struct ifaces *ifaces)
{
	if (!ifaces->is_dirty)
		return;
	ifaces->is_dirty = read_all_sysctls(ifaces);
	foreign_check(ifaces);
	check_above(ifaces);
	vrfs_follow(ifaces);
	taps_follow(ifaces);
	take_back_ids(ifaces);
	give_ports(ifaces); // the fib requires the port before VLANs on it
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		give_iface(ifaces, one);
	taps_follow_filters(ifaces);
}

bool ifaces_settled(struct ifaces *ifaces)
{
	ifaces->is_dirty |= iface_ids_settled(&ifaces->ids);
	vrfs_settled(ifaces);
	return ifaces->is_dirty;
}

// State of each fib interface id.

enum { ID_FREE, ID_USED, ID_RESTS };

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

void iface_ids_give_up(struct iface_ids *ids, uint16_t id)
{
	ids->ifindex[id] = 0;
	if (id >= ids->n_ports)
		ids->state[id] = ID_RESTS;
}

bool iface_ids_settled(struct iface_ids *ids)
{
	bool were_lacked = false;

	for (unsigned id = ids->n_ports; id < ids->end; id++)
		if (ids->state[id] == ID_RESTS) {
			ids->state[id] = ID_FREE;
			were_lacked = ids->lacked;
		}
	ids->lacked &= !were_lacked;
	return were_lacked;
}

// Tables of VRF devices and their ids.

enum { TABLE_DEFAULT = 253, TABLE_MAIN = 254, TABLE_LOCAL = 255 };

static bool is_vrf(const struct interface *one)
{
	return one->is_known && !strcmp(one->iface.kind, "vrf") && one->iface.vrf_table;
}

uint16_t ifaces_vrf_of_table(const struct mirror *mirror, uint32_t table)
{
	const struct vrfs *vrfs = &mirror->ifaces->vrfs;

	if (table >= TABLE_DEFAULT && table <= TABLE_LOCAL)
		return 0;
	for (uint16_t id = vrfs->of_hash[table % FIB_MAX_VRFS]; id; id = vrfs->chain[id])
		if (vrfs->table[id] == table && !vrfs->rests[id])
			return id;
	return IFACES_NO_VRF;
}

const struct interface *vrfs_master(const struct ifaces *ifaces, const struct interface *one)
{
	const struct interface *master =
		one->iface.master ? interfaces_find(&ifaces->all, one->iface.master) : NULL;

	return master && is_vrf(master) ? master : NULL;
}

uint16_t vrfs_of_interface(const struct ifaces *ifaces, const struct interface *one)
{
	const struct interface *master = is_vrf(one) ? one : vrfs_master(ifaces, one);

	return master ? ifaces_vrf_of_table(ifaces->mirror, master->iface.vrf_table) : 0;
}

static void add_vrf(struct vrfs *vrfs, uint16_t id, uint32_t table)
{
	uint16_t *first = &vrfs->of_hash[table % FIB_MAX_VRFS];

	vrfs->table[id] = table;
	vrfs->chain[id] = *first;
	*first = id;
	vrfs->end = MAX_OF(vrfs->end, id + 1u);
}

static void remove_vrf(struct vrfs *vrfs, uint16_t id)
{
	uint16_t *at = &vrfs->of_hash[vrfs->table[id] % FIB_MAX_VRFS];

	while (*at != id)
		at = &vrfs->chain[*at];
	*at = vrfs->chain[id];
	vrfs->table[id] = 0;
	vrfs->rests[id] = false;
}

// The id for a new VRF: its former one if it is still used elsewhere. 0: there is none now.
static uint16_t choose_id(const struct ifaces *ifaces, const char *name)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;
	const struct vrfs *vrfs = &ifaces->vrfs;
	uint16_t free_id = 0;

	for (uint16_t id = 1; id < FIB_MAX_VRFS; id++) {
		const bool is_used =
			settings->is_vrf_used && settings->is_vrf_used(settings->arg, id);
		const bool is_open = vrfs->table[id] && !vrfs->rests[id];
		if (is_used && !is_open && !strcmp(vrfs->name[id], name))
			return vrfs->rests[id] ? 0 : id; // it does not rest for long
		if (!free_id && !is_used && !vrfs->table[id])
			free_id = id;
	}
	return free_id;
}

static void note_device(struct vrfs *vrfs, uint16_t id, const struct interface *device)
{
	vrfs->device[id] = device->ifindex;
	vrfs->wanted[id] = true;
	snprintf(vrfs->name[id], sizeof(vrfs->name[id]), "%s", device->iface.name);
}

static void open_one(struct ifaces *ifaces, const struct interface *device)
{
	const uint32_t table = device->iface.vrf_table;
	struct vrfs *vrfs = &ifaces->vrfs;
	struct error error;
	const uint16_t id = choose_id(ifaces, device->iface.name);

	if (!id)
		return;
	if (fib_vrf_open(ifaces->mirror->settings.fib, id, &error)) {
		if (vrfs->refused != table)
			log_warn("%s", error.text);
		vrfs->refused = table;
		return;
	}
	add_vrf(vrfs, id, table);
	note_device(vrfs, id, device);
	routes_vrf_changed(ifaces->mirror->routes, table);
}

void vrfs_follow(struct ifaces *ifaces)
{
	struct vrfs *vrfs = &ifaces->vrfs;

	memset(vrfs->wanted, 0, sizeof(vrfs->wanted));
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_vrf(one)) {
			uint16_t id = ifaces_vrf_of_table(ifaces->mirror, one->iface.vrf_table);

			if (id == IFACES_NO_VRF)
				open_one(ifaces, one);
			else
				note_device(vrfs, id, one);
		}
	for (unsigned id = 1; id < vrfs->end; id++)
		if (vrfs->table[id] && !vrfs->rests[id] && !vrfs->wanted[id]) {
			vrfs->rests[id] = true;
			routes_vrf_changed(ifaces->mirror->routes, vrfs->table[id]);
		}
}

void vrfs_settled(struct ifaces *ifaces)
{
	struct vrfs *vrfs = &ifaces->vrfs;

	for (unsigned id = 1; id < vrfs->end; id++)
		if (vrfs->rests[id]) {
			fib_vrf_close(ifaces->mirror->settings.fib, id);
			remove_vrf(vrfs, id);
			ifaces->is_dirty = true; // there is space for one that was refused
		}
}

uint32_t ifaces_table_of_vrf(const struct mirror *mirror, uint16_t vrf)
{
	if (vrf == 0)
		return TABLE_MAIN;
	return vrf < FIB_MAX_VRFS ? mirror->ifaces->vrfs.table[vrf] : 0;
}

// Usually the device that was seen last, unless it was removed or got another table.
static const struct interface *device_of(const struct ifaces *ifaces, uint16_t vrf)
{
	const struct interface *device = interfaces_find(&ifaces->all, ifaces->vrfs.device[vrf]);

	if (device && is_vrf(device) && vrfs_of_interface(ifaces, device) == vrf)
		return device;
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_vrf(one) && vrfs_of_interface(ifaces, one) == vrf)
			return one;
	return NULL;
}

const char *ifaces_vrf_name(const struct mirror *mirror, uint16_t vrf)
{
	const bool is_used = vrf && vrf < FIB_MAX_VRFS && mirror->ifaces->vrfs.table[vrf];
	const struct interface *device = is_used ? device_of(mirror->ifaces, vrf) : NULL;

	return device ? device->iface.name : NULL;
}

int ifaces_vrf_find(const struct mirror *mirror, const char *name)
{
	for (struct interface *one = NULL; (one = interfaces_next(&mirror->ifaces->all, one));)
		if (is_vrf(one) && !strcmp(one->iface.name, name)) {
			uint16_t vrf = vrfs_of_interface(mirror->ifaces, one);

			return vrf == IFACES_NO_VRF ? -ENOENT : vrf;
		}
	return -ENOENT;
}
