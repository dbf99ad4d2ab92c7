// The remote ends of Linux's VXLAN devices, as the tables of the devices have them: where frames to
// a MAC address go, and where those go that a device floods. A device of frames in GRE floods all
// to its only end. Control thread.
#include "netlink/bridges_inside.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64 };

// One of those that get floods, or frames to a group.
struct remote_flood {
	struct event_remote is;
	uint32_t seen;
};

// A device with a table.
struct remote_device {
	struct hash_node node; // first: see hash_table.h
	int ifindex;
	struct remote_flood *flood;
	size_t n, capacity;
	struct held_remote *held; // what workers flood to
	uint32_t n_held;
	uint32_t n_entries;   // of its table, those of floods and groups not counted
	uint16_t member, vrf; // as which it was given to workers; 0: it was not
	bool is_dirty, is_odd, has_groups;
	bool is_fixed; // it has no table: `flood` is its only end
};

int remotes_create(struct remotes *remotes)
{
	remotes->most = MAC_MAX;
	return hash_table_init(&remotes->table, FIRST_BUCKETS) ||
	                       hash_table_init(&remotes->devices, FIRST_BUCKETS)
	               ? -ENOMEM
	               : 0;
}

static void free_device(void *entry)
{
	struct remote_device *device = entry;

	free(device->flood);
	free(device->held);
	free(device);
}

void remotes_destroy(struct remotes *remotes)
{
	hash_table_free(&remotes->table, free);
	hash_table_free(&remotes->devices, free_device);
}

uint64_t remotes_bytes(const struct remotes *remotes)
{
	return remotes->table.n * sizeof(struct remote_entry) +
	       remotes->devices.n * sizeof(struct remote_device);
}

// Keyed, so that no host can choose addresses that share buckets.
static uint32_t hash_of(const struct bridges *bridges, int ifindex, const struct wire_mac *mac)
{
	uint64_t key[2] = {0, bridges->fdb.secret[1]};

	memcpy(key, mac->bytes, sizeof(mac->bytes));
	key[0] ^= bridges->fdb.secret[0];
	return hash_table_hash((const uint8_t *)key, (uint32_t)ifindex);
}

static struct remote_entry *find(const struct bridges *bridges, int ifindex,
	const struct wire_mac *mac)
{
	struct remote_entry *one =
		hash_table_find(&bridges->remotes.table, hash_of(bridges, ifindex, mac));

	while (one && !(one->is.ifindex == ifindex && wire_mac_equal(&one->is.mac, mac)))
		one = hash_table_find_next(&one->node);
	return one;
}

// An ifindex is its own hash.
static struct remote_device *find_device(const struct remotes *remotes, int ifindex)
{
	return hash_table_find(&remotes->devices, (uint32_t)ifindex);
}

// NULL: out of memory.
static struct remote_device *get_device(struct remotes *remotes, int ifindex)
{
	struct remote_device *device = find_device(remotes, ifindex);

	if (device)
		return device;
	device = calloc(1, sizeof(*device));
	if (!device)
		return NULL;
	device->ifindex = ifindex;
	hash_table_insert(&remotes->devices, &device->node, (uint32_t)ifindex);
	return device;
}

static bool is_flood(const struct wire_mac *mac)
{
	static const struct wire_mac all;

	return wire_mac_equal(mac, &all);
}

static bool same_end(const struct event_remote *a, const struct event_remote *b)
{
	return wire_mac_equal(&a->mac, &b->mac) && wire_addr_equal(&a->addr, &b->addr) &&
	       a->nexthop == b->nexthop && a->link == b->link && a->udp_port == b->udp_port &&
	       a->has_vni == b->has_vni && a->vni == b->vni;
}

// --- what Linux tells

static void lost(const struct bridges *bridges)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;

	ops->lost(ops->ops, EVENT_FDB);
}

static void set_dirty(struct bridges *bridges, struct remote_device *device)
{
	device->is_dirty = true;
	bridges->remotes.is_dirty = true;
}

static void flood_event(struct bridges *bridges, const struct event_remote *at, bool is_delete)
{
	struct remotes *remotes = &bridges->remotes;
	struct remote_device *device =
		is_delete ? find_device(remotes, at->ifindex) : get_device(remotes, at->ifindex);
	size_t i = 0;

	if (!device) {
		if (!is_delete)
			lost(bridges);
		return;
	}
	while (i < device->n && !same_end(&device->flood[i].is, at))
		i++;
	if (i < device->n && !is_delete) {
		device->flood[i].seen = bridges->fdb.dump;
		return;
	}
	if (is_delete && i == device->n)
		return;
	if (is_delete)
		device->flood[i] = device->flood[--device->n];
	else if (device->n < MAC_MAX_REMOTES && !vector_reserve(&device->flood, &device->capacity,
							device->n + 1, sizeof(*device->flood)))
		device->flood[device->n++] = (struct remote_flood){*at, bridges->fdb.dump};
	else
		lost(bridges);
	set_dirty(bridges, device);
}

