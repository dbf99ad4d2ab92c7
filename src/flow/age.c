// When flows end: a clock hand goes round the flows in slices, and leaves out blocks in which
// nothing can be due yet. Control thread.
#include "flow/table.h"

// A turn of the hand starts every two ticks (at most a quarter of a second). Each block is visited
// once in an hour at least, so that counters that overflow are noted; and more often if some did.
enum { TURN_TICKS = 2, HORIZON_TICKS = 3600 * 8, CARRIED_TICKS = 300 * 8 };

// The work of one slice, in flows looked at: well below a millisecond. Skipping a block, ending a
// flow, and looking up its action, in the same unit.
enum { SLICE_WORK = 24 * BLOCK_FLOWS, ENDING_WORK = 24, BLOCKS_PER_WORK = 4, VISIT_WORK = 4 };

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

void age_expect(struct flow_table *table, uint32_t flow, uint32_t due)
{
	uint32_t *of_block = &table->due[flow / BLOCK_FLOWS];

	if (is_before(due, *of_block))
		*of_block = due;
}

void flow_set_timeout(struct flow_table *table, unsigned life, uint32_t timeout_ms)
{
	table->settings.timeout_ms[life - 1] = timeout_ms;
	table->timeout_ticks[life] = age_ticks(table, timeout_ms) + 1;
	for (uint32_t block = 0; block < table->n_blocks; block++)
		table->due[block] = flow_tick(&table->view, table->now);
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

// Ends what is due in a block; returns how many flows ended.
static unsigned visit(struct flow_table *table, uint32_t block, uint32_t tick)
{
	const uint32_t first = MAX_OF(block * BLOCK_FLOWS, 1);
	const uint32_t end = MIN_OF((block + 1) * BLOCK_FLOWS, table->end);
	uint32_t next = tick + HORIZON_TICKS, ended[BLOCK_FLOWS];
	unsigned n = 0;

	for (uint32_t flow = first; flow < end; flow++) {
		if (!(table->life[flow] & LIFE_ALIVE))
			continue;
		uint64_t any;
		const uint32_t due = due_of(table, flow, tick, &any);
		if (unlikely(any >> 63 || table->life[flow] & LIFE_CARRIED)) {
			carry_follow(table, flow);
			next = is_before(next, tick + CARRIED_TICKS) ? next : tick + CARRIED_TICKS;
		}
		if (!is_before(tick, due))
			ended[n++] = flow;
		else if (is_before(due, next))
			next = due;
	}
	table->due[block] = next;
	end_all(table, ended, n);
	return n;
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

	table->now = now;
	rcu_defer_close(&table->defer, true);
	const bool is_behind = rcu_defer_poll(&table->defer);
	if (!is_turning(table, tick))
		return is_behind;
	for (unsigned work = 0; work < SLICE_WORK; table->hand++) {
		if (table->hand == table->n_blocks) {
			table->hand = 0;
			return is_behind;
		}
		if (is_before(tick, table->due[table->hand])) {
			work += table->hand % BLOCKS_PER_WORK == 0;
			continue;
		}
		// Workers have to pass first.
		if (rcu_defer_pending(&table->defer) > RCU_DEFER_MAX - BLOCK_FLOWS)
			return true;
		work += BLOCK_FLOWS + ENDING_WORK * visit(table, table->hand, tick);
	}
	return true;
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
	for (unsigned work = 0; table->n_unvisited && work < SLICE_WORK; work += VISIT_WORK) {
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
