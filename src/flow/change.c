// Changes and queries of flows. Control thread.
#include "flow/table.h"

#include <errno.h>

enum { BATCH = 64 };

struct flow_info info_of(const struct flow_table *table, uint32_t flow, uint64_t now)
{
	const uint32_t tick = flow_tick(&table->view, now);
	const struct count_sum sum = count_sum(table, flow);
	uint64_t any;
	struct flow_info info = {.number = flow,
		.life = table->life[flow] >> LIFE_SHIFT,
		.idle_ms = age_ms(table, idle_of(table, flow, tick, &any)),
		.packets = sum.packets,
		.bytes = sum.bytes};
	const uint32_t due = info.life == FLOW_FIXED_END ? age_due(table, flow, tick) : tick;

	info.left_ms = (int32_t)(due - tick) > 0 ? age_ms(table, due - tick) : 0;
	return info;
}

static struct flow_key key_at(const struct flow_table *table, const struct index *index,
	struct place place)
{
	const struct entry entry = place_get(table, index, place);

	if (index->is6)
		return (struct flow_key){.family = 6, .six = record_of(table, entry.flow)->key};
	return (struct flow_key){.family = 4, .four = entry.key};
}

void change_free(void *ctx, struct rcu_block block)
{
	struct flow_table *table = ctx;

	if (block.kind == DEFERRED_ACTION) {
		flow_action_unuse(table, block.first);
		return;
	}
	const struct ending *ending = &table->ending[table->ending_head++ % RCU_DEFER_MAX];
	struct index *index = index_of(table, ending->key.family);

	if (table->settings.ended) {
		struct flow_info info = info_of(table, ending->flow, table->now);
		info.key = ending->key;
		info.action = ending->action;
		info.reason = ending->reason;
		table->settings.ended(table->settings.ctx, &info);
	}
	carry_forget(table, ending->flow);
	table->n_of_vrf[vrf_of_key(&ending->key)]--;
	index->n_ending--;
	number_give(table, ending->flow);
	flow_action_unuse(table, ending->action);
}

void change_end(struct flow_table *table, struct index *index, struct place place,
	enum flow_reason reason)
{
	const struct entry entry = place_get(table, index, place);

	if (rcu_defer_pending(&table->defer) == RCU_DEFER_MAX)
		rcu_defer_free_some(&table->defer);
	table->ending[table->ending_tail++ % RCU_DEFER_MAX] =
		(struct ending){.key = key_at(table, index, place),
			.flow = entry.flow,
			.action = entry.action,
			.reason = reason};
	place_erase(table, index, place);
	table->life[entry.flow] &= ~LIFE_ALIVE;
	index->n--;
	index->n_ending++;
	table->n_ended[reason]++;
	rcu_defer_add(&table->defer,
		(struct rcu_block){.kind = DEFERRED_FLOW, .first = entry.flow, .n = 1});
}

// idle_ms: of a flow that was idle already.
static void set_life(struct flow_table *table, uint32_t flow, const struct flow_change *change,
	uint32_t idle_ms)
{
	const uint32_t tick = flow_tick(&table->view, table->now);
	uint32_t at = tick;

	if (change->life == FLOW_FIXED_END)
		at = tick + age_ticks(table, change->lasts_ms) + 1;
	else if (idle_ms)
		at = tick - age_ticks(table, idle_ms) + 1;
	table->life[flow] = (table->life[flow] & LIFE_CARRIED) |
	                    (change->is_learnt ? LIFE_LEARNT : 0) |
	                    (uint32_t)change->life << LIFE_SHIFT | LIFE_ALIVE | (at & LIFE_TICK);
}

// The flow as workers will see it; they cannot find it yet.
static struct entry prepare(struct flow_table *table, const struct flow_change *change,
	uint32_t flow, uint64_t hash)
{
	struct entry entry = {.flow = flow, .action = change->action, .tag = hash_tag(hash)};

	set_life(table, flow, change, change->idle_ms);
	if (change->packets) {
		const uint32_t tick = flow_tick(&table->view, table->now);
		const uint32_t seen = tick - age_ticks(table, change->idle_ms) + 1;
		table->view.count[0][flow] =
			(struct flow_count){.packets_and_seen = change->packets << FLOW_SEEN_BITS |
		                                                (seen & LIFE_TICK),
				.bytes = change->bytes};
	}
	if (change->key.family == 4) {
		entry.key = change->key.four;
		return entry;
	}
	record_of(table, flow)->key = change->key.six;
	__atomic_store_n(&record_of(table, flow)->action, change->action, __ATOMIC_RELAXED);
	return entry;
}

