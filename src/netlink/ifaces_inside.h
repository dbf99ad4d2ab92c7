// Shared by the files of ifaces. Control thread.
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
	struct interface_conf conf_all[2]; // settings of "all": IPv4, IPv6
	struct addresses addresses;
	struct foreign foreign;
	struct vrfs vrfs;
	struct iface_ids ids;
	struct taps taps;
	uint32_t dump;   // dump counter: entries not seen in the latest dump are swept
	uint16_t polled; // the fib interface whose sysctls were read last
	bool is_dirty;   // an input of the verdict has changed
};

// Notifies routes if the state they use has changed. Returns false if it has not.
bool ifaces_tell(struct ifaces *ifaces, struct interface *one);
// Drops all state of an interface.
void ifaces_forget(struct ifaces *ifaces, struct interface *one);
