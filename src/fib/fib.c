// A table from birth to death, and the questions the control thread asks it. Control thread.
#include "fib/fib.h"

#include "base/pages.h"
#include "fib/change.h"
#include "fib/lookup.h"
#include "fib/table.h"

#include <errno.h>
#include <string.h>

struct builtin {
	uint8_t family, len, kind;
	uint8_t bytes[2]; // the prefix's first ones
	uint8_t last;     // and its last one, for ::1
};

static const struct builtin builtins[] = {
	{4, 8, FIB_MARTIAN, {0}, 0},              // RFC 1812 5.3.7: this network
	{4, 8, FIB_MARTIAN, {127}, 0},            // loopback
	{4, 4, FIB_MARTIAN, {240}, 0},            // class E, limited broadcast
	{4, 16, FIB_LINK_LOCAL, {169, 254}, 0},   // RFC 3927 7
	{4, 4, FIB_MULTICAST, {224}, 0},          // RFC 1812 5.3.7
	{6, 128, FIB_MARTIAN, {0}, 0},            // RFC 4291 2.5.2: unspecified
	{6, 128, FIB_MARTIAN, {0}, 1},            // RFC 4291 2.5.3: loopback
	{6, 10, FIB_LINK_LOCAL, {0xfe, 0x80}, 0}, // RFC 4291 2.5.6
	{6, 8, FIB_MULTICAST, {0xff}, 0},         // RFC 4291 2.7
};

static int add_builtin(struct fib *fib, const struct builtin *builtin)
{
	struct wire_prefix prefix = {.addr.family = builtin->family, .len = builtin->len};
	struct fib_hop hop = {.link = FIB_NO_LINK, .kind = builtin->kind};

	memcpy(prefix.addr.bytes, builtin->bytes, sizeof(builtin->bytes));
	prefix.addr.bytes[15] = builtin->last;
	struct rib_prefix place = rib_prefix_of(&prefix);
	uint32_t node = rib_insert(&fib->rib, &place);
	uint16_t id = change_acquire_hop(fib, &hop);
	if (!node || !id)
		return -ENOMEM;
	rib_node(&fib->rib, node)->builtin = builtin->kind;
	fib->hops.builtin[builtin->kind] = id;
	struct edit edit = {.key = place.key, .len = place.len, .tree = place.tree};
	change_publish(fib, &edit, 1);
	return 0;
}

static void show_to_lanes(struct fib *fib)
{
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);

	fib->lookups = &variants[n_variants - 1];
	fib->view = (struct fib_view){
		.node4 = blocks_at(&fib->publish4.node, 0),
		.hops = fib->hops.entry,
		.bucket = fib->groups.bucket,
		.lookup4 = fib->is_small ? lookup4_small : fib->lookups->near4,
		.lookup6 = fib->lookups->six,
		.leaf4 = blocks_at(&fib->publish4.leaf, 0),
		.tail4 = blocks_at(&fib->publish4.tail, 0),
		.root4 = blocks_at(&fib->publish6.root4, 0),
		.root6 = blocks_at(&fib->publish6.root, 0),
		.node6 = blocks_at(&fib->publish6.wide, 0),
		.leaf6 = blocks_at(&fib->publish6.leaf, 0),
		.line6 = blocks_at(&fib->publish6.line, 0),
	};
}

static void prepare_retire(struct fib *fib)
{
	struct retire *retire = &fib->retire;

	retire->hops = &fib->hops;
	retire->pool[RETIRED_LEAF4] = &fib->publish4.leaf;
	retire->pool[RETIRED_TAIL4] = &fib->publish4.tail;
	retire->pool[RETIRED_LEAF6] = &fib->publish6.leaf;
	retire->pool[RETIRED_LINE6] = &fib->publish6.line;
	retire->pool[RETIRED_WIDE6] = &fib->publish6.wide;
}

static int open_parts(struct fib *fib)
{
	if (hops_open(&fib->hops))
		return -ENOMEM;
	if (groups_open(&fib->groups))
		goto close_hops;
	fib->hops.groups = &fib->groups;
	if (rib_open(&fib->rib, &fib->hops))
		goto close_groups;
	if (publish4_open(&fib->publish4))
		goto close_rib;
	if (publish6_open(&fib->publish6))
		goto close_publish4;
	return 0;
close_publish4:
	publish4_close(&fib->publish4);
close_rib:
	rib_close(&fib->rib);
close_groups:
	groups_close(&fib->groups);
close_hops:
	hops_close(&fib->hops);
	return -ENOMEM;
}

static struct fib *create(bool is_small, struct complaint *why)
{
	struct fib *fib = pages_alloc(sizeof(*fib));

	if (!fib || open_parts(fib)) {
		pages_free(fib, sizeof(*fib));
		complain(why, -ENOMEM,
			"no address space for a forwarding table; raise the limit (ulimit -v)");
		return NULL;
	}
	fib->is_small = is_small;
	show_to_lanes(fib);
	prepare_retire(fib);
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++) {
		if (!add_builtin(fib, &builtins[i]))
			continue;
		complain(why, -ENOMEM, "no memory for a forwarding table");
		fib_destroy(fib);
		return NULL;
	}
	return fib;
}

struct fib *fib_create(struct complaint *why)
{
	return create(false, why);
}

struct fib *fib_create_small(struct complaint *why)
{
	return create(true, why);
}

