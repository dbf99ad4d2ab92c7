// The table of next hops. Control thread; workers read `entry` and `plain`.
#include "fib/hops.h"

#include "base/pages.h"
#include "fib/groups.h"
#include "fib/table.h"

#include <errno.h>
#include <string.h>

enum { HOP_SLOTS = FIB_MAX_HOPS + 1, ETHERNET_BYTES = 14, NO_PORT = 255 };

static const uint8_t verdict_of_kind[N_FIB_KINDS] = {
	[FIB_VIA] = VERDICT_NEIGHBOUR_UNRESOLVED,
	[FIB_CONNECTED] = VERDICT_NEIGHBOUR_UNRESOLVED,
	[FIB_PEER] = VERDICT_NEIGHBOUR_UNRESOLVED,
	[FIB_GROUP] = FIB_VERDICT_GROUP,
	[FIB_LOCAL] = VERDICT_LOCAL,
	[FIB_BLACKHOLE] = VERDICT_BLACKHOLE,
	[FIB_UNREACHABLE] = VERDICT_UNREACHABLE,
	[FIB_PROHIBIT] = VERDICT_PROHIBIT,
	[FIB_MARTIAN] = VERDICT_MARTIAN_DESTINATION,
	[FIB_LINK_LOCAL] = VERDICT_LINK_LOCAL_DESTINATION,
	[FIB_MULTICAST] = VERDICT_MULTICAST,
	[FIB_LINUX] = VERDICT_LINUX,
};

// Cache lines that every worker reads are written only if a value changes.
static void write_port(struct hops *hops, uint16_t id, uint8_t port)
{
	if (hops->plain->port[id] == port)
		return;
	__atomic_store_n(&hops->plain->port[id], port, __ATOMIC_RELEASE);
	hops->may_widen |= port == FIB_NOT_PLAIN;
}

static void write_frame_max(struct hops *hops, uint16_t frame_max)
{
	struct fib_plain_hops limit = {
		.frame_max = frame_max,
		.n_changes = hops->plain->n_changes + 1,
	};

	if (hops->plain->frame_max != frame_max)
		__atomic_store_n(&hops->plain->limit, limit.limit, __ATOMIC_RELEASE);
}

static void write_plain(struct hops *hops, uint16_t id, const struct fib_hop_entry *entry)
{
	bool is_plain = entry->verdict == VERDICT_FORWARD && entry->port != FIB_NOT_PLAIN;

	if (is_plain)
		write_frame_max(hops, MIN_OF(entry->frame_max, hops->plain->frame_max));
	write_port(hops, id, is_plain ? entry->port : FIB_NOT_PLAIN);
}

// Raises frame_max as far as the plain hops allow: called after each change of an interface, and by
// hops_sweep if hops are no longer plain.
static void widen_plain(struct hops *hops)
{
	uint16_t least = UINT16_MAX;

	for (uint32_t id = 0; id < FIB_PLAIN_HOPS; id++)
		if (hops->plain->port[id] != FIB_NOT_PLAIN)
			least = MIN_OF(least, hops->entry[id].frame_max);
	write_frame_max(hops, least);
	hops->may_widen = false;
}

static void write_entry(struct hops *hops, uint16_t id, const struct fib_hop_entry *entry)
{
	word16 word;

	memcpy(&word, entry, sizeof(word));
	word16_store(&hops->entry[id], word);
	if (id < FIB_PLAIN_HOPS)
		write_plain(hops, id, entry);
}

void hops_set_no_route(struct hops *hops, uint8_t verdict)
{
	write_entry(hops, 0, &(struct fib_hop_entry){.port = NO_PORT, .verdict = verdict});
}

