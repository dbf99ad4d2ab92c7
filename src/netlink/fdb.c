// The MAC addresses of Linux's bridges, by VLAN: those behind ports that workers serve are in the
// MAC table. Linux learns, moves and forgets them; it is told which hosts workers have seen.
// Control thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FIRST_BUCKETS = 256, FIRST_BRIDGES = 16, BATCH = 4096 };
enum {
	PAGE_MACS = 256,
	LONGEST_ROUND_S = 30,
	LONGEST_ROUND_STP_S = 5,
	ROUNDS_WHILE_AGEING = 10,
	TURN_NS = 2000000
};

static const uint64_t SECOND_NS = 1000000000;

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
	one->seen = bridges->fdb.dump;
	look_at(&bridges->fdb, one);
}

static void look_in_vlan(struct bridges *bridges, struct event_fdb *at, uint16_t vlan)
{
	at->vlan = vlan;
	struct fdb_entry *one = find(&bridges->fdb, at);

	if (one)
		look_at(&bridges->fdb, one);
}

// A device in no bridge is a bridge of its own, whose addresses are those of its table.
void fdb_remote_changed(struct bridges *bridges, const struct event_remote *at, bool is_gone)
{
	const struct interface *one = interfaces_find(&bridges->mirror->ifaces->all, at->ifindex);
	struct event_fdb entry = {.ifindex = at->ifindex,
		.bridge = at->ifindex,
		.mac = at->mac,
		.is_plain = true};

	fdb_event(bridges, &entry, is_gone);
	if (!one || !one->iface.master)
		return;
	entry.bridge = one->iface.master;
	look_in_vlan(bridges, &entry, 0);
	for (unsigned i = 0; one->vlans && i < EVENT_VIDS / 64; i++)
		for (uint64_t rest = one->vlans->has.has[i]; rest; rest &= rest - 1)
			look_in_vlan(bridges, &entry, (uint16_t)(i * 64 + __builtin_ctzll(rest)));
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
	struct mac_fixed at = {one->is.mac, MAC_PORTS, one->is.vlan};
	struct held_remote held = {0};

	if (served && !served->is.vlan_tag == !at.vlan) {
		at.port = place_of(bridges, served, one, &held);
		if (one->is_gone)
			mac_unfollow(bridges->mirror->settings.macs, domain_of(bridges, served),
				&at);
		else
			follow(bridges, served, &at);
	}
	remotes_release(bridges, &one->held); // the table does not have it any more
	one->held = held;
}

static void settle(struct bridges *bridges, struct fdb_entry *one)
{
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
	                      !fdb->n_over && !bridges->is_stale;

	mac_set_partial(bridges->mirror->settings.macs, !is_whole);
}

bool fdb_flush(struct bridges *bridges)
{
	const unsigned n = flush_dirty(bridges, BATCH);

	if (n < BATCH)
		walk(bridges, BATCH - n);
	say_whether_whole(bridges);
	return bridges->fdb.dirty || bridges->fdb.left;
}

// Refreshes: Linux does not see the frames that workers forward.

// In seconds: the bridge that forgets first counts. After a change of the spanning tree, a bridge
// forgets after its forward delay, 15 s by default.
static uint64_t round_s(const struct bridges *bridges)
{
	uint32_t least_s = LONGEST_ROUND_S;

	for (unsigned i = 0; i < bridges->now.n; i++) {
		const struct served *one = &bridges->now.bridge[i];

		least_s = MIN_OF(least_s, one->is.ageing_s / ROUNDS_WHILE_AGEING);
		if (one->runs_stp)
			least_s = MIN_OF(least_s, (uint32_t)LONGEST_ROUND_STP_S);
	}
	for (unsigned i = 0; i < bridges->now.n_tunnels; i++)
		if (bridges->now.tunnel[i].ageing_s) // 0: it forgets nothing
			least_s = MIN_OF(least_s,
				bridges->now.tunnel[i].ageing_s / ROUNDS_WHILE_AGEING);
	return MAX_OF(least_s, 1u);
}

static const struct served_tunnel *tunnel_at(const struct bridges *bridges, uint16_t member)
{
	const uint16_t at =
		member < MAC_FIRST_TUNNEL ? 0 : bridges->now.of_number[member - MAC_FIRST_TUNNEL];

	return at ? &bridges->now.tunnel[at - 1] : NULL;
}

// The table of a VXLAN device is refreshed, too, unless somebody else has written the entry.
static struct mirror_seen seen_of(const struct bridges *bridges, const struct mac_info *info)
{
	const struct mirror_settings *settings = &bridges->mirror->settings;
	const struct served_tunnel *tunnel = tunnel_at(bridges, info->port);
	struct mirror_seen seen = {.mac = info->mac, .vlan = info->vlan};
	const struct event_remote *remote;

	if (info->port < MAC_PORTS)
		seen.ifindex = settings->tap[info->port];
	if (!tunnel)
		return seen;
	seen.ifindex = tunnel->ifindex;
	seen.is_alone = bridges->now.bridge[tunnel->of].is_tunnel;
	remote = remotes_find(bridges, tunnel->ifindex, &info->mac);
	if (remote && remote->is_learnt)
		seen.end = remote->addr;
	return seen;
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
		if (info[i].is_linux && !info[i].is_unseen && info[i].idle_s <= recent_s)
			seen[n_seen++] = seen_of(bridges, &info[i]);
	if (n_seen)
		settings->ops.macs_seen(settings->ops.ops, seen, n_seen);
}

void mirror_learn(struct mirror *mirror, const struct mac_info *info)
{
	const struct mirror_ops *ops = &mirror->settings.ops;
	const struct bridges *bridges = mirror->bridges;
	const struct served_tunnel *tunnel = tunnel_at(bridges, info->port);
	struct mirror_seen seen = seen_of(bridges, info);

	seen.end.family = 0;
	if (tunnel && tunnel->member.flags & MAC_LEARNS_REMOTES &&
		(!remotes_knows(bridges, tunnel->ifindex, &info->mac) ||
			remotes_has_learnt(bridges, tunnel->ifindex, &info->mac))) {
		seen.end = info->end;
		seen.is_new = true;
	}
	if (ops->macs_seen && seen.ifindex && (!seen.is_alone || seen.end.family))
		ops->macs_seen(ops->ops, &seen, 1);
}

// Linux handles each report at once, and may have to wait for its lock: a turn ends after 2 ms.
void mirror_refresh_macs(struct mirror *mirror, uint64_t now_ns)
{
	struct bridges *bridges = mirror->bridges;
	const uint64_t every_s = round_s(bridges), until_ns = clock_now_ns() + TURN_NS;

	bridges_retry(bridges, now_ns);
	if (!bridges->now.n || !mirror->settings.ops.macs_seen)
		return;
	if (!bridges->place) {
		const uint64_t since_s = (now_ns - bridges->began_ns) / SECOND_NS;

		if (bridges->began_ns && since_s < every_s)
			return;
		bridges->recent_s = bridges->began_ns ? since_s + 1 : every_s;
		bridges->began_ns = now_ns;
	}
	do
		refresh_page(bridges, bridges->recent_s);
	while (bridges->place && clock_now_ns() < until_ns);
}
