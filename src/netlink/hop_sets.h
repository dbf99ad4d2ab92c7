// Ways: where routes lead, as Linux told it, each set of next hops kept once however many routes
// share it, as the kernel's own fib_info is. Inside routes. Control thread.
#pragma once

#include "fib/fib.h"
#include "netlink/event.h"

// One next hop of a way.
struct hop_set_hop {
	struct wire_addr via; // family 0: on link
	bool has_encap;
	bool is_onlink;
	bool is_dead; // not part of what makes ways equal
	int ifindex;
	uint32_t weight;
};

// What makes two ways the same. All bytes count: cleared before it is filled.
struct hop_set_key {
	struct wire_addr prefsrc; // IPv4
	struct wire_addr src;     // IPv6: source-specific
	uint8_t src_len;
	uint8_t family; // of the routes
	uint8_t type;   // RTN_*
	uint8_t scope, protocol;
	bool has_too_many_hops;
	uint32_t table, metric; // where the kernel keeps such ways apart by them
	uint32_t nh_id;         // then there are no hops here
	uint32_t mtu;
	uint32_t metrics; // IPv4: a hash of all, the MTU's among them
	uint16_t n_hops;
};

// Why a way is left to Linux.
enum hop_set_reason {
	HOP_SET_OK,
	HOP_SET_UNKNOWN_LINK,    // an interface that Linux has not told of
	HOP_SET_UNKNOWN_NEXTHOP, // an id that Linux has not told of
	HOP_SET_FOREIGN_LINK,    // an interface that is no port of ours
	HOP_SET_ENCAP,
	HOP_SET_SOURCE,
	HOP_SET_TYPE,
	HOP_SET_MTU,
	HOP_SET_MANY,        // more next hops than a group can hold
	HOP_SET_MIXED,       // several next hops of which one is on link
	HOP_SET_FULL,        // no room in the table of hops or groups
	HOP_SET_TOS,         // from here on: of a prefix, not of a way
	HOP_SET_UNDER_LOCAL, // a broad local route covers it
	HOP_SET_LAST_TABLE,  // only the table "default" has it
	HOP_SET_SAME_METRIC, // several IPv6 routes of one metric that are no group
	HOP_SET_LEAKED,      // on link in another VRF
	N_HOP_SET_REASONS
};

struct hop_set {
	struct hop_set_key key;
	uint32_t chain; // next way with the same hash
	uint32_t first; // routes that lead this way
	uint32_t n_routes;
	uint32_t batch;           // in which fib_group was asked for `hop`
	uint32_t next_stale;      // in the list of stale ways
	uint32_t cursor;          // stale: the first route that the fib was not yet told of
	uint32_t next_deferred;   // in the list of those that wait for room
	uint32_t next_of_nexthop; // in the list of the ways of one next-hop object
	int blame;                // interface that `reason` is about, 0: none
	struct fib_hop hop;       // when resolved and usable
	uint8_t reason;           // enum hop_set_reason
	bool is_resolved;
	bool is_usable; // false: all its next hops are dead, Linux looks further
	bool is_group;
	bool is_stale, is_deferred; // in those lists
	struct hop_set_hop hops[];
};

enum { HOP_SETS_BUCKETS = 1 << 14, HOP_SET_MAX_HOPS = EVENT_MAX_HOPS };

struct hop_sets {
	struct hop_set **hop_set; // by number; 0 is none
	uint32_t *bucket;
	uint32_t n, room, n_used;
	uint32_t free; // chain of numbers given back (in `idle`)
	uint32_t *idle;
	size_t bytes;
};

// A way to be found or made: the key and its hops.
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
// The number of the way that equals the wish (hops' is_dead aside), 0: none.
uint32_t hop_sets_find(const struct hop_sets *hop_sets, const struct hop_set_request *request);
// The same, made if need be; 0: no memory.
uint32_t hop_sets_get(struct hop_sets *hop_sets, const struct hop_set_request *request);
// Frees a way that no route has.
void hop_sets_free(struct hop_sets *hop_sets, uint32_t number);
