// Opens the table, replaces its bridges as a whole, and shows what it has. Control thread.
#include "mac/inside.h"

#include "base/pages.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static void free_pending(struct mac_pending *pending)
{
	if (!pending)
		return;
	macs_free(pending->view->slots);
	table_free_groups(pending->view->groups);
	free(pending->view->iface);
	free(pending->view);
	free(pending->vlans);
	free(pending->member);
	free(pending);
}

// The number of bits by which a number of cycles is shifted to get ticks of 0.5 to 1 s.
static unsigned shift_of(uint64_t hz)
{
	return 63 - __builtin_clzll(hz);
}

static size_t view_bytes(uint32_t n_members)
{
	return sizeof(struct mac_view) + n_members * sizeof(struct mac_port);
}

static struct mac_pending *alloc_pending(const struct mac_table *table, uint32_t max,
	uint32_t n_members)
{
	const uint64_t hz = table->settings.hz;
	struct mac_pending *pending = calloc(1, sizeof(*pending));
	struct mac_member *member = calloc(n_members, sizeof(*member));
	struct mac_view *view = aligned_alloc(CACHE_LINE_BYTES, view_bytes(n_members));
	struct mac_slots *slots = macs_alloc(max, table->secret);

	if (!pending || !member || !view || !slots) {
		macs_free(slots);
		free(view);
		free(member);
		free(pending);
		return NULL;
	}
	memset(view, 0, view_bytes(n_members));
	view->slots = slots;
	view->tick_shift = shift_of(hz);
	view->storm_burst_cycles = hz / 20;
	view->n_members = n_members;
	pending->view = view;
	pending->member = member;
	pending->max = max;
	return pending;
}

static int open_rings(struct mac_table *table)
{
	for (unsigned i = 0; i < table->settings.n_workers; i++) {
		table->live.ring[i] = pages_alloc(sizeof(*table->live.ring[i]));
		if (!table->live.ring[i])
			return -ENOMEM;
	}
	return 0;
}

int mac_open(struct mac_table **out, const struct mac_settings *settings, struct error *error)
{
	struct mac_table *table =
		aligned_alloc(CACHE_LINE_BYTES, round_up(sizeof(*table), CACHE_LINE_BYTES));

	if (!table)
		return error_set(error, -ENOMEM, "not enough memory for bridges");
	*table = (struct mac_table){.settings = *settings};
	if (getrandom(table->secret, sizeof(table->secret), 0) != sizeof(table->secret)) {
		free(table);
		return error_set(error, -EIO, "no random numbers for the MAC table");
	}
	table->secret[1] |= 1;
	table->secret[3] |= 1;
	table->now = alloc_pending(table, 0, MAC_FIRST_TUNNEL);
	if (!table->now || !ifaces_alloc(table->now->view, NULL, 0) || remotes_open(table) ||
		open_rings(table)) {
		mac_close(table);
		return error_set(error, -ENOMEM, "not enough memory for bridges");
	}
	table->live.view = table->now->view;
	*out = table;
	return 0;
}

void mac_close(struct mac_table *table)
{
	if (!table)
		return;
	for (unsigned i = 0; i < table->settings.n_workers; i++)
		pages_free(table->live.ring[i], sizeof(*table->live.ring[i]));
	remotes_close(table);
	free_pending(table->now);
	free(table);
}

const struct mac_live *mac_live(const struct mac_table *table)
{
	return &table->live;
}

uint16_t mac_domain(const struct mac_table *table, const char *name)
{
	for (unsigned i = 0; i < MAC_BRIDGES; i++)
		if (table->now->bridge[i].is_used && !strcmp(table->now->bridge[i].name, name))
			return i + 1;
	return 0;
}

// A bridge keeps its domain as long as it keeps its name; others get those that no bridge has now.
static uint16_t choose_domain(const struct mac_table *table, const struct mac_pending *pending,
	const char *name)
{
	uint16_t domain = mac_domain(table, name);

	for (unsigned i = 0; i < MAC_BRIDGES && !domain; i++)
		if (!table->now->bridge[i].is_used && !pending->bridge[i].is_used)
			domain = i + 1;
	for (unsigned i = 0; i < MAC_BRIDGES && !domain; i++) // of one that goes
		if (!pending->bridge[i].is_used)
			domain = i + 1;
	return domain;
}

static void set_bit(uint64_t set[], unsigned i)
{
	set[i / 64] |= 1ull << i % 64;
}

