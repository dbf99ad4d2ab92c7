// A batch of changes: sorted by prefix, checked as a whole, then applied and published. Control
// thread.
#include "fib/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLEAR_BATCH = 256,
	HUGE_PAGES_FROM_ROUTES = 16384,
	FAR_FROM_ROUTES = 8192,
	WAITS_FROM_ROUTES = 65536,
};

// The first error in the order of the batch.
struct fault {
	size_t index;
	int error;
};

struct batch {
	struct fib *fib;
	const struct fib_change *changes;
	size_t n;
	struct edit *edits; // sorted; then merged to the final edit of each prefix
	size_t n_edits;
	struct fault fault;
};

static void blame(struct batch *batch, size_t index, int error)
{
	if (batch->fault.error && batch->fault.index <= index)
		return;
	batch->fault = (struct fault){index, error};
}

bool change_hop_is_sound(const struct hops *hops, const struct fib_hop *hop)
{
	if (hop->kind >= N_FIB_KINDS || hop->n_labels > FIB_MAX_PUSHED)
		return false;
	if (hop->kind == FIB_VIA && hop->via.family != 4 && hop->via.family != 6)
		return false;
	if (hop->kind == FIB_GROUP)
		return hops_find(hops, hop) != 0; // it must come from fib_group
	return hop->kind > FIB_PEER || hop->iface < IFACE_MAX;
}

static bool change_is_sound(const struct fib *fib, const struct fib_change *change)
{
	struct wire_prefix masked = change->route.prefix;
	unsigned max_len = masked.addr.family == 4 ? 32 : 128;

	if ((masked.addr.family != 4 && masked.addr.family != 6) || masked.len > max_len ||
		change->op > FIB_DELETE || !vrf_exists(fib, change->route.vrf))
		return false;
	wire_prefix_mask(&masked);
	if (!wire_addr_equal(&masked.addr, &change->route.prefix.addr))
		return false;
	return change->op == FIB_DELETE || change_hop_is_sound(&fib->hops, &change->route.hop);
}

static int take_in(struct batch *batch)
{
	for (size_t i = 0; i < batch->n; i++) {
		if (!change_is_sound(batch->fib, &batch->changes[i])) {
			blame(batch, i, -EINVAL);
			return -EINVAL;
		}
		const struct fib_route *route = &batch->changes[i].route;
		struct rib_prefix prefix = rib_prefix_in(route->vrf, &route->prefix);
		batch->edits[i] = (struct edit){.key = prefix.key,
			.index = i,
			.len = prefix.len,
			.tree = prefix.tree};
	}
	return 0;
}

static bool same_prefix(const struct edit *a, const struct edit *b)
{
	return a->key.high == b->key.high && a->key.low == b->key.low && a->len == b->len &&
	       a->tree == b->tree;
}

static struct rib_prefix prefix_of(const struct edit *edit)
{
	return (struct rib_prefix){edit->key, edit->tree, edit->len};
}

// Checks the changes of one prefix in order.
static void check_existence(struct batch *batch, const struct edit *edits, size_t n)
{
	const struct rib_prefix prefix = prefix_of(edits);
	uint32_t node = rib_find(&batch->fib->rib, &prefix);
	bool exists = node && rib_node(&batch->fib->rib, node)->route;

	for (size_t i = 0; i < n; i++) {
		uint8_t op = batch->changes[edits[i].index].op;
		if (op == FIB_ADD && exists)
			blame(batch, edits[i].index, -EEXIST);
		if (op == FIB_DELETE && !exists)
			blame(batch, edits[i].index, -ENOENT);
		exists = op != FIB_DELETE;
	}
}

// Keeps only the last edit of each prefix.
static void check_and_merge(struct batch *batch)
{
	size_t n_merged = 0;

	for (size_t i = 0, n; i < batch->n; i += n) {
		for (n = 1;
			i + n < batch->n && same_prefix(&batch->edits[i], &batch->edits[i + n]);)
			n++;
		check_existence(batch, &batch->edits[i], n);
		batch->edits[n_merged++] = batch->edits[i + n - 1];
	}
	batch->n_edits = n_merged;
}

uint32_t change_acquire_hop(struct fib *fib, const struct fib_hop *hop)
{
	struct fib_hop key = *hop;

	hops_normalise(&key);
	uint32_t id = hops_acquire(&fib->hops, &key);
	if (!id && rcu_defer_pending(&fib->defer)) {
		rcu_defer_drain(&fib->defer); // deferred frees may include ids
		id = hops_acquire(&fib->hops, &key);
	}
	if (id)
		publish_hop(fib, id);
	return id;
}

