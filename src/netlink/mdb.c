// The groups of Linux's bridges and where they are wanted, as Linux has them, and their ports
// behind which there are multicast routers. Control thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"
#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FIRST_BUCKETS = 64, MOST_MEMBERS = 1 << 16 };
// Reading all takes at most a hundredth of the time.
enum { POLL_NS = 1000000000, POLL_SHARE = 100 };

int mdb_open(struct mdb *mdb)
{
	if (getrandom(mdb->secret, sizeof(mdb->secret), 0) != sizeof(mdb->secret))
		return -EIO;
	mdb->most = MOST_MEMBERS;
	return hash_table_init(&mdb->table, FIRST_BUCKETS);
}

static void free_group(void *group_)
{
	struct mdb_group *group = group_;

	free(group->member);
	free(group);
}

void mdb_close(struct mdb *mdb)
{
	hash_table_free(&mdb->table, free_group);
	free(mdb->routers.list);
	free(mdb->next_routers.list);
}

uint64_t mdb_bytes(const struct mdb *mdb)
{
	return mdb->table.n * sizeof(struct mdb_group) + mdb->n * sizeof(struct mdb_member);
}

// Keyed, so that no host can choose groups that share buckets.
static uint32_t hash_of(const struct mdb *mdb, int bridge, const struct event_group *at)
{
	uint64_t key[2];

	memcpy(key, at->addr, sizeof(key));
	key[0] ^= mdb->secret[0] ^ at->vlan ^ (uint64_t)at->family << 16;
	key[1] ^= mdb->secret[1];
	return hash_table_hash((const uint8_t *)key, (uint32_t)bridge);
}

static struct mdb_group *find(const struct mdb *mdb, int bridge, const struct event_group *at)
{
	struct mdb_group *one = hash_table_find(&mdb->table, hash_of(mdb, bridge, at));

	while (one &&
		!(one->bridge == bridge && one->vlan == at->vlan && one->family == at->family &&
			!memcmp(one->addr, at->addr, sizeof(one->addr))))
		one = hash_table_find_next(&one->node);
	return one;
}

static struct mdb_group *get(struct mdb *mdb, int bridge, const struct event_group *at)
{
	struct mdb_group *one = find(mdb, bridge, at);

	if (one)
		return one;
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->bridge = bridge;
	one->vlan = at->vlan;
	one->family = at->family;
	memcpy(one->addr, at->addr, sizeof(one->addr));
	hash_table_insert(&mdb->table, &one->node, hash_of(mdb, bridge, at));
	return one;
}

static void release(struct mdb *mdb, struct mdb_group *group)
{
	if (group->n)
		return;
	hash_table_remove(&mdb->table, &group->node);
	free_group(group);
}

static struct mdb_member *find_member(const struct mdb_group *group, const struct event_group *at)
{
	for (size_t i = 0; i < group->n; i++) {
		struct mdb_member *one = &group->member[i];

		if (one->ifindex == at->ifindex && one->has_source == at->has_source &&
			!memcmp(one->source, at->source, sizeof(one->source)))
			return one;
	}
	return NULL;
}

static void remove_member(struct bridges *bridges, struct mdb_group *group,
	struct mdb_member *member)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct mdb *mdb = &bridges->mdb;

	*member = group->member[--group->n];
	mdb->n--;
	mdb->is_changed = true;
	// When there is space again, Linux has to tell of those that were not stored.
	if (mdb->is_over && mdb->n == mdb->most / 4 * 3)
		ops->dump_again(ops->ops);
}

// NULL: out of memory, or there are too many.
static struct mdb_member *add_member(struct bridges *bridges, const struct event_group *at,
	int bridge)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct mdb *mdb = &bridges->mdb;
	struct mdb_group *group = NULL;
	struct mdb_member *member;

	if (mdb->n >= mdb->most) {
		mdb->is_changed |= !mdb->is_over;
		mdb->is_over = true;
		return NULL;
	}
	group = get(mdb, bridge, at);
	if (!group || vector_reserve(&group->member, &group->capacity, group->n + 1,
			      sizeof(*group->member))) {
		if (group)
			release(mdb, group);
		mdb->is_whole = false;
		ops->lost(ops->ops, EVENT_GROUPS);
		return NULL;
	}
	mdb->n++;
	member = &group->member[group->n++];
	*member = (struct mdb_member){.ifindex = at->ifindex, .has_source = at->has_source};
	memcpy(member->source, at->source, sizeof(member->source));
	mdb->is_changed = true;
	return member;
}

static void take(struct bridges *bridges, int bridge, const struct event_group *at, bool is_delete)
{
	struct mdb *mdb = &bridges->mdb;
	struct mdb_group *group = find(mdb, bridge, at);
	struct mdb_member *member = group ? find_member(group, at) : NULL;

	if (is_delete) {
		if (member)
			remove_member(bridges, group, member);
		if (group)
			release(mdb, group);
		return;
	}
	if (!member)
		member = add_member(bridges, at, bridge);
	if (!member)
		return;
	mdb->is_changed |= member->is_odd != at->is_odd;
	member->is_odd = at->is_odd;
	member->seen = mdb->dump;
}

