// All neighbours known to the kernel; those that are usable and on our interfaces are in the fib.
// Internal to the mirror. Control thread.
#pragma once

#include "netlink/mirror.h"

struct neighbours;
int neighbours_open(struct neighbours **out, struct mirror *mirror, struct error *error);
void neighbours_close(struct neighbours *neighbours);

void neighbours_event(struct neighbours *neighbours, const struct event *event); // EVENT_NEIGHBOUR
void neighbours_dump_begins(struct neighbours *neighbours);
void neighbours_dump_ends(struct neighbours *neighbours);
void neighbours_flush(struct neighbours *neighbours);

// Called by ifaces: the interface has a new fib interface id (all its neighbours are re-evaluated
// at the next flush), or was removed with all its neighbours.
void neighbours_iface_changed(struct neighbours *neighbours, int ifindex);
void neighbours_iface_gone(struct neighbours *neighbours, int ifindex);
void neighbours_unsupported(const struct neighbours *neighbours,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
void neighbours_info(const struct neighbours *neighbours,
	struct netlink_info *out); // fills in its fields

// One neighbour as last reported, for neighbour refresh.
struct neighbour {
	int ifindex;
	struct wire_addr addr;
	struct wire_mac mac; // zero: none
	uint16_t iface;      // its interface in the fib; FIB_NO_IFACE: not in the fib
	uint16_t state;      // NUD_*
	uint8_t flags;       // NTF_*
	uint8_t protocol;    // NDA_PROTOCOL: who created it
	uint32_t ext_flags;  // NTF_EXT_*
};
// Returns false if the kernel has not reported it.
bool neighbours_find(const struct neighbours *neighbours, int ifindex, const struct wire_addr *addr,
	struct neighbour *out);
// Iterates over all neighbours; *at starts at 0. Entries added or removed meanwhile may be missed
// or returned twice. Returns false at the end, with *at reset to 0. (To find the gateways used by
// routes, iterate with fib_hop_info: a FIB_VIA hop with routes gives the interface (ifaces_ifindex)
// and the address.)
bool neighbours_next(const struct neighbours *neighbours, uint32_t *at, struct neighbour *out);