void fib_destroy(struct fib *fib)
{
	if (!fib)
		return;
	publish6_close(&fib->publish6);
	publish4_close(&fib->publish4);
	rib_close(&fib->rib);
	groups_close(&fib->groups);
	hops_close(&fib->hops);
	pages_free(fib, sizeof(*fib));
}

int fib_link_set(struct fib *fib, uint16_t link, const struct fib_link *settings)
{
	if (link >= FIB_MAX_LINKS)
		return -EINVAL;
	fib->hops.link[link] = *settings;
	fib->hops.has_link[link] = true;
	hops_rewrite_link(&fib->hops, link);
	return 0;
}

static struct fib_route route_of(const struct fib *fib, const struct rib_node *node, uint8_t tree)
{
	struct rib_prefix prefix = {node->key, tree, node->len};

	return (struct fib_route){.prefix = rib_prefix_to_wire(&prefix),
		.hop = fib->hops.hop[rib_hop(&fib->rib, node, 0)].key};
}

void fib_find(const struct fib *fib, uint8_t vrf, const struct wire_addr *addr,
	struct fib_answer *answer)
{
	struct wire_prefix whole = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};
	struct rib_prefix host = rib_prefix_of(&whole);
	uint32_t exact, best = rib_longest(&fib->rib, &host, &exact);

	*answer = (struct fib_answer){.verdict = VERDICT_NO_ROUTE, .hop.link = FIB_NO_LINK};
	if (!best)
		return;
	answer->found = true;
	answer->route = route_of(fib, rib_node(&fib->rib, best), host.tree);
	answer->hop_id = rib_hop(&fib->rib, rib_node(&fib->rib, best), 0);
	if (exact)
		answer->hop_id =
			rib_hop_resolved(&fib->rib, rib_node(&fib->rib, exact), answer->hop_id);
	struct fib_hop_info info;
	fib_hop_info(fib, answer->hop_id, &info);
	answer->hop = info.hop;
	answer->verdict = info.verdict;
	answer->mac = info.mac;
}

uint16_t fib_look(const struct fib *fib, uint8_t vrf, const struct wire_addr *addr)
{
	struct wire_prefix whole = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};
	struct rib_prefix host = rib_prefix_of(&whole);
	uint32_t dst = host.key.high >> 32;
	uint16_t hop;

	if (host.tree == RIB4)
		fib->view.lookup4(&fib->view, &dst, &hop, 1);
	else
		fib->view.lookup6(&fib->view, &host.key, &hop, 1);
	return hop;
}

bool fib_next(const struct fib *fib, const struct fib_walk *walk, struct fib_route *out)
{
	uint8_t tree = walk->family == 4 ? RIB4 : RIB6;
	struct rib_prefix prefix;

	if (walk->after)
		prefix = rib_prefix_of(walk->after);
	uint32_t node = rib_next(&fib->rib, tree, walk->after ? &prefix : NULL);
	if (!node)
		return false;
	*out = route_of(fib, rib_node(&fib->rib, node), tree);
	return true;
}

bool fib_hop_info(const struct fib *fib, uint16_t id, struct fib_hop_info *out)
{
	const struct hop *hop = &fib->hops.hop[id];
	const struct fib_hop_entry *entry = &fib->hops.entry[id];

	if (!id || id > fib->hops.max_id || hop->key.kind >= N_FIB_KINDS)
		return false;
	*out = (struct fib_hop_info){.hop = hop->key,
		.verdict = entry->verdict,
		.n_routes = hop->n_routes,
		.counted_before = hop->counted_before};
	if (entry->frame_max)
		out->mtu = fib->hops.link[hop->key.link].mtu;
	if (entry->verdict == VERDICT_FORWARD)
		memcpy(out->mac.bytes, entry->macs, sizeof(out->mac.bytes));
	return true;
}

void fib_count_from_now(struct fib *fib, const struct fib_count *count)
{
	fib->hops.count = *count;
	for (uint32_t id = 1; id <= fib->hops.max_id; id++)
		fib->hops.hop[id].counted_before = count->counted(count->house, id);
}

void fib_usage(const struct fib *fib, struct fib_usage *out)
{
	const struct publish4 *four = &fib->publish4;
	const struct publish6 *six = &fib->publish6;

	*out = (struct fib_usage){
		.n_routes4 = fib->n_routes[RIB4],
		.n_routes6 = fib->n_routes[RIB6],
		.n_hops = fib->hops.n_used,
		.n_neighbours = fib->n_neighbours,
		.max_hop_id = fib->hops.max_id,
		.lane_bytes4 = fib->is_small
	                               ? blocks_bytes(&six->root4)
	                               : blocks_bytes(&four->node) + blocks_bytes(&four->leaf) +
	                                         blocks_bytes(&four->tail),
		.lane_bytes6 = blocks_bytes(&six->root) + blocks_bytes(&six->wide) +
	                       blocks_bytes(&six->leaf) + blocks_bytes(&six->line),
		.lane_bytes_hops = (fib->hops.max_id + 1) * sizeof(struct fib_hop_entry) +
	                           fib->groups.n_groups * FIB_GROUP_BUCKETS * sizeof(uint16_t),
		.control_bytes = blocks_bytes(&fib->rib.nodes) + sizeof(*fib) +
	                         (fib->hops.max_id + 1) * sizeof(struct hop),
		.pending_frees = retire_pending(&fib->retire),
	};
}
