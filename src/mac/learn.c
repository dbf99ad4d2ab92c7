// Learning: workers tell of addresses through a ring each; the control thread keeps limits and
// watches addresses that move.
#include "mac/inside.h"

#include "base/word16.h"

bool mac_tell(const struct mac_live *live, unsigned worker, const struct mac_told *told)
{
	const uint16_t n_flushes = __atomic_load_n(&live->n_flushes, __ATOMIC_RELAXED);
	struct mac_ring *ring = live->ring[worker];
	struct mac_told *mark = &ring->mark[fold(told->key, 0x9e3779b97f4a7c15) % MAC_MARKS];

	if (mark->key == told->key && mark->port == told->port && mark->tick == told->tick &&
		mark->n_flushes == n_flushes && !memcmp(mark->end, told->end, sizeof(told->end)))
		return true;
	// Pairs with the store in take: the control thread has read what was there.
	if (ring->written - __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE) == MAC_RING)
		return false;
	*mark = *told;
	mark->n_flushes = n_flushes;
	ring->item[ring->written % MAC_RING] = *told;
	// Pairs with the load in take.
	__atomic_store_n(&ring->written, ring->written + 1, __ATOMIC_RELEASE);
	return true;
}

// The entry of an address that moves; NULL: there is none for it now.
static struct mover *mover_of(struct mac_table *table, uint64_t key, uint64_t now)
{
	const uint64_t window = MAC_MOVES_S * table->settings.hz;
	struct mover *mover = &table->mover[macs_hash(table->secret, key) % MOVERS];

	if (mover->key == key || !mover->key || (!mover->until && now - mover->since >= window)) {
		if (mover->key != key || now - mover->since >= window)
			*mover = (struct mover){.key = key, .since = now};
		return mover;
	}
	return NULL;
}

// Whether an address has moved too often; it is held from now on then.
static bool moves_too_often(struct mac_table *table, struct mac_slot *slot, uint16_t to,
	uint64_t now)
{
	struct mac_slot value = macs_get(slot);
	struct mover *mover = mover_of(table, value.key, now);
	struct mac_info info;

	if (!mover || ++mover->n <= MAC_MOVES)
		return false;
	mover->until = now + MAC_HOLD_S * table->settings.hz;
	value.flags |= MAC_HELD;
	macs_set(slot, &value);
	table_bridge(table, value.key)->usage.n_held++;
	if (table->settings.held) {
		table_describe(table, &value, now, &info);
		table->settings.held(table->settings.ctx, &info, to);
	}
	return true;
}

static bool is_full(const struct mac_table *table, uint16_t port)
{
	const struct mac_member *member = pending_member(table->now, port);

	return !member || (member->max && table->n_learnt[port] >= member->max);
}

// The port of a bridge with most learnt addresses.
static uint16_t busiest_port(const struct mac_table *table, uint16_t domain)
{
	const struct mac_port *port = table->now->view->port;
	unsigned most = MAC_PORTS;

	for (unsigned i = 0; i < table->now->view->n_members; i++)
		if (port[i].domain == domain &&
			(most == MAC_PORTS || table->n_learnt[i] > table->n_learnt[most]))
			most = i;
	return most;
}

// Forgets one address learnt behind the port. The search is short: no port has more of them. False:
// none was found.
static bool evict(struct mac_table *table, uint16_t domain, uint16_t port)
{
	enum { MOST = 4096 };
	const uint32_t n = macs_n_places(table_slots(table));

	for (unsigned i = 0; i < MOST; i++) {
		table->evict_at = table->evict_at + 1 < n ? table->evict_at + 1 : 0;
		struct mac_slot *slot = macs_at(table_slots(table), table->evict_at);
		const struct mac_slot value = macs_get(slot);

		if (!value.key || value.flags & MAC_STATIC || value.key >> 48 != domain ||
			table_member(table, &value) != port)
			continue;
		table_forget(table, slot);
		table_bridge(table, (uint64_t)domain << 48)->usage.n_evicted++;
		return true;
	}
	return false;
}

// Whether the bridge has space for one more behind the port. At the limit, the port with most
// addresses learns no more, and makes room for those of the others.
static bool make_room(struct mac_table *table, uint16_t domain, uint16_t port)
{
	const struct mac_usage *usage = &table_bridge(table, (uint64_t)domain << 48)->usage;

	if (usage->n_static + usage->n_learnt < usage->max)
		return true;
	const uint16_t busiest = busiest_port(table, domain);

	return table->n_learnt[port] < table->n_learnt[busiest] && evict(table, domain, busiest);
}

// The remote end of an address behind a VXLAN device; 0: none.
static uint32_t remote_of(const struct mac_table *table, const struct mac_told *told)
{
	struct wire_addr end = {.family = told->family};

	memcpy(end.bytes, told->end, sizeof(end.bytes));
	return table->settings.remote
	               ? table->settings.remote(table->settings.ctx, told->port, &end)
	               : 0;
}

// What is to be learnt; its `key` is 0 if nothing is: a remote end is not known.
static struct mac_slot slot_of(const struct mac_table *table, const struct mac_told *told)
{
	struct mac_slot slot = {.key = told->key, .port = told->port, .seen = told->tick};

	if (told->port < MAC_FIRST_TUNNEL)
		return slot;
	slot.port = remote_of(table, told);
	slot.flags = MAC_REMOTE;
	slot.key = slot.port ? slot.key : 0;
	return slot;
}

static void add(struct mac_table *table, const struct mac_told *told)
{
	struct mac_usage *usage = &table_bridge(table, told->key)->usage;
	const struct mac_slot slot = slot_of(table, told);

	if (!slot.key || is_full(table, told->port) ||
		!make_room(table, told->key >> 48, told->port) ||
		!macs_add(table_slots(table), &slot)) {
		usage->n_refused++;
		return;
	}
	usage->n_learnt++;
	usage->n_added++;
	table->n_learnt[told->port]++;
}

