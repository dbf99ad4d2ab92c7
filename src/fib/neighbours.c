// Neighbours: a neighbour is the MAC of the hop via its address on its interface, and a host of its
// own if a CONNECTED route covers it in the interface's VRF. Control thread.
#include "fib/table.h"

#include <errno.h>

static struct fib_hop hop_via(uint16_t iface, const struct wire_addr *addr)
{
	struct fib_hop hop = {.via = *addr, .iface = iface, .kind = FIB_VIA};

	hops_normalise(&hop);
	return hop;
}

static struct rib_prefix host_of(uint16_t vrf, const struct wire_addr *addr)
{
	struct wire_prefix prefix = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};

	return rib_prefix_in(vrf, &prefix);
}

static void publish_host(struct fib *fib, uint16_t vrf, const struct wire_addr *addr)
{
	const struct rib_prefix host = host_of(vrf, addr);
	struct edit edit = {.key = host.key, .len = host.len, .tree = host.tree};

	change_publish(fib, &edit, 1);
}

static int full_error(struct error *error, const struct wire_addr *addr)
{
	char text[WIRE_ADDR_TEXT];

	return error_set(error, -ENOSPC,
		"no space for neighbour %s: the table holds at most %u next hops and %u prefixes",
		wire_addr_print(addr, text), FIB_MAX_HOPS, RIB_MAX_NODES / 2);
}

// Counts one more neighbour in the host's node in a VRF's table; / one less, and publishes it.
static int add_host(struct fib *fib, uint16_t vrf, const struct wire_addr *addr)
{
	const struct rib_prefix host = host_of(vrf, addr);
	uint32_t node = rib_insert(&fib->rib, &host);

	if (!node)
		return -ENOSPC;
	rib_node(&fib->rib, node)->n_neighbours++;
	return 0;
}

static void remove_host(struct fib *fib, uint16_t vrf, const struct wire_addr *addr)
{
	const struct rib_prefix host = host_of(vrf, addr);

	rib_node(&fib->rib, rib_find(&fib->rib, &host))->n_neighbours--;
	rib_prune(&fib->rib, &host);
}

static int add_neighbour(struct fib *fib, const struct fib_hop *hop, const struct wire_mac *mac)
{
	const uint16_t vrf = iface_vrf(&fib->ifaces, hop->iface);
	uint32_t id = change_acquire_hop(fib, hop);

	if (!id)
		return -ENOSPC;
	if (add_host(fib, vrf, &hop->via)) {
		hops_release(&fib->hops, id);
		hops_sweep(&fib->hops);
		return -ENOSPC;
	}
	fib->hops.hop[id].is_neighbour = 1;
	fib->hops.hop[id].mac = *mac;
	fib->n_neighbours++;
	hops_rewrite(&fib->hops, id);
	publish_host(fib, vrf, &hop->via);
	return 0;
}

int fib_neighbour_set(struct fib *fib, uint16_t iface, const struct wire_addr *addr,
	const struct wire_mac *mac, struct error *error)
{
	const struct fib_hop hop = hop_via(iface, addr);
	uint32_t id = hops_find(&fib->hops, &hop);

	if (iface >= IFACE_MAX || (addr->family != 4 && addr->family != 6))
		return error_set(error, -EINVAL, "a neighbour needs an interface and an address");
	if (id && fib->hops.hop[id].is_neighbour) {
		fib->hops.hop[id].mac = *mac;
		hops_rewrite(&fib->hops, id);
		tunnels_follow(fib);
		return 0;
	}
	return add_neighbour(fib, &hop, mac) ? full_error(error, addr) : 0;
}

int fib_neighbour_delete(struct fib *fib, uint16_t iface, const struct wire_addr *addr)
{
	const struct fib_hop hop = hop_via(iface, addr);
	uint32_t id = hops_find(&fib->hops, &hop);

	if (!id || !fib->hops.hop[id].is_neighbour)
		return -ENOENT;
	const uint16_t vrf = iface_vrf(&fib->ifaces, iface);
	fib->hops.hop[id].is_neighbour = 0;
	fib->n_neighbours--;
	hops_rewrite(&fib->hops, id);
	remove_host(fib, vrf, &hop.via);
	hops_release(&fib->hops, id);
	publish_host(fib, vrf, &hop.via);
	return 0;
}

// The first neighbour among hop `id` and those after it on its interface, 0: none.
static uint32_t neighbour_from(const struct hops *hops, uint32_t id)
{
	while (id && !hops->hop[id].is_neighbour)
		id = hops->hop[id].next;
	return id;
}

static uint32_t first_on(const struct hops *hops, uint16_t iface)
{
	return neighbour_from(hops, hops->on_iface[iface]);
}

static uint32_t next_on(const struct hops *hops, uint32_t id)
{
	return neighbour_from(hops, hops->hop[id].next);
}

static int add_hosts(struct fib *fib, uint16_t iface, uint16_t vrf)
{
	const struct hops *hops = &fib->hops;

	for (uint32_t id = first_on(hops, iface); id; id = next_on(hops, id)) {
		if (!add_host(fib, vrf, &hops->hop[id].key.via))
			continue;
		for (uint32_t undo = first_on(hops, iface); undo != id; undo = next_on(hops, undo))
			remove_host(fib, vrf, &hops->hop[undo].key.via);
		return -ENOSPC;
	}
	return 0;
}

int hosts_follow_iface(struct fib *fib, uint16_t iface, uint16_t vrf)
{
	const struct hops *hops = &fib->hops;
	const uint16_t from = iface_vrf(&fib->ifaces, iface);

	if (from == vrf)
		return 0;
	if (add_hosts(fib, iface, vrf))
		return -ENOSPC;
	iface_set_vrf(&fib->ifaces, iface, vrf);
	for (uint32_t id = first_on(hops, iface); id; id = next_on(hops, id)) {
		const struct wire_addr *addr = &hops->hop[id].key.via;

		remove_host(fib, from, addr);
		publish_host(fib, from, addr);
		publish_host(fib, vrf, addr);
	}
	return 0;
}