static int add(struct flow_table *table, struct index *index, const struct flow_change *change,
	uint64_t hash)
{
	const uint32_t flow = number_take(table, index);

	if (!flow) {
		index->n_full++;
		return -ENOSPC;
	}
	int err = carry_start(table, flow, change->packets);
	if (err) {
		number_give(table, flow);
		return err;
	}
	const struct entry entry = prepare(table, change, flow, hash);
	err = place_insert(table, index, &entry, hash);
	if (err) {
		carry_forget(table, flow);
		number_give(table, flow);
		index->n_full++;
		return err;
	}
	age_expect(table, flow);
	index->n++;
	table->n_of_vrf[vrf_of_key(&change->key)]++;
	table->n_added++;
	table->actions.n_users[change->action]++;
	return 0;
}

static int replace(struct flow_table *table, struct index *index, struct place place,
	const struct flow_change *change)
{
	const struct entry entry = place_get(table, index, place);

	if (table->life[entry.flow] & LIFE_LEARNT && table->settings.replaced)
		table->settings.replaced(table->settings.ctx, entry.flow, &change->key);
	set_life(table, entry.flow, change, 0);
	age_expect(table, entry.flow);
	if (entry.action == change->action)
		return 0;
	table->actions.n_users[change->action]++;
	place_set_action(table, index, place, change->action);
	rcu_defer_add(&table->defer,
		(struct rcu_block){.kind = DEFERRED_ACTION, .first = entry.action, .n = 1});
	return 0;
}

static bool is_valid(const struct flow_table *table, const struct flow_change *change)
{
	static const struct flow_key4 zero;
	const struct flow_key *key = &change->key;

	if (key->family == 4 &&
		(key->four.kind & ~KIND_MASK || !memcmp(&key->four, &zero, sizeof(zero))))
		return false;
	if ((key->family != 4 && key->family != 6) || vrf_of_key(key) >= FLOW_VRFS)
		return false;
	if (change->op == FLOW_DELETE)
		return true;
	return change->action < FLOW_ACTIONS && table->actions.n_users[change->action] &&
	       change->life < FLOW_LIVES && change->lasts_ms <= FLOW_MAX_LASTS_MS &&
	       change->idle_ms <= FLOW_MAX_LASTS_MS && change->packets <= FLOW_MAX_PACKETS;
}

// Users do not know which flows were learnt.
static bool gives_way(const struct flow_table *table, const struct index *index, struct place place,
	const struct flow_change *change)
{
	const uint32_t flow = place_get(table, index, place).flow;

	return table->life[flow] & LIFE_LEARNT && !change->is_learnt;
}

static int apply(struct flow_table *table, const struct flow_change *change, uint64_t hash)
{
	struct index *index = index_of(table, change->key.family);
	struct place place;

	if (!is_valid(table, change))
		return -EINVAL;
	const bool exists = index->n_lines && place_find(table, &change->key, hash, &place);
	switch (change->op) {
	case FLOW_ADD:
		if (!exists)
			return add(table, index, change, hash);
		return gives_way(table, index, place, change) ? replace(table, index, place, change)
		                                              : -EEXIST;
	case FLOW_REPLACE:
		return exists ? replace(table, index, place, change)
		              : add(table, index, change, hash);
	case FLOW_DELETE:
		if (!exists)
			return -ENOENT;
		change_end(table, index, place, FLOW_DELETED);
		return 0;
	}
	return -EINVAL;
}

static void fetch_lines(const struct index *index, uint64_t hash)
{
	if (!index->n_lines)
		return;
	__builtin_prefetch(&index->lines[hash_line(hash, 0, index->n_lines)], 1);
	__builtin_prefetch(&index->lines[hash_line(hash, 1, index->n_lines)], 1);
}

