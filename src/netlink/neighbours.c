// Hash table keyed by interface and address; changes are applied to the fib at each flush. Control
// thread.
#include "netlink/mirror_inside.h"

#include "base/hash_table.h"
#include "base/log.h"
#include "base/vector.h"

#include <assert.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 1024 };
enum { NUD_USABLE = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY };

struct entry {
	struct hash_node node;     // first: see hash_table.h
	struct neighbour reported; // begins with the key: in the same cache line, if possible
	struct entry *dirty;       // next in the list of entries to re-evaluate
	uint32_t at;               // index in `list`
	uint32_t seen;             // the last dump that contained it
	bool is_dirty, is_gone;
	struct wire_mac published; // on interface told.iface
};
static_assert(offsetof(struct entry, node) == 0, "the table returns nodes as entries");

struct neighbours {
	struct mirror *mirror;
	struct hash_table table;
	struct entry **list; // all entries, dense
	size_t capacity;     // of list
	uint32_t n, dump;
	struct entry *dirty;
	bool ifaces_changed; // re-evaluate all entries
	bool is_full;        // logged once
};

int neighbours_open(struct neighbours **out, struct mirror *mirror, struct error *error)
{
	struct neighbours *all = calloc(1, sizeof(*all));

	if (!all || hash_table_init(&all->table, FIRST_BUCKETS)) {
		free(all);
		return error_set(error, -ENOMEM, "not enough memory for Linux's neighbours");
	}
	all->mirror = mirror;
	*out = all;
	return 0;
}

void neighbours_close(struct neighbours *all)
{
	hash_table_free(&all->table, free);
	free(all->list);
	free(all);
}

static uint32_t hash_of(int ifindex, const struct wire_addr *addr)
{
	return hash_table_hash(addr->bytes, (uint32_t)ifindex);
}

static struct entry *find(const struct neighbours *all, int ifindex, const struct wire_addr *addr)
{
	struct entry *one = hash_table_find(&all->table, hash_of(ifindex, addr));

	while (one &&
		!(one->reported.ifindex == ifindex && wire_addr_equal(&one->reported.addr, addr)))
		one = hash_table_find_next(&one->node);
	return one;
}

// NULL: out of memory.
static struct entry *add(struct neighbours *all, int ifindex, const struct wire_addr *addr)
{
	if (vector_reserve(&all->list, &all->capacity, all->n + 1, sizeof(struct entry *)))
		return NULL;
	struct entry *one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->reported = (struct neighbour){.ifindex = ifindex, .addr = *addr, .iface = IFACE_NONE};
	one->at = all->n;
	all->list[all->n++] = one;
	hash_table_insert(&all->table, &one->node, hash_of(ifindex, addr));
	return one;
}

// NULL: out of memory; packets to it go to Linux until a dump.
static struct entry *add_or_lose(struct neighbours *all, int ifindex, const struct wire_addr *addr)
{
	const struct mirror_ops *ops = &all->mirror->settings.ops;
	struct entry *one = add(all, ifindex, addr);

	if (!one)
		ops->lost(ops->ops, EVENT_NEIGHBOUR);
	return one;
}

static void look_at(struct neighbours *all, struct entry *one)
{
	if (one->is_dirty)
		return;
	one->is_dirty = true;
	one->dirty = all->dirty;
	all->dirty = one;
}

static bool is_multicast(const struct wire_addr *addr)
{
	return addr->family == 4 ? addr->bytes[0] >> 4 == 0xe : addr->bytes[0] == 0xff;
}

void neighbours_event(struct neighbours *all, const struct event *event)
{
	const struct event_neighbour *reported = &event->neighbour;

	if (reported->flags & NTF_PROXY || !reported->addr.family || is_multicast(&reported->addr))
		return;
	struct entry *one = find(all, reported->ifindex, &reported->addr);
	if (!one && !event->is_delete)
		one = add_or_lose(all, reported->ifindex, &reported->addr);
	if (!one)
		return;
	one->is_gone = event->is_delete;
	one->seen = all->dump;
	one->reported.mac = reported->has_mac ? reported->mac : (struct wire_mac){0};
	one->reported.state = reported->state;
	one->reported.flags = reported->flags;
	one->reported.ext_flags = reported->ext_flags;
	one->reported.protocol = reported->protocol;
	look_at(all, one);
}

static void mark_gone(struct neighbours *all, bool (*wants)(const struct entry *one, int arg),
	int arg)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (wants(all->list[i], arg)) {
			all->list[i]->is_gone = true;
			look_at(all, all->list[i]);
		}
}

static bool is_stale(const struct entry *one, int dump)
{
	return one->seen != (uint32_t)dump;
}

