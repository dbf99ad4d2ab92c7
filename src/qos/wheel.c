// See wheel.h.
#include "qos/wheel.h"

#include "base/pages.h"

#include <errno.h>
#include <stdbool.h>

#define MOST_AHEAD (1ull << 30)

static struct wheel_entry *entry_of(const struct wheel *w, uint32_t id)
{
	return (struct wheel_entry *)(w->entries + w->stride * id);
}

static size_t bytes_of(uint32_t n_cells)
{
	return (size_t)n_cells * sizeof(struct wheel_cell);
}

int wheel_init(struct wheel *w, void *entries, size_t stride, uint32_t n, uint64_t slot)
{
	*w = (struct wheel){.at = slot,
		.moved = slot >> WHEEL_WINDOW_SHIFT,
		.entries = entries,
		.stride = stride,
		.n_cells = n / WHEEL_CELL + WHEEL_LISTS + 2,
		.n_touched = 1};
	w->cells = pages_alloc(bytes_of(w->n_cells));
	return w->cells ? 0 : -ENOMEM;
}

void wheel_free(struct wheel *w)
{
	pages_free(w->cells, bytes_of(w->n_cells));
}

// Never fails: each list has at most one cell that is not full.
static uint32_t alloc_cell(struct wheel *w)
{
	const uint32_t cell = w->free;

	if (!cell)
		return w->n_touched++;
	w->free = w->cells[cell].next;
	return cell;
}

static void free_cell(struct wheel *w, uint32_t cell)
{
	w->cells[cell].next = w->free;
	w->free = cell;
}

static void mark(struct wheel *w, uint32_t list)
{
	w->bits[list / 64] |= 1ull << list % 64;
	w->words |= 1ull << list / 64;
}

static void unmark(struct wheel *w, uint32_t list)
{
	uint64_t *bits = &w->bits[list / 64];

	*bits &= ~(1ull << list % 64);
	if (!*bits)
		w->words &= ~(1ull << list / 64);
}

static void add_to_list(struct wheel *w, uint32_t list, uint32_t id)
{
	uint32_t head = w->head[list];

	if (!head || w->cells[head].n == WHEEL_CELL) {
		const uint32_t cell = alloc_cell(w);

		w->cells[cell].next = head;
		w->cells[cell].n = 0;
		w->cells[cell].list = list;
		if (!head && list < WHEEL_NEAR)
			mark(w, list);
		w->head[list] = head = cell;
	}
	struct wheel_cell *cell = &w->cells[head];
	entry_of(w, id)->place = head << 4 | cell->n;
	cell->id[cell->n++] = id;
}

static void place(struct wheel *w, uint32_t id, uint64_t slot)
{
	if (slot - w->at < WHEEL_NEAR) {
		add_to_list(w, slot % WHEEL_NEAR, id);
		return;
	}
	const uint64_t window = MIN_OF(slot >> WHEEL_WINDOW_SHIFT, w->moved + WHEEL_FAR - 1);
	add_to_list(w, WHEEL_NEAR + window % WHEEL_FAR, id);
}

void wheel_insert(struct wheel *w, uint32_t id, uint64_t slot)
{
	slot = MAX_OF(slot, w->at);
	slot = MIN_OF(slot, w->at + MOST_AHEAD);
	entry_of(w, id)->slot = (uint32_t)slot;
	w->n++;
	place(w, id, slot);
}

static void remove_head(struct wheel *w, uint32_t list)
{
	const uint32_t cell = w->head[list];

	w->head[list] = w->cells[cell].next;
	free_cell(w, cell);
	if (!w->head[list] && list < WHEEL_NEAR)
		unmark(w, list);
}

// The last one of the list takes its place.
void wheel_remove(struct wheel *w, uint32_t id)
{
	const uint32_t gap = entry_of(w, id)->place;
	struct wheel_cell *cell = &w->cells[gap >> 4];
	const uint32_t list = cell->list;
	struct wheel_cell *head = &w->cells[w->head[list]];
	const uint32_t last = head->id[--head->n];

	cell->id[gap & 15] = last;
	entry_of(w, last)->place = gap;
	w->n--;
	if (!head->n)
		remove_head(w, list);
}

// Takes the entries of the first cell of a list.
static unsigned take_cell(struct wheel *w, uint32_t list, uint32_t id[])
{
	const struct wheel_cell *cell = &w->cells[w->head[list]];
	const unsigned n = cell->n;

	for (unsigned i = 0; i < n; i++) {
		id[i] = cell->id[i];
		__builtin_prefetch(entry_of(w, id[i]), 1);
	}
	remove_head(w, list);
	return n;
}

// Moves entries of the far ring whose whole window fits into the near one. Returns how many of
// `most` are left.
static unsigned move_near(struct wheel *w, unsigned most)
{
	while ((w->moved + 1) << WHEEL_WINDOW_SHIFT <= w->at + WHEEL_NEAR) {
		const uint32_t list = WHEEL_NEAR + w->moved % WHEEL_FAR;
		uint32_t id[WHEEL_CELL];

		while (w->head[list]) {
			if (most < WHEEL_CELL)
				return 0;
			const unsigned n = take_cell(w, list, id);

			most -= n;
			for (unsigned i = 0; i < n; i++) {
				const uint32_t ahead = entry_of(w, id[i])->slot - (uint32_t)w->at;

				place(w, id[i], w->at + ahead);
			}
		}
		w->moved++;
	}
	return most;
}

// The first slot from `at` on that has entries in the near ring; at + WHEEL_NEAR: none.
static uint64_t next_slot(const struct wheel *w)
{
	const unsigned from = w->at % WHEEL_NEAR, word = from / 64;
	const uint64_t here = w->bits[word] >> from % 64;

	if (here)
		return w->at + (unsigned)__builtin_ctzll(here);
	const unsigned turn = (word + 1) % 64;
	const uint64_t words = turn ? w->words >> turn | w->words << (64 - turn) : w->words;
	if (!words)
		return w->at + WHEEL_NEAR;
	const unsigned found = (turn + (unsigned)__builtin_ctzll(words)) % 64;
	const unsigned list = found * 64 + (unsigned)__builtin_ctzll(w->bits[found]);
	return w->at + (list - from) % WHEEL_NEAR;
}

// Takes what is due before slot `end`. Returns the new number in `due`.
static unsigned expire_near(struct wheel *w, uint64_t end, uint32_t due[], unsigned n,
	unsigned most)
{
	while (w->at < end) {
		w->at = MIN_OF(next_slot(w), end);
		if (w->at == end)
			break;
		const uint32_t list = w->at % WHEEL_NEAR;
		while (w->head[list]) {
			if (n + WHEEL_CELL > most)
				return n;
			n += take_cell(w, list, due + n);
		}
		w->at++;
	}
	return n;
}

// Of an empty wheel, however far.
static void skip_to(struct wheel *w, uint64_t slot)
{
	w->at = MAX_OF(w->at, slot);
	w->moved = MAX_OF(w->moved, w->at >> WHEEL_WINDOW_SHIFT);
}

unsigned wheel_expire(struct wheel *w, uint64_t slot, uint32_t due[], unsigned most)
{
	unsigned n = 0, moves = most;

	if (!w->n)
		skip_to(w, slot);
	while (w->at <= slot) {
		moves = move_near(w, moves);
		const uint64_t end = MIN_OF(slot + 1, w->moved << WHEEL_WINDOW_SHIFT);

		n = expire_near(w, end, due, n, most);
		if (w->at < end || moves < WHEEL_CELL)
			break;
	}
	w->n -= n;
	return n;
}
