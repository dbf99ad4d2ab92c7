// The MAC addresses of Linux's bridges, by VLAN: those behind ports that workers serve are in the
// MAC table. Linux learns, moves and forgets them; it is told which hosts workers have seen.
// Control thread.
#include "netlink/bridges_inside.h"

#include "base/log.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FIRST_BUCKETS = 256, FIRST_BRIDGES = 16, BATCH = 4096 };

// The bridge of some entries; there is none without entries.
struct fdb_bridge {
	struct hash_node node; // first: see hash_table.h
	int ifindex;
	uint32_t n;   // entries
	bool is_over; // Linux has more
};

struct fdb_entry {
	struct hash_node node; // first: see hash_table.h
	struct fdb_entry *dirty;
	struct fdb_bridge *of;
	struct event_fdb is;     // as last reported
	struct held_remote held; // what workers have it behind
	uint32_t seen;           // the last dump that contained it
	bool is_dirty, is_gone;
	bool is_shadow; // it is none of the bridge: see fdb_look_at
};

int fdb_open(struct fdb *fdb)
{
	if (getrandom(fdb->secret, sizeof(fdb->secret), 0) != sizeof(fdb->secret))
		return -EIO;
	fdb->most = MAC_MAX;
	fdb->end = &fdb->dirty;
	if (hash_table_init(&fdb->bridges, FIRST_BRIDGES))
		return -ENOMEM;
	return hash_table_init(&fdb->table, FIRST_BUCKETS);
}

void fdb_close(struct fdb *fdb)
{
	hash_table_free(&fdb->table, free);
	hash_table_free(&fdb->bridges, free);
}

uint64_t fdb_bytes(const struct fdb *fdb)
{
	return fdb->table.n * sizeof(struct fdb_entry);
}

// Keyed, so that no host can choose addresses that share buckets.
static uint32_t hash_of(const struct fdb *fdb, const struct event_fdb *at)
{
	uint64_t key[2] = {0, fdb->secret[1]};

	memcpy(key, at->mac.bytes, sizeof(at->mac.bytes));
	key[0] |= (uint64_t)at->vlan << 48;
	key[0] ^= fdb->secret[0];
	return hash_table_hash((const uint8_t *)key, (uint32_t)at->bridge);
}

static struct fdb_entry *find(const struct fdb *fdb, const struct event_fdb *at)
{
	struct fdb_entry *one = hash_table_find(&fdb->table, hash_of(fdb, at));

	while (one && !(one->is.bridge == at->bridge && one->is.vlan == at->vlan &&
			      wire_mac_equal(&one->is.mac, &at->mac)))
		one = hash_table_find_next(&one->node);
	return one;
}

static uint32_t hash_of_bridge(int ifindex)
{
	static const uint8_t key[16];

	return hash_table_hash(key, (uint32_t)ifindex);
}

static struct fdb_bridge *find_bridge(const struct fdb *fdb, int ifindex)
{
	struct fdb_bridge *of = hash_table_find(&fdb->bridges, hash_of_bridge(ifindex));

	while (of && of->ifindex != ifindex)
		of = hash_table_find_next(&of->node);
	return of;
}

// NULL: out of memory.
static struct fdb_bridge *get_bridge(struct fdb *fdb, int ifindex)
{
	struct fdb_bridge *of = find_bridge(fdb, ifindex);

	if (of)
		return of;
	of = calloc(1, sizeof(*of));
	if (!of)
		return NULL;
	of->ifindex = ifindex;
	hash_table_insert(&fdb->bridges, &of->node, hash_of_bridge(ifindex));
	return of;
}

static void release_bridge(struct fdb *fdb, struct fdb_bridge *of)
{
	if (of->n)
		return;
	hash_table_remove(&fdb->bridges, &of->node);
	free(of);
}

bool fdb_is_over(const struct fdb *fdb, int bridge)
{
	const struct fdb_bridge *of = find_bridge(fdb, bridge);

	return of && of->is_over;
}

// Those that change first are told first.
static void look_at(struct fdb *fdb, struct fdb_entry *one)
{
	if (one->is_dirty)
		return;
	one->is_dirty = true;
	one->dirty = NULL;
	*fdb->end = one;
	fdb->end = &one->dirty;
}

static uint16_t domain_of(const struct bridges *bridges, const struct served *served)
{
	return bridges->domain[served - bridges->now.bridge];
}

static void fdb_set_over(struct fdb *fdb, struct fdb_bridge *of, bool is_over)
{
	fdb->n_over += is_over - of->is_over;
	of->is_over = is_over;
}

