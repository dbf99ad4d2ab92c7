// VRF devices: their tables get an id in the fib, 1 to 63. Internal to ifaces. Control thread.
#pragma once

#include "netlink/interfaces.h"

struct vrfs {
	uint32_t table[FIB_MAX_VRFS]; // by id; 0: free
	bool rests[FIB_MAX_VRFS];     // released; its fib table stays open until routes have been
	                              // removed from it
	bool wanted[FIB_MAX_VRFS];    // scratch: set while scanning VRF devices
	uint32_t refused;             // a table for which the fib had no space
};

struct ifaces;
// Opens tables of new VRF devices, closes those of removed devices and notifies routes.
void vrfs_follow(struct ifaces *ifaces);
void vrfs_settled(struct ifaces *ifaces);
// The VRF of the interface's master: 0 without one, IFACES_NO_VRF if workers have no such table.
uint8_t vrfs_of_interface(const struct ifaces *ifaces, const struct interface *one);
// The VRF device among its masters; NULL: none.
const struct interface *vrfs_master(const struct ifaces *ifaces, const struct interface *one);