// Which members get copies of frames from member `from`.
static void fill_sets(struct mac_port *port, const struct mac_bridge *bridge,
	const struct mac_member *from)
{
	for (unsigned i = 0; i < bridge->n_members; i++) {
		const struct mac_member *to = &bridge->member[i];

		if (to->port >= MAC_PORTS)
			continue;
		if (to->port == from->port && !(from->flags & MAC_HAIRPIN))
			continue;
		if (to->flags & from->flags & MAC_ISOLATED)
			continue;
		set_bit(port->others, to->port);
		if (!(to->flags & MAC_NO_BROADCASTS))
			set_bit(port->copies[MAC_BROADCAST], to->port);
		if (!(to->flags & MAC_NO_MULTICASTS))
			set_bit(port->copies[MAC_MULTICAST], to->port);
		if (to->flags & MAC_FLOODS)
			set_bit(port->copies[MAC_UNKNOWN], to->port);
	}
}

static void set_storm(const struct mac_table *table, struct mac_port *port,
	const struct mac_bridge *bridge, const struct mac_member *member)
{
	for (unsigned i = 0; i < MAC_STORMS; i++) {
		const uint32_t pps =
			member->storm_pps[i] ? member->storm_pps[i] : bridge->storm_pps[i];

		if (pps && member->port < MAC_PORTS)
			port->storm_cycles[i] = table->settings.hz / pps;
	}
}

static void fill_port(const struct mac_table *table, struct mac_pending *pending,
	const struct mac_bridge *bridge, uint16_t domain, const struct mac_member *member)
{
	struct mac_port *port = &pending->view->port[member->port];

	*port = (struct mac_port){.domain = domain,
		.flags = member->flags,
		.linuxs = bridge->linuxs,
		.linux_too = bridge->linux_too};
	if (bridge->vlan_tag)
		port->vlans = vlans_add(pending, bridge, domain, member->vlans);
	if (bridge->is_routed) {
		port->iface = bridge->iface;
		port->own = table_key(domain, &bridge->mac);
		port->own_vlans = pending->bridge[domain - 1].own_vlans;
	}
	pending->member[member->port] = *member;
	pending->member[member->port].vlans = port->vlans;
	set_storm(table, port, bridge, member);
	fill_sets(port, bridge, member);
}

static bool add_fixed(struct mac_pending *pending, uint16_t domain, const struct mac_fixed *fixed)
{
	const struct mac_slot slot = {.key = table_key(domain, &fixed->mac),
		.port = fixed->port % MAC_AT_REMOTE,
		.flags = MAC_STATIC | (fixed->port >= MAC_AT_REMOTE ? MAC_REMOTE : 0)};
	return macs_add(pending->view->slots, &slot);
}

static bool add_bridge(const struct mac_table *table, struct mac_pending *pending,
	const struct mac_bridge *from)
{
	const uint16_t domain = choose_domain(table, pending, from->name);
	const struct bridge *now = &table->now->bridge[domain - 1];
	struct bridge *to = &pending->bridge[domain - 1];
	const uint64_t cycles = from->ageing_s * table->settings.hz;

	if (now->is_used && !strcmp(now->name, from->name) && now->linux_id == from->linux_id)
		to->usage = now->usage; // what it counted
	to->is_used = true;
	memcpy(to->name, from->name, sizeof(to->name));
	to->linux_id = from->linux_id;
	if (from->vlan_tag)
		vlans_choose(table, pending, domain);
	to->ageing_ticks = (cycles >> pending->view->tick_shift) + 1;
	to->usage.ageing_s = from->ageing_s;
	to->usage.max = from->max;
	to->usage.n_static = from->n_fixed;
	to->usage.n_learnt = 0; // counted by mac_commit
	memcpy(to->usage.storm_pps, from->storm_pps, sizeof(to->usage.storm_pps));
	if (from->is_routed && from->vlan_tag)
		to->own_vlans = vlans_add(pending, from, domain, from->own_vlans);
	if (from->is_routed)
		ifaces_add(pending, from, domain);
	for (unsigned i = 0; i < from->n_members; i++)
		fill_port(table, pending, from, domain, &from->member[i]);
	for (unsigned i = 0; i < from->n_members; i++)
		if (from->member[i].port >= MAC_FIRST_TUNNEL &&
			!remotes_add_tunnel(pending, domain, from->member[i].port))
			return false;
	for (uint32_t i = 0; i < from->n_fixed; i++)
		if (!add_fixed(pending, domain, &from->fixed[i]))
			return false;
	return true;
}

