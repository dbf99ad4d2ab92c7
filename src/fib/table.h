// A complete forwarding table, and what the files that change it share; internal to this module.
// Control thread; workers read `view`.
#pragma once

#include "fib/groups.h"
#include "fib/held.h"
#include "fib/hops.h"
#include "fib/labels.h"
#include "fib/lookup.h"
#include "fib/publish.h"
#include "fib/rib.h"
#include "fib/sources.h"
#include "fib/tunnels.h"
#include "fib/vxlan.h"
#include "rcu/rcu.h"

// What is freed after a grace period.
enum deferred_kind {
	DEFERRED_PAGE4,
	DEFERRED_LEAF4,
	DEFERRED_TAIL4,
	DEFERRED_LEAF6,
	DEFERRED_LINE6,
	DEFERRED_WIDE6,
	DEFERRED_TEMPLATE,
	DEFERRED_HOP,
	DEFERRED_HELD,
	DEFERRED_VTEP
};

struct fib {
	struct fib_view view;
	uint64_t open_vrfs[FIB_MAX_VRFS / 64]; // a bit for each
	uint32_t n_vrfs;                       // open ones
	bool follows_linux; // without the built-in routes that Linux does not have
	struct sources sources;
	struct rib rib;
	struct iface_table ifaces;
	struct hops hops;
	struct groups groups;
	struct held held;
	struct tunnels tunnels;
	struct vxlans vxlans;
	struct labels labels;
	struct publish4 publish4;
	struct publish6 publish6;
	struct rcu_defer defer;
	uint32_t n_routes[RIB_TREES];
	uint32_t n_all_routes;
	uint32_t n_neighbours;
	const struct lookups *lookups; // the best ones for this machine
	bool has_huge_pages;
	uint32_t n_untidy;         // IPv4 changes since the last compaction
	uint32_t n_untidy_seen;    // its value when fib_tidy was last called
	uint32_t n_quiet;          // calls of fib_tidy without a change in between
	struct fib_view *vrf_view; // by VRF, from when it is opened first
};

// --- change.c: shared by changes of routes and of neighbours

// Whether a route or a label may have this hop.
bool change_hop_is_sound(const struct hops *hops, const struct fib_hop *hop);
// Acquires a reference to a hop and returns its id, usable in leaves; 0: none is left, even after a
// grace period.
uint32_t change_acquire_hop(struct fib *fib, const struct fib_hop *hop);
// Updates the workers' copy from the rib for these prefixes (sorted), then frees hops without
// references.
void change_publish(struct fib *fib, const struct edit *edits, size_t n);
// Deletes all routes of a tree except built-in ones.
void change_clear(struct fib *fib, uint16_t tree);

// --- neighbours.c

// Moves the hosts of all neighbours on an interface to the table of another VRF, which becomes the
// interface's. 0, or -ENOSPC and nothing is changed.
int hosts_follow_iface(struct fib *fib, uint16_t iface, uint16_t vrf);

// --- vrfs.c: VRFs are further tables in one struct fib

// Whether the VRF is open.
static inline bool vrf_exists(const struct fib *fib, uint16_t vrf)
{
	return vrf < FIB_MAX_VRFS && fib->open_vrfs[vrf / 64] >> vrf % 64 & 1;
}

// Opens the main one. 0 or -ENOMEM.
int vrf_open_main(struct fib *fib);
// The view of a VRF that workers use; it has hop 0 for all addresses when the VRF is closed. NULL:
// it was never open.
const struct fib_view *vrf_view_of(const struct fib *fib, uint16_t vrf);
