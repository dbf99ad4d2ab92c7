// When flows end: a clock hand goes round the flows in slices, and leaves out blocks in which
// nothing can be due yet. In the others it looks only at the flows that may be due: their counters
// are far apart in memory. Control thread.
#include "flow/table.h"

// A turn of the hand starts every two ticks (at most a quarter of a second). Each flow is looked at
// once in an hour at least, so that counters that overflow are noted; and more often if some did.
enum { TURN_TICKS = 2, HORIZON_TICKS = 3600 * 8, CARRIED_TICKS = 300 * 8 };

// A block that is later than this is looked at as a whole: the bits of `look` could be mistaken.
enum { LOOK_ALL_TICKS = 1 << (LOOK_BITS - 1) };
_Static_assert((int)HORIZON_TICKS < LOOK_ALL_TICKS, "16 bits tell before from after");

// The work of one slice, in units of some nanoseconds: well below a millisecond. What it is to skip
// a block, to search one, to look at a flow, to end it, and to look up its action.
enum {
	SLICE_WORK = 12288,
	BLOCKS_PER_WORK = 4,
	SEARCH_WORK = 32,
	LOOK_WORK = 8,
	ENDING_WORK = 24,
	ACTION_WORK = 4
};

// Flows that may be due, of one or more blocks, so that what is far apart is fetched at once.
enum { ENOUGH_FOUND = 64, MOST_FOUND = ENOUGH_FOUND + BLOCK_FLOWS };
struct found {
	unsigned n;
	uint32_t flow[MOST_FOUND];
};

uint32_t age_ticks(const struct flow_table *table, uint64_t ms)
{
	const uint64_t cycles = (unsigned __int128)ms * table->settings.hz / 1000;

	return (cycles >> table->view.tick_shift) + 1;
}

uint64_t age_ms(const struct flow_table *table, uint64_t ticks)
{
	return (unsigned __int128)ticks * 1000 * (1ull << table->view.tick_shift) /
	       table->settings.hz;
}

void age_open(struct flow_table *table)
{
	const uint32_t tick = flow_tick(&table->view, table->now);

	table->turn_tick = tick;
	for (uint32_t block = 0; block < table->n_blocks; block++)
		table->due[block] = tick + HORIZON_TICKS;
	for (unsigned life = 1; life <= FLOW_TIMEOUTS; life++)
		table->timeout_ticks[life] =
			age_ticks(table, table->settings.timeout_ms[life - 1]) + 1;
}

// A 24-bit tick at most half a turn before or after `tick`.
static uint32_t extend(uint32_t end, uint32_t tick)
{
	return tick + ((int32_t)((end - tick) << (32 - LIFE_TICK_BITS)) >> (32 - LIFE_TICK_BITS));
}

static inline uint32_t due_of(const struct flow_table *table, uint32_t flow, uint32_t tick,
	uint64_t *any)
{
	const uint32_t idle = idle_of(table, flow, tick, any);
	const uint32_t life = table->life[flow], kind = life >> LIFE_SHIFT;

	if (kind == FLOW_ENDLESS)
		return tick + HORIZON_TICKS;
	if (kind == FLOW_FIXED_END)
		return extend(life & LIFE_TICK, tick);
	return tick - idle + table->timeout_ticks[kind];
}

uint32_t age_due(const struct flow_table *table, uint32_t flow, uint32_t tick)
{
	uint64_t any;

	return due_of(table, flow, tick, &any);
}

static bool is_before(uint32_t tick, uint32_t other)
{
	return (int32_t)(tick - other) < 0;
}

// Looks at a flow at this tick, or earlier if it is too far away; it may have passed.
static void look_at(struct flow_table *table, uint32_t flow, uint32_t tick, uint32_t due)
{
	uint32_t *of_block = &table->due[flow / BLOCK_FLOWS];

	if (is_before(due, tick))
		due = tick;
	if (is_before(tick + HORIZON_TICKS, due))
		due = tick + HORIZON_TICKS;
	table->look[flow] = due;
	if (is_before(due, *of_block))
		*of_block = due;
}

void age_expect(struct flow_table *table, uint32_t flow)
{
	const uint32_t tick = flow_tick(&table->view, table->now);

	look_at(table, flow, tick, age_due(table, flow, tick));
}

void flow_set_timeout(struct flow_table *table, unsigned life, uint32_t timeout_ms)
{
	table->settings.timeout_ms[life - 1] = timeout_ms;
	table->timeout_ticks[life] = age_ticks(table, timeout_ms) + 1;
	for (uint32_t block = 0; block < table->n_blocks; block++)
		table->due[block] = flow_tick(&table->view, table->now) - LOOK_ALL_TICKS;
}

