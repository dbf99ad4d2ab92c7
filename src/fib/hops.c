// The table of next hops. Control thread; workers read `entry` and `plain`.
#include "fib/hop_entries.h"

#include "base/pages.h"
#include "fib/groups.h"
#include "fib/table.h"
#include "fib/template.h"
#include "fib/ways.h"

#include <errno.h>
#include <string.h>

enum { HOP_SLOTS = FIB_MAX_HOPS + 1 };
enum { FIRST_BUCKETS = 1 << 10 };

void *hops_alloc_by_id(size_t bytes)
{
	void *array = pages_alloc(HOP_SLOTS * bytes);

	pages_keep_small(array, HOP_WIDE * bytes);
	return array;
}

void hops_free_by_id(void *array, size_t bytes)
{
	pages_free(array, HOP_SLOTS * bytes);
}

int hops_open(struct hops *hops)
{
	memset(hops, 0, sizeof(*hops));
	hops->entry = hops_alloc_by_id(sizeof(*hops->entry));
	hops->plain = pages_alloc(sizeof(*hops->plain));
	hops->frame_max4 = hops_alloc_by_id(sizeof(*hops->frame_max4));
	hops->oif = hops_alloc_by_id(sizeof(*hops->oif));
	hops->hop = hops_alloc_by_id(sizeof(*hops->hop));
	hops->on_iface = pages_alloc(IFACE_MAX * sizeof(*hops->on_iface));
	hops->under = pages_alloc(IFACE_MAX * sizeof(*hops->under));
	hops->idle = hops_alloc_by_id(sizeof(*hops->idle));
	hops->unused = hops_alloc_by_id(sizeof(*hops->unused));
	if (templates_open(&hops->templates) || hash_table_init(&hops->table, FIRST_BUCKETS) ||
		!hops->entry || !hops->plain || !hops->frame_max4 || !hops->oif || !hops->hop ||
		!hops->on_iface || !hops->under || !hops->idle || !hops->unused) {
		hops_close(hops);
		return -ENOMEM;
	}
	memset(hops->plain->port, FIB_NOT_PLAIN, sizeof(hops->plain->port));
	hops->plain->frame_max = UINT16_MAX;
	hops->oif[0] = FIB_NO_OIF;
	hops->hop[0].key = (struct fib_hop){.iface = IFACE_NONE, .kind = N_FIB_KINDS};
	hops_set_no_route(hops, VERDICT_NO_ROUTE);
	return 0;
}

// Hops are elements of an array, which is freed as a whole.
static void keep_hop(void *hop)
{
}

void hops_close(struct hops *hops)
{
	hash_table_free(&hops->table, keep_hop);
	hops_free_by_id(hops->entry, sizeof(*hops->entry));
	pages_free(hops->plain, sizeof(*hops->plain));
	hops_free_by_id(hops->frame_max4, sizeof(*hops->frame_max4));
	hops_free_by_id(hops->oif, sizeof(*hops->oif));
	hops_free_by_id(hops->hop, sizeof(*hops->hop));
	pages_free(hops->on_iface, IFACE_MAX * sizeof(*hops->on_iface));
	pages_free(hops->under, IFACE_MAX * sizeof(*hops->under));
	hops_free_by_id(hops->idle, sizeof(*hops->idle));
	hops_free_by_id(hops->unused, sizeof(*hops->unused));
	blocks_close(&hops->templates);
}

void hops_normalise(struct fib_hop *hop)
{
	if (!hop_leads_out(hop))
		hop->n_labels = 0;
	if (!hop->n_labels)
		hop->label_ttl = 0;
	for (unsigned i = hop->n_labels; i < FIB_MAX_PUSHED; i++)
		hop->label[i] = 0;
	hop->unused = 0;
	if (hop->kind == FIB_GROUP)
		return;
	if (hop->kind != FIB_VIA)
		memset(&hop->via, 0, sizeof(hop->via));
	else if (hop->via.family == 4)
		memset(hop->via.bytes + 4, 0, sizeof(hop->via.bytes) - 4);
}

static_assert(sizeof(struct fib_hop) == 36, "compared as bytes: no padding");

static uint32_t hash_of(const struct fib_hop *hop)
{
	const uint32_t hash = hash_table_hash(hop->via.bytes,
		hop->via.family | (uint32_t)hop->kind << 8 | (uint32_t)hop->iface << 16);

	if (!hop->n_labels)
		return hash;
	return hash ^ (hop->label[0] + hop->label[1] * 3 + hop->label[2] * 5 + hop->label_ttl) *
	                      0x9e3779b1u; // 2^32 / golden ratio
}

uint32_t hops_find(const struct hops *hops, const struct fib_hop *key)
{
	const struct hop *hop = hash_table_find(&hops->table, hash_of(key));

	while (hop && memcmp(&hop->key, key, sizeof(*key)))
		hop = hash_table_find_next(&hop->node);
	return hop ? hop - hops->hop : 0;
}

static uint32_t take_id(struct hops *hops)
{
	if (hops->n_unused)
		return hops->unused[--hops->n_unused];
	if (hops->n_unused_wide)
		return hops->unused[HOP_WIDE + --hops->n_unused_wide];
	return hops->max_id < FIB_MAX_HOPS ? ++hops->max_id : 0;
}

