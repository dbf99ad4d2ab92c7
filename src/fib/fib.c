// Creates and destroys tables, and answers queries of the control thread. Control thread.
#include "fib/fib.h"

#include "base/pages.h"
#include "fib/lookup.h"
#include "fib/table.h"

#include <errno.h>
#include <string.h>

enum { ROOT4_BYTES = 4 * ROOT4_SLOTS, ROOT6_BYTES = 4 << ROOT6_BITS };

// When fib_tidy compacts.
enum { UNTIDY_LEAST = 4096, UNTIDY_SHARE = 4, QUIET_CALLS = 10, UNTIDY_MOST_TIMES = 4 };

static void show_to_workers(struct fib *fib)
{
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);

	fib->lookups = &variants[n_variants - 1];
	fib->view = (struct fib_view){
		.node4 = blocks_at(&fib->publish4.page, 0),
		.root4 = publish4_root(&fib->publish4, 0),
		.hops = fib->hops.entry,
		.plain = fib->hops.plain,
		.bucket = fib->groups.bucket,
		.used = fib->groups.used,
		.epoch = &fib->groups.epoch,
		.lookup4 = fib->lookups->near4,
		.lookup6 = fib->lookups->six,
		.begin4 = fib->lookups->begin4,
		.leaf4 = blocks_at(&fib->publish4.leaf, 0),
		.tail4 = blocks_at(&fib->publish4.tail, 0),
		.root6 = publish6_root(&fib->publish6, 0),
		.node6 = blocks_at(&fib->publish6.wide, 0),
		.leaf6 = blocks_at(&fib->publish6.leaf, 0),
		.line6 = blocks_at(&fib->publish6.line, 0),
		.frame_max4 = fib->hops.frame_max4,
		.oif = fib->hops.oif,
		.oifs = fib->groups.oifs,
		.held = fib->held.hop,
		.ifaces = fib->ifaces.view,
		.sources = &fib->sources.shown,
		.ends = &fib->tunnels.ends,
		.overlay = fib->vxlans.overlay,
		.layer3_hash = &fib->groups.layer3_hash,
		.vrfs = fib->vrf_view,
		.mixed4 = fib->lookups->mixed4,
		.mixed6 = fib->lookups->mixed6,
	};
}

static void free_block(void *ctx, struct rcu_block block)
{
	struct fib *fib = ctx;
	struct blocks *const pool[] = {
		[DEFERRED_PAGE4] = &fib->publish4.page,
		[DEFERRED_LEAF4] = &fib->publish4.leaf,
		[DEFERRED_TAIL4] = &fib->publish4.tail,
		[DEFERRED_LEAF6] = &fib->publish6.leaf,
		[DEFERRED_LINE6] = &fib->publish6.line,
		[DEFERRED_WIDE6] = &fib->publish6.wide,
		[DEFERRED_TEMPLATE] = &fib->hops.templates,
	};

	if (block.kind == DEFERRED_HELD) {
		held_reuse(&fib->held, block.first);
		return;
	}
	if (block.kind == DEFERRED_VTEP) {
		vteps_reuse(&fib->vxlans, block.first);
		return;
	}
	if (block.kind != DEFERRED_HOP) {
		blocks_give(pool[block.kind], block.first, block.n);
		return;
	}
	publish4_forget_hop(&fib->publish4, block.first);
	hops_reuse(&fib->hops, block.first);
}

static int open_parts(struct fib *fib)
{
	fib->vrf_view = pages_alloc(FIB_MAX_VRFS * sizeof(*fib->vrf_view));
	if (!fib->vrf_view)
		return -ENOMEM;
	if (iface_table_open(&fib->ifaces))
		goto free_views;
	if (hops_open(&fib->hops))
		goto close_ifaces;
	if (held_open(&fib->held))
		goto close_hops;
	if (groups_open(&fib->groups))
		goto close_held;
	fib->hops.groups = &fib->groups;
	fib->hops.defer = &fib->defer;
	fib->hops.ifaces = &fib->ifaces;
	if (rib_open(&fib->rib, &fib->hops))
		goto close_groups;
	if (publish4_open(&fib->publish4))
		goto close_rib;
	if (publish6_open(&fib->publish6))
		goto close_publish4;
	if (vxlans_open(&fib->vxlans))
		goto close_publish6;
	return 0;
close_publish6:
	publish6_close(&fib->publish6);
close_publish4:
	publish4_close(&fib->publish4);
close_rib:
	rib_close(&fib->rib);
close_groups:
	groups_close(&fib->groups);
close_held:
	held_close(&fib->held);
close_hops:
	hops_close(&fib->hops);
close_ifaces:
	iface_table_close(&fib->ifaces);
free_views:
	pages_free(fib->vrf_view, FIB_MAX_VRFS * sizeof(*fib->vrf_view));
	return -ENOMEM;
}

