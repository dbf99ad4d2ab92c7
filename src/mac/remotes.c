// The remote ends of VXLAN devices, each once, by number; and those that get floods. Control
// thread; workers read `shown` and flood lists.
#include "mac/inside.h"

#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 64, WAITING = 4096 };

struct remote {
	struct hash_node node;
	struct mac_remote is;
	uint32_t n_holds; // 0: not in use
};

static const size_t REMOTE_BYTES = (MAC_MAX_REMOTES + 1) * sizeof(struct remote);
static const size_t SHOWN_BYTES = (MAC_MAX_REMOTES + 1) * sizeof(struct mac_remote);
static const size_t NUMBER_BYTES = (MAC_MAX_REMOTES + 1) * sizeof(uint32_t);

static void *alloc_sparse(size_t bytes)
{
	void *memory = pages_alloc(bytes);

	pages_keep_small(memory, bytes);
	return memory;
}

int remotes_open(struct mac_table *table)
{
	struct remotes *remotes = &table->remotes;

	remotes->remote = alloc_sparse(REMOTE_BYTES);
	remotes->shown = alloc_sparse(SHOWN_BYTES);
	remotes->unused = alloc_sparse(NUMBER_BYTES);
	remotes->waiting = alloc_sparse(NUMBER_BYTES);
	table->live.remote = remotes->shown;
	return remotes->remote && remotes->shown && remotes->unused && remotes->waiting
	               ? hash_table_init(&remotes->table, FIRST_BUCKETS)
	               : -ENOMEM;
}

static void keep(void *entry)
{
	(void)entry; // in remotes->remote
}

void remotes_close(struct mac_table *table)
{
	struct remotes *remotes = &table->remotes;

	hash_table_free(&remotes->table, keep);
	pages_free(remotes->remote, REMOTE_BYTES);
	pages_free(remotes->shown, SHOWN_BYTES);
	pages_free(remotes->unused, NUMBER_BYTES);
	pages_free(remotes->waiting, NUMBER_BYTES);
	for (unsigned i = 0; i < MAC_TUNNELS; i++)
		free((void *)(uintptr_t)table->live.flood[i]);
}

static uint32_t hash_of(const struct mac_remote *remote)
{
	uint8_t key[16] = {0};
	const uint32_t vni = remote->has_vni ? remote->vni : 0;

	memcpy(key, &remote->vtep, sizeof(remote->vtep));
	memcpy(key + 4, &vni, sizeof(vni));
	memcpy(key + 8, &remote->udp_port, sizeof(remote->udp_port));
	return hash_table_hash(key, remote->member);
}

static bool are_same(const struct mac_remote *a, const struct mac_remote *b)
{
	return a->vtep == b->vtep && a->member == b->member && a->udp_port == b->udp_port &&
	       a->has_vni == b->has_vni && (!a->has_vni || a->vni == b->vni);
}

static struct remote *find(const struct remotes *remotes, const struct mac_remote *remote)
{
	struct remote *at = hash_table_find(&remotes->table, hash_of(remote));

	while (at && !are_same(&at->is, remote))
		at = hash_table_find_next(&at->node);
	return at;
}

uint32_t mac_remote_find(const struct mac_table *table, const struct mac_remote *remote)
{
	const struct remote *found = find(&table->remotes, remote);

	return found ? found - table->remotes.remote : 0;
}

// Numbers that were released may be given again after a grace period.
static void reuse(struct mac_table *table)
{
	struct remotes *remotes = &table->remotes;

	if (!remotes->n_waiting)
		return;
	rcu_wait(table->settings.rcu, rcu_start_grace(table->settings.rcu));
	while (remotes->n_waiting)
		remotes->unused[remotes->n_unused++] = remotes->waiting[--remotes->n_waiting];
}

static uint32_t take_number(struct mac_table *table)
{
	struct remotes *remotes = &table->remotes;

	if (!remotes->n_unused &&
		(remotes->n_waiting >= WAITING || remotes->max == MAC_MAX_REMOTES))
		reuse(table);
	if (remotes->n_unused)
		return remotes->unused[--remotes->n_unused];
	return remotes->max < MAC_MAX_REMOTES ? ++remotes->max : 0;
}

int mac_remote_hold(struct mac_table *table, const struct mac_remote *remote, uint32_t *number,
	struct error *error)
{
	struct remotes *remotes = &table->remotes;

