// The table of next-hop objects. Control thread.
#include "netlink/nexthops.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bucket_of(uint32_t id)
{
	return id * 0x9e3779b1u >> 20; // 2^32 / golden ratio; 12 bits stay
}

int nexthops_open(struct nexthops *nexthops)
{
	static_assert(NEXTHOPS_BUCKETS == 1 << 12, "as many as bucket_of tells apart");
	memset(nexthops, 0, sizeof(*nexthops));
	nexthops->bucket = calloc(NEXTHOPS_BUCKETS, sizeof(struct nexthop *));
	return nexthops->bucket ? 0 : -ENOMEM;
}

void nexthops_close(struct nexthops *nexthops)
{
	for (unsigned i = 0; i < NEXTHOPS_BUCKETS; i++)
		for (struct nexthop *at = nexthops->bucket[i], *next; at; at = next) {
			next = at->next;
			free(at->member);
			free(at);
		}
	free(nexthops->bucket);
}

struct nexthop *nexthops_find(const struct nexthops *nexthops, uint32_t id)
{
	struct nexthop *at = nexthops->bucket[bucket_of(id)];

	while (at && at->id != id)
		at = at->next;
	return at;
}

struct nexthop *nexthops_get(struct nexthops *nexthops, uint32_t id)
{
	struct nexthop *nexthop = nexthops_find(nexthops, id);

	if (nexthop)
		return nexthop;
	nexthop = calloc(1, sizeof(*nexthop));
	if (!nexthop)
		return NULL;
	nexthop->id = id;
	nexthop->next = nexthops->bucket[bucket_of(id)];
	nexthops->bucket[bucket_of(id)] = nexthop;
	nexthops->bytes += sizeof(*nexthop);
	return nexthop;
}

void nexthops_release(struct nexthops *nexthops, struct nexthop *nexthop)
{
	struct nexthop **iface = &nexthops->bucket[bucket_of(nexthop->id)];

	if (nexthop->is_known || nexthop->first_hop_set || nexthop->n_groups)
		return;
	while (*iface != nexthop)
		iface = &(*iface)->next;
	*iface = nexthop->next;
	nexthops->bytes -= sizeof(*nexthop);
	free(nexthop->member);
	free(nexthop);
}

static void drop_members(struct nexthops *nexthops, struct nexthop *nexthop)
{
	for (unsigned i = 0; i < nexthop->n_members; i++) {
		struct nexthop *member = nexthops_find(nexthops, nexthop->member[i].id);
		member->n_groups--;
		nexthops_release(nexthops, member);
	}
	nexthops->bytes -= nexthop->n_members * sizeof(*nexthop->member);
	nexthop->n_members = 0;
}

static int take_members(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *told)
{
	struct nexthop_member *member = realloc(nexthop->member, told->n_members * sizeof(*member));

	if (!member)
		return -ENOMEM;
	nexthop->member = member;
	for (unsigned i = 0; i < told->n_members; i++) {
		struct nexthop *one = nexthops_get(nexthops, told->member[i].id);
		if (!one)
			return -ENOMEM;
		one->n_groups++;
		member[nexthop->n_members++] =
			(struct nexthop_member){told->member[i].id, told->member[i].weight};
		nexthops->bytes += sizeof(*member);
	}
	return 0;
}

void nexthops_set(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *told)
{
	nexthops->n_known += !nexthop->is_known;
	nexthop->is_known = true; // before its old members go: it may be held by this alone
	drop_members(nexthops, nexthop);
	nexthop->is_blackhole = told->is_blackhole;
	nexthop->is_group = told->is_group;
	nexthop->is_fdb = told->is_fdb;
	nexthop->has_too_many_members = told->too_many_members;
	nexthop->hop = (struct hop_set_hop){.via = told->hop.via,
		.has_encap = told->hop.has_encap,
		.ifindex = told->hop.ifindex,
		.weight = 1};
	if (told->n_members && take_members(nexthops, nexthop, told))
		nexthop->has_too_many_members = true;
}

void nexthops_forget(struct nexthops *nexthops, struct nexthop *nexthop)
{
	nexthops->n_known -= nexthop->is_known;
	drop_members(nexthops, nexthop);
	nexthop->is_known = false;
	nexthops_release(nexthops, nexthop);
}

bool nexthops_leave(struct nexthops *nexthops, struct nexthop *group, uint32_t id)
{
	for (unsigned i = 0; i < group->n_members; i++) {
		if (group->member[i].id != id)
			continue;
		struct nexthop *member = nexthops_find(nexthops, id);
		group->member[i] = group->member[--group->n_members];
		nexthops->bytes -= sizeof(*group->member);
		member->n_groups--;
		nexthops_release(nexthops, member);
		return !group->n_members;
	}
	return false;
}

struct nexthop *nexthops_next(const struct nexthops *nexthops, const struct nexthop *after)
{
	if (after && after->next)
		return after->next;
	for (uint32_t i = after ? bucket_of(after->id) + 1 : 0; i < NEXTHOPS_BUCKETS; i++)
		if (nexthops->bucket[i])
			return nexthops->bucket[i];
	return NULL;
}
