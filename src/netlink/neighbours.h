// Neighbours of all interfaces as Linux has them; those that are usable, on links of ours, stand in
// the fib. Inside the mirror. Control thread.
#pragma once

#include "netlink/mirror.h"

struct neighbours;
int neighbours_open(struct neighbours **out, struct mirror *mirror, struct error *error);
void neighbours_close(struct neighbours *neighbours);

void neighbours_event(struct neighbours *neighbours, const struct event *event); // EVENT_NEIGHBOUR
void neighbours_dump_begins(struct neighbours *neighbours);
void neighbours_dump_ends(struct neighbours *neighbours);
void neighbours_flush(struct neighbours *neighbours);

// Told by links: the interface has another link id (at the next flush all its neighbours are looked
// at), or is gone with all its neighbours.
void neighbours_iface_changed(struct neighbours *neighbours, int ifindex);
void neighbours_iface_gone(struct neighbours *neighbours, int ifindex);
void neighbours_unsupported(const struct neighbours *neighbours,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);
void neighbours_info(const struct neighbours *neighbours, struct netlink_info *out); // its fields

// One neighbour as it was told last, for those who keep it alive.
struct neighbour {
	int ifindex;
	struct wire_addr addr;
	struct wire_mac mac; // zero: none
	uint16_t iface;      // where it stands in the fib; FIB_NO_IFACE: it does not
	uint16_t state;      // NUD_*
	uint8_t flags;       // NTF_*
	uint8_t protocol;    // NDA_PROTOCOL: who made it
	uint32_t ext_flags;  // NTF_EXT_*
};
// False: Linux has not told of it.
bool neighbours_find(const struct neighbours *neighbours, int ifindex, const struct wire_addr *addr,
	struct neighbour *out);
// A walk over all; *at starts at 0. What comes or goes meanwhile may be missed or met twice. False:
// at the end, and *at is 0 again. (To find the gateways that routes use, walk fib_hop_info: a
// FIB_VIA hop with routes names the link (ifaces_ifindex) and the address.)
bool neighbours_next(const struct neighbours *neighbours, uint32_t *at, struct neighbour *out);