static void end_all(struct flow_table *table, const uint32_t flow[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch(&index_with(table, flow[i])->lines[table->line_of[flow[i]]], 1);
	for (unsigned i = 0; i < n; i++) {
		const bool has_end = table->life[flow[i]] >> LIFE_SHIFT == FLOW_FIXED_END;

		change_end(table, index_with(table, flow[i]), place_of(table, flow[i]),
			has_end ? FLOW_REACHED_END : FLOW_IDLE);
	}
}

static void add_found(const struct flow_table *table, struct found *found, uint32_t flow)
{
	__builtin_prefetch(&table->life[flow]);
	__builtin_prefetch(&table->line_of[flow]);
	for (unsigned worker = 0; worker < table->settings.n_workers; worker++)
		__builtin_prefetch(&table->view.count[worker][flow]);
	found->flow[found->n++] = flow;
}

// How many ticks ahead the first flow of a group is looked at; most groups have none that is due,
// and this is done for many flows at once.
enum { GROUP_FLOWS = 32 };
static int16_t ahead_of_group(const uint16_t look[GROUP_FLOWS], uint16_t tick)
{
	int16_t first = INT16_MAX;

	for (unsigned i = 0; i < GROUP_FLOWS; i++) {
		const int16_t ahead = (int16_t)(look[i] - tick);
		first = ahead < first ? ahead : first;
	}
	return first;
}

// Finds the flows of a block that may be due.
static void search(struct flow_table *table, uint32_t block, uint32_t tick, struct found *found)
{
	const bool all = tick - table->due[block] >= LOOK_ALL_TICKS;
	const uint16_t *look = &table->look[block * BLOCK_FLOWS];
	int16_t first = HORIZON_TICKS;

	for (unsigned group = 0; group < BLOCK_FLOWS; group += GROUP_FLOWS) {
		const int16_t first_of_group = ahead_of_group(look + group, tick);
		if (!all && first_of_group > 0) {
			first = MIN_OF(first, first_of_group);
			continue;
		}
		for (unsigned i = group; i < group + GROUP_FLOWS; i++) {
			const int16_t ahead = (int16_t)(look[i] - tick);
			if (all || ahead <= 0)
				add_found(table, found, block * BLOCK_FLOWS + i);
			else
				first = MIN_OF(first, ahead);
		}
	}
	table->due[block] = tick + first;
}

// Goes on until enough was found, the work is done, or the turn ends; returns how much that was.
static unsigned gather(struct flow_table *table, uint32_t tick, unsigned most, struct found *found)
{
	unsigned work = 0;

	for (found->n = 0; table->hand < table->n_blocks; table->hand++) {
		if (work >= most || found->n >= ENOUGH_FOUND)
			break;
		if (is_before(tick, table->due[table->hand])) {
			work += table->hand % BLOCKS_PER_WORK == 0;
			continue;
		}
		search(table, table->hand, tick, found);
		work += SEARCH_WORK;
	}
	return work;
}

// Looks at a flow: whether it is due; otherwise, notes when to look again.
static bool is_due(struct flow_table *table, uint32_t flow, uint32_t tick)
{
	uint64_t any;

	if (!(table->life[flow] & LIFE_ALIVE)) {
		look_at(table, flow, tick, tick + HORIZON_TICKS);
		return false;
	}
	uint32_t due = due_of(table, flow, tick, &any);
	const bool is_carried = any >> 63 || table->life[flow] & LIFE_CARRIED;
	if (unlikely(is_carried))
		carry_follow(table, flow);
	if (!is_before(tick, due))
		return true;
	if (unlikely(is_carried) && is_before(tick + CARRIED_TICKS, due))
		due = tick + CARRIED_TICKS;
	look_at(table, flow, tick, due);
	return false;
}

// Ends what is due; returns how much work that was.
static unsigned settle(struct flow_table *table, uint32_t tick, struct found *found)
{
	const unsigned n_found = found->n;
	unsigned n = 0;

	for (unsigned i = 0; i < n_found; i++)
		if (is_due(table, found->flow[i], tick))
			found->flow[n++] = found->flow[i];
	end_all(table, found->flow, n);
	return n_found * LOOK_WORK + n * ENDING_WORK;
}

// Whether others may end; otherwise workers have to pass first.
static bool has_space(const struct flow_table *table)
{
	return rcu_defer_pending(&table->defer) <= RCU_DEFER_MAX - MOST_FOUND;
}

// Whether a turn is under way.
static bool is_turning(struct flow_table *table, uint32_t tick)
{
	if (table->hand)
		return true;
	if (is_before(tick, table->turn_tick + TURN_TICKS))
		return false;
	table->turn_tick = tick;
	return true;
}

bool flow_age(struct flow_table *table, uint64_t now)
{
	const uint32_t tick = flow_tick(&table->view, now);
	struct found found;

	table->now = now;
	rcu_defer_close(&table->defer, true);
	const bool is_behind = rcu_defer_poll(&table->defer);
	if (!is_turning(table, tick))
		return is_behind;
	for (unsigned work = 0; work < SLICE_WORK;) {
		if (!has_space(table))
			return true;
		work += gather(table, tick, SLICE_WORK - work, &found);
		work += settle(table, tick, &found);
		if (table->hand < table->n_blocks)
			continue;
		table->hand = 0;
		return is_behind || !is_before(tick, table->turn_tick + TURN_TICKS);
	}
	return true;
}

bool flow_age_is_late(const struct flow_table *table)
{
	const uint32_t passed = flow_tick(&table->view, table->now) - table->turn_tick;

	return table->hand && has_space(table) &&
	       (uint64_t)table->hand * TURN_TICKS < (uint64_t)table->n_blocks * passed;
}

// Whether the action of a flow was withdrawn.
static bool is_withdrawn(struct flow_table *table, uint32_t flow)
{
	if (!(table->life[flow] & LIFE_ALIVE))
		return false;
	const struct entry entry = place_get(table, index_with(table, flow), place_of(table, flow));
	return table->view.actions[entry.action].withdrawn;
}

bool flow_end_withdrawn(struct flow_table *table, uint64_t now)
{
	table->now = now;
	for (unsigned work = 0; table->n_unvisited && work < SLICE_WORK; work += ACTION_WORK) {
		const uint32_t flow = table->withdrawn_hand++ % table->end;

		// Workers have to pass first.
		if (rcu_defer_pending(&table->defer) == RCU_DEFER_MAX)
			break;
		table->n_unvisited--;
		if (!is_withdrawn(table, flow))
			continue;
		change_end(table, index_with(table, flow), place_of(table, flow), FLOW_DELETED);
		work += ENDING_WORK;
	}
	rcu_defer_close(&table->defer, true);
	return table->n_unvisited;
}
