// Finds subscribers and polices their packets, a burst at a time. Worker.
#include "qos/index.h"

#include <rte_prefetch.h>

enum { CHAINS = 128, END = 255, LEAST_FRAME = 64, ETHER_AND_FCS = 18, PREAMBLE_AND_GAP = 20 };

// Prefetches go to the L2, which tracks more of them than the L1.
static uint64_t find_length(const struct qos_index *index, uint32_t kind, unsigned length,
	const uint64_t addr[], uint64_t mask, uint32_t subscriber[])
{
	const uint64_t bits = UINT64_MAX << (64 - length);
	uint64_t found = 0;

	for (uint64_t rest = mask; rest; rest &= rest - 1)
		rte_prefetch1(index_first(index, addr[__builtin_ctzll(rest)] & bits, kind));
	for (uint64_t rest = mask; rest; rest &= rest - 1) {
		const unsigned i = __builtin_ctzll(rest);
		const uint32_t value = index_find(index, addr[i] & bits, kind);

		if (value == QOS_NONE)
			continue;
		subscriber[i] = value;
		found |= 1ull << i;
	}
	return found;
}

// Prefixes of different subscribers do not overlap, so any that is found will do.
uint64_t qos_find(const struct qos_view *view, enum qos_family family, const uint64_t addr[],
	uint64_t mask, uint32_t subscriber[])
{
	const unsigned n = __atomic_load_n(&view->n_lengths[family], __ATOMIC_ACQUIRE);
	const struct qos_index *index = __atomic_load_n(&view->index, __ATOMIC_ACQUIRE);
	uint64_t found = 0;

	for (unsigned k = 0; k < n && mask & ~found; k++) {
		const uint8_t length = __atomic_load_n(&view->length[family][k], __ATOMIC_RELAXED);

		if (length)
			found |= find_length(index, 1 + family * QOS_LENGTHS + k, length, addr,
				mask & ~found, subscriber);
	}
	return found;
}

void qos_prefetch(const struct qos_live *live, unsigned worker, enum qos_direction direction,
	const uint32_t subscriber[], uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		const uint32_t which = subscriber[__builtin_ctzll(mask)];

		rte_prefetch1(&live->view.buckets[direction].commit[which]);
		rte_prefetch1(&live->count[worker][direction][which]);
	}
}

// Packets by subscriber: chains of those whose indices have the same lowest bits.
struct chains {
	uint8_t head[CHAINS], next[POLICE_BURST];
};

static void make_chains(const struct qos_packets *packets, struct chains *chains)
{
	memset(chains->head, END, sizeof(chains->head));
	for (uint64_t rest = packets->mask; rest;) {
		const unsigned i = 63 - __builtin_clzll(rest);
		uint8_t *head = &chains->head[packets->subscriber[i] % CHAINS];

		chains->next[i] = *head;
		*head = i;
		rest &= ~(1ull << i);
	}
}

// Packets of one subscriber.
struct sharers {
	unsigned n;
	uint8_t place[POLICE_BURST];
	uint32_t cost[POLICE_BURST];
	uint64_t yellow, red;
};

static uint32_t cost_of(const struct qos_terms *terms, unsigned ip_bytes, unsigned frames)
{
	int64_t bytes = ip_bytes;

	if (terms->counts != QOS_IP) {
		bytes += (int64_t)frames * ETHER_AND_FCS;
		bytes = MAX_OF(bytes, (int64_t)LEAST_FRAME);
		bytes += terms->counts == QOS_WIRE ? (int64_t)frames * PREAMBLE_AND_GAP : 0;
	}
	bytes += (int64_t)frames * terms->overhead;
	return (uint32_t)MAX_OF(bytes, MAX_OF((int64_t)frames * terms->mpu, 1));
}

