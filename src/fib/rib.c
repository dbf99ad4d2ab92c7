// Finds, inserts and removes prefixes. Control thread.
#include "fib/rib.h"

#include "fib/hops.h"

#include <errno.h>

int rib_open(struct rib *rib, const struct hops *hops)
{
	memset(rib->root, 0, sizeof(rib->root));
	rib->hops = hops;
	return blocks_open(&rib->nodes, sizeof(struct rib_node), RIB_MAX_NODES, 1);
}

void rib_close(struct rib *rib)
{
	blocks_close(&rib->nodes);
}

struct rib_prefix rib_prefix_in(uint16_t vrf, const struct wire_prefix *prefix)
{
	struct rib_prefix out = {.tree = rib_tree(vrf, prefix->addr.family), .len = prefix->len};
	unsigned n = prefix->addr.family == 4 ? 4 : 16;

	for (unsigned i = 0; i < n; i++) {
		uint64_t *half = i < 8 ? &out.key.high : &out.key.low;
		*half |= (uint64_t)prefix->addr.bytes[i] << (56 - 8 * (i & 7));
	}
	return out;
}

struct rib_prefix rib_prefix_of(const struct wire_prefix *prefix)
{
	return rib_prefix_in(0, prefix);
}

struct wire_prefix rib_prefix_to_wire(const struct rib_prefix *prefix)
{
	struct wire_prefix out = {.addr.family = rib_tree_is4(prefix->tree) ? 4 : 6,
		.len = prefix->len};

	for (unsigned i = 0; i < 16; i++)
		out.addr.bytes[i] =
			(i < 8 ? prefix->key.high : prefix->key.low) >> (56 - 8 * (i & 7));
	return out;
}

static unsigned bit_at(struct fib_key6 key, unsigned at)
{
	return (at < 64 ? key.high >> (63 - at) : key.low >> (127 - at)) & 1;
}

uint32_t rib_find(const struct rib *rib, const struct rib_prefix *prefix)
{
	uint32_t at = rib->root[prefix->tree];

	while (at) {
		const struct rib_node *node = rib_node(rib, at);
		if (node->len >= prefix->len)
			return node->len == prefix->len &&
			                       rib_common_bits(node->key, prefix->key) >= node->len
			               ? at
			               : 0;
		at = node->child[bit_at(prefix->key, node->len)];
	}
	return 0;
}

static uint32_t make_node(struct rib *rib, const struct rib_prefix *prefix)
{
	uint32_t at = blocks_take(&rib->nodes, 1);

	if (at)
		*rib_node(rib, at) = (struct rib_node){.key = prefix->key,
			.len = prefix->len,
			.tree = prefix->tree};
	return at;
}

static struct fib_key6 masked(struct fib_key6 key, unsigned len)
{
	if (len <= 64)
		return (struct fib_key6){len ? key.high & ~0ull << (64 - len) : 0, 0};
	return (struct fib_key6){key.high, key.low & ~0ull << (128 - len)};
}

// Inserts a node for `prefix` where *iface points to a node that is not above it; they share
// `common` bits.
static uint32_t insert_above(struct rib *rib, uint32_t *iface, const struct rib_prefix *prefix,
	unsigned common)
{
	uint32_t below = *iface;
	uint32_t made = make_node(rib, prefix);

	if (!made)
		return 0;
	if (common == prefix->len) {
		rib_node(rib, made)->child[bit_at(rib_node(rib, below)->key, common)] = below;
		*iface = made;
		return made;
	}
	const struct rib_prefix shared = {masked(prefix->key, common), prefix->tree, common};
	uint32_t fork = make_node(rib, &shared);
	if (!fork) {
		blocks_give(&rib->nodes, made, 1);
		return 0;
	}
	unsigned side = bit_at(prefix->key, common);
	rib_node(rib, fork)->child[side] = made;
	rib_node(rib, fork)->child[!side] = below;
	*iface = fork;
	return made;
}

uint32_t rib_insert(struct rib *rib, const struct rib_prefix *prefix)
{
	uint32_t *iface = &rib->root[prefix->tree];

	while (*iface) {
		struct rib_node *node = rib_node(rib, *iface);
		unsigned common = rib_common_bits(prefix->key, node->key);
		common = MIN_OF(common, prefix->len);
		if (common < node->len)
			return insert_above(rib, iface, prefix, common);
		if (node->len == prefix->len)
			return *iface;
		iface = &node->child[bit_at(prefix->key, node->len)];
	}
	*iface = make_node(rib, prefix);
	return *iface;
}

