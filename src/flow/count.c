// Sums of the workers' counters. A worker's counter of packets has 40 bits; what goes beyond is
// known from the changes of its top bit, each of which takes hours. Control thread.
#include "flow/table.h"

#include <errno.h>
#include <stdlib.h>

enum { COUNTER_BITS = 64 - FLOW_SEEN_BITS };

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static const uint64_t *counter_of(const struct flow_table *table, uint32_t flow, unsigned worker)
{
	return &table->view.count[worker][flow].packets_and_seen;
}

// The flow's number is its hash. Flows that have none are not looked up.
static struct carry *find_carry(const struct flow_table *table, uint32_t flow, unsigned worker)
{
	struct carry *carry = NULL;

	if (table->life[flow] & LIFE_CARRIED)
		carry = hash_table_find(&table->carries, flow);
	while (carry && carry->worker != worker)
		carry = hash_table_find_next(&carry->node);
	return carry;
}

static int add_carry(struct flow_table *table, uint32_t flow, unsigned worker, uint64_t n_changes)
{
	if (table->carries.n == FLOW_MAX_CARRIES)
		return -E2BIG;
	struct carry *carry = malloc(sizeof(*carry));
	if (!carry)
		return -ENOMEM;
	*carry = (struct carry){.worker = worker, .was_set = n_changes & 1, .n_changes = n_changes};
	hash_table_insert(&table->carries, &carry->node, flow);
	table->life[flow] |= LIFE_CARRIED;
	return 0;
}

static uint64_t packets_of(const struct flow_table *table, uint32_t flow, unsigned worker,
	uint64_t word)
{
	const struct carry *carry = find_carry(table, flow, worker);
	uint64_t n_changes = 0;

	if (carry)
		n_changes = carry->n_changes + (word >> 63 != carry->was_set);
	return (word >> FLOW_SEEN_BITS) + (n_changes / 2 << COUNTER_BITS);
}

struct count_sum count_sum(const struct flow_table *table, uint32_t flow)
{
	struct count_sum sum = {0};

	for (unsigned worker = 0; worker < table->settings.n_workers; worker++) {
		const uint64_t word = load(counter_of(table, flow, worker));
		if (!word)
			continue;
		sum.packets += packets_of(table, flow, worker, word);
		sum.bytes += load(&table->view.count[worker][flow].bytes);
	}
	return sum;
}

int carry_start(struct flow_table *table, uint32_t flow, uint64_t packets)
{
	const uint64_t n_changes = packets >> (COUNTER_BITS - 1);

	return n_changes ? add_carry(table, flow, 0, n_changes) : 0;
}

void carry_follow(struct flow_table *table, uint32_t flow)
{
	for (unsigned worker = 0; worker < table->settings.n_workers; worker++) {
		const bool is_set = load(counter_of(table, flow, worker)) >> 63;
		struct carry *carry = find_carry(table, flow, worker);

		if (carry) {
			carry->n_changes += is_set != carry->was_set;
			carry->was_set = is_set;
		} else if (is_set) {
			// If it is not possible, one of the next visits tries again.
			add_carry(table, flow, worker, 1);
		}
	}
}

void carry_forget(struct flow_table *table, uint32_t flow)
{
	struct carry *carry;

	if (!(table->life[flow] & LIFE_CARRIED))
		return;
	while ((carry = hash_table_find(&table->carries, flow))) {
		hash_table_remove(&table->carries, &carry->node);
		free(carry);
	}
	table->life[flow] &= ~LIFE_CARRIED;
}
