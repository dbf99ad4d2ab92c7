// What the files of links share. Control thread.
#pragma once

#include "netlink/addresses.h"
#include "netlink/foreign.h"
#include "netlink/iface_ids.h"
#include "netlink/interfaces.h"
#include "netlink/taps.h"
#include "netlink/vrfs.h"

struct ifaces {
	struct mirror *mirror;
	struct interfaces all;
	struct interface_conf conf_all[2]; // of "all": IPv4, IPv6
	struct addresses addresses;
	struct foreign foreign;
	struct vrfs vrfs;
	struct iface_ids ids;
	struct taps taps;
	uint32_t dump;   // counts dumps: what the newest did not name is gone
	uint16_t polled; // the link whose sysctls were read last
	bool is_dirty;   // something has changed that judgements depend on
};

// Tells routes when what they know of the interface is no longer so. False: it is.
bool ifaces_tell(struct ifaces *ifaces, struct interface *one);
// All that is known of an interface goes.
void ifaces_forget(struct ifaces *ifaces, struct interface *one);
