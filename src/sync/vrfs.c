// Tables of VRF devices and their ids. Control thread.
#include "sync/vrfs.h"

#include "base/log.h"
#include "sync/links_inside.h"
#include "sync/routes.h"

#include <errno.h>
#include <string.h>

enum { TABLE_DEFAULT = 253, TABLE_MAIN = 254, TABLE_LOCAL = 255 };

static bool is_vrf(const struct interface *one)
{
	return one->is_known && !strcmp(one->link.kind, "vrf") && one->link.vrf_table;
}

uint8_t links_vrf_of_table(const struct mirror *mirror, uint32_t table)
{
	const struct vrfs *vrfs = &mirror->links->vrfs;

	if (table >= TABLE_DEFAULT && table <= TABLE_LOCAL)
		return 0;
	for (unsigned id = 1; id < FIB_MAX_VRFS; id++)
		if (vrfs->table[id] == table && !vrfs->rests[id])
			return (uint8_t)id;
	return LINKS_NO_VRF;
}

const struct interface *vrfs_master(const struct links *links, const struct interface *one)
{
	const struct interface *master =
		one->link.master ? interfaces_find(&links->all, one->link.master) : NULL;

	return master && is_vrf(master) ? master : NULL;
}

uint8_t vrfs_of_interface(const struct links *links, const struct interface *one)
{
	const struct interface *master = is_vrf(one) ? one : vrfs_master(links, one);

	return master ? links_vrf_of_table(links->mirror, master->link.vrf_table) : 0;
}

static void open_one(struct links *links, uint32_t table)
{
	struct vrfs *vrfs = &links->vrfs;
	struct complaint why;
	unsigned id = 1;

	while (id < FIB_MAX_VRFS && vrfs->table[id])
		id++;
	if (id == FIB_MAX_VRFS)
		return;
	if (fib_vrf_open(links->mirror->settings.fib, (uint8_t)id, &why)) {
		if (vrfs->refused != table)
			log_warn("%s", why.text);
		vrfs->refused = table;
		return;
	}
	vrfs->table[id] = table;
	vrfs->wanted[id] = true;
	routes_vrf_changed(links->mirror->routes, table);
}

void vrfs_follow(struct links *links)
{
	struct vrfs *vrfs = &links->vrfs;

	memset(vrfs->wanted, 0, sizeof(vrfs->wanted));
	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));)
		if (is_vrf(one)) {
			uint8_t id = links_vrf_of_table(links->mirror, one->link.vrf_table);

			if (id == LINKS_NO_VRF)
				open_one(links, one->link.vrf_table);
			else
				vrfs->wanted[id] = true;
		}
	for (unsigned id = 1; id < FIB_MAX_VRFS; id++)
		if (vrfs->table[id] && !vrfs->rests[id] && !vrfs->wanted[id]) {
			vrfs->rests[id] = true;
			routes_vrf_changed(links->mirror->routes, vrfs->table[id]);
		}
}

void vrfs_settled(struct links *links)
{
	struct vrfs *vrfs = &links->vrfs;

	for (unsigned id = 1; id < FIB_MAX_VRFS; id++)
		if (vrfs->rests[id]) {
			fib_vrf_close(links->mirror->settings.fib, (uint8_t)id);
			vrfs->table[id] = 0;
			vrfs->rests[id] = false;
			links->is_dirty = true; // there is room for one that had none
		}
}

uint32_t links_table_of_vrf(const struct mirror *mirror, uint8_t vrf)
{
	if (vrf == 0)
		return TABLE_MAIN;
	return vrf < FIB_MAX_VRFS ? mirror->links->vrfs.table[vrf] : 0;
}

static const struct interface *device_of(const struct links *links, uint8_t vrf)
{
	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));)
		if (is_vrf(one) && vrfs_of_interface(links, one) == vrf)
			return one;
	return NULL;
}

const char *links_vrf_name(const struct mirror *mirror, uint8_t vrf)
{
	const struct interface *device = vrf ? device_of(mirror->links, vrf) : NULL;

	return device ? device->link.name : NULL;
}

int links_vrf_find(const struct mirror *mirror, const char *name)
{
	for (struct interface *one = NULL; (one = interfaces_next(&mirror->links->all, one));)
		if (is_vrf(one) && !strcmp(one->link.name, name)) {
			uint8_t vrf = vrfs_of_interface(mirror->links, one);

			return vrf == LINKS_NO_VRF ? -ENOENT : vrf;
		}
	return -ENOENT;
}
