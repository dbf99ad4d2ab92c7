// Hash table keyed by interface index. Control thread.
#include "netlink/ifaces_inside.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 64 };

// The kernel assigns indices sequentially: an index is its own hash.
static_assert(offsetof(struct interface, node) == 0, "the table returns nodes as entries");

int interfaces_open(struct interfaces *all)
{
	return hash_table_init(&all->by_index, FIRST_BUCKETS);
}

void interfaces_close(struct interfaces *all)
{
	hash_table_free(&all->by_index, free);
}

struct interface *interfaces_find(const struct interfaces *all, int ifindex)
{
	return hash_table_find(&all->by_index, (uint32_t)ifindex);
}

struct interface *interfaces_get(struct interfaces *all, int ifindex)
{
	struct interface *one = interfaces_find(all, ifindex);

	if (one)
		return one;
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->ifindex = ifindex;
	one->id = FIB_NO_IFACE;
	one->reported.iface = FIB_NO_IFACE;
	hash_table_insert(&all->by_index, &one->node, (uint32_t)ifindex);
	return one;
}

void interfaces_remove(struct interfaces *all, int ifindex)
{
	struct interface *gone = interfaces_find(all, ifindex);

	if (!gone)
		return;
	hash_table_remove(&all->by_index, &gone->node);
	free(gone);
}

struct interface *interfaces_next(const struct interfaces *all, const struct interface *after)
{
	return hash_table_next(&all->by_index, after ? &after->node : NULL);
}
