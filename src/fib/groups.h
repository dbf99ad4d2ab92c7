// Next-hop groups: a route with several next hops, with each flow mapped to one of them. Control
// thread; workers read `bucket` and `oifs`.
#pragma once

#include "fib/hops.h"

enum { GROUPS_MAX = FIB_MAX_GROUPS, GROUP_MAX_MEMBERS = 64 };
enum { GROUPS_EPOCH_MS = 100, GROUPS_FIRST_EPOCH = 1 };

struct group {
	uint16_t n_members; // 0: unused
	uint16_t chain;     // number + 1 of the next group with the same hash
	uint32_t member[GROUP_MAX_MEMBERS];
	uint8_t weight[GROUP_MAX_MEMBERS];
	bool is_unbalanced; // a resilient group with members that have too many buckets
	struct fib_resilience resilience; // key 0: not resilient
	uint32_t unbalanced_epoch;        // since when
};

struct groups {
	uint32_t *bucket; // FIB_GROUP_BUCKETS hop ids per group
	uint32_t *used;   // by bucket: epoch of its last packet, 0: none since it was moved;
	                  // atomic, relaxed: workers write it
	struct fib_group_oifs *oifs; // by group
	struct group *group;
	uint16_t first[GROUPS_MAX]; // number + 1 of the first group, by hash
	uint16_t n_groups;          // highest number ever used, plus one
	uint16_t next_to_poll;
	uint8_t layer3_hash; // FIB_LAYER3_*; atomic, relaxed: workers read it
	uint32_t epoch;      // now, in GROUPS_EPOCH_MS; atomic, relaxed: workers read it
	bool was_polled;
	uint64_t first_poll_ns; // when epochs began to be counted
};

int groups_open(struct groups *groups);
void groups_close(struct groups *groups);
// Returns the number of the group with exactly these members (of a resilient one: with this key),
// created if necessary; -1: all are in use. If *is_new, it takes over one reference to each member;
// otherwise the caller keeps them.
int groups_get(struct groups *groups, const struct group *wanted, bool *is_new);
// Tells workers to which interfaces the members of a group lead.
void groups_write_oifs(struct groups *groups, const struct hops *hops, uint16_t number);
// No route uses the group any more; it is not found by groups_get again.
void groups_retire(struct groups *groups, uint16_t number);
// Releases the group's members after a grace period.
void groups_free(struct groups *groups, struct hops *hops, uint16_t number);

// Whether members and weights are the same.
bool groups_same_members(const struct group *a, const struct group *b);
// The first bucket after each member's share, by weight.
void groups_share(const struct group *group, uint32_t end[GROUP_MAX_MEMBERS]);

// --- resilient.c

// Gives a resilient group its new members, whose references it takes over, and releases its former
// ones. Buckets are moved as far as they may be now.
void resilient_change(struct groups *groups, struct hops *hops, uint16_t number,
	const struct group *wanted);

// Converts a group's number to the key of its hop, and back.
struct fib_hop groups_hop(uint16_t number);
uint16_t groups_number(const struct fib_hop *hop);
