// Next hops: found by what they are, known to workers by id, counted by who uses them. Control
// thread.
#pragma once

#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <assert.h>

struct hop {
	struct fib_hop key;
	struct wire_mac mac;  // of the neighbour `via`
	uint8_t is_neighbour; // fib_neighbour_set has told its MAC
	uint8_t is_idle;      // in the list of those to be swept
	uint16_t chain;       // next id with the same hash
	uint32_t n_routes;
	uint32_t n_holders; // routes, the neighbour, built-in routes
	uint64_t counted_before;
};
static_assert(sizeof(struct fib_hop) == 20, "compared as bytes: no padding");

enum { HOPS_BUCKETS = 1 << 15 };

struct defer;

struct groups;
struct fib_ifaces;

struct hops {
	struct groups *groups; // what hops of kind FIB_GROUP stand for
	struct fib_ifaces *ifaces;
	struct fib_hop_entry *entry;  // what workers read
	struct fib_plain_hops *plain; // the first ones in brief
	bool may_widen;               // one of them is plain no more: the limit may rise
	struct fib_tags *tags;        // and of those on links with tags
	uint16_t *frame_max4;         // and of packets of IPv4
	struct hop *hop;
	uint16_t *bucket;
	uint16_t *idle;   // ids that lost their last holder since the last sweep
	uint16_t *unused; // ids below max_id that nobody can know any more
	uint32_t n_idle, n_unused;
	uint32_t n_used;
	uint16_t max_id;
	uint16_t builtin[N_FIB_KINDS]; // ids of the built-in routes
	struct fib_count count;        // counted NULL: all start at 0
};

int hops_open(struct hops *hops);
void hops_close(struct hops *hops);
// Clears the fields that this kind of hop has no use for, so that equal hops are equal bytes.
void hops_normalise(struct fib_hop *hop);
// Id of a hop, 0: none such.
uint16_t hops_find(const struct hops *hops, const struct fib_hop *hop);
// The same, made if need be (normalised), with one more holder; 0: no id is left.
uint16_t hops_acquire(struct hops *hops, const struct fib_hop *hop);
void hops_release(struct hops *hops, uint16_t id);
// Forgets hops without holders; their ids come back by hops_reuse once no worker can know them.
void hops_sweep(struct hops *hops, struct defer *defer);
void hops_reuse(struct hops *hops, uint16_t id);
// Writes anew what workers read of a hop; / of all hops on a link. While workers can see a hop's
// id, its port and tags stay what they are as long as it is resolved.
void hops_rewrite(struct hops *hops, uint16_t id);
void hops_rewrite_iface(struct hops *hops, uint16_t iface);
