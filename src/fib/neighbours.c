// Neighbours: a MAC for the hop via that address on that port, and a host of its own where a
// CONNECTED route covers it. Control thread.
#include "fib/change.h"
#include "fib/table.h"

#include <errno.h>

static struct fib_hop hop_via(uint16_t link, const struct wire_addr *addr)
{
	struct fib_hop hop = {.via = *addr, .link = link, .kind = FIB_VIA};

	hops_normalise(&hop);
	return hop;
}

static struct rib_prefix host_of(const struct wire_addr *addr)
{
	struct wire_prefix prefix = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};

	return rib_prefix_of(&prefix);
}

static void publish_host(struct fib *fib, const struct rib_prefix *host)
{
	struct edit edit = {.key = host->key, .len = host->len, .tree = host->tree};

	change_publish(fib, &edit, 1);
}

static int complain_full(struct complaint *why, const struct wire_addr *addr)
{
	char text[WIRE_ADDR_TEXT];

	return complain(why, -ENOSPC,
		"no room for neighbour %s: the table holds at most %u next hops and %u prefixes",
		wire_addr_print(addr, text), FIB_MAX_HOPS, RIB_MAX_NODES / 2);
}

static int add_neighbour(struct fib *fib, const struct fib_hop *hop, const struct wire_mac *mac)
{
	const struct rib_prefix host = host_of(&hop->via);
	uint16_t id = change_acquire_hop(fib, hop);

	if (!id)
		return -ENOSPC;
	uint32_t node = rib_insert(&fib->rib, &host);
	if (!node) {
		hops_release(&fib->hops, id);
		hops_sweep(&fib->hops, &fib->retire);
		return -ENOSPC;
	}
	rib_node(&fib->rib, node)->n_neighbours++;
	fib->hops.hop[id].is_neighbour = 1;
	fib->hops.hop[id].mac = *mac;
	fib->n_neighbours++;
	hops_rewrite(&fib->hops, id);
	publish_host(fib, &host);
	return 0;
}

int fib_neighbour_set(struct fib *fib, uint16_t link, const struct wire_addr *addr,
	const struct wire_mac *mac, struct complaint *why)
{
	const struct fib_hop hop = hop_via(link, addr);
	uint16_t id = hops_find(&fib->hops, &hop);

	if (link >= FIB_MAX_LINKS || (addr->family != 4 && addr->family != 6))
		return complain(why, -EINVAL, "a neighbour needs a link and an address");
	if (id && fib->hops.hop[id].is_neighbour) {
		fib->hops.hop[id].mac = *mac;
		hops_rewrite(&fib->hops, id);
		return 0;
	}
	return add_neighbour(fib, &hop, mac) ? complain_full(why, addr) : 0;
}

int fib_neighbour_delete(struct fib *fib, uint16_t link, const struct wire_addr *addr)
{
	const struct fib_hop hop = hop_via(link, addr);
	uint16_t id = hops_find(&fib->hops, &hop);

	if (!id || !fib->hops.hop[id].is_neighbour)
		return -ENOENT;
	const struct rib_prefix host = host_of(&hop.via);
	fib->hops.hop[id].is_neighbour = 0;
	fib->n_neighbours--;
	hops_rewrite(&fib->hops, id);
	rib_node(&fib->rib, rib_find(&fib->rib, &host))->n_neighbours--;
	rib_prune(&fib->rib, &host);
	hops_release(&fib->hops, id);
	publish_host(fib, &host);
	return 0;
}
