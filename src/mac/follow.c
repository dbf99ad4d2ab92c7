// Addresses of Linux's bridges, which the table has as Linux tells of them. Control thread.
#include "mac/inside.h"

void mac_refuse(struct mac_table *table, uint16_t domain)
{
	table->now->bridge[domain - 1].usage.n_refused++;
}

void mac_set_partial(struct mac_table *table, bool is_partial)
{
	__atomic_store_n(&table->live.is_partial, is_partial, __ATOMIC_RELAXED);
}

static uint64_t key_at(const struct mac_table *table, uint16_t domain, const struct mac_fixed *at)
{
	const uint16_t first = table->now->bridge[domain - 1].vlan_domain;

	return table_key(at->vlan ? first + at->vlan : domain, &at->mac);
}

void mac_unfollow(struct mac_table *table, uint16_t domain, const struct mac_fixed *at)
{
	struct mac_slot *slot = macs_find(table_slots(table), key_at(table, domain, at));

	if (slot && !(macs_get(slot).flags & MAC_TUNNEL))
		table_forget(table, slot);
}

// What Linux tells is not a frame: until workers see one, it counts as seen long ago.
bool mac_follow(struct mac_table *table, uint16_t domain, const struct mac_fixed *at, uint64_t now)
{
	const uint64_t key = key_at(table, domain, at);
	struct bridge *bridge = table_bridge(table, key);
	struct mac_slot *known = macs_find(table_slots(table), key);
	const struct mac_slot was = known ? macs_get(known) : (struct mac_slot){0};
	const bool is_behind = at->port != MAC_PORTS, is_remote = at->port >= MAC_AT_REMOTE;
	const struct mac_slot value = {.key = key,
		.port = at->port % MAC_AT_REMOTE,
		.flags = MAC_LINUX | (is_behind ? 0 : MAC_ELSEWHERE) |
	                 (is_remote ? MAC_REMOTE : 0) | (at->is_pinned ? MAC_PINNED : 0),
		.seen = mac_tick(table->now->view, now) - UNSEEN_TICKS};

	if (known && was.port == value.port && was.flags == value.flags)
		return true;
	if (known) {
		table_count(table, bridge, &was, -1);
		macs_set(known, &value);
		bridge->usage.n_moved += is_behind && !(was.flags & MAC_ELSEWHERE);
	} else if (bridge->usage.n_learnt + bridge->n_elsewhere >= bridge->usage.max ||
		   !macs_add(table_slots(table), &value)) {
		return false;
	}
	bridge->usage.n_added += is_behind && (!known || was.flags & MAC_ELSEWHERE);
	table_count(table, bridge, &value, 1);
	return true;
}
