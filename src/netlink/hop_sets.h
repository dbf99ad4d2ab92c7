// Next-hop sets as reported by the kernel, and its next-hop objects. Each distinct set is stored
// once, however many routes share it, like the kernel's fib_info. Internal to routes. Control
// thread.
#pragma once

#include "base/hash_table.h"
#include "fib/fib.h"
#include "netlink/event.h"

// One next hop of a set.
struct hop_set_hop {
	struct wire_addr via; // family 0: on link
	bool has_encap;
	uint8_t n_labels; // MPLS, as in struct event_hop
	int16_t label_ttl;
	uint32_t label[EVENT_MAX_LABELS];
	bool is_onlink;
	bool is_dead; // not part of the key
	int ifindex;
	uint32_t weight;
};

// The key of a set. Compared bytewise, so clear it before filling it in.
struct hop_set_key {
	struct wire_addr prefsrc; // IPv4
	struct wire_addr src;     // IPv6: source-specific
	uint8_t src_len;
	uint8_t family; // address family of the routes
	uint8_t type;   // RTN_*
	uint8_t scope, protocol;
	bool has_too_many_hops;
	uint32_t table, metric; // set where the kernel does not share sets across tables or metrics
	uint32_t nh_id;         // if set, the hops are not stored here
	uint32_t mtu;
	uint32_t metrics; // IPv4: hash of all metrics, including the MTU
	uint16_t n_hops;
};

// Why a set is left to Linux.
enum hop_set_reason {
	HOP_SET_OK,
	HOP_SET_UNKNOWN_LINK,    // interface not reported by the kernel yet
	HOP_SET_UNKNOWN_NEXTHOP, // next-hop id not reported by the kernel yet
	HOP_SET_FOREIGN_LINK,    // interface is not one of our ports
	HOP_SET_ENCAP,
	HOP_SET_SOURCE,
	HOP_SET_TYPE,
	HOP_SET_MTU,
	HOP_SET_MANY,        // more next hops than fit in a group
	HOP_SET_MIXED,       // several next hops, one of them on link
	HOP_SET_HASH,        // several next hops, and a hash policy that workers do not support
	HOP_SET_FULL,        // table of hops or groups is full
	HOP_SET_TOS,         // from here on: reasons of a prefix, not of a set
	HOP_SET_UNDER_LOCAL, // covered by a broad local route
	HOP_SET_LAST_TABLE,  // found only in table "default"
	HOP_SET_SAME_METRIC, // several IPv6 routes with one metric that are not merged
	HOP_SET_LEAKED,      // on link in another VRF
	N_HOP_SET_REASONS
};

struct hop_set {
	struct hash_node node; // first: see hash_table.h
	struct hop_set_key key;
	uint32_t number;
	uint32_t first; // list of routes that use this set
	uint32_t n_routes;
	uint32_t batch;           // the fib_group batch in which `hop` was obtained
	uint32_t next_stale;      // link in the list of stale sets
	uint32_t cursor;          // if stale: the first route not yet updated in the fib
	uint32_t next_deferred;   // link in the list of sets waiting for space
	uint32_t next_of_nexthop; // link in the list of sets that use the same next-hop object
	int blame;                // ifindex that `reason` refers to, 0: none
	struct fib_hop hop;       // valid if resolved and usable
	uint8_t reason;           // enum hop_set_reason
	bool is_resolved;
	bool is_usable; // false: all next hops are dead, Linux falls back to the next route
	bool is_group;
	bool is_stale, is_deferred; // member of these lists
	struct hop_set_hop hops[];
};

enum { HOP_SET_MAX_HOPS = EVENT_MAX_HOPS };

struct hop_sets {
	struct hop_set **hop_set; // indexed by number; 0 is none
	struct hash_table by_key;
	uint32_t n;
	size_t capacity; // of hop_set and idle
	uint32_t free;   // list of freed numbers (linked in `idle`)
	uint32_t *idle;
	size_t bytes;
};

// A set to find or create: the key and its hops.
struct hop_set_request {
	struct hop_set_key key;
	struct hop_set_hop hops[HOP_SET_MAX_HOPS];
};

int hop_sets_open(struct hop_sets *hop_sets);
void hop_sets_close(struct hop_sets *hop_sets);
static inline struct hop_set *hop_sets_at(const struct hop_sets *hop_sets, uint32_t number)
{
	return hop_sets->hop_set[number];
}
// The number of the set that equals the request (ignoring is_dead), 0: none.
uint32_t hop_sets_find(const struct hop_sets *hop_sets, const struct hop_set_request *request);
// Same, creating it if needed; 0: out of memory.
uint32_t hop_sets_get(struct hop_sets *hop_sets, const struct hop_set_request *request);
// Scales the weights of the next hops of a group (in Linux up to 65536) to 1 to 255, the weights of
// the fib.
void hop_sets_scale_weights(uint32_t weight[], unsigned n);
// Frees a set that no route uses.
void hop_sets_free(struct hop_sets *hop_sets, uint32_t number);

// The kernel's next-hop objects, by id.

enum { NEXTHOPS_MAX_MEMBERS = EVENT_MAX_GROUP };

struct nexthop_member {
	uint32_t id;
	uint32_t weight;
};

struct nexthop {
	struct hash_node node; // first: see hash_table.h
	uint32_t id;
	uint32_t first_hop_set; // list of next-hop sets that refer to it
	uint32_t n_groups;      // number of groups that contain it
	uint8_t generation;
	bool is_known; // false: referenced by a set or a group, but not reported yet
	bool is_blackhole, is_group, is_resilient, is_fdb, has_too_many_members;
	uint64_t idle_ms, unbalanced_ms; // if resilient
	struct hop_set_hop hop;          // if not a group
	uint16_t n_members;
	struct nexthop_member *member; // owned
};

struct nexthops {
	struct hash_table by_id;
	uint32_t n_known;
	size_t bytes;
	bool is_short; // there was no memory for one of them, or for the members of a group
};

int nexthops_open(struct nexthops *nexthops);
void nexthops_close(struct nexthops *nexthops);
// NULL: never referenced. / Same, created (not known) if needed; NULL: out of memory.
struct nexthop *nexthops_find(const struct nexthops *nexthops, uint32_t id);
struct nexthop *nexthops_get(struct nexthops *nexthops, uint32_t id);
// Stores what was reported. 0, or -ENOMEM if there is no memory for all members: the object is then
// treated as having too many.
int nexthops_set(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *reported);
// Marks it unknown and removes it from the group counts of its members.
void nexthops_forget(struct nexthops *nexthops, struct nexthop *nexthop);
// Removes a member from a group. Returns true if it was the last one.
bool nexthops_leave(struct nexthops *nexthops, struct nexthop *group, uint32_t id);
// Frees it if it is neither referenced nor known.
void nexthops_release(struct nexthops *nexthops, struct nexthop *nexthop);
// The first object (after == NULL), or the one after `after`; NULL: at the end.
struct nexthop *nexthops_next(const struct nexthops *nexthops, const struct nexthop *after);
