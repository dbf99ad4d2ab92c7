// Shared by the files of this module. Control thread.
#pragma once

#include "base/hash_table.h"
#include "mac/mac.h"

#include <string.h>

struct bridge {
	bool is_used;
	uint64_t ageing_ticks;
	struct mac_usage usage; // without its name
	char name[MAC_NAME_MAX];
	uint32_t linux_id;
	uint16_t vlan_domain;              // of its VLAN 0; 0: it does not filter by VLAN
	const struct mac_vlans *own_vlans; // of its own interface; NULL: likewise, or not routed
	uint32_t n_elsewhere; // addresses of MAC_ELSEWHERE, which `usage` does not count
};

// How often an address has moved since `since`; more than MAC_MOVES: held until `until`.
struct mover {
	uint64_t key; // 0: none
	uint64_t since, until;
	unsigned n;
};
enum { MOVERS = 1024 };

// What a commit replaces.
struct mac_pending {
	struct mac_view *view; // with slots
	uint32_t max;          // that the slots were made for
	struct bridge bridge[MAC_BRIDGES];
	struct mac_member *member; // by member; of those that are in a bridge
	struct mac_vlans *vlans;   // of those whose bridges filter by VLAN, and of these
	unsigned n_vlans;
	uint16_t of_vlans[MAC_BRIDGES_BY_VLAN +
			  1]; // the bridge's domain by its vlan_domain / MAC_VIDS
};

// The remote ends of VXLAN devices.
struct remotes {
	struct hash_table table;  // by what they are
	struct remote *remote;    // by number
	struct mac_remote *shown; // what workers read
	uint32_t *unused;         // numbers up to `max` that no worker can have any more
	uint32_t *waiting;        // of those that were released, workers may still have one
	uint32_t max, n_unused, n_waiting;
};

struct mac_table {
	struct mac_settings settings;
	struct mac_live live;
	uint64_t secret[4];
	struct mac_pending *now; // in use
	uint32_t n_learnt[MAC_MEMBERS];
	struct mover mover[MOVERS];
	uint64_t aged;             // TSC until which the table was searched for old addresses
	uint32_t age_at, evict_at; // places
	uint32_t released_tick;    // when holds were last ended
	unsigned n_linuxs;         // addresses of which this turn has told Linux
	struct remotes remotes;
};

// slots.c: the table itself. A place is a slot's number. NULL: not enough memory.
struct mac_slots *macs_alloc(uint32_t max, const uint64_t secret[4]);
void macs_free(struct mac_slots *slots);
uint32_t macs_n_places(const struct mac_slots *slots);
struct mac_slot *macs_at(const struct mac_slots *slots, uint32_t place);
struct mac_slot *macs_find(const struct mac_slots *slots, uint64_t key);
// Adds one that is not there yet; moves others if need be. False: there is no space.
bool macs_add(struct mac_slots *slots, const struct mac_slot *slot);
// Replaces what a slot holds, by another value of its key, / or nothing.
void macs_set(struct mac_slot *slot, const struct mac_slot *value);
void macs_clear(struct mac_slot *slot);
// What it holds now.
struct mac_slot macs_get(const struct mac_slot *slot);

enum { UNSEEN_TICKS = 1 << 30 }; // 17 years and more

// mac.c: forgets a learnt address. / Counts one more, or one less (`by`), of the bridge.
void table_forget(struct mac_table *table, struct mac_slot *slot);
void table_count(struct mac_table *table, struct bridge *bridge, const struct mac_slot *slot,
	int by);
void table_describe(const struct mac_table *table, const struct mac_slot *slot, uint64_t now,
	struct mac_info *out);
