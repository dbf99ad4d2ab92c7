// Counts the packets of flows and carries out their actions; what has no flow may be dropped. The
// next hops of flows were written by the lookup (match.c). Worker.
#include "datapath/judge.h"
#include "datapath/steps.h"

#include <rte_cycles.h>

// The packet leaves with this DSCP, or another interface gets a copy of it.
static inline void set_extras(struct burst *b, uint16_t i, const struct flow_action *action)
{
	if (action->dscp != FLOW_KEEP_DSCP) {
		b->dscp[i] = action->dscp;
		b->mark_mask |= 1ull << i;
		b->has |= BURST_MARKS;
	}
	if (action->mirror != FLOW_NO_MIRROR) {
		b->mirror[i] = action->mirror;
		b->mirror_mask |= 1ull << i;
		b->has |= BURST_MIRRORS;
	}
}

// Returns a bit for each packet whose flow stops it.
static inline uint64_t count_and_act(const struct worker *w, struct burst *b)
{
	const struct flow_action *actions = w->flows->actions;
	struct flow_count *count = w->flows->count[w->io->id];
	const uint32_t tick = flow_tick(w->flows, rte_rdtsc());
	const uint64_t found = b->flow_mask & burst_all(b);
	uint64_t stopped = 0;

	stats_add(&w->stat->flow_packets, __builtin_popcountll(found));
	for (uint64_t rest = found; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);
		const struct flow_action *action = &actions[b->action[i]];

		flow_count_packet(count, b->flow[i], b->length[i], tick);
		if (unlikely(action->effect == FLOW_DROP || action->effect == FLOW_PUNT))
			stopped |= 1ull << i;
		else
			set_extras(b, i, action);
	}
	return stopped;
}

// Packets in transit without a flow. Before the first routes it is not known which are: they may
// be for the router itself, as those of a routing daemon without which there would be no routes.
static __attribute__((noinline)) uint64_t find_missing(const struct burst *b)
{
	uint64_t missing = 0;

	for (uint64_t rest = burst_all(b) & ~b->flow_mask; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);
		const uint8_t hop_verdict = fib_verdict_load(b->view, b->hop[i]);

		missing |= (uint64_t)(!judge_is_for_router(hop_verdict) &&
				      hop_verdict != VERDICT_NOT_SYNCED)
		           << i;
	}
	return missing;
}

// Packets that check and source would not stop, as far as is known here.
static uint64_t find_sound(const struct burst *b, uint64_t mask)
{
	uint64_t expired = 0;

	for (uint64_t rest = mask; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);

		expired |= (uint64_t)judge_is_expired(b->ttl[i]) << i;
	}
	return mask & ~expired & ~(b->is_ip6 ? 0 : b->own_source_mask);
}

// The same; flows may be learnt from them.
static uint64_t stop_missing(struct worker *w, const struct burst *b)
{
	const uint64_t missing = find_missing(b);

	if (missing && b->has & BURST_UNKNOWN)
		datapath_learn_from(w, b, find_sound(b, missing));
	return missing;
}

static enum verdict verdict_of(const struct worker *w, const struct burst *b, uint16_t i)
{
	if (!(b->flow_mask >> i & 1))
		return VERDICT_FLOW_MISSING;
	return w->flows->actions[b->action[i]].effect == FLOW_DROP ? VERDICT_FLOW_DROPPED
	                                                           : VERDICT_FLOW_PUNTED;
}

static __attribute__((noinline)) void stop(struct worker *w, struct burst *b, uint64_t stopped)
{
	for (uint64_t rest = stopped; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);

		burst_drop(w, b, i, verdict_of(w, b, i));
	}
	burst_keep(b, ~stopped);
}

enum verdict datapath_flow_linuxs(const struct worker *w, const struct burst *one,
	enum verdict verdict)
{
	const bool drops_missing = __atomic_load_n(w->drops_missing, __ATOMIC_RELAXED);

	if (!(one->flow_mask & 1))
		return drops_missing && find_missing(one) ? VERDICT_FLOW_MISSING : verdict;
	const uint8_t effect = w->flows->actions[one->action[0]].effect;
	flow_count_packet(w->flows->count[w->io->id], one->flow[0], one->length[0],
		flow_tick(w->flows, rte_rdtsc()));
	return effect == FLOW_DROP || effect == FLOW_PUNT ? verdict_of(w, one, 0) : verdict;
}

void datapath_flow(struct worker *w, struct burst *b)
{
	uint64_t stopped = count_and_act(w, b);

	if (unlikely(__atomic_load_n(w->drops_missing, __ATOMIC_RELAXED)))
		stopped |= stop_missing(w, b);
	if (unlikely(stopped))
		stop(w, b, stopped);
}