// Computes the hashes of a batch, each family at once, and fetches the lines.
static void hash_batch(const struct flow_table *table, const struct flow_change change[],
	unsigned n, uint64_t hash[])
{
	uint64_t hash4[BATCH], hash6[BATCH];
	struct flow_key4 four[BATCH];
	struct flow_key6 six[BATCH];
	unsigned n4 = 0, n6 = 0;

	for (unsigned i = 0; i < n; i++)
		if (change[i].key.family == 6)
			six[n6++] = change[i].key.six;
		else
			four[n4++] = change[i].key.four;
	table->view.hash4(&table->view, four, hash4, n4);
	table->view.hash6(&table->view, six, hash6, n6);
	n4 = n6 = 0;
	for (unsigned i = 0; i < n; i++) {
		const bool is6 = change[i].key.family == 6;
		hash[i] = is6 ? hash6[n6++] : hash4[n4++];
		fetch_lines(&table->index[is6], hash[i]);
		__builtin_prefetch(&table->actions.n_users[change[i].action % FLOW_ACTIONS], 1);
	}
}

size_t flow_change(struct flow_table *table, const struct flow_change change[], size_t n,
	uint64_t now, int result[])
{
	uint64_t hash[BATCH];
	size_t n_applied = 0;

	table->now = now;
	for (size_t at = 0; at < n; at += BATCH) {
		const unsigned n_batch = MIN_OF(n - at, BATCH);
		hash_batch(table, change + at, n_batch, hash);
		for (unsigned i = 0; i < n_batch; i++) {
			result[at + i] = apply(table, &change[at + i], hash[i]);
			n_applied += !result[at + i];
		}
		rcu_defer_close(&table->defer, false);
		rcu_defer_poll(&table->defer);
	}
	return n_applied;
}

bool flow_vrf_used(const struct flow_table *table, uint16_t vrf)
{
	return vrf < FLOW_VRFS && table->n_of_vrf[vrf];
}

static struct flow_info info_at(const struct flow_table *table, const struct index *index,
	struct place place, uint64_t now)
{
	const struct entry entry = place_get(table, index, place);
	struct flow_info info = info_of(table, entry.flow, now);

	info.key = key_at(table, index, place);
	info.action = entry.action;
	return info;
}

bool flow_find(const struct flow_table *table, const struct flow_key *key, uint64_t now,
	struct flow_info *info)
{
	const struct index *index = &table->index[key->family == 6];
	struct place place;
	uint64_t hash;

	if (!index->n_lines)
		return false;
	if (key->family == 6)
		table->view.hash6(&table->view, &key->six, &hash, 1);
	else
		table->view.hash4(&table->view, &key->four, &hash, 1);
	if (!place_find(table, key, hash, &place))
		return false;
	*info = info_at(table, index, place, now);
	return true;
}

// The line of a flow that will soon be asked for.
static void fetch_ahead(const struct flow_table *table, uint32_t flow)
{
	const struct index *index = &table->index[number_is6(table, flow)];

	if (flow < table->end && table->life[flow] & LIFE_ALIVE)
		__builtin_prefetch(&index->lines[table->line_of[flow]]);
}

bool flow_next_within(const struct flow_table *table, uint32_t *from, uint32_t most, uint64_t now,
	struct flow_info *info)
{
	enum { AHEAD = 16 };
	const uint32_t end = MIN_OF((uint64_t)*from + most, table->end);

	for (uint32_t flow = *from; flow < end; flow++) {
		fetch_ahead(table, flow + AHEAD);
		if (!(table->life[flow] & LIFE_ALIVE))
			continue;
		*info = info_at(table, &table->index[number_is6(table, flow)],
			place_of(table, flow), now);
		*from = flow + 1 < table->end ? flow + 1 : 0;
		return true;
	}
	*from = end < table->end ? end : 0;
	return false;
}

bool flow_next(const struct flow_table *table, uint32_t from, uint64_t now, struct flow_info *info)
{
	return flow_next_within(table, &from, UINT32_MAX, now, info);
}