static struct remote_entry *add(struct bridges *bridges, const struct event_remote *at)
{
	struct remotes *remotes = &bridges->remotes;
	const bool is_full = remotes->table.n >= remotes->most;
	struct remote_entry *one = is_full ? NULL : calloc(1, sizeof(*one));
	struct remote_device *device = one ? get_device(remotes, at->ifindex) : NULL;

	remotes->is_short |= !one;
	if (is_full) // another dump would not help: see remove_entry
		return NULL;
	if (!device) {
		free(one);
		lost(bridges);
		return NULL;
	}
	one->is = *at;
	device->n_entries++;
	hash_table_insert(&remotes->table, &one->node, hash_of(bridges, at->ifindex, &at->mac));
	return one;
}

static void remove_entry(struct bridges *bridges, struct remote_entry *one)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	struct remotes *remotes = &bridges->remotes;
	const struct event_remote was = one->is;

	hash_table_remove(&remotes->table, &one->node);
	find_device(remotes, was.ifindex)->n_entries--;
	free(one);
	// When there is space again, Linux has to tell of those that were not stored.
	if (remotes->is_short && remotes->table.n == remotes->most / 4 * 3)
		ops->dump_again(ops->ops);
	fdb_remote_seen(bridges, &was, true);
	remotes_look_at(bridges, &was, true);
}

void remotes_event(struct bridges *bridges, const struct event_remote *at, bool is_delete)
{
	struct remote_entry *one;
	bool is_same;

	if (is_flood(&at->mac) || at->mac.bytes[0] & 1) {
		flood_event(bridges, at, is_delete);
		return;
	}
	one = find(bridges, at->ifindex, &at->mac);
	if (is_delete) {
		if (one)
			remove_entry(bridges, one);
		return;
	}
	is_same = one && same_end(&one->is, at) && one->is.is_learnt == at->is_learnt;
	if (!one)
		one = add(bridges, at);
	if (!one)
		return;
	one->is = *at;
	one->seen = bridges->fdb.dump;
	fdb_remote_seen(bridges, at, false);
	if (!is_same) // a dump repeats all of them
		remotes_look_at(bridges, at, false);
}

static void sweep_floods(struct bridges *bridges, struct remote_device *device, bool is_gone)
{
	for (size_t i = 0; i < device->n && (is_gone || !device->is_fixed);) {
		if (!is_gone && device->flood[i].seen == bridges->fdb.dump) {
			i++;
			continue;
		}
		device->flood[i] = device->flood[--device->n];
		set_dirty(bridges, device);
	}
}

// Removes the entries of a device, or, with ifindex 0, those that the latest dump did not contain.
static void sweep(struct bridges *bridges, int ifindex)
{
	struct remotes *remotes = &bridges->remotes;
	struct remote_entry *one = hash_table_next(&remotes->table, NULL), *next;

	for (; one; one = next) {
		next = hash_table_next(&remotes->table, &one->node);
		if (ifindex ? one->is.ifindex == ifindex : one->seen != bridges->fdb.dump)
			remove_entry(bridges, one);
	}
}

void remotes_dump_ends(struct bridges *bridges)
{
	struct remotes *remotes = &bridges->remotes;

	sweep(bridges, 0);
	for (struct remote_device *device = NULL;
		(device = hash_table_next(&remotes->devices, device ? &device->node : NULL));)
		sweep_floods(bridges, device, false);
	remotes->is_known = true;
	remotes->is_short = remotes->table.n >= remotes->most;
}

void remotes_device_gone(struct bridges *bridges, int ifindex)
{
	struct remote_device *device = find_device(&bridges->remotes, ifindex);

	if (!device)
		return;
	if (device->n_entries)
		sweep(bridges, ifindex);
	sweep_floods(bridges, device, true);
	set_dirty(bridges, device);
}

void remotes_set_only(struct bridges *bridges, int ifindex, const struct wire_addr *end)
{
	struct event_remote only = {.ifindex = ifindex};
	struct remote_device *device = find_device(&bridges->remotes, ifindex);
	const bool was_fixed = device && device->is_fixed;

	if (end)
		only.addr = *end;
	if (was_fixed && end && device->n && same_end(&device->flood[0].is, &only))
		return;
	if (was_fixed || end)
		remotes_device_gone(bridges, ifindex);
	if (end)
		flood_event(bridges, &only, false);
	device = find_device(&bridges->remotes, ifindex);
	if (device)
		device->is_fixed = end && device->n;
}

// --- what workers get

// The only one that gets floods; NULL: there is none, or another one.
static const struct event_remote *only_flood(const struct remote_device *device)
{
	const struct event_remote *found = NULL;

	for (size_t i = 0; i < device->n; i++) {
		if (!is_flood(&device->flood[i].is.mac))
			continue;
		if (found)
			return NULL;
		found = &device->flood[i].is;
	}
	return found;
}

const struct event_remote *remotes_find(const struct bridges *bridges, int ifindex,
	const struct wire_mac *mac)
{
	const struct remote_entry *one = find(bridges, ifindex, mac);
	const struct remote_device *device = find_device(&bridges->remotes, ifindex);

	if (one)
		return &one->is;
	// Linux sends to those that get floods what it has no entry for.
	return device && !bridges->remotes.is_short ? only_flood(device) : NULL;
}

