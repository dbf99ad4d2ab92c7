// Resilient next-hop groups: buckets that are in use stay where they are when the members of a
// group change, as in Linux (nh_res_table_upkeep in net/ipv4/nexthop.c). Control thread; workers
// note in `used` which buckets they use.
#include "fib/table.h"

#include "base/bits.h"

#include <string.h>

enum { POLL_MAX = 64, MS_NS = 1000000 }; // groups moved per call of fib_groups_poll

// A distinct hop among the members, and by how many buckets it has more than its share.
struct share {
	uint32_t hop;
	int excess;
};

struct shares {
	struct share share[GROUP_MAX_MEMBERS];
	unsigned n;
};

static struct share *share_of(struct shares *shares, uint32_t hop)
{
	for (unsigned i = 0; i < shares->n; i++)
		if (shares->share[i].hop == hop)
			return &shares->share[i];
	return NULL;
}

// Two objects with one gateway are one hop.
static void set_shares(struct shares *shares, const struct group *group)
{
	uint32_t end[GROUP_MAX_MEMBERS], from = 0;

	shares->n = 0;
	groups_share(group, end);
	for (unsigned i = 0; i < group->n_members; i++) {
		struct share *share = share_of(shares, group->member[i]);
		if (!share) {
			share = &shares->share[shares->n++];
			*share = (struct share){.hop = group->member[i]};
		}
		share->excess -= end[i] - from;
		from = end[i];
	}
}

static struct share *find_underweight(struct shares *shares)
{
	for (unsigned i = 0; i < shares->n; i++)
		if (shares->share[i].excess < 0)
			return &shares->share[i];
	return NULL;
}

static uint64_t age_ms(const struct groups *groups, uint32_t epoch)
{
	return (uint64_t)(groups->epoch - epoch) * GROUPS_EPOCH_MS;
}

// A bucket that was not used since it was moved is idle. One epoch more than idle_ms: the last
// packet may have come at the end of its epoch.
static bool is_idle(const struct groups *groups, const struct fib_resilience *resilience,
	uint32_t bucket)
{
	const uint32_t used = __atomic_load_n(&groups->used[bucket], __ATOMIC_RELAXED);

	return !used || !resilience->idle_ms ||
	       age_ms(groups, used) >= resilience->idle_ms + GROUPS_EPOCH_MS;
}

// The use is cleared first: see fib_bucket_use.
static void move(struct groups *groups, uint32_t bucket, uint32_t hop)
{
	__atomic_store_n(&groups->used[bucket], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&groups->bucket[bucket], hop, __ATOMIC_RELEASE);
}

static void rebalance(struct groups *groups, uint16_t number)
{
	struct group *group = &groups->group[number];
	const struct fib_resilience *resilience = &group->resilience;
	const uint32_t first = number * FIB_GROUP_BUCKETS;
	const bool forces = group->is_unbalanced && resilience->unbalanced_ms &&
	                    age_ms(groups, group->unbalanced_epoch) > resilience->unbalanced_ms;
	const bool was_unbalanced = group->is_unbalanced;
	struct shares shares;

	set_shares(&shares, group);
	for (uint32_t i = first; i < first + FIB_GROUP_BUCKETS; i++) {
		struct share *share = share_of(&shares, groups->bucket[i]);
		if (share)
			share->excess++;
	}
	for (uint32_t i = first; i < first + FIB_GROUP_BUCKETS; i++) {
		struct share *from = share_of(&shares, groups->bucket[i]);
		if (from && (from->excess <= 0 || !(forces || is_idle(groups, resilience, i))))
			continue;
		struct share *to = find_underweight(&shares); // there is one: excesses and
		                                              // buckets of others add up to 0
		move(groups, i, to->hop);
		to->excess++;
		if (from)
			from->excess--;
	}
	group->is_unbalanced = find_underweight(&shares);
	if (group->is_unbalanced && !was_unbalanced)
		group->unbalanced_epoch = groups->epoch;
}

// Hops without references stay readable for a grace period (hops_sweep), so workers that have read
// a bucket before it was moved still find its hop.
void resilient_change(struct groups *groups, struct hops *hops, uint16_t number,
	const struct group *wanted)
{
	struct group *group = &groups->group[number];
	const struct group before = *group;
	const bool is_same = groups_same_members(group, wanted);

	group->resilience = wanted->resilience;
	if (!is_same) {
		group->n_members = wanted->n_members;
		memcpy(group->member, wanted->member, sizeof(group->member));
		memcpy(group->weight, wanted->weight, sizeof(group->weight));
		rebalance(groups, number);
	}
	for (unsigned i = 0; i < before.n_members; i++)
		hops_release(hops, before.member[i]);
}

void fib_groups_poll(struct fib *fib, uint64_t now_ns)
{
	struct groups *groups = &fib->groups;
	unsigned n_moved = 0;

	if (!groups->was_polled)
		groups->first_poll_ns = now_ns;
	groups->was_polled = true;
	const uint64_t passed_ns = now_ns - groups->first_poll_ns;
	const uint32_t epoch = GROUPS_FIRST_EPOCH + passed_ns / ((uint64_t)GROUPS_EPOCH_MS * MS_NS);

	if (epoch != groups->epoch)
		__atomic_store_n(&groups->epoch, epoch, __ATOMIC_RELAXED);
	for (unsigned n = 0; n < groups->n_groups && n_moved < POLL_MAX; n++) {
		uint16_t number = groups->next_to_poll % groups->n_groups;
		const struct group *group = &groups->group[number];

		groups->next_to_poll = number + 1;
		if (!group->n_members || !group->is_unbalanced)
			continue;
		rebalance(groups, number);
		n_moved++;
	}
}
