// What the files of links share. Control thread.
#pragma once

#include "sync/addresses.h"
#include "sync/foreign.h"
#include "sync/interfaces.h"
#include "sync/link_ids.h"
#include "sync/twins.h"
#include "sync/vrfs.h"

struct links {
	struct mirror *mirror;
	struct interfaces all;
	struct interface_conf conf_all[2]; // of "all": IPv4, IPv6
	struct addresses addresses;
	struct foreign foreign;
	struct vrfs vrfs;
	struct link_ids ids;
	struct twins twins;
	uint32_t dump;   // counts dumps: what the newest did not name is gone
	uint16_t tended; // the link whose sysctls were read last
	bool is_dirty;   // something has changed that judgements depend on
};

// Tells routes when what they know of the interface is no longer so. False: it is.
bool links_tell(struct links *links, struct interface *one);
// All that is known of an interface goes.
void links_forget(struct links *links, struct interface *one);
