// VXLAN devices of a table, and their remote ends (VTEPs), which follow the routes to their
// addresses. Control thread; workers read what vxlan_fast.h says.
#pragma once

#include "base/hash_table.h"
#include "fib/fib_fast.h"

struct fib;

struct vtep {
	struct hash_node node;        // by VRF and address
	struct fib_vtep_group *group; // NULL: it is none
	uint32_t n_holds;             // 0: not in use
};

struct vxlans {
	struct fib_overlay *overlay; // what workers read
	uint16_t *iface;             // by device; 0: there is none
	uint32_t n;                  // devices
	struct vtep *vtep;           // by number
	struct fib_vtep *shown;      // what workers read of them
	uint32_t *unused;            // numbers up to `max` that no worker can have any more
	uint32_t max, n_unused, n_vteps;
	struct hash_table table;
};

// 0 or -ENOMEM; in both cases it may be closed.
int vxlans_open(struct vxlans *vxlans);
void vxlans_close(struct vxlans *vxlans);
// Memory that workers read.
size_t vxlans_bytes(const struct vxlans *vxlans);
// An interface has other settings, or none, and is published already.
void vxlans_iface_changed(struct fib *fib, uint16_t iface);
// Looks up again by which hop remote ends are reached. Cheap without them.
void vteps_follow(struct fib *fib);
// A number that no worker can have any more.
void vteps_reuse(struct vxlans *vxlans, uint32_t number);