bool remotes_has_learnt(const struct bridges *bridges, int ifindex, const struct wire_mac *mac)
{
	const struct remote_entry *one = find(bridges, ifindex, mac);

	return one && one->is.is_learnt;
}

bool remotes_knows(const struct bridges *bridges, int ifindex, const struct wire_mac *mac)
{
	return find(bridges, ifindex, mac);
}

const char *remotes_refuse(const struct bridges *bridges, int ifindex)
{
	const struct remote_device *device = find_device(&bridges->remotes, ifindex);

	if (!bridges->remotes.is_known)
		return "the table of a VXLAN device is not known yet";
	if (device && device->is_odd)
		return "a VXLAN device floods to a group, by a certain interface (dev), to a next "
		       "hop, or to more than workers have space for";
	return NULL;
}

bool remotes_has_groups(const struct bridges *bridges, int ifindex)
{
	const struct remote_device *device = find_device(&bridges->remotes, ifindex);

	return device && device->has_groups;
}

static void release_list(struct bridges *bridges, struct held_remote list[], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		remotes_release(bridges, &list[i]);
	free(list);
}

// Those that get floods. NULL: workers cannot send to all of them, or there is no memory.
static struct held_remote *hold_list(struct bridges *bridges, const struct remote_device *device,
	uint32_t *n)
{
	struct held_remote *list = calloc(device->n + 1, sizeof(*list));

	*n = 0;
	for (size_t i = 0; list && i < device->n; i++) {
		if (!is_flood(&device->flood[i].is.mac))
			continue;
		if (!remotes_hold(bridges, &device->flood[i].is, &list[*n])) {
			release_list(bridges, list, *n);
			*n = 0;
			return NULL;
		}
		++*n;
	}
	return list;
}

// False: there is no memory; the list is as before.
static bool set_flood(const struct bridges *bridges, uint16_t member,
	const struct held_remote list[], uint32_t n)
{
	uint32_t *number = calloc(n + 1, sizeof(*number));
	struct error error;

	for (uint32_t i = 0; number && i < n; i++)
		number[i] = list[i].remote;
	const bool is_set =
		number && !mac_set_flood(bridges->mirror->settings.macs, member, number, n, &error);
	free(number);
	return is_set;
}

static bool has_groups(const struct remote_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		if (device->flood[i].is.mac.bytes[0] & 1)
			return true;
	return false;
}

// The number of the only remote end that gets floods; 0: there is none, or another one.
static uint32_t only_held(const struct remote_device *device)
{
	return device->n_held == 1 ? device->held[0].remote : 0;
}

// Workers flood to the old list until they have the new one. If they cannot, Linux floods, once the
// bridge is chosen again.
static void publish(struct bridges *bridges, struct remote_device *device)
{
	const struct iface_tunnel *tunnel = remotes_tunnel(bridges, device->ifindex);
	const uint16_t member = tunnel ? MAC_FIRST_TUNNEL + tunnel->vxlan : 0;
	const bool was_odd = device->is_odd, had_groups = device->has_groups;
	const uint32_t only_was = only_held(device);
	struct held_remote *list = NULL;
	uint32_t n = 0;

	device->is_dirty = false;
	if (device->member && device->member != member)
		set_flood(bridges, device->member, NULL, 0);
	if (member)
		list = hold_list(bridges, device, &n);
	device->is_odd = member && !(list && set_flood(bridges, member, list, n));
	if (device->is_odd) {
		release_list(bridges, list, n);
		list = NULL;
		n = 0;
		set_flood(bridges, member, NULL, 0);
	}
	release_list(bridges, device->held, device->n_held);
	device->held = list;
	device->n_held = n;
	device->member = member;
	device->vrf = tunnel ? tunnel->vrf : 0;
	device->has_groups = has_groups(device);
	bridges->is_stale |= device->is_odd != was_odd || device->has_groups != had_groups;
	if (only_held(device) != only_was) // see remotes_find
		fdb_doubt(&bridges->fdb);
}

static bool has_changed(const struct bridges *bridges, const struct remote_device *device)
{
	const struct iface_tunnel *tunnel = remotes_tunnel(bridges, device->ifindex);

	return tunnel ? device->member != MAC_FIRST_TUNNEL + tunnel->vxlan ||
	                        device->vrf != tunnel->vrf
	              : device->member != 0;
}

static void forget_unused(struct remotes *remotes, struct remote_device *device)
{
	if (device->n || device->n_entries || device->member)
		return;
	hash_table_remove(&remotes->devices, &device->node);
	free_device(device);
}

void remotes_flush(struct bridges *bridges, bool judged)
{
	struct remotes *remotes = &bridges->remotes;
	struct remote_device *device = hash_table_next(&remotes->devices, NULL), *next;

	if (!remotes->is_dirty && !judged)
		return;
	remotes->is_dirty = false;
	for (; device; device = next) {
		next = hash_table_next(&remotes->devices, &device->node);
		if (device->is_dirty || has_changed(bridges, device))
			publish(bridges, device);
		forget_unused(remotes, device);
	}
}
