// VRFs: which id of the fib the table of a VRF device has. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/bits.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static bool is_used(const struct ifaces *ifaces, uint16_t id)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	return settings->is_vrf_used && settings->is_vrf_used(settings->arg, id);
}

// The id for a new VRF: its former one if it is still used elsewhere. 0: there is none now.
static uint16_t choose_id(const struct ifaces *ifaces, const char *name)
{
	const struct vrfs *vrfs = &ifaces->vrfs;
	uint16_t free_id = 0;

	for (uint16_t id = 1; id < FIB_MAX_VRFS; id++) {
		const bool is_kept = is_used(ifaces, id);
		const bool is_open = vrfs->table[id] && !vrfs->rests[id];
		if (is_kept && !is_open && !strcmp(vrfs->name[id], name))
			return vrfs->rests[id] ? 0 : id; // it does not rest for long
		if (!free_id && !is_kept && !vrfs->table[id])
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
	mpls_ifaces_changed(ifaces->mirror->mpls);
}

// Whether something else has the id of a VRF of this name.
static bool is_name_used(const struct ifaces *ifaces, const char *name)
{
	const struct vrfs *vrfs = &ifaces->vrfs;

	for (uint16_t id = 1; id < vrfs->end; id++)
		if (!strcmp(vrfs->name[id], name) && is_used(ifaces, id))
			return true;
	return false;
}

// Whether the device of the id's table is the id's VRF: the same device, maybe with another name;
// or another one of its name; or nothing else has either of them.
static bool has_stayed(const struct ifaces *ifaces, uint16_t id, const struct interface *device)
{
	const struct vrfs *vrfs = &ifaces->vrfs;
	const char *name = device->iface.name;

	return vrfs->device[id] == device->ifindex || !strcmp(vrfs->name[id], name) ||
	       (!is_used(ifaces, id) && !is_name_used(ifaces, name));
}

static void note_devices(struct ifaces *ifaces)
{
	struct vrfs *vrfs = &ifaces->vrfs;

	memset(vrfs->wanted, 0, sizeof(vrfs->wanted));
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		const uint16_t id =
			is_vrf(one) ? ifaces_vrf_of_table(ifaces->mirror, one->iface.vrf_table)
				    : IFACES_NO_VRF;

		if (id != IFACES_NO_VRF && has_stayed(ifaces, id, one))
			note_device(vrfs, id, one);
	}
}

void vrfs_follow(struct ifaces *ifaces)
{
	struct vrfs *vrfs = &ifaces->vrfs;

	note_devices(ifaces);
	for (unsigned id = 1; id < vrfs->end; id++)
		if (vrfs->table[id] && !vrfs->rests[id] && !vrfs->wanted[id]) {
			vrfs->rests[id] = true;
			routes_vrf_changed(ifaces->mirror->routes, vrfs->table[id]);
			mpls_ifaces_changed(ifaces->mirror->mpls);
		}
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_vrf(one) &&
			ifaces_vrf_of_table(ifaces->mirror, one->iface.vrf_table) == IFACES_NO_VRF)
			open_one(ifaces, one);
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

uint16_t ifaces_vrf_of_device(const struct mirror *mirror, int ifindex)
{
	const struct interface *one = interfaces_find(&mirror->ifaces->all, ifindex);

	return one && is_vrf(one) ? vrfs_of_interface(mirror->ifaces, one) : IFACES_NO_VRF;
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
