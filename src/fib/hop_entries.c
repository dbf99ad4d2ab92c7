// What workers read of next hops. Control thread.
#include "fib/hop_entries.h"

#include "fib/groups.h"
#include "fib/table.h"
#include "fib/template.h"
#include "fib/ways.h"

#include <string.h>

enum { ETHERNET_BYTES = 14 };
enum { LABEL = 4 }; // bytes

static const uint8_t verdict_of_kind[N_FIB_KINDS] = {
	[FIB_VIA] = VERDICT_NEIGHBOUR_UNRESOLVED,
	[FIB_CONNECTED] = VERDICT_NEIGHBOUR_UNRESOLVED,
	[FIB_PEER] = VERDICT_NEIGHBOUR_UNRESOLVED,
	[FIB_LOCAL] = VERDICT_LOCAL,
	[FIB_BLACKHOLE] = VERDICT_BLACKHOLE,
	[FIB_UNREACHABLE] = VERDICT_UNREACHABLE,
	[FIB_PROHIBIT] = VERDICT_PROHIBIT,
	[FIB_MARTIAN] = VERDICT_MARTIAN_DESTINATION,
	[FIB_LINK_LOCAL] = VERDICT_LINK_LOCAL_DESTINATION,
	[FIB_MULTICAST] = VERDICT_MULTICAST,
	[FIB_LINUX] = VERDICT_LINUX,
};

void hops_write_port(struct hops *hops, uint32_t id, uint8_t port)
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

static void write_plain(struct hops *hops, uint32_t id, const struct fib_hop_entry *entry)
{
	bool is_plain = entry->kind == FIB_HOP_PLAIN && entry->port != FIB_NOT_PLAIN;

	if (is_plain)
		write_frame_max(hops, MIN_OF(entry->frame_max, hops->plain->frame_max));
	hops_write_port(hops, id, is_plain ? entry->port : FIB_NOT_PLAIN);
}

void hops_widen_plain(struct hops *hops)
{
	uint16_t least = UINT16_MAX;

	for (uint32_t id = 0; id < FIB_PLAIN_HOPS; id++)
		if (hops->plain->port[id] != FIB_NOT_PLAIN)
			least = MIN_OF(least, hops->entry[id].frame_max);
	write_frame_max(hops, least);
	hops->may_widen = false;
}

static void write_entry(struct hops *hops, uint32_t id, const struct fib_hop_entry *entry)
{
	word16 word;

	memcpy(&word, entry, sizeof(word));
	word16_store(&hops->entry[id], word);
	if (id < FIB_PLAIN_HOPS)
		write_plain(hops, id, entry);
}

void hops_set_no_route(struct hops *hops, uint8_t verdict)
{
	write_entry(hops, 0, &(struct fib_hop_entry){.verdict = verdict, .kind = FIB_HOP_STOP});
}

static bool is_resolved(const struct hops *hops, const struct hop *hop, const struct iface *iface)
{
	const struct hop *plain = hop->plain ? &hops->hop[hop->plain] : hop;

	return hop->key.kind == FIB_PEER ? iface->has_peer : plain->is_neighbour;
}

static void write_group(const struct groups *groups, struct fib_hop_entry *entry, uint32_t number)
{
	uint32_t first = number * FIB_GROUP_BUCKETS;

	entry->kind = FIB_HOP_GROUP;
	memcpy(entry->macs, &first, sizeof(first));
	entry->macs[FIB_ENTRY_RESILIENT] = groups->group[number].resilience.key != 0;
}

uint16_t hops_mtu(const struct hops *hops, uint32_t id, uint8_t family)
{
	const struct hop *hop = &hops->hop[id];
	const struct iface *latest =
		hop_leads_out(&hop->key) ? iface_latest(hops->ifaces, hop->key.iface) : NULL;

	if (!latest)
		return 0;
	if (iface_is_tunnel(latest))
		return MIN_OF(iface_mtu(latest, family) - LABEL * hop->key.n_labels,
			ways_mtu(hop->template));
	return iface_mtu(latest, family) - (hop->template ? hop->template->mtu_bytes : 0);
}

// A hop that has never been resolved needs no template. False: there is no memory for one, so the
// hop keeps what it had.
static bool set_header(struct hops *hops, struct hop *hop, const struct fib_template *built)
{
	if (!hop->template && !is_resolved(hops, hop, iface_latest(hops->ifaces, hop->key.iface)))
		return true;
	if (template_is_plain(built)) {
		hop->template = NULL;
		return true;
	}
	if (hop->template && templates_equal(hop->template, built))
		return true;
	const struct fib_template *published = template_publish(&hops->templates, built);
	if (!published)
		return false;
	hop->template = published;
	return true;
}

