// Flow numbers: which are free. Control thread.
#include "flow/table.h"

// Memory is allocated before flows use it, and that of each array for another flow: Linux may need
// milliseconds for a huge page, and arrays whose pages end at the same flow would stop the control
// loop for all of them. Workers never take a page fault for counters.
enum { TOUCH_FLOWS = 64, STAGGER_FLOWS = 4096 };

static void touch(void *memory)
{
	*(volatile uint8_t *)memory = *(volatile uint8_t *)memory;
}

// What belongs to a flow, each array `stagger` flows further ahead.
static void touch_ahead(struct flow_table *table, uint64_t flow, unsigned stagger)
{
	const uint64_t end = table->end, first6 = table->index[1].first;

	if (flow < end)
		touch(&table->life[flow]);
	flow += stagger;
	if (flow < end)
		touch(&table->look[flow]);
	flow += stagger;
	if (flow < end)
		touch(&table->line_of[flow]);
	flow += stagger;
	if (flow > first6 && flow < end)
		touch(record_of(table, flow));
	for (unsigned worker = 0; worker < table->settings.n_workers; worker++) {
		flow += stagger;
		if (flow < end)
			touch(&table->view.count[worker][flow]);
	}
}

void numbers_open(struct flow_table *table)
{
	const uint64_t farthest = (uint64_t)(3 + table->settings.n_workers) * STAGGER_FLOWS;

	for (unsigned is6 = 0; is6 < ARRAY_LEN(table->index); is6++)
		for (uint64_t flow = 0; flow <= farthest + TOUCH_FLOWS; flow += TOUCH_FLOWS)
			if (flow <= table->index[is6].max)
				touch_ahead(table, table->index[is6].first + flow, 0);
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
	if (flow % TOUCH_FLOWS == 0)
		touch_ahead(table, flow, STAGGER_FLOWS);
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
