// Hash table keyed by interface index. Control thread.
#include "netlink/interfaces.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 64 };

static uint32_t bucket_of(const struct interfaces *all, int ifindex)
{
	return (uint32_t)ifindex & (all->n_buckets - 1); // the kernel assigns them sequentially
}

int interfaces_open(struct interfaces *all)
{
	*all = (struct interfaces){.n_buckets = FIRST_BUCKETS};
	all->bucket = calloc(all->n_buckets, sizeof(struct interface *));
	return all->bucket ? 0 : -ENOMEM;
}

void interfaces_close(struct interfaces *all)
{
	for (uint32_t i = 0; all->bucket && i < all->n_buckets; i++)
		while (all->bucket[i]) {
			struct interface *first = all->bucket[i];

			all->bucket[i] = first->next;
			free(first);
		}
	free(all->bucket);
}

struct interface *interfaces_find(const struct interfaces *all, int ifindex)
{
	struct interface *one = all->bucket[bucket_of(all, ifindex)];

	while (one && one->ifindex != ifindex)
		one = one->next;
	return one;
}

static void put(struct interfaces *all, struct interface *one)
{
	struct interface **first = &all->bucket[bucket_of(all, one->ifindex)];

	one->next = *first;
	*first = one;
}

// If there is no memory for more buckets, the table still works but gets slower.
static void grow(struct interfaces *all)
{
	struct interface **old = all->bucket;
	uint32_t n_old = all->n_buckets;
	struct interface **bucket = calloc((size_t)n_old * 2, sizeof(struct interface *));

	if (!bucket)
		return;
	all->bucket = bucket;
	all->n_buckets = n_old * 2;
	for (uint32_t i = 0; i < n_old; i++)
		for (struct interface *one = old[i], *next; one; one = next) {
			next = one->next;
			put(all, one);
		}
	free(old);
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
	if (all->n >= all->n_buckets)
		grow(all);
	put(all, one);
	all->n++;
	return one;
}

void interfaces_remove(struct interfaces *all, int ifindex)
{
	struct interface **at = &all->bucket[bucket_of(all, ifindex)];

	while (*at && (*at)->ifindex != ifindex)
		at = &(*at)->next;
	if (!*at)
		return;
	struct interface *gone = *at;
	*at = gone->next;
	free(gone);
	all->n--;
}

struct interface *interfaces_next(const struct interfaces *all, const struct interface *after)
{
	if (after && after->next)
		return after->next;
	uint32_t i = after ? bucket_of(all, after->ifindex) + 1 : 0;
	while (i < all->n_buckets && !all->bucket[i])
		i++;
	return i < all->n_buckets ? all->bucket[i] : NULL;
}
