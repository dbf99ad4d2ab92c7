// Hash table keyed by local address. Control thread.
#include "netlink/addresses.h"

#include "netlink/hash.h"
#include "netlink/ifaces_inside.h"
#include "netlink/routes.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 256 };

struct address {
	struct address *next;
	int ifindex;
	uint32_t seen;
	struct wire_addr local;
	struct wire_prefix prefix;
};

int addresses_open(struct addresses *all)
{
	*all = (struct addresses){.n_buckets = FIRST_BUCKETS};
	all->bucket = calloc(all->n_buckets, sizeof(struct address *));
	return all->bucket ? 0 : -ENOMEM;
}

void addresses_close(struct addresses *all)
{
	for (uint32_t i = 0; all->bucket && i < all->n_buckets; i++)
		while (all->bucket[i]) {
			struct address *first = all->bucket[i];

			all->bucket[i] = first->next;
			free(first);
		}
	free(all->bucket);
}

static struct address **bucket_of(const struct addresses *all, const struct wire_addr *local)
{
	return &all->bucket[hash_addr(local, 0) & (all->n_buckets - 1)];
}

// The pointer that refers to the entry, or where it would be inserted.
static struct address **place_of(const struct addresses *all, const struct address *wanted)
{
	struct address **at = bucket_of(all, &wanted->local);

	while (*at &&
		!((*at)->ifindex == wanted->ifindex && (*at)->prefix.len == wanted->prefix.len &&
			wire_addr_equal(&(*at)->local, &wanted->local) &&
			wire_addr_equal(&(*at)->prefix.addr, &wanted->prefix.addr)))
		at = &(*at)->next;
	return at;
}

// If there is no memory for more buckets, the table still works but gets slower.
static void grow(struct addresses *all)
{
	struct addresses more = {.n_buckets = all->n_buckets * 2, .n = all->n};

	more.bucket = calloc(more.n_buckets, sizeof(struct address *));
	if (!more.bucket)
		return;
	for (uint32_t i = 0; i < all->n_buckets; i++)
		for (struct address *one = all->bucket[i], *next; one; one = next) {
			struct address **first = bucket_of(&more, &one->local);

			next = one->next;
			one->next = *first;
			*first = one;
		}
	free(all->bucket);
	*all = more;
}

// The VRF of the routes that use this source address.
static uint8_t vrf_of(const struct ifaces *ifaces, int ifindex)
{
	const struct interface *one = interfaces_find(&ifaces->all, ifindex);

	return one ? vrfs_of_interface(ifaces, one) : 0;
}

static bool is_ours_in(const struct ifaces *ifaces, uint8_t vrf, const struct wire_addr *local)
{
	const struct address *one = *bucket_of(&ifaces->addresses, local);

	while (one && !(wire_addr_equal(&one->local, local) && vrf_of(ifaces, one->ifindex) == vrf))
		one = one->next;
	return one;
}

// Removes the address and notifies routes, unless another interface of the same VRF still has it.
// Entries removed by a dump sweep are not notified: the same dump contains the remaining routes.
static void remove_at(struct ifaces *ifaces, struct address **at, bool is_reported)
{
	struct address *gone = *at;
	struct interface *one = interfaces_find(&ifaces->all, gone->ifindex);
	struct routes *routes = ifaces->mirror->routes;
	uint8_t vrf = vrf_of(ifaces, gone->ifindex);

	*at = gone->next;
	ifaces->addresses.n--;
	if (is_reported && vrf != IFACES_NO_VRF && !is_ours_in(ifaces, vrf, &gone->local))
		routes_address_gone(routes, vrf, &gone->local);
	if (one && gone->local.family == 4 && --one->n_addresses4 == 0 && is_reported)
		routes_ip4_gone(routes, gone->ifindex);
	free(gone);
}

static void add(struct ifaces *ifaces, const struct address *wanted)
{
	struct interface *interface = interfaces_get(&ifaces->all, wanted->ifindex);
	struct addresses *all = &ifaces->addresses;
	struct address *one = interface ? malloc(sizeof(*one)) : NULL;

	if (!one)
		return;
	interface->n_addresses4 += wanted->local.family == 4;
	if (all->n >= all->n_buckets)
		grow(all);
	struct address **first = bucket_of(all, &wanted->local);
	*one = *wanted;
	one->next = *first;
	*first = one;
	all->n++;
}

void addresses_event(struct ifaces *ifaces, const struct event *event)
{
	const struct event_address *reported = &event->address;
	struct address wanted = {.ifindex = reported->ifindex,
		.seen = ifaces->dump,
		.local = reported->local.family ? reported->local : reported->prefix.addr,
		.prefix = reported->prefix};
	struct address **at = place_of(&ifaces->addresses, &wanted);

	if (event->is_delete && *at)
		remove_at(ifaces, at, true);
	else if (!event->is_delete && *at)
		(*at)->seen = ifaces->dump;
	else if (!event->is_delete)
		add(ifaces, &wanted);
	if (!event->is_delete && !event->is_dump && wanted.local.family == 4)
		routes_address_came(ifaces->mirror->routes, wanted.ifindex);
}

static void remove_all(struct ifaces *ifaces, int ifindex)
{
	struct addresses *all = &ifaces->addresses;

	for (uint32_t i = 0; i < all->n_buckets; i++)
		for (struct address **at = &all->bucket[i]; *at;) {
			bool goes =
				ifindex ? (*at)->ifindex == ifindex : (*at)->seen != ifaces->dump;

			if (goes)
				remove_at(ifaces, at, ifindex != 0);
			else
				at = &(*at)->next;
		}
}

void addresses_iface_gone(struct ifaces *ifaces, int ifindex)
{
	remove_all(ifaces, ifindex);
}

void addresses_sweep(struct ifaces *ifaces)
{
	remove_all(ifaces, 0);
}

unsigned addresses_of(const struct addresses *all, int ifindex, struct wire_prefix out[],
	unsigned max)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < all->n_buckets; i++)
		for (const struct address *one = all->bucket[i]; one && n < max; one = one->next)
			if (one->ifindex == ifindex)
				out[n++] = (struct wire_prefix){one->local, one->prefix.len};
	return n;
}
