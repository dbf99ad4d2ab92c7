// Flow numbers: which are free. Control thread.
#include "flow/table.h"

// Workers never take a page fault for counters: the pages are allocated here.
static void touch_counts(struct flow_table *table, uint32_t flow)
{
	for (unsigned worker = 0; worker < table->settings.n_workers; worker++)
		*(volatile uint64_t *)&table->view.count[worker][flow].bytes = 0;
}

uint32_t number_take(struct flow_table *table, struct index *index)
{
	uint32_t flow;

	// Numbers of ended flows are free once workers have passed.
	while (!index->free && index->top == index->max && index->n_ending)
		rcu_defer_free_some(&table->defer);
	if (index->free) {
		flow = index->free;
		index->free = table->line_of[flow];
		return flow;
	}
	if (index->top == index->max)
		return FLOW_NONE;
	flow = index->first + ++index->top;
	touch_counts(table, flow);
	return flow;
}

void number_give(struct flow_table *table, uint32_t flow)
{
	struct index *index = &table->index[number_is6(table, flow)];

	for (unsigned worker = 0; worker < table->settings.n_workers; worker++)
		table->view.count[worker][flow] = (struct flow_count){0};
	table->life[flow] = 0;
	table->line_of[flow] = index->free;
	index->free = flow;
}

bool flow_has_space(const struct flow_table *table, uint8_t family)
{
	const struct index *index = &table->index[family == 6];

	return index->free || index->top < index->max;
}
