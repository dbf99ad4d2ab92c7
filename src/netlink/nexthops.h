// Linux's next-hop objects, by id. Inside routes. Control thread.
#pragma once

#include "netlink/hop_sets.h"

enum { NEXTHOPS_BUCKETS = 1 << 12, NEXTHOPS_MAX_MEMBERS = EVENT_MAX_GROUP };

struct nexthop_member {
	uint32_t id;
	uint32_t weight;
};

struct nexthop {
	uint32_t id;
	struct nexthop *next;   // with the same hash
	uint32_t first_hop_set; // ways that name it
	uint32_t n_groups;      // in how many groups it is
	uint8_t generation;
	bool is_known; // false: named by a way or a group, not told yet
	bool is_blackhole, is_group, is_fdb, has_too_many_members;
	struct hop_set_hop hop; // when it is no group
	uint16_t n_members;
	struct nexthop_member *member; // owned
};

struct nexthops {
	struct nexthop **bucket;
	uint32_t n_known;
	size_t bytes;
};

int nexthops_open(struct nexthops *nexthops);
void nexthops_close(struct nexthops *nexthops);
// NULL: nobody has named it. / The same, made (not known) if need be; NULL: no memory.
struct nexthop *nexthops_find(const struct nexthops *nexthops, uint32_t id);
struct nexthop *nexthops_get(struct nexthops *nexthops, uint32_t id);
// Takes over what was told; without memory for its members, as if they were too many.
void nexthops_set(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *told);
// It is known no more; its members have one group less.
void nexthops_forget(struct nexthops *nexthops, struct nexthop *nexthop);
// Takes a member out of a group. True: it was the last one.
bool nexthops_leave(struct nexthops *nexthops, struct nexthop *group, uint32_t id);
// Frees it when nobody names it any more and it is not known.
void nexthops_release(struct nexthops *nexthops, struct nexthop *nexthop);
// The first one (NULL), or the next after `after`; NULL: no more.
struct nexthop *nexthops_next(const struct nexthops *nexthops, const struct nexthop *after);
