// Creates and destroys flow tables. Control thread.
#include "flow/flow.h"

#include "base/pages.h"
#include "flow/hash.h"
#include "flow/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// Lines are filled to three quarters: docs/adr/0014-flow-table.md.
enum { FULL_SHARE = 3, FULL_OF = 4 };

static uint32_t lines_for(uint32_t max, unsigned n_slots)
{
	return max ? (uint64_t)max * FULL_OF / (FULL_SHARE * n_slots) + 1 : 0;
}

static uint32_t end_of(const struct flow_settings *settings)
{
	return settings->max4 + settings->max6 + 1;
}

static uint32_t blocks_of(const struct flow_settings *settings)
{
	return end_of(settings) / BLOCK_FLOWS + 1;
}

// A piece of the table's memory: where its address is kept, and its size.
struct piece {
	void **at;
	uint64_t bytes;
};
enum { MAX_PIECES = 9 + FLOW_MAX_WORKERS };

// All memory of a table but the table itself. Returns the number of pieces.
static unsigned list_pieces(struct flow_table *table, const struct flow_settings *settings,
	struct piece piece[MAX_PIECES])
{
	const uint64_t end = end_of(settings);
	const uint64_t in_blocks = (uint64_t)blocks_of(settings) * BLOCK_FLOWS;
	const uint64_t lines4 = lines_for(settings->max4, LINE4_SLOTS);
	const uint64_t lines6 = lines_for(settings->max6, LINE6_SLOTS);
	unsigned n = 0;

	piece[n++] = (struct piece){(void **)&table->index[0].lines, lines4 * sizeof(union line)};
	piece[n++] = (struct piece){(void **)&table->index[1].lines, lines6 * sizeof(union line)};
	piece[n++] = (struct piece){(void **)&table->records6,
		settings->max6 ? (settings->max6 + 1ull) * sizeof(struct record6) : 0};
	piece[n++] = (struct piece){(void **)&table->line_of, end * sizeof(*table->line_of)};
	piece[n++] = (struct piece){(void **)&table->life, in_blocks * sizeof(*table->life)};
	piece[n++] = (struct piece){(void **)&table->look, in_blocks * sizeof(*table->look)};
	piece[n++] =
		(struct piece){(void **)&table->due, blocks_of(settings) * sizeof(*table->due)};
	piece[n++] =
		(struct piece){(void **)&table->ending, RCU_DEFER_MAX * sizeof(*table->ending)};
	piece[n++] = (struct piece){(void **)&table->shadow, sizeof(*table->shadow)};
	for (unsigned worker = 0; worker < settings->n_workers; worker++)
		piece[n++] = (struct piece){(void **)&table->view.count[worker],
			end * sizeof(struct flow_count)};
	return n;
}

uint64_t flow_bytes(const struct flow_settings *settings)
{
	static struct flow_table none; // only its addresses are taken
	struct piece piece[MAX_PIECES];
	uint64_t bytes = sizeof(struct flow_table);

	for (unsigned i = 0, n = list_pieces(&none, settings, piece); i < n; i++)
		bytes += piece[i].bytes;
	return bytes;
}

int flow_check(const struct flow_settings *settings, struct error *error)
{
	const uint64_t max = (uint64_t)settings->max4 + settings->max6;
	const uint64_t available = pages_available();
	uint64_t bytes;

	if (!max || max > FLOW_MAX)
		return error_set(error, -EINVAL, "table for %llu flows: expected 1 to %u",
			(unsigned long long)max, FLOW_MAX);
	if (!settings->n_workers || settings->n_workers > FLOW_MAX_WORKERS)
		return error_set(error, -EINVAL, "flow table for %u workers: expected 1 to %u",
			settings->n_workers, FLOW_MAX_WORKERS);
	if (settings->hz < 1000)
		return error_set(error, -EINVAL, "flow table with a clock of %llu Hz",
			(unsigned long long)settings->hz);
	for (unsigned i = 0; i < FLOW_TIMEOUTS; i++)
		if (settings->timeout_ms[i] > FLOW_MAX_LASTS_MS)
			return error_set(error, -EINVAL,
				"timeout %u of flows is %u ms: expected at most %u", i + 1,
				settings->timeout_ms[i], FLOW_MAX_LASTS_MS);
	bytes = flow_bytes(settings) + settings->beside_bytes;
	if (bytes > available)
		return error_set(error, -ENOMEM,
			"a table for %llu flows takes %llu MiB with %u workers, but only %llu MiB "
			"of memory are available; make it smaller",
			(unsigned long long)max, (unsigned long long)bytes >> 20,
			settings->n_workers, (unsigned long long)available >> 20);
	return 0;
}

static void free_pieces(struct flow_table *table)
{
	struct piece piece[MAX_PIECES];

	for (unsigned i = 0, n = list_pieces(table, &table->settings, piece); i < n; i++)
		pages_free(*piece[i].at, piece[i].bytes);
}

static int allocate_pieces(struct flow_table *table)
{
	struct piece piece[MAX_PIECES];

	for (unsigned i = 0, n = list_pieces(table, &table->settings, piece); i < n; i++) {
		if (!piece[i].bytes)
			continue;
		*piece[i].at = pages_alloc(piece[i].bytes);
		if (!*piece[i].at)
			return -ENOMEM;
	}
	return 0;
}