static void move(struct mac_table *table, struct mac_slot *slot, const struct mac_told *told,
	uint64_t now)
{
	struct mac_usage *usage = &table_bridge(table, told->key)->usage;
	const struct mac_slot was = macs_get(slot), is = slot_of(table, told);
	const bool is_elsewhere = table_member(table, &was) != told->port;

	if (!is.key || (is_elsewhere && is_full(table, told->port))) {
		usage->n_refused++;
		return;
	}
	if (is.port == was.port && is.flags == was.flags)
		return;
	if (moves_too_often(table, slot, told->port, now))
		return;
	table->n_learnt[table_member(table, &was)]--;
	table->n_learnt[told->port]++;
	macs_set(slot, &is);
	usage->n_moved++;
}

// Linux learns itself.
static void tell_linux(struct mac_table *table, const struct mac_told *told, uint64_t now)
{
	const struct mac_slot value = {.key = told->key, .port = told->port, .seen = told->tick};
	struct mac_info info;

	if (!table->settings.unknown)
		return;
	table->n_linuxs++;
	table_describe(table, &value, now, &info);
	info.end.family = told->family;
	memcpy(info.end.bytes, told->end, sizeof(told->end));
	table->settings.unknown(table->settings.ctx, &info);
}

static void learn(struct mac_table *table, const struct mac_told *told, uint64_t now)
{
	const struct mac_port *port = &table->now->view->port[told->port];

	// The member may have changed since.
	if (told->port >= table->now->view->n_members ||
		port->domain != table_domain(table, told->key) || !(port->flags & MAC_LEARNS))
		return;
	struct mac_slot *slot = macs_find(table_slots(table), told->key);
	const struct mac_slot was = slot ? macs_get(slot) : (struct mac_slot){0};
	const bool is_remote = told->port >= MAC_FIRST_TUNNEL;
	// A worker tells of an address behind another remote end of the same device, too.
	const bool is_new = !slot || table_member(table, &was) != told->port || is_remote;

	if (port->flags & MAC_OF_LINUX) {
		if (is_new)
			tell_linux(table, told, now);
	} else if (!slot)
		add(table, told);
	else if (is_new && !(was.flags & (MAC_STATIC | MAC_HELD)))
		move(table, slot, told, now);
}

// Handles at most n reports of a worker; returns how many.
static unsigned take(struct mac_table *table, struct mac_ring *ring, unsigned n, uint64_t now)
{
	// Pairs with the store in mac_tell.
	const uint32_t written = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);
	unsigned n_done = 0;

	n = MIN_OF(n, written - ring->read);
	for (; n_done < n && table->n_linuxs < MAC_TURN_LINUX; n_done++) {
		const struct mac_told told = ring->item[(ring->read + n_done) % MAC_RING];
		learn(table, &told, now);
	}
	// Pairs with the load in mac_tell: the worker may overwrite them.
	__atomic_store_n(&ring->read, ring->read + n_done, __ATOMIC_RELEASE);
	return n_done;
}

// Ends holds whose time is over.
static void release(struct mac_table *table, uint64_t now)
{
	for (unsigned i = 0; i < MOVERS; i++) {
		struct mover *mover = &table->mover[i];

		if (!mover->until || now < mover->until)
			continue;
		struct mac_slot *slot = macs_find(table_slots(table), mover->key);
		if (slot) {
			struct mac_slot value = macs_get(slot);
			value.flags &= ~MAC_HELD;
			macs_set(slot, &value);
		}
		*mover = (struct mover){.key = 0};
	}
}

static bool is_old(const struct mac_table *table, const struct mac_slot *slot, uint32_t tick)
{
	if (!slot->key || slot->flags & (MAC_STATIC | MAC_LINUX))
		return false;
	const int32_t age = tick - slot->seen; // a worker may be ahead

	return age > 0 && (uint64_t)age > table_bridge(table, slot->key)->ageing_ticks;
}

// Searches the whole table once per tick, some of it in each call.
static void age(struct mac_table *table, uint64_t now)
{
	enum { MOST = 1 << 17 };
	const struct mac_slots *slots = table_slots(table);
	const unsigned shift = table->now->view->tick_shift;
	const uint32_t n = macs_n_places(slots), tick = now >> shift;
	const uint64_t passed = MIN_OF(now - table->aged, 1ull << shift);
	const uint32_t due = MIN_OF((unsigned __int128)n * passed >> shift, MOST);

	if (!due)
		return;
	table->aged = now;
	for (uint32_t i = 0; i < due; i++) {
		struct mac_slot *slot = macs_at(slots, table->age_at);
		const struct mac_slot value = macs_get(slot);

		table->age_at = table->age_at + 1 < n ? table->age_at + 1 : 0;
		if (!is_old(table, &value, tick))
			continue;
		table_bridge(table, value.key)->usage.n_aged++;
		table_forget(table, slot);
	}
}

bool mac_poll(struct mac_table *table, uint64_t now)
{
	const uint32_t tick = now >> table->now->view->tick_shift;
	unsigned n = 0;

	// Each worker has its share, so that none keeps the others waiting.
	const unsigned share = MAX_OF(MAC_TURN / table->settings.n_workers, 1u);

	table->n_linuxs = 0;
	for (unsigned i = 0; i < table->settings.n_workers; i++)
		n += take(table, table->live.ring[i], share, now);
	age(table, now);
	if (tick != table->released_tick) {
		table->released_tick = tick;
		release(table, now);
	}
	return n > 0;
}
