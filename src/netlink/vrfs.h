// VRF devices: their tables get an id in the fib, 1 to 63. Inside links. Control thread.
#pragma once

#include "netlink/interfaces.h"

struct vrfs {
	uint32_t table[FIB_MAX_VRFS]; // by id; 0: free
	bool rests[FIB_MAX_VRFS];     // given up; its fib table is open until routes have left it
	bool wanted[FIB_MAX_VRFS];    // while VRF devices are counted
	uint32_t refused;             // a table that the fib had no room for
};

struct ifaces;
// Opens tables of VRF devices that came, gives up those of devices that went; tells routes.
void vrfs_follow(struct ifaces *ifaces);
void vrfs_settled(struct ifaces *ifaces);
// By the master of the interface: 0 without one, IFACES_NO_VRF when workers have no such table.
uint8_t vrfs_of_interface(const struct ifaces *ifaces, const struct interface *one);
// The VRF device among its masters; NULL: none.
const struct interface *vrfs_master(const struct ifaces *ifaces, const struct interface *one);