struct fib *fib_create(struct error *error)
{
	struct fib *fib = pages_alloc(sizeof(*fib));

	if (!fib || open_parts(fib)) {
		pages_free(fib, sizeof(*fib));
		error_set(error, -ENOMEM,
			"cannot reserve address space for a forwarding table; raise the limit "
			"(ulimit -v)");
		return NULL;
	}
	show_to_workers(fib);
	fib->defer.free = free_block;
	fib->defer.ctx = fib;
	if (vrf_open_main(fib)) {
		error_set(error, -ENOMEM, "not enough memory for a forwarding table");
		fib_destroy(fib);
		return NULL;
	}
	return fib;
}

void fib_destroy(struct fib *fib)
{
	if (!fib)
		return;
	tunnels_close(&fib->tunnels);
	vxlans_close(&fib->vxlans);
	publish6_close(&fib->publish6);
	publish4_close(&fib->publish4);
	rib_close(&fib->rib);
	groups_close(&fib->groups);
	held_close(&fib->held);
	hops_close(&fib->hops);
	labels_close(&fib->labels);
	iface_table_close(&fib->ifaces);
	pages_free(fib->vrf_view, FIB_MAX_VRFS * sizeof(*fib->vrf_view));
	pages_free(fib, sizeof(*fib));
}

static struct fib_route route_of(const struct fib *fib, const struct rib_node *node)
{
	struct rib_prefix prefix = {node->key, node->tree, node->len};

	return (struct fib_route){.prefix = rib_prefix_to_wire(&prefix),
		.vrf = rib_tree_vrf(node->tree),
		.hop = fib->hops.hop[rib_hop(&fib->rib, node, 0)].key};
}

void rib_lookup(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr,
	struct fib_answer *answer)
{
	struct wire_prefix whole = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};
	uint32_t exact, best;

	*answer =
		(struct fib_answer){.verdict = fib->hops.entry[0].verdict, .hop.iface = IFACE_NONE};
	if (!vrf_exists(fib, vrf))
		return;
	struct rib_prefix host = rib_prefix_in(vrf, &whole);
	best = rib_longest(&fib->rib, &host, &exact);
	if (!best)
		return;
	answer->found = true;
	answer->route = route_of(fib, rib_node(&fib->rib, best));
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

uint32_t fib_lookup(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr)
{
	struct wire_prefix whole = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};
	struct rib_prefix host = rib_prefix_of(&whole);
	uint32_t dst = host.key.high >> 32;
	uint32_t hop;

	const struct fib_view *view = vrf_view_of(fib, vrf);

	if (!view)
		return 0;
	if (host.tree == RIB4)
		fib_lookup4(view, &dst, &hop, 1);
	else
		fib_lookup6(view, &host.key, &hop, 1);
	return hop;
}

bool fib_next(const struct fib *fib, const struct fib_walk *walk, struct fib_route *out)
{
	const uint16_t tree = rib_tree(walk->vrf, walk->family);
	struct rib_prefix prefix;

	if (!vrf_exists(fib, walk->vrf))
		return false;
	if (walk->after)
		prefix = rib_prefix_of(walk->after);
	uint32_t node = rib_next(&fib->rib, tree, walk->after ? &prefix : NULL);
	if (!node)
		return false;
	*out = route_of(fib, rib_node(&fib->rib, node));
	return true;
}