// The bridge has as many as we store. Linux forwards to the others.
static void refuse(struct bridges *bridges, struct fdb_bridge *of)
{
	const struct interface *bridge =
		interfaces_find(&bridges->mirror->ifaces->all, of->ifindex);
	const struct served *served = served_find(&bridges->now, of->ifindex);

	if (served)
		mac_refuse(bridges->mirror->settings.macs, domain_of(bridges, served));
	if (!of->is_over)
		log_warn("bridge %s has more than %u MAC addresses: Linux forwards all frames to "
			 "and from the others; look for a host that sends from random addresses",
			bridge && bridge->is_known ? bridge->iface.name : "of Linux", of->n);
	fdb_set_over(&bridges->fdb, of, true);
}

// NULL: refused, or out of memory; frames to it go to Linux until a dump.
static struct fdb_entry *add(struct bridges *bridges, const struct event_fdb *at)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct fdb *fdb = &bridges->fdb;
	struct fdb_bridge *of = get_bridge(fdb, at->bridge);
	struct fdb_entry *one = NULL;

	if (of && of->n >= fdb->most) {
		refuse(bridges, of);
		return NULL;
	}
	if (of)
		one = calloc(1, sizeof(*one));
	if (!one) {
		if (of)
			release_bridge(fdb, of);
		ops->lost(ops->ops, EVENT_FDB);
		return NULL;
	}
	one->is = *at;
	one->of = of;
	of->n++;
	hash_table_insert(&fdb->table, &one->node, hash_of(fdb, at));
	return one;
}

// When there is space again, Linux has to tell of those that were refused.
static void forget(struct bridges *bridges, struct fdb_entry *one)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct fdb *fdb = &bridges->fdb;
	struct fdb_bridge *of = one->of;

	of->n--;
	if (of->is_over && of->n <= fdb->most / 4 * 3) {
		fdb_set_over(fdb, of, false);
		ops->dump_again(ops->ops);
	}
	hash_table_remove(&fdb->table, &one->node);
	free(one);
	release_bridge(fdb, of);
}

// Those of VLANs are stored even while the bridge does not filter by them: Linux does not repeat
// them when it begins to.
void fdb_event(struct bridges *bridges, const struct event_fdb *at, bool is_delete)
{
	struct fdb_entry *one = find(&bridges->fdb, at);

	if (!one && !is_delete && !(at->mac.bytes[0] & 1))
		one = add(bridges, at);
	if (!one)
		return;
	one->is = *at;
	one->is_gone = is_delete;
	one->is_shadow = false;
	one->seen = bridges->fdb.dump;
	look_at(&bridges->fdb, one);
}

void fdb_look_at(struct bridges *bridges, const struct event_fdb *at, bool is_shadow)
{
	struct fdb_entry *one = find(&bridges->fdb, at);

	if (!one && is_shadow) {
		one = add(bridges, at);
		if (one)
			one->is_shadow = true;
	}
	if (one)
		look_at(&bridges->fdb, one);
}

// A device in no bridge is a bridge of its own, whose addresses are those of its table.
void fdb_remote_seen(struct bridges *bridges, const struct event_remote *at, bool is_gone)
{
	const struct event_fdb entry = {.ifindex = at->ifindex,
		.bridge = at->ifindex,
		.mac = at->mac,
		.is_plain = true};

	fdb_event(bridges, &entry, is_gone);
}

void fdb_sweep(struct fdb *fdb)
{
	fdb->swept = fdb->dump;
	fdb_doubt(fdb);
}

void fdb_doubt(struct fdb *fdb)
{
	fdb->left = fdb->table.n_buckets;
	fdb->lacks = false;
}

// A bridge gets space for twice as many when there is not enough, if there is memory.
static void follow(struct bridges *bridges, struct served *served, const struct mac_fixed *at)
{
	struct mac_table *macs = bridges->mirror->settings.macs;

	if (mac_follow(macs, domain_of(bridges, served), at, rte_rdtsc()))
		return;
	bridges->fdb.lacks = true;
	served->wants = MIN_OF(served->is.max * 2, (uint32_t)MAC_MAX);
	if (served->is.max == served->wants || bridges->is_short)
		mac_refuse(macs, domain_of(bridges, served));
	else
		bridges->is_stale = true;
}

