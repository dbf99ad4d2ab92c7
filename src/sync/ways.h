// Ways: where routes lead, as Linux told it, each set of next hops kept once however many routes
// share it, as the kernel's own fib_info is. Inside routes. Control thread.
#pragma once

#include "fib/fib.h"
#include "sync/event.h"

// One next hop of a way.
struct way_hop {
	struct wire_addr via; // family 0: on link
	bool has_encap;
	bool is_onlink;
	bool is_dead; // not part of what makes ways equal
	int ifindex;
	uint32_t weight;
};

// What makes two ways the same. All bytes count: cleared before it is filled.
struct way_key {
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
enum way_reason {
	WAY_OK,
	WAY_UNKNOWN_LINK,    // an interface that Linux has not told of
	WAY_UNKNOWN_NEXTHOP, // an id that Linux has not told of
	WAY_FOREIGN_LINK,    // an interface that is no port of ours
	WAY_ENCAP,
	WAY_SOURCE,
	WAY_TYPE,
	WAY_MTU,
	WAY_MANY,        // more next hops than a group can hold
	WAY_MIXED,       // several next hops of which one is on link
	WAY_FULL,        // no room in the table of hops or groups
	WAY_TOS,         // from here on: of a prefix, not of a way
	WAY_UNDER_LOCAL, // a broad local route covers it
	WAY_LAST_TABLE,  // only the table "default" has it
	WAY_SAME_METRIC, // several IPv6 routes of one metric that are no group
	WAY_LEAKED,      // on link in another VRF
	N_WAY_REASONS
};

struct way {
	struct way_key key;
	uint32_t chain; // next way with the same hash
	uint32_t first; // routes that lead this way
	uint32_t n_routes;
	uint32_t batch;           // in which fib_group was asked for `hop`
	uint32_t next_stale;      // in the list of stale ways
	uint32_t cursor;          // stale: the first route that the fib was not yet told of
	uint32_t next_starved;    // in the list of those that wait for room
	uint32_t next_of_nexthop; // in the list of the ways of one next-hop object
	int blame;                // interface that `reason` is about, 0: none
	struct fib_hop hop;       // when resolved and usable
	uint8_t reason;           // enum way_reason
	bool is_resolved;
	bool is_usable; // false: all its next hops are dead, Linux looks further
	bool is_group;
	bool is_stale, is_starved; // in those lists
	struct way_hop hops[];
};

enum { WAYS_BUCKETS = 1 << 14, WAYS_MAX_HOPS = EVENT_MAX_HOPS };

struct ways {
	struct way **way; // by number; 0 is none
	uint32_t *bucket;
	uint32_t n, room, n_used;
	uint32_t free; // chain of numbers given back (in `idle`)
	uint32_t *idle;
	size_t bytes;
};

// A way to be found or made: the key and its hops.
struct way_wish {
	struct way_key key;
	struct way_hop hops[WAYS_MAX_HOPS];
};

int ways_open(struct ways *ways);
void ways_close(struct ways *ways);
static inline struct way *ways_at(const struct ways *ways, uint32_t number)
{
	return ways->way[number];
}
// The number of the way that equals the wish (hops' is_dead aside), 0: none.
uint32_t ways_find(const struct ways *ways, const struct way_wish *wish);
// The same, made if need be; 0: no memory.
uint32_t ways_get(struct ways *ways, const struct way_wish *wish);
// Frees a way that no route has.
void ways_free(struct ways *ways, uint32_t number);