// A message about routers does not say for which families they are, and not every change is told.
void mdb_event(struct bridges *bridges, const struct event *event)
{
	const struct event_groups *groups = &event->groups;

	for (unsigned i = 0; i < groups->n; i++)
		take(bridges, groups->bridge, &groups->group[i], event->is_delete);
	bridges->mdb.is_over |= groups->too_many;
	bridges->mdb.routers_told |= groups->n_routers && !event->is_dump;
}

static void remove_if(struct bridges *bridges,
	bool (*is_gone)(const struct mdb *mdb, const struct mdb_group *group,
		const struct mdb_member *member, int bridge),
	int bridge)
{
	struct mdb *mdb = &bridges->mdb;
	struct mdb_group *next;

	for (struct mdb_group *group = hash_table_next(&mdb->table, NULL); group; group = next) {
		next = hash_table_next(&mdb->table, &group->node);
		for (size_t i = group->n; i-- > 0;)
			if (is_gone(mdb, group, &group->member[i], bridge))
				remove_member(bridges, group, &group->member[i]);
		release(mdb, group);
	}
}

static bool is_of_bridge(const struct mdb *mdb, const struct mdb_group *group,
	const struct mdb_member *member, int bridge)
{
	return group->bridge == bridge;
}

static bool is_unseen(const struct mdb *mdb, const struct mdb_group *group,
	const struct mdb_member *member, int bridge)
{
	return member->seen != mdb->dump;
}

// Linux does not tell of the groups that go with it.
void mdb_bridge_gone(struct bridges *bridges, int ifindex)
{
	if (bridges->mdb.n)
		remove_if(bridges, is_of_bridge, ifindex);
}

void mdb_dump_begins(struct mdb *mdb)
{
	mdb->dump++;
	mdb->is_whole = mdb->is_over = false;
	mdb->is_changed = true;
}

void mdb_dump_ends(struct bridges *bridges)
{
	remove_if(bridges, is_unseen, 0);
	bridges->mdb.is_whole = bridges->mdb.is_changed = true;
}

// Routers are read from time to time.

static void take_routers(void *arg, const struct event *event)
{
	const struct event_groups *groups = &event->groups;
	struct mdb *mdb = arg;
	struct mdb_routers *to = &mdb->next_routers;

	for (unsigned i = 0; event->kind == EVENT_GROUPS && i < groups->n_routers; i++) {
		const struct event_router *one = &groups->router[i];

		if (vector_reserve(&to->list, &to->capacity, to->n + 1, sizeof(*to->list))) {
			to->is_short = true;
			return;
		}
		memset(&to->list[to->n], 0, sizeof(*to->list)); // padding, too
		to->list[to->n].bridge = groups->bridge;
		to->list[to->n].ifindex = one->ifindex;
		to->list[to->n].for4 = one->for4;
		to->list[to->n++].for6 = one->for6;
	}
}

static bool are_same(const struct mdb_routers *a, const struct mdb_routers *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->list, b->list, a->n * sizeof(*a->list)));
}

// False: to be tried again.
static bool read_routers(struct bridges *bridges)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct mdb *mdb = &bridges->mdb;
	const struct mdb_routers was = mdb->routers;
	const bool was_known = mdb->routers_known;
	int err;

	mdb->next_routers.n = 0;
	mdb->next_routers.is_short = false;
	err = ops->dump_groups ? ops->dump_groups(ops->ops, take_routers, mdb) : -EOPNOTSUPP;
	if (err == -EINTR || err == -EAGAIN) // it has changed meanwhile
		return false;
	mdb->routers_known = !err && !mdb->next_routers.is_short;
	mdb->is_changed |= mdb->routers_known != was_known;
	if (!mdb->routers_known)
		return true;
	mdb->is_changed |= !are_same(&was, &mdb->next_routers);
	mdb->routers = mdb->next_routers;
	mdb->next_routers = was;
	return true;
}

void mdb_poll(struct bridges *bridges, uint64_t now_ns)
{
	struct mdb *mdb = &bridges->mdb;
	const uint64_t every_ns = MAX_OF(mdb->took_ns * POLL_SHARE, (uint64_t)POLL_NS);
	const uint64_t began_ns = clock_now_ns();

	if (mdb->polled_ns && !mdb->routers_told && now_ns - mdb->polled_ns < every_ns)
		return;
	mdb->routers_told = false;
	mdb->polled_ns = read_routers(bridges) ? now_ns : 0;
	mdb->took_ns = clock_now_ns() - began_ns;
	mdb->is_changed |= mdb->is_short;
	mdb->is_short = false; // another attempt
}
