// Tables of VRF devices and their ids. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/log.h"
#include "netlink/mirror_inside.h"

#include <errno.h>
#include <string.h>

enum { TABLE_DEFAULT = 253, TABLE_MAIN = 254, TABLE_LOCAL = 255 };

static bool is_vrf(const struct interface *one)
{
	return one->is_known && !strcmp(one->iface.kind, "vrf") && one->iface.vrf_table;
}

uint8_t ifaces_vrf_of_table(const struct mirror *mirror, uint32_t table)
{
	const struct vrfs *vrfs = &mirror->ifaces->vrfs;

	if (table >= TABLE_DEFAULT && table <= TABLE_LOCAL)
		return 0;
	for (unsigned id = 1; id < FIB_MAX_VRFS; id++)
		if (vrfs->table[id] == table && !vrfs->rests[id])
			return (uint8_t)id;
	return IFACES_NO_VRF;
}

const struct interface *vrfs_master(const struct ifaces *ifaces, const struct interface *one)
{
	const struct interface *master =
		one->iface.master ? interfaces_find(&ifaces->all, one->iface.master) : NULL;

	return master && is_vrf(master) ? master : NULL;
}

uint8_t vrfs_of_interface(const struct ifaces *ifaces, const struct interface *one)
{
	const struct interface *master = is_vrf(one) ? one : vrfs_master(ifaces, one);

	return master ? ifaces_vrf_of_table(ifaces->mirror, master->iface.vrf_table) : 0;
}

static void open_one(struct ifaces *ifaces, uint32_t table)
{
	struct vrfs *vrfs = &ifaces->vrfs;
	struct error error;
	unsigned id = 1;

	while (id < FIB_MAX_VRFS && vrfs->table[id])
		id++;
	if (id == FIB_MAX_VRFS)
		return;
	if (fib_vrf_open(ifaces->mirror->settings.fib, (uint8_t)id, &error)) {
		if (vrfs->refused != table)
			log_warn("%s", error.text);
		vrfs->refused = table;
		return;
	}
	vrfs->table[id] = table;
	vrfs->wanted[id] = true;
	routes_vrf_changed(ifaces->mirror->routes, table);
}

void vrfs_follow(struct ifaces *ifaces)
{
	struct vrfs *vrfs = &ifaces->vrfs;

	memset(vrfs->wanted, 0, sizeof(vrfs->wanted));
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_vrf(one)) {
			uint8_t id = ifaces_vrf_of_table(ifaces->mirror, one->iface.vrf_table);

			if (id == IFACES_NO_VRF)
				open_one(ifaces, one->iface.vrf_table);
			else
				vrfs->wanted[id] = true;
		}
	for (unsigned id = 1; id < FIB_MAX_VRFS; id++)
		if (vrfs->table[id] && !vrfs->rests[id] && !vrfs->wanted[id]) {
			vrfs->rests[id] = true;
			routes_vrf_changed(ifaces->mirror->routes, vrfs->table[id]);
		}
}

void vrfs_settled(struct ifaces *ifaces)
{
	struct vrfs *vrfs = &ifaces->vrfs;

	for (unsigned id = 1; id < FIB_MAX_VRFS; id++)
		if (vrfs->rests[id]) {
			fib_vrf_close(ifaces->mirror->settings.fib, (uint8_t)id);
			vrfs->table[id] = 0;
			vrfs->rests[id] = false;
			ifaces->is_dirty = true; // there is space for one that was refused
		}
}

uint32_t ifaces_table_of_vrf(const struct mirror *mirror, uint8_t vrf)
{
	if (vrf == 0)
		return TABLE_MAIN;
	return vrf < FIB_MAX_VRFS ? mirror->ifaces->vrfs.table[vrf] : 0;
}

static const struct interface *device_of(const struct ifaces *ifaces, uint8_t vrf)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_vrf(one) && vrfs_of_interface(ifaces, one) == vrf)
			return one;
	return NULL;
}

const char *ifaces_vrf_name(const struct mirror *mirror, uint8_t vrf)
{
	const struct interface *device = vrf ? device_of(mirror->ifaces, vrf) : NULL;

	return device ? device->iface.name : NULL;
}

int ifaces_vrf_find(const struct mirror *mirror, const char *name)
{
	for (struct interface *one = NULL; (one = interfaces_next(&mirror->ifaces->all, one));)
		if (is_vrf(one) && !strcmp(one->iface.name, name)) {
			uint8_t vrf = vrfs_of_interface(mirror->ifaces, one);

			return vrf == IFACES_NO_VRF ? -ENOENT : vrf;
		}
	return -ENOENT;
}
