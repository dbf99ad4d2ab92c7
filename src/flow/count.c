// Sums of the workers' counters. A worker's counter of packets has 40 bits; what goes beyond is
// known from the changes of its top bit, each of which takes hours. Control thread.
#include "base/vector.h"
#include "flow/table.h"

#include <errno.h>

enum { COUNTER_BITS = 64 - FLOW_SEEN_BITS };

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static const uint64_t *counter_of(const struct flow_table *table, uint32_t flow, unsigned worker)
{
	return &table->view.count[worker][flow].packets_and_seen;
}

static struct carry *find_carry(const struct flow_table *table, uint32_t flow, unsigned worker)
{
	for (size_t i = 0; i < table->n_carries; i++)
		if (table->carry[i].flow == flow && table->carry[i].worker == worker)
			return &table->carry[i];
	return NULL;
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

	if (!n_changes)
		return 0;
	if (vector_reserve(&table->carry, &table->carry_capacity, table->n_carries + 1,
		    sizeof(*table->carry)))
		return -ENOMEM;
	table->carry[table->n_carries++] =
		(struct carry){.flow = flow, .was_set = n_changes & 1, .n_changes = n_changes};
	return 0;
}

void carry_note(struct flow_table *table, uint32_t flow)
{
	for (unsigned worker = 0; worker < table->settings.n_workers; worker++) {
		if (!(load(counter_of(table, flow, worker)) >> 63) ||
			find_carry(table, flow, worker))
			continue;
		// Without memory for it, it is noted by one of the next visits.
		if (vector_reserve(&table->carry, &table->carry_capacity, table->n_carries + 1,
			    sizeof(*table->carry)))
			return;
		table->carry[table->n_carries++] = (struct carry){.flow = flow,
			.worker = worker,
			.was_set = true,
			.n_changes = 1};
	}
}

void carry_follow(struct flow_table *table)
{
	for (size_t i = 0; i < table->n_carries; i++) {
		struct carry *carry = &table->carry[i];
		const bool is_set = load(counter_of(table, carry->flow, carry->worker)) >> 63;

		carry->n_changes += is_set != carry->was_set;
		carry->was_set = is_set;
	}
}

void carry_forget(struct flow_table *table, uint32_t flow)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < table->n_carries; i++)
		if (table->carry[i].flow != flow)
			table->carry[n_kept++] = table->carry[i];
	table->n_carries = n_kept;
}
