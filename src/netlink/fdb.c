// The MAC addresses of Linux's bridges: those behind ports that workers serve are in the MAC table.
// Linux learns, moves and forgets them; it is told which hosts workers have seen. Control thread.
#include "netlink/bridges_inside.h"

#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MACS = 512, PAGES_A_TICK = 8, LONGEST_ROUND_S = 30, ROUNDS_WHILE_AGEING = 10 };

static const uint64_t SECOND_NS = 1000000000;

struct fdb_entry {
	struct hash_node node; // first: see hash_table.h
	struct fdb_entry *dirty;
	struct event_fdb is; // as last reported
	uint32_t seen;       // the last dump that contained it
	bool is_dirty, is_gone;
};

void fdb_close(struct fdb *fdb)
{
	hash_table_free(&fdb->table, free);
}

uint64_t fdb_bytes(const struct fdb *fdb)
{
	return fdb->table.n * sizeof(struct fdb_entry);
}

static uint32_t hash_of(const struct event_fdb *at)
{
	uint8_t key[16] = {0};

	memcpy(key, at->mac.bytes, sizeof(at->mac.bytes));
	return hash_table_hash(key, (uint32_t)at->bridge);
}

static struct fdb_entry *find(const struct fdb *fdb, const struct event_fdb *at)
{
	struct fdb_entry *one = hash_table_find(&fdb->table, hash_of(at));

	while (one && !(one->is.bridge == at->bridge && wire_mac_equal(&one->is.mac, &at->mac)))
		one = hash_table_find_next(&one->node);
	return one;
}

static struct fdb_entry *next(const struct fdb *fdb, const struct fdb_entry *after)
{
	return hash_table_next(&fdb->table, after ? &after->node : NULL);
}

static void look_at(struct fdb *fdb, struct fdb_entry *one)
{
	if (one->is_dirty)
		return;
	one->is_dirty = true;
	one->dirty = fdb->dirty;
	fdb->dirty = one;
}

// NULL: out of memory; frames to it go to Linux until a dump.
static struct fdb_entry *add(struct bridges *bridges, const struct event_fdb *at)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct fdb_entry *one = calloc(1, sizeof(*one));

	if (!one) {
		ops->lost(ops->ops, EVENT_FDB);
		return NULL;
	}
	one->is = *at;
	hash_table_insert(&bridges->fdb.table, &one->node, hash_of(at));
	return one;
}

// A bridge that does not look at VLANs does not use entries of VLANs.
void fdb_event(struct bridges *bridges, const struct event *event)
{
	const struct event_fdb *at = &event->fdb;
	struct fdb_entry *one = at->vlan ? NULL : find(&bridges->fdb, at);

	if (!one && !event->is_delete && at->is_plain && !at->vlan)
		one = add(bridges, at);
	if (!one)
		return;
	one->is = *at;
	one->is_gone = event->is_delete || !at->is_plain;
	one->seen = bridges->fdb.dump;
	look_at(&bridges->fdb, one);
}

void fdb_sweep(struct fdb *fdb)
{
	for (struct fdb_entry *one = NULL; (one = next(fdb, one));)
		if (one->seen != fdb->dump) {
			one->is_gone = true;
			look_at(fdb, one);
		}
}

void fdb_doubt(struct fdb *fdb)
{
	for (struct fdb_entry *one = NULL; (one = next(fdb, one));)
		look_at(fdb, one);
}

static struct served *served_of(struct bridges *bridges, int ifindex)
{
	for (unsigned i = 0; i < bridges->now.n; i++)
		if (bridges->now.bridge[i].ifindex == ifindex)
			return &bridges->now.bridge[i];
	return NULL;
}

// A bridge has space for twice as many when there is not enough.
static void follow(struct bridges *bridges, struct served *served, const struct mac_fixed *at)
{
	struct mac_table *macs = bridges->mirror->settings.macs;

	if (mac_follow(macs, mac_domain(macs, served->is.name), at, rte_rdtsc()))
		return;
	if (served->is.max >= MAC_MAX || bridges->is_stale)
		return;
	served->is.max = MIN_OF(served->is.max * 2, (uint32_t)MAC_MAX);
	bridges->is_stale = true;
}

static void publish(struct bridges *bridges, const struct fdb_entry *one)
{
	struct mac_table *macs = bridges->mirror->settings.macs;
	struct served *served = served_of(bridges, one->is.bridge);
	const int port = taps_port(bridges->mirror->ifaces, one->is.ifindex);
	const struct mac_fixed at = {one->is.mac, (uint16_t)MAX_OF(port, 0)};

	if (!served)
		return;
	if (!one->is_gone && port >= 0 &&
		bridges->now.of_port[port] == served - bridges->now.bridge + 1)
		follow(bridges, served, &at);
	else
		mac_unfollow(macs, mac_domain(macs, served->is.name), &at.mac);
}

void fdb_flush(struct bridges *bridges)
{
	struct fdb *fdb = &bridges->fdb;
	struct fdb_entry *one = fdb->dirty;

	for (fdb->dirty = NULL; one;) {
		struct fdb_entry *rest = one->dirty;

		publish(bridges, one);
		one->is_dirty = false;
		if (one->is_gone) {
			hash_table_remove(&fdb->table, &one->node);
			free(one);
		}
		one = rest;
	}
}

// Refreshes: Linux does not see the frames that workers forward.

// In seconds: the bridge that forgets first counts.
static uint64_t round_s(const struct bridges *bridges)
{
	uint32_t ageing_s = LONGEST_ROUND_S * ROUNDS_WHILE_AGEING;

	for (unsigned i = 0; i < bridges->now.n; i++)
		ageing_s = MIN_OF(ageing_s, bridges->now.bridge[i].is.ageing_s);
	return MAX_OF(ageing_s / ROUNDS_WHILE_AGEING, 1u);
}

// Addresses of one page that workers have seen in the last `recent_s`.
static void refresh_page(struct bridges *bridges, uint64_t recent_s)
{
	static const struct mac_choice all = {0, MAC_PORTS};
	const struct mirror_settings *settings = &bridges->mirror->settings;
	struct mac_info info[PAGE_MACS];
	struct mirror_seen seen[PAGE_MACS];
	unsigned n_seen = 0;
	const unsigned n =
		mac_page(settings->macs, &all, rte_rdtsc(), &bridges->place, info, PAGE_MACS);

	for (unsigned i = 0; i < n; i++)
		if (info[i].is_linux && info[i].idle_s <= recent_s)
			seen[n_seen++] =
				(struct mirror_seen){settings->tap[info[i].port], info[i].mac};
	if (n_seen)
		settings->ops.macs_seen(settings->ops.ops, seen, n_seen);
}

void mirror_refresh_macs(struct mirror *mirror, uint64_t now_ns)
{
	struct bridges *bridges = mirror->bridges;
	const uint64_t every_s = round_s(bridges);

	if (!bridges->now.n || !mirror->settings.ops.macs_seen)
		return;
	if (!bridges->place) {
		if (bridges->began_ns && now_ns - bridges->began_ns < every_s * SECOND_NS)
			return;
		bridges->began_ns = now_ns;
	}
	for (unsigned i = 0; i < PAGES_A_TICK; i++) {
		refresh_page(bridges, every_s);
		if (!bridges->place)
			return;
	}
}