static bool is_on(const struct entry *one, int ifindex)
{
	return one->reported.ifindex == ifindex;
}

void neighbours_dump_begins(struct neighbours *all)
{
	all->dump++;
}

void neighbours_dump_ends(struct neighbours *all)
{
	mark_gone(all, is_stale, (int)all->dump);
}

void neighbours_iface_changed(struct neighbours *all, int ifindex)
{
	all->ifaces_changed = true;
}

void neighbours_iface_gone(struct neighbours *all, int ifindex)
{
	mark_gone(all, is_on, ifindex);
}

static bool is_usable(const struct entry *one)
{
	static const struct wire_mac none;
	const struct neighbour *reported = &one->reported;

	if (one->is_gone || !(reported->state & NUD_USABLE) ||
		wire_mac_equal(&reported->mac, &none))
		return false;
	// Linux represents broadcast addresses this way.
	return !(reported->state & NUD_NOARP) || !(reported->mac.bytes[0] & 1);
}

static uint16_t wanted_iface(const struct neighbours *all, const struct entry *one)
{
	return is_usable(one) ? ifaces_state(all->mirror, one->reported.ifindex).iface : IFACE_NONE;
}

static void take_back(struct neighbours *all, struct entry *one)
{
	struct neighbour *reported = &one->reported;

	if (reported->iface == IFACE_NONE || reported->iface == wanted_iface(all, one))
		return;
	fib_neighbour_delete(all->mirror->settings.fib, reported->iface, &reported->addr);
	reported->iface = IFACE_NONE;
}

static void publish(struct neighbours *all, struct entry *one)
{
	struct fib *fib = all->mirror->settings.fib;
	struct neighbour *reported = &one->reported;
	uint16_t iface = wanted_iface(all, one);
	struct error error;

	if (iface == IFACE_NONE ||
		(reported->iface == iface && wire_mac_equal(&one->published, &reported->mac)))
		return;
	if (fib_neighbour_set(fib, iface, &reported->addr, &reported->mac, &error)) {
		if (!all->is_full)
			log_warn("%s; packets to it are punted to Linux", error.text);
		all->is_full = true;
		return;
	}
	reported->iface = iface;
	one->published = reported->mac;
}

static void remove_entry(struct neighbours *all, struct entry *one)
{
	hash_table_remove(&all->table, &one->node);
	all->list[one->at] = all->list[--all->n];
	all->list[one->at]->at = one->at;
	free(one);
}

static void look_at_all(struct neighbours *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		look_at(all, all->list[i]);
}

void neighbours_flush(struct neighbours *all)
{
	if (all->ifaces_changed)
		look_at_all(all);
	all->ifaces_changed = false;
	// This comes first: a recreated TAP interface now has the port's id, and perhaps the same
	// neighbours.
	for (struct entry *one = all->dirty; one; one = one->dirty)
		take_back(all, one);
	for (struct entry *one = all->dirty, *next; one; one = next) {
		next = one->dirty;
		one->is_dirty = false;
		publish(all, one);
		if (one->is_gone)
			remove_entry(all, one);
	}
	all->dirty = NULL;
}

// Neighbours that should be in the fib, but are not.
void neighbours_unsupported(const struct neighbours *all,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported reported = {
		.what = "neighbours beyond the capacity of the workers' table",
		.where = "all interfaces",
		.effect = "packets to them are punted to Linux, which forwards them"};

	for (uint32_t i = 0; i < all->n; i++) {
		const struct entry *one = all->list[i];

		reported.n += !one->is_dirty && one->reported.iface == IFACE_NONE &&
		              is_usable(one) &&
		              ifaces_state(all->mirror, one->reported.ifindex).iface != IFACE_NONE;
	}
	if (reported.n)
		cb(arg, &reported);
}

void neighbours_info(const struct neighbours *all, struct netlink_info *out)
{
	out->neighbours = all->n;
	out->control_bytes += sizeof(*all) +
	                      (all->table.n_buckets + all->capacity) * sizeof(struct entry *) +
	                      all->n * sizeof(struct entry);
}

bool neighbours_find(const struct neighbours *all, int ifindex, const struct wire_addr *addr,
	struct neighbour *out)
{
	const struct entry *one = find(all, ifindex, addr);

	if (!one || one->is_gone)
		return false;
	*out = one->reported;
	return true;
}

bool neighbours_next(const struct neighbours *all, uint32_t *at, struct neighbour *out)
{
	while (*at < all->n) {
		const struct entry *one = all->list[(*at)++];

		if (one->is_gone)
			continue;
		*out = one->reported;
		return true;
	}
	*at = 0;
	return false;
}
