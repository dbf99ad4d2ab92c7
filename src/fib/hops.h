// Next hops: found by their key, identified to workers by id, reference-counted. Control thread.
#pragma once

#include "base/hash_table.h"
#include "fib/blocks.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <assert.h>

// Ids below HOP_WIDE fit into the leaves of IPv4 and are given first.
enum { HOP_WIDE = 1 << 15 };

struct hop {
	struct hash_node node; // by key
	struct fib_hop key;
	struct wire_mac mac;  // of the neighbour `via`; with labels: that of `plain`
	uint8_t is_neighbour; // its MAC was set by fib_neighbour_set
	uint8_t is_under;     // it may lead to the remote end of a tunnel
	uint8_t is_idle;      // in the list to be swept
	uint32_t next, prev;  // ids on the same interface, in no order; 0: none
	uint32_t n_routes;
	uint32_t n_holders; // references: routes, the neighbour, built-in routes, `held`
	uint32_t held;      // its number, if it is held (held.c)
	uint64_t counted_before;
	const struct fib_template *template; // the latest one; NULL: plain, or never resolved
	// Of a hop with labels: the same one without, whose MAC address it has. / Of that one:
	// those with labels, linked by the last two. 0: none.
	uint32_t plain;
	uint32_t labelled, next_labelled, prev_labelled;
};

struct rcu_defer;

struct groups;

struct hops {
	struct groups *groups;   // the groups behind hops of kind FIB_GROUP
	struct rcu_defer *defer; // for what hops leave behind
	struct blocks templates; // headers of hops, see template.h
	const struct iface_table *ifaces;
	struct fib_hop_entry *entry;  // what workers read
	struct fib_plain_hops *plain; // summary of the first hops
	uint32_t *under;              // by interface: the hop to the remote end of a tunnel
	bool under_changed;           // one of those was rewritten
	bool may_widen;               // one of them is no longer plain: frame_max may rise
	uint16_t *frame_max4;         // frame limit for IPv4 packets
	uint16_t *oif;                // output interfaces
	struct hop *hop;
	struct hash_table table;
	uint32_t *on_iface; // by interface: its first hop, 0: none
	uint32_t *idle;     // ids that lost their last reference since the last sweep
	uint32_t *unused;   // ids below max_id that no worker can read any more; wide ones begin
	                    // at HOP_WIDE
	uint32_t n_idle, n_unused, n_unused_wide;
	uint32_t n_used;
	uint32_t max_id;
	uint32_t builtin[N_FIB_KINDS]; // ids of the built-in routes
	struct fib_count count;        // if counted is NULL, all start at 0
};

// An array with an element of `bytes` for each id, all 0. Only what is touched takes memory, in
// small pages for the narrow ids, so that few hops need little, and in huge ones for others.
void *hops_alloc_by_id(size_t bytes);
void hops_free_by_id(void *array, size_t bytes);
int hops_open(struct hops *hops);
void hops_close(struct hops *hops);
// Clears the fields that this kind of hop does not use, so that equal hops are equal bytes. It has
// at most FIB_MAX_PUSHED labels.
void hops_normalise(struct fib_hop *hop);
// The verdict of packets without a route (hop id 0).
void hops_set_no_route(struct hops *hops, uint8_t verdict);
// Returns the id of a hop, 0: there is none.
uint32_t hops_find(const struct hops *hops, const struct fib_hop *hop);
// Returns the id of a hop, created (normalised) if necessary, with one more reference; 0: no id is
// left. A hop with labels has a reference to the one without.
uint32_t hops_acquire(struct hops *hops, const struct fib_hop *hop);
void hops_release(struct hops *hops, uint32_t id);
// Removes hops without references; their ids are returned by hops_reuse after a grace period.
void hops_sweep(struct hops *hops);
void hops_reuse(struct hops *hops, uint32_t id);
// The MTU for packets of a family (as iface_mtu) to a neighbour; 0: the hop leads to none, or not
// yet to an interface.
uint16_t hops_mtu(const struct hops *hops, uint32_t id, uint8_t family);
// Rewrites what workers read of a hop, and of those that are the same but for labels.
void hops_rewrite(struct hops *hops, uint32_t id);
// Same, of all hops on an interface. If its port changes or if its header gets or loses what is
// more than MACs, its hops must have been unresolved for a grace period (struct fib_hop_entry).
void hops_rewrite_iface(struct hops *hops, uint16_t iface);
