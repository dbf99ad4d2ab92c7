// Groups of bridges that snoop: which ports want which. The table is built anew for each change, as
// there are few of them, and replaced as a whole. Control thread; mac_group_find: workers, too.
#include "mac/inside.h"

#include <errno.h>
#include <stdlib.h>

struct mac_groups {
	struct mac_snoop of[MAC_BRIDGES]; // by domain - 1
	uint64_t secret[4];
	uint32_t mask; // of `slot`, at least half of which is free
	struct mac_group_slot *slot;
};

const struct mac_snoop *mac_snoop_of(const struct mac_view *view, uint16_t domain)
{
	const struct mac_groups *groups = mac_view_groups(view);

	return groups && groups->of[domain - 1].snoops ? &groups->of[domain - 1] : NULL;
}

static uint32_t place_of(const struct mac_groups *groups, const struct mac_group_key *key)
{
	uint64_t hash = macs_hash(groups->secret, key->of);

	hash = macs_hash(groups->secret, hash ^ key->addr[0]);
	return macs_hash(groups->secret, hash ^ key->addr[1]) & groups->mask;
}

static bool is_same(const struct mac_group_key *a, const struct mac_group_key *b)
{
	return a->of == b->of && a->addr[0] == b->addr[0] && a->addr[1] == b->addr[1];
}

// The place of the group, or where it would be.
static struct mac_group_slot *find(const struct mac_groups *groups, const struct mac_group_key *key)
{
	uint32_t at = place_of(groups, key);

	while (groups->slot[at].key.of && !is_same(&groups->slot[at].key, key))
		at = (at + 1) & groups->mask;
	return &groups->slot[at];
}

const struct mac_out *mac_group_find(const struct mac_view *view, const struct mac_group_key *key)
{
	const struct mac_groups *groups = mac_view_groups(view);
	const struct mac_group_slot *slot = groups ? find(groups, key) : NULL;

	return slot && slot->key.of ? &slot->out : NULL;
}

void table_free_groups(struct mac_groups *groups)
{
	if (!groups)
		return;
	free(groups->slot);
	free(groups);
}

static struct mac_groups *alloc_groups(const struct mac_table *table, uint32_t n)
{
	struct mac_groups *groups = calloc(1, sizeof(*groups));
	uint32_t n_slots = 16;

	while (n_slots < 2 * n)
		n_slots *= 2;
	if (!groups)
		return NULL;
	memcpy(groups->secret, table->secret, sizeof(groups->secret));
	groups->mask = n_slots - 1;
	groups->slot = aligned_alloc(CACHE_LINE_BYTES, n_slots * sizeof(*groups->slot));
	if (!groups->slot) {
		free(groups);
		return NULL;
	}
	memset(groups->slot, 0, n_slots * sizeof(*groups->slot));
	return groups;
}

// What a group's ports and those of routers of its family are.
static struct mac_out unite(const struct mac_out *a, const struct mac_out *b)
{
	struct mac_out out = {.linux_too = a->linux_too || b->linux_too};

	for (unsigned i = 0; i < MAC_PORTS / 64; i++)
		out.ports[i] = a->ports[i] | b->ports[i];
	return out;
}

static void add_group(struct mac_groups *groups, const struct bridge *bridge, uint16_t domain,
	const struct mac_group *group)
{
	const struct mac_snoop *snoop = &groups->of[domain - 1];
	struct mac_group_slot *slot;
	struct mac_group_key key;

	// A bridge uses either the groups of VLANs or the others.
	if (!bridge->vlan_domain != !group->vlan || group->vlan >= MAC_VIDS)
		return;
	if (group->vlan)
		domain = bridge->vlan_domain + group->vlan;
	key = mac_group_key(domain, group->family, group->addr);
	slot = find(groups, &key);
	*slot = (struct mac_group_slot){key, unite(&group->out, &snoop->routers[group->family])};
}

static const struct bridge *find_bridge(const struct mac_pending *in, const char *name)
{
	for (unsigned i = 0; i < MAC_BRIDGES; i++)
		if (in->bridge[i].is_used && !strcmp(in->bridge[i].name, name))
			return &in->bridge[i];
	return NULL;
}

static void add_snooping(struct mac_groups *groups, const struct bridge *bridge, uint16_t domain,
	const struct mac_snooping *snooping)
{
	struct mac_snoop *snoop = &groups->of[domain - 1];

	snoop->snoops = true;
	for (unsigned i = 0; i < MAC_FAMILIES; i++) {
		snoop->has_querier[i] = snooping->has_querier[i];
		snoop->routers[i] = snooping->routers[i];
	}
	snoop->n_groups = snooping->n_groups;
	for (uint32_t i = 0; i < snooping->n_groups; i++)
		add_group(groups, bridge, domain, &snooping->group[i]);
}

int table_build_groups(const struct mac_table *table, const struct mac_pending *in,
	const struct mac_bridge bridges[], unsigned n, struct mac_groups **out)
{
	struct mac_groups *groups;
	bool some_snoop = false;
	uint32_t n_groups = 0;

	*out = NULL;
	for (unsigned i = 0; i < n; i++) {
		some_snoop |= bridges[i].snooping != NULL;
		n_groups += bridges[i].snooping ? bridges[i].snooping->n_groups : 0;
	}
	if (!some_snoop)
		return 0;
	groups = alloc_groups(table, n_groups);
	if (!groups)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		const struct bridge *bridge = find_bridge(in, bridges[i].name);

		if (bridge && bridges[i].snooping)
			add_snooping(groups, bridge, bridge - in->bridge + 1, bridges[i].snooping);
	}
	*out = groups;
	return 0;
}

int mac_set_groups(struct mac_table *table, const struct mac_bridge bridges[], unsigned n,
	struct error *error)
{
	struct mac_view *view = table->now->view;
	struct mac_groups *old = view->groups, *next;

	if (table_build_groups(table, table->now, bridges, n, &next))
		return error_set(error, -ENOMEM, "not enough memory for the groups of bridges");
	__atomic_store_n(&view->groups, next, __ATOMIC_RELEASE); // pairs with mac_view_groups
	if (old)
		rcu_wait(table->settings.rcu, rcu_start_grace(table->settings.rcu));
	table_free_groups(old);
	return 0;
}

bool mac_group_page(const struct mac_table *table, uint32_t *place, struct mac_group *out,
	uint16_t *domain)
{
	const struct mac_groups *groups = mac_view_groups(table->now->view);

	for (; groups && *place <= groups->mask; ++*place) {
		const struct mac_group_slot *slot = &groups->slot[*place];
		const uint16_t of = slot->key.of >> 16;

		if (!slot->key.of)
			continue;
		*domain = table_domain(table, (uint64_t)of << 48);
		*out = (struct mac_group){.family = slot->key.of & UINT8_MAX,
			.vlan = of < MAC_VIDS ? 0 : of % MAC_VIDS,
			.out = slot->out};
		memcpy(out->addr, slot->key.addr, sizeof(out->addr));
		++*place;
		return true;
	}
	return false;
}