// Those that keep their domains come first.
static bool add_all(const struct mac_table *table, struct mac_pending *pending,
	const struct mac_bridge bridges[], unsigned n)
{
	bool is_done = true;

	for (unsigned is_new = 0; is_new < 2; is_new++)
		for (unsigned i = 0; i < n && is_done; i++)
			if ((mac_domain(table, bridges[i].name) == 0) == is_new)
				is_done = add_bridge(table, pending, &bridges[i]);
	return is_done;
}

int mac_prepare(struct mac_table *table, const struct mac_bridge bridges[], unsigned n,
	struct mac_pending **out, struct error *error)
{
	uint64_t max = 0;
	uint32_t n_floods;

	for (unsigned i = 0; i < n; i++)
		max += bridges[i].max;
	const uint32_t n_members = remotes_count_members(bridges, n, &n_floods);
	struct mac_pending *pending =
		alloc_pending(table, MIN_OF(max, (uint64_t)MAC_MAX) + n_floods, n_members);
	if (pending &&
		!(vlans_alloc(pending, bridges, n) && ifaces_alloc(pending->view, bridges, n) &&
			add_all(table, pending, bridges, n) &&
			!table_build_groups(table, pending, bridges, n, &pending->view->groups))) {
		free_pending(pending);
		pending = NULL;
	}
	if (!pending)
		return error_set(error, -ENOMEM,
			"not enough memory for %llu MAC addresses of bridges; use a smaller "
			"max_macs",
			(unsigned long long)max);
	*out = pending;
	return 0;
}

void mac_drop(struct mac_pending *pending)
{
	free_pending(pending);
}

// Whether the port is still in the bridge, and has space for one more.
static bool keeps(const struct mac_table *table, const struct mac_pending *next, uint16_t port,
	uint16_t domain)
{
	const struct mac_member *member = pending_member(next, port);

	return member && next->view->port[port].domain == domain &&
	       (!member->max || table->n_learnt[port] < member->max);
}

// Whether a learnt address is still valid: its bridge is the same, its port is still in it, and
// there is space. If the port learns no more, it ages, as in Linux.
static bool is_kept(const struct mac_table *table, const struct mac_pending *next,
	const struct mac_slot *slot)
{
	const uint16_t domain = table_domain(table, slot->key);
	const struct bridge *was = &table->now->bridge[domain - 1];
	const struct bridge *is = &next->bridge[domain - 1];
	const struct mac_usage *usage = &is->usage;

	return is->is_used && !strcmp(was->name, is->name) && was->linux_id == is->linux_id &&
	       was->vlan_domain == is->vlan_domain &&
	       usage->n_static + usage->n_learnt + is->n_elsewhere < usage->max &&
	       (slot->flags & MAC_ELSEWHERE ||
		       keeps(table, next, table_member(table, slot), domain)) &&
	       remotes_keep(table, slot) && !macs_find(next->view->slots, slot->key);
}

// Workers remember what they have told, not what was forgotten.
static void have_told_again(struct mac_table *table)
{
	__atomic_store_n(&table->live.n_flushes, table->live.n_flushes + 1, __ATOMIC_RELAXED);
}

void table_count(struct mac_table *table, struct bridge *bridge, const struct mac_slot *slot,
	int by)
{
	if (slot->flags & MAC_ELSEWHERE) {
		bridge->n_elsewhere += by;
		return;
	}
	bridge->usage.n_learnt += by;
	table->n_learnt[table_member(table, slot)] += by;
}

static void copy_learnt(struct mac_table *table, struct mac_pending *next)
{
	const struct mac_slots *slots = table_slots(table);

	memset(table->n_learnt, 0, sizeof(table->n_learnt));
	for (uint32_t i = 0, n = macs_n_places(slots); i < n; i++) {
		const struct mac_slot slot = macs_get(macs_at(slots, i));

		if (!slot.key || slot.flags & MAC_STATIC || !is_kept(table, next, &slot) ||
			!macs_add(next->view->slots, &slot))
			continue;
		table_count(table, &next->bridge[table_domain(table, slot.key) - 1], &slot, 1);
	}
}

void mac_commit(struct mac_table *table, struct mac_pending *pending, uint64_t now)
{
	struct mac_pending *old = table->now;

	copy_learnt(table, pending);
	table->now = pending;
	table->age_at = table->evict_at = 0;
	table->aged = now;
	// Pairs with mac_live_view.
	__atomic_store_n(&table->live.view, pending->view, __ATOMIC_RELEASE);
	rcu_wait(table->settings.rcu, rcu_start_grace(table->settings.rcu));
	free_pending(old);
	have_told_again(table);
}