static void add_sharer(struct sharers *sharers, const struct qos_terms *terms,
	const struct qos_packets *packets, unsigned i)
{
	const unsigned k = sharers->n++;
	const uint8_t dscp = packets->dscp[i] & 63;

	sharers->place[k] = i;
	sharers->cost[k] = cost_of(terms, packets->ip_bytes[i], packets->frames[i]);
	if (terms->is_aware) {
		sharers->yellow |= (terms->yellow >> dscp & 1) << k;
		sharers->red |= (terms->red >> dscp & 1) << k;
	}
}

// A traced packet asks copies.
static struct police_colours mark(const struct qos_basis *basis, const struct qos_terms *terms,
	uint32_t subscriber, const struct sharers *sharers)
{
	const struct qos_buckets *buckets = &basis->live->view.buckets[basis->direction];
	struct police *commit = &buckets->commit[subscriber],
		      *excess = &buckets->excess[subscriber];
	const struct police_packets packets = {sharers->cost, sharers->n, sharers->yellow,
		sharers->red};
	struct police copy[2];

	if (unlikely(basis->is_traced)) {
		police_copy(commit, &copy[0]);
		police_copy(excess, &copy[1]);
		commit = &copy[0];
		excess = &copy[1];
	}
	return police_mark(terms->marker, commit, excess, basis->now, &packets);
}

static void act(const struct qos_act *act, unsigned i, struct qos_verdicts *out)
{
	if (act->drops)
		out->dropped |= 1ull << i;
	if (act->dscp != QOS_KEEP) {
		out->has_dscp |= 1ull << i;
		out->dscp[i] = act->dscp;
	}
	if (act->priority != QOS_KEEP) {
		out->has_priority |= 1ull << i;
		out->priority[i] = act->priority;
	}
}

static void shape(const struct qos_terms *terms, const struct sharers *sharers, unsigned k,
	struct qos_verdicts *out)
{
	const unsigned i = sharers->place[k];

	out->shaped |= 1ull << i;
	out->cost[i] = sharers->cost[k];
	out->terms[i] = terms;
}

// Without a profile packets are green, and their IP bytes counted.
static void police_one(const struct qos_basis *basis, uint32_t subscriber,
	const struct qos_terms *terms, const struct sharers *sharers, struct qos_verdicts *out)
{
	struct qos_count *count = &basis->live->count[basis->worker][basis->direction][subscriber];
	struct police_colours colours = {UINT64_MAX, 0};

	if (terms->marker < POLICE_MARKERS)
		colours = mark(basis, terms, subscriber, sharers);
	for (unsigned k = 0; k < sharers->n; k++) {
		const unsigned colour = colours.green >> k & 1    ? POLICE_GREEN
		                        : colours.yellow >> k & 1 ? POLICE_YELLOW
		                                                  : POLICE_RED;

		if (likely(!basis->is_traced)) {
			stats_add(&count->packets[colour], 1);
			stats_add(&count->bytes[colour], sharers->cost[k]);
		}
		act(&terms->act[colour], sharers->place[k], out);
		if (unlikely(terms->shapes))
			shape(terms, sharers, k, out);
	}
}

void qos_police(const struct qos_basis *basis, const struct qos_packets *packets,
	struct qos_verdicts *out)
{
	const struct qos_view *view = &basis->live->view;
	uint64_t left = packets->mask;
	struct chains chains;

	make_chains(packets, &chains);
	out->dropped = out->has_dscp = out->has_priority = out->shaped = 0;
	while (left) {
		const unsigned first = __builtin_ctzll(left);
		const uint32_t subscriber = packets->subscriber[first];
		const struct police *commit = &view->buckets[basis->direction].commit[subscriber];
		const struct qos_terms *terms =
			&view->terms[__atomic_load_n(&commit->owners, __ATOMIC_ACQUIRE)];
		struct sharers sharers;

		sharers.n = 0;
		sharers.yellow = sharers.red = 0;
		for (uint8_t i = first; i != END; i = chains.next[i]) {
			if (packets->subscriber[i] != subscriber)
				continue;
			add_sharer(&sharers, terms, packets, i);
			left &= ~(1ull << i);
		}
		police_one(basis, subscriber, terms, &sharers, out);
	}
}
