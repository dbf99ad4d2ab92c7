// The kernel's next-hop objects, by id. Internal to routes. Control thread.
#pragma once

#include "base/hash_table.h"
#include "netlink/hop_sets.h"

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
	bool is_blackhole, is_group, is_fdb, has_too_many_members;
	struct hop_set_hop hop; // if not a group
	uint16_t n_members;
	struct nexthop_member *member; // owned
};

struct nexthops {
	struct hash_table by_id;
	uint32_t n_known;
	size_t bytes;
};

int nexthops_open(struct nexthops *nexthops);
void nexthops_close(struct nexthops *nexthops);
// NULL: never referenced. / Same, created (not known) if needed; NULL: out of memory.
struct nexthop *nexthops_find(const struct nexthops *nexthops, uint32_t id);
struct nexthop *nexthops_get(struct nexthops *nexthops, uint32_t id);
// Stores what was reported; if there is no memory for the members, the object is treated as having
// too many.
void nexthops_set(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *reported);
// Marks it unknown and removes it from the group counts of its members.
void nexthops_forget(struct nexthops *nexthops, struct nexthop *nexthop);
// Removes a member from a group. Returns true if it was the last one.
bool nexthops_leave(struct nexthops *nexthops, struct nexthop *group, uint32_t id);
// Frees it if it is neither referenced nor known.
void nexthops_release(struct nexthops *nexthops, struct nexthop *nexthop);
// The first object (after == NULL), or the one after `after`; NULL: at the end.
struct nexthop *nexthops_next(const struct nexthops *nexthops, const struct nexthop *after);