	*number = mac_remote_find(table, remote);
	if (*number) {
		remotes->remote[*number].n_holds++;
		return 0;
	}
	*number = take_number(table);
	if (!*number)
		return error_set(error, -ENOSPC,
			"no space for another remote end of VXLAN devices: there are %d already",
			MAC_MAX_REMOTES);
	struct remote *to = &remotes->remote[*number];
	*to = (struct remote){.is = *remote, .n_holds = 1};
	hash_table_insert(&remotes->table, &to->node, hash_of(remote));
	remotes->shown[*number] = *remote; // before a slot or a flood list has the number
	return 0;
}

void mac_remote_release(struct mac_table *table, uint32_t number)
{
	struct remotes *remotes = &table->remotes;
	struct remote *of = &remotes->remote[number];

	if (--of->n_holds)
		return;
	hash_table_remove(&remotes->table, &of->node);
	remotes->waiting[remotes->n_waiting++] = number;
}

bool mac_remote_at(const struct mac_table *table, uint32_t number, struct mac_remote *out)
{
	if (!number || number > table->remotes.max || !table->remotes.remote[number].n_holds)
		return false;
	*out = table->remotes.remote[number].is;
	return true;
}

int mac_set_flood(struct mac_table *table, uint16_t member, const uint32_t remotes[], unsigned n,
	struct error *error)
{
	const struct mac_flood **at = &table->live.flood[member - MAC_FIRST_TUNNEL], *old = *at;
	struct mac_flood *list = NULL;

	if (n) {
		list = malloc(sizeof(*list) + n * sizeof(list->remote[0]));
		if (!list)
			return error_set(error, -ENOMEM,
				"not enough memory for %u remote ends of a VXLAN device", n);
		list->n = n;
		memcpy(list->remote, remotes, n * sizeof(list->remote[0]));
	}
	// Pairs with mac_live_flood.
	__atomic_store_n(at, list, __ATOMIC_RELEASE);
	if (old)
		rcu_wait(table->settings.rcu, rcu_start_grace(table->settings.rcu));
	free((void *)(uintptr_t)old);
	return 0;
}

uint64_t mac_worker_bytes(const struct mac_table *table)
{
	const struct mac_pending *now = table->now;
	uint64_t bytes = mac_bytes(now->max) + sizeof(*now->view) +
	                 now->view->n_members * sizeof(struct mac_port) +
	                 table->remotes.max * sizeof(table->remotes.shown[0]);

	for (unsigned i = 0; i < MAC_TUNNELS; i++) {
		const struct mac_flood *flood = table->live.flood[i];

		if (flood)
			bytes += sizeof(*flood) + flood->n * sizeof(flood->remote[0]);
	}
	return bytes;
}

uint32_t remotes_count_members(const struct mac_bridge bridges[], unsigned n, uint32_t *n_floods)
{
	uint32_t n_members = MAC_FIRST_TUNNEL;

	*n_floods = 0;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < bridges[i].n_members; k++) {
			const struct mac_member *member = &bridges[i].member[k];

			if (member->port < MAC_FIRST_TUNNEL)
				continue;
			n_members = MAX_OF(n_members, member->port + 1u);
			*n_floods += member->vlans ? vlans_count(member->vlans) : 1;
		}
	return n_members;
}

static bool add_tunnel_to(struct mac_pending *pending, uint16_t domain, uint16_t member)
{
	const struct mac_slot slot = {.key = table_key(domain, &(struct wire_mac){{0}}),
		.port = member,
		.flags = MAC_STATIC | MAC_TUNNEL};

	return macs_find(pending->view->slots, slot.key) || macs_add(pending->view->slots, &slot);
}

bool remotes_add_tunnel(struct mac_pending *pending, uint16_t domain, uint16_t member)
{
	const struct mac_vlans *vlans = pending->view->port[member].vlans;
	bool is_added = true;

	if (!vlans)
		return add_tunnel_to(pending, domain, member);
	for (unsigned vid = 1; vid < MAC_VIDS && is_added; vid++)
		if (mac_vlans_has(vlans->has, vid))
			is_added = add_tunnel_to(pending, vlans->domain + vid, member);
	return is_added;
}

bool remotes_keep(const struct mac_table *table, const struct mac_slot *slot)
{
	if (!(slot->flags & MAC_REMOTE) || slot->flags & MAC_LINUX)
		return true;
	const struct mac_flood *flood = mac_live_flood(&table->live, table_member(table, slot));
	for (uint32_t i = 0; flood && i < flood->n; i++)
		if (flood->remote[i] == slot->port)
			return true;
	return false;
}