static inline uint64_t table_key(uint16_t domain, const struct wire_mac *mac)
{
	uint8_t bytes[8] = {0};

	memcpy(bytes, mac->bytes, sizeof(mac->bytes));
	return mac_key(domain, bytes);
}
static inline struct mac_slots *table_slots(const struct mac_table *table)
{
	return table->now->view->slots;
}
// The domain of the bridge of a key: a VLAN has one of its own.
static inline uint16_t table_domain(const struct mac_table *table, uint64_t key)
{
	const uint16_t domain = key >> 48;

	return domain < MAC_VIDS ? domain : table->now->of_vlans[domain / MAC_VIDS];
}
static inline struct bridge *table_bridge(const struct mac_table *table, uint64_t key)
{
	return &table->now->bridge[table_domain(table, key) - 1];
}

// remotes.c: the remote ends of VXLAN devices, and those that get floods. 0 or -ENOMEM.
int remotes_open(struct mac_table *table);
void remotes_close(struct mac_table *table);
// How many places the members of bridges take; *n_floods: entries for the floods of VXLAN devices.
uint32_t remotes_count_members(const struct mac_bridge bridges[], unsigned n, uint32_t *n_floods);
// Floods of the bridge, or of each VLAN of the member, find that as the address 0. False: no space.
bool remotes_add_tunnel(struct mac_pending *pending, uint16_t domain, uint16_t member);
// Whether the remote end behind which an address was learnt still gets floods: others are forgotten
// with their remote end.
bool remotes_keep(const struct mac_table *table, const struct mac_slot *slot);

// The member behind which an entry is.
static inline uint16_t table_member(const struct mac_table *table, const struct mac_slot *slot)
{
	return slot->flags & MAC_REMOTE ? table->live.remote[slot->port].member : slot->port;
}
// The settings of a member; NULL: it is in no bridge.
static inline const struct mac_member *pending_member(const struct mac_pending *pending,
	uint16_t member)
{
	return member < pending->view->n_members && pending->view->port[member].domain
	               ? &pending->member[member]
	               : NULL;
}

// vlans.c: bridges that filter by VLAN. Domains from MAC_VIDS on are those of VLANs, MAC_VIDS of
// them for each such bridge. How many VLANs a set has. / Makes space for all their VLANs; false: no
// memory. / Gives the bridge its domains, which it keeps as long as it filters. / The VLANs of a
// member, or of its own interface.
unsigned vlans_count(const struct mac_vlans *vlans);
bool vlans_alloc(struct mac_pending *pending, const struct mac_bridge bridges[], unsigned n);
void vlans_choose(const struct mac_table *table, struct mac_pending *pending, uint16_t domain);
const struct mac_vlans *vlans_add(struct mac_pending *pending, const struct mac_bridge *bridge,
	uint16_t domain, const struct mac_vlans *vlans);

// ifaces.c: the interfaces of bridges. Makes space for all; false: no memory. / Adds those of a
// bridge, of which all else is there.
bool ifaces_alloc(struct mac_view *view, const struct mac_bridge bridges[], unsigned n);
void ifaces_add(struct mac_pending *pending, const struct mac_bridge *bridge, uint16_t domain);

// groups.c: those of `bridges`, which are in `in`; NULL: none of them snoops. 0 or -ENOMEM.
int table_build_groups(const struct mac_table *table, const struct mac_pending *in,
	const struct mac_bridge bridges[], unsigned n, struct mac_groups **out);
void table_free_groups(struct mac_groups *groups);

// Of keys, by lookup.c, slots.c and groups.c.
static inline uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Keyed, so that nobody can choose addresses that share buckets.
static inline uint64_t macs_hash(const uint64_t secret[4], uint64_t key)
{
	return fold(fold(key ^ secret[0], secret[1]) ^ secret[2], secret[3]);
}

// Its two buckets: by the lower and the upper half of the hash.
static inline uint32_t macs_first(const struct mac_slots *slots, uint64_t hash)
{
	return (hash & UINT32_MAX) * slots->n_buckets >> 32;
}

static inline uint32_t macs_second(const struct mac_slots *slots, uint64_t hash)
{
	return (hash >> 32) * slots->n_buckets >> 32;
}
