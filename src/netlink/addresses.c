// Hash table keyed by local address. Control thread.
#include "netlink/ifaces_inside.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 256 };

struct address {
	struct hash_node node; // first: see hash_table.h
	int ifindex;
	uint32_t seen;
	struct wire_addr local;
	struct wire_prefix prefix;
};
static_assert(offsetof(struct address, node) == 0, "the table returns nodes as entries");

int addresses_open(struct addresses *all)
{
	return hash_table_init(&all->by_local, FIRST_BUCKETS);
}

void addresses_close(struct addresses *all)
{
	hash_table_free(&all->by_local, free);
}

// The first address that may be `local`; hash_table_find_next returns the others.
static struct address *first_of(const struct addresses *all, const struct wire_addr *local)
{
	return hash_table_find(&all->by_local, hash_table_hash(local->bytes, 0));
}

static bool is_same(const struct address *a, const struct address *b)
{
	return a->ifindex == b->ifindex && a->prefix.len == b->prefix.len &&
	       wire_addr_equal(&a->local, &b->local) &&
	       wire_addr_equal(&a->prefix.addr, &b->prefix.addr);
}

static struct address *find(const struct addresses *all, const struct address *wanted)
{
	struct address *one = first_of(all, &wanted->local);

	while (one && !is_same(one, wanted))
		one = hash_table_find_next(&one->node);
	return one;
}

bool addresses_have(const struct addresses *all, const struct wire_addr *local)
{
	const struct address *one = first_of(all, local);

	while (one && !wire_addr_equal(&one->local, local))
		one = hash_table_find_next(&one->node);
	return one;
}

// The VRF of the routes that use this source address.
static uint16_t vrf_of(const struct ifaces *ifaces, int ifindex)
{
	const struct interface *one = interfaces_find(&ifaces->all, ifindex);

	return one ? vrfs_of_interface(ifaces, one) : 0;
}

static bool is_ours_in(const struct ifaces *ifaces, uint16_t vrf, const struct wire_addr *local)
{
	const struct address *one = first_of(&ifaces->addresses, local);

	while (one && !(wire_addr_equal(&one->local, local) && vrf_of(ifaces, one->ifindex) == vrf))
		one = hash_table_find_next(&one->node);
	return one;
}

// Removes the address and notifies routes, unless another interface of the same VRF still has it.
// Entries removed by a dump sweep are not notified: the same dump contains the remaining routes.
static void remove_address(struct ifaces *ifaces, struct address *gone, bool is_reported)
{
	struct interface *one = interfaces_find(&ifaces->all, gone->ifindex);
	struct routes *routes = ifaces->mirror->routes;
	uint16_t vrf = vrf_of(ifaces, gone->ifindex);

	hash_table_remove(&ifaces->addresses.by_local, &gone->node);
	ifaces->is_dirty |= ifaces->tunnels.n_devices > 0;
	if (is_reported && vrf != IFACES_NO_VRF && !is_ours_in(ifaces, vrf, &gone->local))
		routes_address_gone(routes, vrf, &gone->local);
	if (one && --one->n_addresses == 0)
		ifaces->is_dirty = true; // nobody listens on a bridge without an address
	if (one && gone->local.family == 4 && --one->n_addresses4 == 0) {
		ifaces->is_dirty = true; // rp_filter 2 is 1 without an address
		if (is_reported)
			routes_ip4_gone(routes, gone->ifindex);
	}
	free(gone);
}

static void add(struct ifaces *ifaces, const struct address *wanted)
{
	struct interface *interface = interfaces_get(&ifaces->all, wanted->ifindex);
	struct address *one = interface ? malloc(sizeof(*one)) : NULL;

	if (!one) {
		ifaces_lost(ifaces, EVENT_ADDRESS);
		return;
	}
	if (interface->n_addresses++ == 0)
		ifaces->is_dirty = true;
	if (wanted->local.family == 4 && interface->n_addresses4++ == 0)
		ifaces->is_dirty = true; // rp_filter 2 is 1 without an address
	*one = *wanted;
	ifaces->is_dirty |= ifaces->tunnels.n_devices > 0; // it may be the local end of one
	hash_table_insert(&ifaces->addresses.by_local, &one->node,
		hash_table_hash(wanted->local.bytes, 0));
}

void addresses_event(struct ifaces *ifaces, const struct event *event)
{
	const struct event_address *reported = &event->address;
	struct address wanted = {.ifindex = reported->ifindex,
		.seen = ifaces->dump,
		.local = reported->local.family ? reported->local : reported->prefix.addr,
		.prefix = reported->prefix};
	struct address *one = find(&ifaces->addresses, &wanted);

	if (event->is_delete && one)
		remove_address(ifaces, one, true);
	else if (!event->is_delete && one)
		one->seen = ifaces->dump;
	else if (!event->is_delete)
		add(ifaces, &wanted);
	if (!event->is_delete && !event->is_dump && wanted.local.family == 4)
		routes_address_came(ifaces->mirror->routes, wanted.ifindex);
}

static void remove_all(struct ifaces *ifaces, int ifindex)
{
	const struct hash_table *table = &ifaces->addresses.by_local;

	for (struct address *one = hash_table_next(table, NULL), *next; one; one = next) {
		next = hash_table_next(table, &one->node);
		if (ifindex ? one->ifindex == ifindex : one->seen != ifaces->dump)
			remove_address(ifaces, one, ifindex != 0);
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

	const struct address *one = hash_table_next(&all->by_local, NULL);

	for (; one && n < max; one = hash_table_next(&all->by_local, &one->node))
		if (one->ifindex == ifindex)
			out[n++] = (struct wire_prefix){one->local, one->prefix.len};
	return n;
}