static void give_id(struct hops *hops, uint32_t id)
{
	if (id < HOP_WIDE)
		hops->unused[hops->n_unused++] = id;
	else
		hops->unused[HOP_WIDE + hops->n_unused_wide++] = id;
}

static bool has_link(const struct fib_hop *hop)
{
	return hop->iface < IFACE_MAX;
}

static void add_to_iface(struct hops *hops, uint32_t id)
{
	struct hop *hop = &hops->hop[id];
	uint32_t *first = &hops->on_iface[hop->key.iface];

	hop->next = *first;
	if (*first)
		hops->hop[*first].prev = id;
	*first = id;
}

static void remove_from_iface(struct hops *hops, uint32_t id)
{
	const struct hop *hop = &hops->hop[id];

	if (hop->prev)
		hops->hop[hop->prev].next = hop->next;
	else
		hops->on_iface[hop->key.iface] = hop->next;
	if (hop->next)
		hops->hop[hop->next].prev = hop->prev;
}

static void add_to_plain(struct hops *hops, uint32_t id, uint32_t plain)
{
	struct hop *hop = &hops->hop[id];
	uint32_t *first = &hops->hop[plain].labelled;

	hop->plain = plain;
	hop->next_labelled = *first;
	if (*first)
		hops->hop[*first].prev_labelled = id;
	*first = id;
	hops->hop[plain].n_holders++;
}

static void remove_from_plain(struct hops *hops, uint32_t id)
{
	const struct hop *hop = &hops->hop[id];

	if (hop->prev_labelled)
		hops->hop[hop->prev_labelled].next_labelled = hop->next_labelled;
	else
		hops->hop[hop->plain].labelled = hop->next_labelled;
	if (hop->next_labelled)
		hops->hop[hop->next_labelled].prev_labelled = hop->prev_labelled;
	hops_release(hops, hop->plain);
}

// Returns the id of a new hop without references; 0: no id is left. `plain`: see struct hop.
static uint32_t create(struct hops *hops, const struct fib_hop *key, uint32_t plain)
{
	const uint32_t id = take_id(hops);

	if (!id)
		return 0;
	hops->hop[id] = (struct hop){.key = *key};
	hash_table_insert(&hops->table, &hops->hop[id].node, hash_of(key));
	if (hops->count.counted)
		hops->hop[id].counted_before = hops->count.counted(hops->count.ctx, id);
	hops->n_used++;
	if (has_link(key))
		add_to_iface(hops, id);
	if (plain)
		add_to_plain(hops, id, plain);
	hops_rewrite(hops, id);
	return id;
}

static uint32_t create_labelled(struct hops *hops, const struct fib_hop *key)
{
	const struct fib_hop plain = {.via = key->via, .kind = key->kind, .iface = key->iface};
	uint32_t under = hops_find(hops, &plain);
	const bool is_new = !under;

	if (is_new)
		under = create(hops, &plain, 0);
	const uint32_t id = under ? create(hops, key, under) : 0;
	if (under && !id && is_new) {
		hops->hop[under].n_holders++;
		hops_release(hops, under);
	}
	return id;
}

uint32_t hops_acquire(struct hops *hops, const struct fib_hop *hop)
{
	uint32_t id = hops_find(hops, hop);

	if (!id)
		id = hop->n_labels ? create_labelled(hops, hop) : create(hops, hop, 0);
	if (id)
		hops->hop[id].n_holders++;
	return id;
}

void hops_release(struct hops *hops, uint32_t id)
{
	struct hop *hop = &hops->hop[id];

	if (--hop->n_holders || hop->is_idle)
		return;
	hop->is_idle = 1;
	hops->idle[hops->n_idle++] = id;
}

void hops_sweep(struct hops *hops)
{
	while (hops->n_idle) {
		uint32_t id = hops->idle[--hops->n_idle];
		hops->hop[id].is_idle = 0;
		if (hops->hop[id].n_holders)
			continue;
		hash_table_remove(&hops->table, &hops->hop[id].node);
		hops->n_used--;
		if (has_link(&hops->hop[id].key))
			remove_from_iface(hops, id);
		if (hops->hop[id].plain)
			remove_from_plain(hops, id);
		if (hops->hop[id].key.kind == FIB_GROUP)
			groups_retire(hops->groups, groups_number(&hops->hop[id].key));
		hops->hop[id].key.kind = N_FIB_KINDS;
		if (id < FIB_PLAIN_HOPS) // workers that still use it read its entry
			hops_write_port(hops, id, FIB_NOT_PLAIN);
		rcu_defer_add(hops->defer,
			(struct rcu_block){.kind = DEFERRED_HOP, .first = id, .n = 1});
	}
	if (hops->may_widen)
		hops_widen_plain(hops);
}

void hops_reuse(struct hops *hops, uint32_t id)
{
	if (hops->entry[id].kind == FIB_HOP_GROUP)
		groups_free(hops->groups, hops, groups_number(&hops->hop[id].key));
	for (unsigned i = 0, n = ways_parts(hops->hop[id].template); i < n; i++) {
		const struct template_lines lines =
			template_lines(&hops->templates, ways_part(hops->hop[id].template, i));
		blocks_give(&hops->templates, lines.first, lines.n);
	}
	give_id(hops, id);
}