// A worker that has already read the old limits may still write the header: a hop whose neighbour
// is lost keeps its MAC, and one on a deleted interface its settings. Both families may use the
// same hop (RFC 8950).
static void write_way_out(struct hops *hops, uint32_t id, struct fib_hop_entry *entry)
{
	struct hop *hop = &hops->hop[id];
	const struct iface *iface = iface_latest(hops->ifaces, hop->key.iface);
	struct fib_template built;

	if (hop->plain)
		hop->mac = hops->hop[hop->plain].mac;
	template_build(&built, hop, iface);
	const bool is_set = set_header(hops, hop, &built);
	if (hop->template)
		memcpy(entry->macs, &hop->template, sizeof(hop->template));
	else
		memcpy(entry->macs, built.bytes, sizeof(entry->macs));
	entry->port = iface->port;
	__atomic_store_n(&hops->frame_max4[id], hops_mtu(hops, id, 4) + ETHERNET_BYTES,
		__ATOMIC_RELAXED);
	if (iface->flags & IFACE_OUT_LINUX || (iface->is_bridge && hop->key.n_labels)) {
		entry->verdict = VERDICT_LINUX;
		return;
	}
	if (is_set && is_resolved(hops, hop, iface) &&
		iface_current(hops->ifaces, hop->key.iface)) {
		entry->kind = iface->is_bridge ? FIB_HOP_BRIDGE
		              : hop->template  ? FIB_HOP_TEMPLATE
		                               : FIB_HOP_PLAIN;
		entry->frame_max = hops_mtu(hops, id, hop->key.via.family) + ETHERNET_BYTES;
	}
}

// The entry of a hop into a tunnel. What its template is made of is another hop's, so it keeps the
// old one while that stops; encap takes the port from the template.
static void write_tunnel(struct hops *hops, uint32_t id, struct fib_hop_entry *entry)
{
	struct hop *hop = &hops->hop[id];
	const struct iface *iface = iface_latest(hops->ifaces, hop->key.iface);
	struct ways ways;

	ways_build(&ways, hops, &hop->key);
	if (ways.n && !ways_equal(hop->template, &ways)) {
		const struct fib_template *published = ways_publish(&hops->templates, &ways);
		if (published)
			hop->template = published;
		else
			ways = (struct ways){.verdict = VERDICT_TUNNEL_NO_WAY};
	}
	memcpy(entry->macs, &hop->template, sizeof(hop->template));
	__atomic_store_n(&hops->frame_max4[id], hops_mtu(hops, id, 4) + ETHERNET_BYTES,
		__ATOMIC_RELAXED);
	if (iface->flags & IFACE_OUT_LINUX ||
		(hop->key.n_labels && !(iface->tunnel.flags & IFACE_TUNNEL_MPLS))) {
		entry->verdict = VERDICT_LINUX;
	} else if (!ways.n || !iface_current(hops->ifaces, hop->key.iface)) {
		entry->verdict = ways.n ? VERDICT_TUNNEL_NO_WAY : ways.verdict;
	} else {
		entry->kind = FIB_HOP_TUNNEL;
		entry->port = ways.way[0].port;
		entry->frame_max = hops_mtu(hops, id, 6) + ETHERNET_BYTES;
	}
}

static void free_template(struct hops *hops, const struct fib_template *template)
{
	for (unsigned i = 0, n = ways_parts(template); i < n; i++) {
		const struct template_lines lines =
			template_lines(&hops->templates, ways_part(template, i));

		rcu_defer_add(hops->defer, (struct rcu_block){.kind = DEFERRED_TEMPLATE,
						   .first = lines.first,
						   .n = lines.n});
	}
}

static bool leads_to_iface(const struct fib_hop *key)
{
	return hop_leads_out(key) || key->kind == FIB_CONNECTED;
}

static void rewrite_one(struct hops *hops, uint32_t id)
{
	const struct fib_hop *key = &hops->hop[id].key;
	const struct fib_template *old = hops->hop[id].template;
	const uint16_t oif = leads_to_iface(key) ? key->iface : FIB_NO_OIF;
	struct fib_hop_entry entry = {.verdict = verdict_of_kind[key->kind], .kind = FIB_HOP_STOP};

	__atomic_store_n(&hops->oif[id], oif, __ATOMIC_RELAXED);
	if (key->kind == FIB_GROUP)
		write_group(hops->groups, &entry, groups_number(key));
	const struct iface *latest =
		hop_leads_out(key) ? iface_latest(hops->ifaces, key->iface) : NULL;
	if (latest && iface_is_tunnel(latest))
		write_tunnel(hops, id, &entry);
	else if (latest)
		write_way_out(hops, id, &entry);
	hops->under_changed |= hops->hop[id].is_under;
	write_entry(hops, id, &entry);
	if (old && old != hops->hop[id].template)
		free_template(hops, old);
}

void hops_rewrite(struct hops *hops, uint32_t id)
{
	rewrite_one(hops, id);
	for (uint32_t at = hops->hop[id].labelled; at; at = hops->hop[at].next_labelled)
		rewrite_one(hops, at);
}

void hops_rewrite_iface(struct hops *hops, uint16_t iface)
{
	for (uint32_t id = hops->on_iface[iface]; id; id = hops->hop[id].next)
		rewrite_one(hops, id);
	hops_widen_plain(hops);
}