static void acquire_hops(struct batch *batch)
{
	for (size_t i = 0; i < batch->n_edits; i++) {
		struct edit *edit = &batch->edits[i];
		const struct fib_change *change = &batch->changes[edit->index];
		if (change->op == FIB_DELETE) {
			edit->hop = 0;
			continue;
		}
		const uint32_t index = edit->index;
		edit->hop = change_acquire_hop(batch->fib, &change->route.hop);
		if (!edit->hop) {
			blame(batch, index, -ENOSPC);
			batch->n_edits = i;
			return;
		}
	}
}

static void release_hops(struct batch *batch)
{
	for (size_t i = 0; i < batch->n_edits; i++)
		if (batch->edits[i].hop)
			hops_release(&batch->fib->hops, batch->edits[i].hop);
	hops_sweep(&batch->fib->hops);
}

static bool has_room(const struct batch *batch)
{
	const struct blocks *nodes = &batch->fib->rib.nodes;

	return 2 * batch->n_edits <= nodes->limit - nodes->top + nodes->n_free;
}

static bool is_local(const struct fib *fib, uint32_t hop)
{
	return fib->hops.hop[hop].key.kind == FIB_LOCAL;
}

// Called before workers see the route, so that the filter never misses one of our addresses.
static void note_source(struct fib *fib, const struct rib_prefix *prefix, uint32_t hop,
	uint32_t old)
{
	if (is_local(fib, hop) == is_local(fib, old))
		return;
	if (is_local(fib, hop))
		sources_add(&fib->sources, prefix);
	else
		sources_remove(&fib->sources, prefix);
}

static void apply(struct fib *fib, const struct edit *edit)
{
	const struct rib_prefix prefix = prefix_of(edit);
	uint32_t at = edit->hop ? rib_insert(&fib->rib, &prefix) : rib_find(&fib->rib, &prefix);
	struct rib_node *node = rib_node(&fib->rib, at);

	if (!at)
		return; // added and deleted within one batch
	uint32_t old = node->route;
	node->route = edit->hop;
	note_source(fib, &prefix, edit->hop, old);
	fib->n_routes[edit->tree] += !!edit->hop - !!old;
	fib->n_all_routes += !!edit->hop - !!old;
	if (edit->hop)
		fib->hops.hop[edit->hop].n_routes++;
	if (old) {
		fib->hops.hop[old].n_routes--;
		hops_release(&fib->hops, old);
	}
	if (!edit->hop)
		rib_prune(&fib->rib, &prefix);
}

static void use_huge_pages(struct fib *fib)
{
	struct blocks *pools[] = {&fib->rib.nodes, &fib->publish4.page, &fib->publish4.leaf,
		&fib->publish4.tail, &fib->publish6.wide, &fib->publish6.leaf, &fib->publish6.line};

	for (size_t i = 0; i < ARRAY_LEN(pools); i++)
		blocks_use_huge_pages(pools[i]);
	fib->has_huge_pages = true;
}

static void choose_lookup(struct fib *fib)
{
	bool is_far = fib->n_routes[RIB4] >= FAR_FROM_ROUTES;
	bool waits = fib->n_routes[RIB4] >= WAITS_FROM_ROUTES;
	lookup4_fn *best = is_far ? fib->lookups->far4 : fib->lookups->near4;

	__atomic_store_n(&fib->view.lookup4, best, __ATOMIC_RELAXED);
	__atomic_store_n(&fib->vrf_view[0].lookup4, best, __ATOMIC_RELAXED);
	__atomic_store_n(&fib->view.is_far4, is_far, __ATOMIC_RELAXED);
	__atomic_store_n(&fib->vrf_view[0].is_far4, is_far, __ATOMIC_RELAXED);
	__atomic_store_n(&fib->view.waits4, waits, __ATOMIC_RELAXED);
	__atomic_store_n(&fib->vrf_view[0].waits4, waits, __ATOMIC_RELAXED);
}

void change_publish(struct fib *fib, const struct edit *edits, size_t n)
{
	for (size_t i = 0, part; i < n; i += part) {
		for (part = 1; i + part < n && edits[i + part].tree == edits[i].tree;)
			part++;
		if (rib_tree_is4(edits[i].tree))
			publish4_edits(fib, edits + i, part);
		else
			publish6_edits(fib, edits + i, part);
	}
	tunnels_follow(fib);
	hops_sweep(&fib->hops);
	rcu_defer_close(&fib->defer, false);
}