bool fib_hop_info(const struct fib *fib, uint32_t id, struct fib_hop_info *out)
{
	const struct hop *hop = &fib->hops.hop[id];
	const struct fib_hop_entry *entry = &fib->hops.entry[id];
	const bool is_neighbour = fib->hops.hop[hop->plain ? hop->plain : id].is_neighbour;

	if (!id || id > fib->hops.max_id || hop->key.kind >= N_FIB_KINDS)
		return false;
	*out = (struct fib_hop_info){.hop = hop->key,
		.verdict = fib_entry_verdict(entry),
		.mtu = hops_mtu(&fib->hops, id, hop->key.via.family),
		.n_routes = hop->n_routes,
		.is_neighbour = is_neighbour,
		.is_held = hop->held != 0,
		.counted_before = hop->counted_before};
	if (is_neighbour)
		out->mac = hop->mac;
	else if (out->verdict == VERDICT_FORWARD && hop->key.kind == FIB_PEER)
		out->mac = iface_latest(&fib->ifaces, hop->key.iface)->peer;
	return true;
}

void fib_set_synced(struct fib *fib, bool is_synced)
{
	hops_set_no_route(&fib->hops, is_synced ? VERDICT_NO_ROUTE : VERDICT_NOT_SYNCED);
}

bool fib_is_synced(const struct fib *fib)
{
	return fib->hops.entry[0].verdict == VERDICT_NO_ROUTE;
}

void fib_set_counter_baseline(struct fib *fib, const struct fib_count *count)
{
	fib->hops.count = *count;
	for (uint32_t id = 1; id <= fib->hops.max_id; id++)
		fib->hops.hop[id].counted_before = count->counted(count->ctx, id);
}

static uint32_t n_routes(const struct fib *fib, uint8_t family)
{
	uint32_t n = 0;

	for (unsigned tree = family; tree < RIB_TREES; tree += RIB_FAMILIES)
		n += fib->n_routes[tree];
	return n;
}

void fib_usage(const struct fib *fib, struct fib_usage *out)
{
	const struct publish4 *four = &fib->publish4;
	const struct publish6 *six = &fib->publish6;

	*out = (struct fib_usage){
		.n_routes4 = n_routes(fib, RIB4),
		.n_routes6 = n_routes(fib, RIB6),
		.n_hops = fib->hops.n_used,
		.n_held = fib->held.n,
		.n_labels = fib->labels.n,
		.worker_bytes_labels = labels_bytes(&fib->labels),
		.worker_bytes_vxlan = vxlans_bytes(&fib->vxlans),
		.n_neighbours = fib->n_neighbours,
		.max_hop_id = fib->hops.max_id,
		.worker_bytes4 = blocks_bytes(&four->page) + blocks_bytes(&four->leaf) +
	                         publish4_tail_bytes(four) + (fib->n_vrfs - 1) * ROOT4_BYTES,
		.worker_bytes6 = fib->n_vrfs * ROOT6_BYTES + blocks_bytes(&six->wide) +
	                         blocks_bytes(&six->leaf) + blocks_bytes(&six->line),
		.worker_bytes_hops = (fib->hops.max_id + 1) * sizeof(struct fib_hop_entry) +
	                             (fib->held.max + 1) * sizeof(*fib->held.hop) +
	                             blocks_bytes(&fib->hops.templates) +
	                             fib->groups.n_groups * FIB_GROUP_BUCKETS * sizeof(uint32_t),
		.control_bytes = blocks_bytes(&fib->rib.nodes) + sizeof(*fib) +
	                         iface_table_bytes(&fib->ifaces) +
	                         (fib->hops.max_id + 1) * sizeof(struct hop),
		.pending_frees = rcu_defer_pending(&fib->defer),
	};
}

void fib_tidy(struct fib *fib)
{
	uint32_t n = fib->n_untidy, n_routes = fib->n_routes[RIB4];
	bool is_quiet = n == fib->n_untidy_seen;

	fib->n_untidy_seen = n;
	fib->n_quiet = is_quiet ? fib->n_quiet + 1 : 0;
	if (n < UNTIDY_LEAST || n < n_routes / UNTIDY_SHARE)
		return;
	if (fib->n_quiet < QUIET_CALLS && n / UNTIDY_MOST_TIMES < n_routes)
		return;
	publish4_tidy(fib);
	fib->n_untidy = fib->n_untidy_seen = fib->n_quiet = 0;
}

struct fib *fib_live_swap(struct fib_live *live, struct fib *fib)
{
	struct fib *old = live->fib;

	if (old == fib)
		return NULL;
	if (fib)
		rcu_defer_attach(&fib->defer, live->rcu);
	live->fib = fib;
	__atomic_store_n(&live->view, fib ? &fib->view : NULL, __ATOMIC_RELEASE);
	if (old)
		rcu_defer_detach(&old->defer);
	return old;
}