void table_forget(struct mac_table *table, struct mac_slot *slot)
{
	const struct mac_slot value = macs_get(slot);

	table_count(table, table_bridge(table, value.key), &value, -1);
	macs_clear(slot);
}

static bool is_of(const struct mac_table *table, const struct mac_slot *slot,
	const struct mac_choice *choice)
{
	return slot->key && !(slot->flags & (MAC_ELSEWHERE | MAC_TUNNEL)) &&
	       (!choice->domain || table_domain(table, slot->key) == choice->domain) &&
	       (choice->port == MAC_PORTS || table_member(table, slot) == choice->port);
}

uint32_t mac_flush(struct mac_table *table, const struct mac_choice *choice)
{
	const struct mac_slots *slots = table_slots(table);
	uint32_t n_forgotten = 0;

	for (uint32_t i = 0, n = macs_n_places(slots); i < n; i++) {
		struct mac_slot *slot = macs_at(slots, i);

		if (!is_of(table, slot, choice) || slot->flags & (MAC_STATIC | MAC_LINUX))
			continue;
		table_forget(table, slot);
		n_forgotten++;
	}
	have_told_again(table);
	return n_forgotten;
}

void table_describe(const struct mac_table *table, const struct mac_slot *slot, uint64_t now,
	struct mac_info *out)
{
	const unsigned shift = table->now->view->tick_shift;
	const int32_t ticks = (uint32_t)(now >> shift) - slot->seen; // a worker may be ahead

	const uint16_t domain = table_domain(table, slot->key);

	*out = (struct mac_info){.domain = domain,
		.port = table_member(table, slot),
		.remote = slot->flags & MAC_REMOTE ? slot->port : 0,
		.vlan = slot->key >> 48 == domain ? 0 : (slot->key >> 48) % MAC_VIDS,
		.is_static = slot->flags & MAC_STATIC,
		.is_held = slot->flags & MAC_HELD,
		.is_linux = slot->flags & MAC_LINUX,
		.is_unseen = slot->flags & MAC_LINUX && ticks >= UNSEEN_TICKS,
		.idle_s = ((uint64_t)MAX_OF(ticks, 0) << shift) / table->settings.hz};
	memcpy(out->mac.bytes, &slot->key, sizeof(out->mac.bytes));
}

unsigned mac_page(const struct mac_table *table, const struct mac_choice *choice, uint64_t now,
	uint32_t *place, struct mac_info out[], unsigned n)
{
	const struct mac_slots *slots = table_slots(table);
	const uint32_t n_places = macs_n_places(slots);
	uint32_t at = *place, end = at + MIN_OF(n_places - MIN_OF(at, n_places), MAC_PAGE_PLACES);
	unsigned n_out = 0;

	for (; at < end && n_out < n; at++) {
		const struct mac_slot slot = macs_get(macs_at(slots, at));

		if (is_of(table, &slot, choice))
			table_describe(table, &slot, now, &out[n_out++]);
	}
	*place = at < n_places ? at : 0;
	return n_out;
}

bool mac_way_to(const struct mac_table *table, uint16_t iface, const struct wire_mac *mac,
	struct mac_way *out)
{
	const struct mac_view *view = table->now->view;
	const struct mac_iface *own = mac_iface_of(view, iface);
	const struct mac_slot *slot =
		own ? macs_find(view->slots, table_key(own->domain, mac)) : NULL;

	if (!slot || slot->flags & MAC_ELSEWHERE)
		return false;
	out->port = table_member(table, slot);
	return out->port < view->n_members && mac_tag_of(view, own, out->port, &out->tag) &&
	       !(slot->flags & MAC_REMOTE && out->tag);
}

const struct mac_vlans *mac_own_vlans(const struct mac_table *table, uint16_t domain)
{
	return table->now->bridge[domain - 1].own_vlans;
}

bool mac_usage(const struct mac_table *table, uint16_t domain, struct mac_usage *out)
{
	const struct bridge *bridge = &table->now->bridge[domain - 1];

	if (!bridge->is_used)
		return false;
	*out = bridge->usage;
	out->name = bridge->name;
	out->is_linux = bridge->linux_id;
	out->filters_vlans = bridge->vlan_domain;
	return true;
}

bool mac_member(const struct mac_table *table, uint16_t port, struct mac_member *out,
	uint16_t *domain, uint32_t *n_learnt)
{
	const struct mac_member *member = pending_member(table->now, port);

	if (!member)
		return false;
	*domain = table->now->view->port[port].domain;
	*out = *member;
	*n_learnt = table->n_learnt[port];
	return true;
}