static bool is_empty(const struct rib_node *node)
{
	return !node->route && !node->builtin && !node->n_neighbours;
}

// Removes a node with at most one child.
static void unlink_node(struct rib *rib, uint32_t *iface)
{
	uint32_t at = *iface;
	const struct rib_node *node = rib_node(rib, at);

	*iface = node->child[0] ? node->child[0] : node->child[1];
	blocks_give(&rib->nodes, at, 1);
}

static bool is_fork(const struct rib_node *node)
{
	return node->child[0] && node->child[1];
}

void rib_prune(struct rib *rib, const struct rib_prefix *prefix)
{
	uint32_t *above = NULL, *iface = &rib->root[prefix->tree];

	while (*iface && rib_node(rib, *iface)->len < prefix->len) {
		above = iface;
		iface = &rib_node(rib, *iface)
		                 ->child[bit_at(prefix->key, rib_node(rib, *iface)->len)];
	}
	if (!*iface)
		return;
	struct rib_node *node = rib_node(rib, *iface);
	if (node->len != prefix->len || rib_common_bits(node->key, prefix->key) < node->len)
		return;
	if (!is_empty(node) || is_fork(node))
		return;
	unlink_node(rib, iface);
	if (above && is_empty(rib_node(rib, *above)) && !is_fork(rib_node(rib, *above)))
		unlink_node(rib, above);
}

uint32_t rib_hop(const struct rib *rib, const struct rib_node *node, uint32_t inherited)
{
	if (node->route)
		return node->route;
	return node->builtin ? rib->hops->builtin[node->builtin] : inherited;
}

uint32_t rib_hop_resolved(const struct rib *rib, const struct rib_node *node, uint32_t inherited)
{
	uint32_t hop = rib_hop(rib, node, inherited);
	const struct fib_hop *via = &rib->hops->hop[hop].key;

	if (!node->n_neighbours || via->kind != FIB_CONNECTED)
		return hop;
	if (iface_vrf(rib->hops->ifaces, via->iface) != rib_tree_vrf(node->tree))
		return hop;
	const struct rib_prefix host = {node->key, node->tree, node->len};
	struct fib_hop direct = {.via = rib_prefix_to_wire(&host).addr,
		.iface = via->iface,
		.kind = FIB_VIA};
	uint32_t id = hops_find(rib->hops, &direct);
	return id && rib->hops->hop[id].is_neighbour ? id : hop;
}

struct rib_top rib_locate(const struct rib *rib, const struct rib_prefix *prefix)
{
	struct rib_top top = {rib->root[prefix->tree], 0};

	while (top.node) {
		const struct rib_node *node = rib_node(rib, top.node);
		unsigned common = rib_common_bits(node->key, prefix->key);
		if (node->len >= prefix->len && common >= prefix->len)
			return top;
		if (node->len >= prefix->len || common < node->len)
			break;
		top.hop = rib_hop(rib, node, top.hop);
		top.node = node->child[bit_at(prefix->key, node->len)];
	}
	return (struct rib_top){0, top.hop};
}

uint32_t rib_longest(const struct rib *rib, const struct rib_prefix *host, uint32_t *exact)
{
	uint32_t best = 0, at = rib->root[host->tree];

	*exact = 0;
	while (at) {
		const struct rib_node *node = rib_node(rib, at);
		if (rib_common_bits(node->key, host->key) < node->len)
			break;
		if (node->route || node->builtin)
			best = at;
		if (node->len == host->len) {
			*exact = at;
			break;
		}
		at = node->child[bit_at(host->key, node->len)];
	}
	return best;
}

uint32_t rib_count(const struct rib *rib, uint32_t node, uint32_t limit)
{
	if (!node || !limit)
		return 0;
	uint32_t n = 1 + rib_count(rib, rib_node(rib, node)->child[0], limit - 1);
	return n >= limit ? limit : n + rib_count(rib, rib_node(rib, node)->child[1], limit - n);
}