int hops_open(struct hops *hops)
{
	memset(hops, 0, sizeof(*hops));
	// Allocated with mmap: unused memory stays unmapped zero pages.
	hops->entry = pages_alloc(HOP_SLOTS * sizeof(*hops->entry));
	hops->plain = pages_alloc(sizeof(*hops->plain));
	hops->tags = pages_alloc(HOP_SLOTS * sizeof(*hops->tags));
	hops->frame_max4 = pages_alloc(HOP_SLOTS * sizeof(*hops->frame_max4));
	hops->oif = pages_alloc(HOP_SLOTS * sizeof(*hops->oif));
	hops->hop = pages_alloc(HOP_SLOTS * sizeof(*hops->hop));
	hops->bucket = pages_alloc(HOPS_BUCKETS * sizeof(*hops->bucket));
	hops->n_on_iface = pages_alloc(IFACE_MAX * sizeof(*hops->n_on_iface));
	hops->idle = pages_alloc(HOP_SLOTS * sizeof(*hops->idle));
	hops->unused = pages_alloc(HOP_SLOTS * sizeof(*hops->unused));
	if (!hops->entry || !hops->plain || !hops->tags || !hops->frame_max4 || !hops->oif ||
		!hops->hop || !hops->bucket || !hops->n_on_iface || !hops->idle || !hops->unused) {
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

void hops_close(struct hops *hops)
{
	pages_free(hops->entry, HOP_SLOTS * sizeof(*hops->entry));
	pages_free(hops->plain, sizeof(*hops->plain));
	pages_free(hops->tags, HOP_SLOTS * sizeof(*hops->tags));
	pages_free(hops->frame_max4, HOP_SLOTS * sizeof(*hops->frame_max4));
	pages_free(hops->oif, HOP_SLOTS * sizeof(*hops->oif));
	pages_free(hops->hop, HOP_SLOTS * sizeof(*hops->hop));
	pages_free(hops->bucket, HOPS_BUCKETS * sizeof(*hops->bucket));
	pages_free(hops->n_on_iface, IFACE_MAX * sizeof(*hops->n_on_iface));
	pages_free(hops->idle, HOP_SLOTS * sizeof(*hops->idle));
	pages_free(hops->unused, HOP_SLOTS * sizeof(*hops->unused));
}

void hops_normalise(struct fib_hop *hop)
{
	if (hop->kind == FIB_GROUP)
		return;
	if (hop->kind != FIB_VIA)
		memset(&hop->via, 0, sizeof(hop->via));
	else if (hop->via.family == 4)
		memset(hop->via.bytes + 4, 0, sizeof(hop->via.bytes) - 4);
}

static uint16_t *bucket_of(const struct hops *hops, const struct fib_hop *hop)
{
	uint64_t hash = 1469598103934665603ull; // FNV-1a, folded
	const uint8_t *bytes = (const uint8_t *)hop;

	for (size_t i = 0; i < sizeof(*hop); i++)
		hash = (hash ^ bytes[i]) * 1099511628211ull;
	return &hops->bucket[(hash ^ hash >> 29) % HOPS_BUCKETS];
}

uint16_t hops_find(const struct hops *hops, const struct fib_hop *hop)
{
	uint16_t id = *bucket_of(hops, hop);

	while (id && memcmp(&hops->hop[id].key, hop, sizeof(*hop)))
		id = hops->hop[id].chain;
	return id;
}

static uint16_t take_id(struct hops *hops)
{
	if (hops->n_unused)
		return hops->unused[--hops->n_unused];
	return hops->max_id < FIB_MAX_HOPS ? ++hops->max_id : 0;
}

static bool has_link(const struct fib_hop *hop)
{
	return hop->iface < IFACE_MAX;
}

uint16_t hops_acquire(struct hops *hops, const struct fib_hop *hop)
{
	uint16_t id = hops_find(hops, hop);

	if (!id) {
		id = take_id(hops);
		if (!id)
			return 0;
		uint16_t *bucket = bucket_of(hops, hop);
		hops->hop[id] = (struct hop){.key = *hop, .chain = *bucket};
		*bucket = id;
		if (hops->count.counted)
			hops->hop[id].counted_before = hops->count.counted(hops->count.ctx, id);
		hops->n_used++;
		if (has_link(hop))
			hops->n_on_iface[hop->iface]++;
		hops_rewrite(hops, id);
	}
	hops->hop[id].n_holders++;
	return id;
}

void hops_release(struct hops *hops, uint16_t id)
{
	struct hop *hop = &hops->hop[id];

	if (--hop->n_holders || hop->is_idle)
		return;
	hop->is_idle = 1;
	hops->idle[hops->n_idle++] = id;
}

static void unchain(struct hops *hops, uint16_t id)
{
	uint16_t *iface = bucket_of(hops, &hops->hop[id].key);

	while (*iface != id)
		iface = &hops->hop[*iface].chain;
	*iface = hops->hop[id].chain;
}

void hops_sweep(struct hops *hops, struct rcu_defer *defer)
{
	while (hops->n_idle) {
		uint16_t id = hops->idle[--hops->n_idle];
		hops->hop[id].is_idle = 0;
		if (hops->hop[id].n_holders)
			continue;
		unchain(hops, id);
		hops->n_used--;
		if (has_link(&hops->hop[id].key))
			hops->n_on_iface[hops->hop[id].key.iface]--;
		if (hops->hop[id].key.kind == FIB_GROUP)
			groups_retire(hops->groups, groups_number(&hops->hop[id].key));
		hops->hop[id].key.kind = N_FIB_KINDS;
		if (id < FIB_PLAIN_HOPS) // workers that still use it read its entry
			write_port(hops, id, FIB_NOT_PLAIN);
		rcu_defer_add(defer, (struct rcu_block){.kind = DEFERRED_HOP, .first = id, .n = 1});
	}
	if (hops->may_widen)
		widen_plain(hops);
}

void hops_reuse(struct hops *hops, uint16_t id)
{
	if (hops->entry[id].verdict == FIB_VERDICT_GROUP)
		groups_free(hops->groups, hops, groups_number(&hops->hop[id].key));
	hops->unused[hops->n_unused++] = id;
}

static bool find_mac(const struct hop *hop, const struct iface *iface, struct wire_mac *mac)
{
	*mac = hop->key.kind == FIB_PEER ? iface->peer : hop->mac;
	return hop->key.kind == FIB_PEER ? iface->has_peer : hop->is_neighbour;
}

static void write_group(const struct groups *groups, struct fib_hop_entry *entry, uint32_t number)
{
	uint32_t first = number * FIB_GROUP_BUCKETS;

	memcpy(entry->macs, &first, sizeof(first));
	entry->macs[FIB_ENTRY_RESILIENT] = groups->group[number].resilience.key != 0;
}

// Both families may use the same hop (RFC 8950).
static void write_lengths(struct hops *hops, uint16_t id, struct fib_hop_entry *entry)
{
	const struct fib_hop *key = &hops->hop[id].key;
	const struct iface *latest = iface_latest(hops->ifaces, key->iface);

	entry->frame_max = iface_mtu(latest, key->via.family) + ETHERNET_BYTES;
	__atomic_store_n(&hops->frame_max4[id], iface_mtu(latest, 4) + ETHERNET_BYTES,
		__ATOMIC_RELAXED);
}

static void write_tags(struct hops *hops, uint16_t id, const struct iface *iface)
{
	struct iface_tags tags = iface_wire_tags(iface);
	uint64_t word;

	memcpy(&word, tags.bytes, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)&hops->tags[id], word, __ATOMIC_RELEASE);
}

// A worker that has already read the old verdict may still write the header: a hop whose neighbour
// is lost keeps its MAC, and one on a deleted interface its settings.
static void write_way_out(struct hops *hops, uint16_t id, struct fib_hop_entry *entry)
{
	const struct hop *hop = &hops->hop[id];
	const struct iface *iface = iface_latest(hops->ifaces, hop->key.iface);
	struct wire_mac mac;

	if (find_mac(hop, iface, &mac) && iface_current(hops->ifaces, hop->key.iface))
		entry->verdict = iface->n_tags ? FIB_VERDICT_TAGGED : VERDICT_FORWARD;
	memcpy(entry->macs, mac.bytes, sizeof(mac.bytes));
	memcpy(entry->macs + 6, iface->mac.bytes, sizeof(iface->mac.bytes));
	write_lengths(hops, id, entry);
	entry->port = iface->port;
	write_tags(hops, id, iface); // clears tags that the id had before, too
}

static bool leads_to_iface(const struct fib_hop *key)
{
	return key->kind == FIB_VIA || key->kind == FIB_PEER || key->kind == FIB_CONNECTED;
}

void hops_rewrite(struct hops *hops, uint16_t id)
{
	const struct fib_hop *key = &hops->hop[id].key;
	const uint16_t oif = leads_to_iface(key) ? key->iface : FIB_NO_OIF;
	struct fib_hop_entry entry = {.port = NO_PORT, .verdict = verdict_of_kind[key->kind]};
	bool leads_out = key->kind == FIB_VIA || key->kind == FIB_PEER;

	__atomic_store_n(&hops->oif[id], oif, __ATOMIC_RELAXED);
	if (key->kind == FIB_GROUP)
		write_group(hops->groups, &entry, groups_number(key));
	if (leads_out && iface_latest(hops->ifaces, key->iface))
		write_way_out(hops, id, &entry);
	write_entry(hops, id, &entry);
}

void hops_rewrite_iface(struct hops *hops, uint16_t iface)
{
	const bool has_hops = hops->n_on_iface[iface];

	for (uint32_t id = 1; has_hops && id <= hops->max_id; id++)
		if (hops->hop[id].key.kind < N_FIB_KINDS && hops->hop[id].key.iface == iface)
			hops_rewrite(hops, id);
	widen_plain(hops);
}