// Behind which member it is; MAC_PORTS: none that workers serve.
static uint32_t place_of(struct bridges *bridges, const struct served *served,
	const struct fdb_entry *one, struct held_remote *held)
{
	const int port = taps_port(bridges->mirror->ifaces, one->is.ifindex);
	const struct event_remote *remote;

	if (!one->is.is_plain || one->is_gone)
		return MAC_PORTS;
	if (port >= 0)
		return bridges->now.of_port[port] == served - bridges->now.bridge + 1
		               ? (uint32_t)port
		               : MAC_PORTS;
	if (!bridges->now.n_tunnels || !bridges_tunnel_member(bridges, served, one->is.ifindex))
		return MAC_PORTS;
	remote = remotes_find(bridges, one->is.ifindex, &one->is.mac);
	return remote && remotes_hold(bridges, remote, held) ? MAC_AT_REMOTE + held->remote
	                                                     : MAC_PORTS;
}

// A bridge uses either the entries of VLANs or the others.
static void publish(struct bridges *bridges, struct fdb_entry *one)
{
	struct served *served = served_find(&bridges->now, one->is.bridge);
	struct mac_fixed at = {one->is.mac, MAC_PORTS, one->is.vlan, false};
	struct held_remote held = {0};

	if (served && !served->is.vlan_tag == !at.vlan) {
		at.port = place_of(bridges, served, one, &held);
		at.is_pinned =
			served->n_tunnels && !one->is_shadow && remotes_pin(bridges, &one->is);
		if (one->is_gone)
			mac_unfollow(bridges->mirror->settings.macs, domain_of(bridges, served),
				&at);
		else
			follow(bridges, served, &at);
	}
	remotes_release(bridges, &one->held); // the table does not have it any more
	one->held = held;
}

// Those that are none of a bridge are Linux's while a VXLAN device has them.
static void settle(struct bridges *bridges, struct fdb_entry *one)
{
	if (one->is_gone || one->is_shadow) {
		one->is_shadow = remotes_have(bridges, &one->is);
		one->is_gone = !one->is_shadow;
		one->is.is_plain &= one->is_gone;
	}
	publish(bridges, one);
	if (one->is_gone)
		forget(bridges, one);
}

// Returns how many of those that have changed it has told of, at most n.
static unsigned flush_dirty(struct bridges *bridges, unsigned n)
{
	struct fdb *fdb = &bridges->fdb;
	unsigned n_done = 0;

	for (struct fdb_entry *one; n_done < n && !bridges->is_stale && (one = fdb->dirty);
		n_done++) {
		fdb->dirty = one->dirty;
		if (!fdb->dirty)
			fdb->end = &fdb->dirty;
		one->is_dirty = false;
		settle(bridges, one);
	}
	return n_done;
}

// Returns how many entries there are in the bucket. What the latest dump did not contain is gone.
static unsigned walk_bucket(struct bridges *bridges, struct hash_node *node)
{
	const struct fdb *fdb = &bridges->fdb;
	unsigned n = 0;

	for (struct hash_node *next; node; node = next, n++) {
		struct fdb_entry *one = (struct fdb_entry *)node;

		next = node->next;
		one->is_gone |= (int32_t)(one->seen - fdb->swept) < 0;
		if (!one->is_dirty) // else its turn will come
			settle(bridges, one);
	}
	return n;
}

// Goes on with the walk over all; entries have other places when the table has grown.
static void walk(struct bridges *bridges, unsigned n)
{
	struct fdb *fdb = &bridges->fdb;
	unsigned n_done = 0;

	if (fdb->left && fdb->n_buckets != fdb->table.n_buckets)
		fdb->left = fdb->table.n_buckets;
	fdb->n_buckets = fdb->table.n_buckets;
	for (; n_done < n && fdb->left && !bridges->is_stale; fdb->left--) {
		fdb->at = (fdb->at + 1) & (fdb->n_buckets - 1);
		n_done += 1 + walk_bucket(bridges, fdb->table.bucket[fdb->at]);
	}
}

// Workers flood frames to addresses that are unknown to them only while Linux does not know more.
static void say_whether_whole(struct bridges *bridges)
{
	const struct fdb *fdb = &bridges->fdb;
	const bool is_whole = fdb->dump && fdb->swept == fdb->dump && !fdb->left && !fdb->lacks &&
	                      !fdb->n_over && !bridges->is_stale && !bridges->remotes.left;

	mac_set_partial(bridges->mirror->settings.macs, !is_whole);
}

bool fdb_flush(struct bridges *bridges)
{
	const bool has_more = remotes_walk(bridges, BATCH);
	const unsigned n = flush_dirty(bridges, BATCH);

	if (n < BATCH)
		walk(bridges, BATCH - n);
	say_whether_whole(bridges);
	return has_more || bridges->fdb.dirty || bridges->fdb.left;
}