// Writes to each page of the lines, which hashes would soon do in any case. Workers take no page
// faults then, and some kernels split a huge page that is read before it is written.
static void touch_lines(struct index *index)
{
	enum { PAGE_LINES = 4096 / sizeof(union line) };

	for (uint32_t line = 0; line < index->n_lines; line += PAGE_LINES)
		*(volatile uint32_t *)&index->lines[line].state = 0;
}

static unsigned tick_shift_of(uint64_t hz)
{
	unsigned shift = 0;

	while ((uint64_t)1 << (shift + 1) <= hz / 8)
		shift++;
	return shift;
}

static void show_to_workers(struct flow_table *table)
{
	struct flow_view *view = &table->view;
	unsigned n_lookups;
	const struct lookups *lookups = flow_lookup_variants(&n_lookups);
	struct hashes hashes[3];
	unsigned n_hashes = hash_variants(hashes);

	lookups += n_lookups - 1;
	table->lookup = lookups->name;
	table->hash = hashes[n_hashes - 1].name;
	view->lines4 = table->index[0].lines;
	view->lines6 = table->index[1].lines;
	view->n_lines4 = table->index[0].n_lines;
	view->n_lines6 = table->index[1].n_lines;
	view->first6 = table->index[1].first;
	view->end = table->end;
	view->tick_shift = tick_shift_of(table->settings.hz);
	view->records6 = table->records6;
	view->shadow = table->shadow;
	view->actions = table->actions.action;
	view->hash4 = hashes[n_hashes - 1].four;
	view->hash6 = hashes[n_hashes - 1].six;
	view->begin4 = view->n_lines4 ? lookups->begin4 : flow4_none;
	view->continue4 = view->n_lines4 ? lookups->continue4 : flow4_skip;
	view->end4 = view->n_lines4 ? lookups->end4 : flow4_skip;
	view->begin6 = view->n_lines6 ? lookups->begin6 : flow6_none;
	view->continue6 = view->n_lines6 ? lookups->continue6 : flow6_skip;
	view->end6 = view->n_lines6 ? lookups->end6 : flow6_skip;
}

static void set_up(struct flow_table *table)
{
	const struct flow_settings *settings = &table->settings;

	table->index[0].max = settings->max4;
	table->index[0].n_lines = lines_for(settings->max4, LINE4_SLOTS);
	table->index[1].is6 = true;
	table->index[1].first = settings->max4;
	table->index[1].max = settings->max6;
	table->index[1].n_lines = lines_for(settings->max6, LINE6_SLOTS);
	table->end = end_of(settings);
	table->n_blocks = blocks_of(settings);
	table->bytes = flow_bytes(settings);
	table->defer.free = change_free;
	table->defer.ctx = table;
	table->defer.most = FREED_AT_ONCE;
	for (unsigned i = 0; i < ARRAY_LEN(table->index); i++)
		touch_lines(&table->index[i]);
	show_to_workers(table);
	numbers_open(table);
	age_open(table);
}

struct flow_table *flow_create(const struct flow_settings *settings, uint64_t now,
	struct error *error)
{
	struct flow_table *table = NULL;

	if (flow_check(settings, error))
		return NULL;
	table = pages_alloc(sizeof(*table));
	if (!table)
		goto no_memory;
	table->settings = *settings;
	table->now = now;
	if (allocate_pieces(table) || actions_open(&table->actions) ||
		hash_table_init(&table->carries, FIRST_CARRIES))
		goto no_memory;
	if (hash_draw_secret(&table->view.secret)) {
		error_set(error, -EIO, "Linux has no random numbers for the hash of flows");
		goto free_table;
	}
	set_up(table);
	return table;
no_memory:
	error_set(error, -ENOMEM,
		"cannot reserve address space for a flow table; raise the limit (ulimit -v)");
free_table:
	flow_destroy(table);
	return NULL;
}

void flow_destroy(struct flow_table *table)
{
	if (!table)
		return;
	free_pieces(table);
	actions_close(&table->actions);
	hash_table_free(&table->carries, free);
	pages_free(table, sizeof(*table));
}

const struct flow_view *flow_view(const struct flow_table *table)
{
	return &table->view;
}

void flow_attach(struct flow_table *table, struct rcu *rcu)
{
	rcu_defer_attach(&table->defer, rcu);
}

void flow_detach(struct flow_table *table)
{
	rcu_defer_detach(&table->defer);
	table->guard = 0;
}

static struct flow_usage_family usage_of(const struct index *index)
{
	return (struct flow_usage_family){.n = index->n,
		.max = index->max,
		.n_ending = index->n_ending,
		.n_lines = index->n_lines,
		.n_moves = index->n_moves,
		.n_full = index->n_full};
}

void flow_usage(const struct flow_table *table, struct flow_usage *usage)
{
	*usage = (struct flow_usage){.bytes = table->bytes + actions_bytes(&table->actions),
		.n_actions = table->actions.n,
		.four = usage_of(&table->index[0]),
		.six = usage_of(&table->index[1]),
		.n_added = table->n_added,
		.n_deleted = table->n_ended[FLOW_DELETED],
		.n_idle = table->n_ended[FLOW_IDLE],
		.n_reached_end = table->n_ended[FLOW_REACHED_END],
		.lookup = table->lookup,
		.hash = table->hash};
}