void change_clear(struct fib *fib, uint16_t tree)
{
	struct edit edits[CLEAR_BATCH];
	size_t n;

	do {
		struct rib_prefix last;
		uint32_t node = rib_next(&fib->rib, tree, NULL);
		for (n = 0; node && n < CLEAR_BATCH; n++) {
			const struct rib_node *at = rib_node(&fib->rib, node);
			last = (struct rib_prefix){at->key, tree, at->len};
			edits[n] = (struct edit){.key = at->key, .len = at->len, .tree = tree};
			node = rib_next(&fib->rib, tree, &last);
		}
		for (size_t i = 0; i < n; i++)
			apply(fib, &edits[i]);
		change_publish(fib, edits, n);
	} while (n == CLEAR_BATCH);
}

// If a batch replaces most of the table, the copy is contiguous anyway.
static void note_changes(struct batch *batch)
{
	struct fib *fib = batch->fib;

	if (batch->n_edits > fib->n_routes[RIB4])
		fib->n_untidy = 0;
	else
		fib->n_untidy += batch->n_edits;
}

static int run(struct batch *batch, struct edit *other)
{
	struct fib *fib = batch->fib;

	if (take_in(batch))
		return batch->fault.error;
	batch->edits = sort_edits(batch->edits, other, batch->n);
	check_and_merge(batch);
	if (!batch->fault.error && !has_room(batch))
		blame(batch, 0, -ENOSPC);
	if (batch->fault.error)
		return batch->fault.error;
	acquire_hops(batch);
	if (batch->fault.error) {
		release_hops(batch);
		return batch->fault.error;
	}
	if (!fib->has_huge_pages && fib->n_all_routes + batch->n_edits > HUGE_PAGES_FROM_ROUTES)
		use_huge_pages(fib);
	note_changes(batch);
	for (size_t i = 0; i < batch->n_edits; i++)
		apply(fib, &batch->edits[i]);
	change_publish(fib, batch->edits, batch->n_edits);
	choose_lookup(fib);
	return 0;
}

static int explain(const struct batch *batch, size_t *bad, struct error *error)
{
	const struct fault *fault = &batch->fault;
	const struct fib_route *route = &batch->changes[fault->index].route;
	char text[WIRE_PREFIX_TEXT + 16] = "a prefix of unknown family";

	if (bad)
		*bad = fault->index;
	if (route->prefix.addr.family == 4 || route->prefix.addr.family == 6)
		wire_prefix_print(&route->prefix, text);
	if (route->vrf)
		sprintf(text + strlen(text), " in VRF %u", route->vrf);
	switch (fault->error) {
	case -EEXIST:
		return error_set(error, -EEXIST,
			"cannot add %s: the route already exists; use replace instead", text);
	case -ENOENT:
		return error_set(error, -ENOENT, "cannot delete %s: no such route", text);
	case -ENOSPC:
		return error_set(error, -ENOSPC,
			"no space for %s: the table holds at most %u next hops and %u prefixes",
			text, FIB_MAX_HOPS, RIB_MAX_NODES / 2);
	default:
		if (!vrf_exists(batch->fib, route->vrf))
			return error_set(error, -EINVAL,
				"cannot apply %s: no such VRF; open it first", text);
		return error_set(error, -EINVAL,
			"cannot apply %s: invalid host bits, length or next hop", text);
	}
}

int fib_change(struct fib *fib, const struct fib_change *changes, size_t n, size_t *bad,
	struct error *error)
{
	struct edit few[FIB_SMALL_BATCH];
	struct batch batch = {.fib = fib, .changes = changes, .n = n, .edits = few};
	struct edit *many = NULL;

	if (!n) {
		change_publish(fib, NULL, 0);
		return 0;
	}
	if (n > FIB_SMALL_BATCH) {
		many = batch.edits = n <= UINT32_MAX ? malloc(2 * n * sizeof(*many)) : NULL;
		if (!many && bad)
			*bad = 0;
		if (!many)
			return error_set(error, -ENOMEM,
				"not enough memory for a batch of %zu changes; send smaller "
				"batches",
				n);
	}
	int result = run(&batch, many ? many + n : NULL);
	free(many);
	if (result)
		change_publish(fib, NULL, 0); // releases groups made for the batch
	return result ? explain(&batch, bad, error) : 0;
}
