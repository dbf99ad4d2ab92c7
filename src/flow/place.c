// Where entries are: two lines for each key. A line is replaced as a whole, so that workers see an
// entry in one of its lines at any time. Control thread.
#include "flow/table.h"

#include "flow/line.h"

#include <errno.h>

// A state must not come back while a worker reads a line: so many changes take at least one grace
// period, and two of these periods are shorter than the sequence.
enum { GUARDED_CHANGES = 1 << (STATE_SEQUENCE_BITS - 3) };

static void guard_sequence(struct flow_table *table)
{
	if (++table->n_published % GUARDED_CHANGES || !table->defer.rcu)
		return;
	if (table->guard)
		rcu_wait(table->defer.rcu, table->guard);
	table->guard = rcu_start_grace(table->defer.rcu);
}

// Shows the line as it is in the shadow. Partner: copy_shadow().
static void show_shadow(struct shadow *shadow, const union line *line)
{
	__atomic_store_n(&shadow->sequence, shadow->sequence + 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < ARRAY_LEN(line->word); i++)
		word16_store(&shadow->before.word[i], line->word[i]); // release
	__atomic_store_n(&shadow->line, line, __ATOMIC_RELEASE);
	__atomic_store_n(&shadow->sequence, shadow->sequence + 1, __ATOMIC_RELEASE);
}

// Replaces a line. The last word contains the state, so that it ends the change.
static void line_publish(struct flow_table *table, union line *line, union line *image)
{
	const uint32_t sequence = (line->state + 2) & STATE_SEQUENCE;

	image->state = (image->state & ~STATE_SEQUENCE) | sequence;
	show_shadow(table->shadow, line);
	__atomic_store_n(&line->state, line->state | 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < ARRAY_LEN(line->word); i++)
		word16_store(&line->word[i], image->word[i]); // release
	guard_sequence(table);
}

static unsigned n_slots(const struct index *index)
{
	return index->is6 ? LINE6_SLOTS : LINE4_SLOTS;
}

// 0: the slot is free.
static uint32_t slot_flow(const struct index *index, const union line *line, unsigned slot)
{
	if (!index->is6)
		return line->four.value[slot] & VALUE_FLOW;
	return line->six.record[slot] ? index->first + line->six.record[slot] : FLOW_NONE;
}

struct entry place_get(const struct flow_table *table, const struct index *index,
	struct place place)
{
	const union line *line = &index->lines[place.line];
	struct entry entry = {.flow = slot_flow(index, line, place.slot)};

	if (index->is6) {
		entry.tag = line->six.tag[place.slot];
		entry.action = record_of(table, entry.flow)->action;
		return entry;
	}
	entry.key = line->four.key[place.slot];
	entry.action =
		line4_action(entry.key.kind, line->four.value[place.slot], line->state, place.slot);
	entry.key.kind &= KIND_MASK;
	return entry;
}

static void put(const struct index *index, union line *line, unsigned slot,
	const struct entry *entry)
{
	const unsigned shift = STATE_SEQUENCE_BITS + ACTION_STATE_BITS * slot;
	const uint32_t high = entry->action >> (ACTION_KEY_BITS + ACTION_VALUE_BITS);

	if (index->is6) {
		line->six.record[slot] = entry->flow - index->first;
		line->six.tag[slot] = entry->tag;
		return;
	}
	line->four.key[slot] = entry->key;
	line->four.key[slot].kind |= entry->action << KIND_BITS;
	line->four.value[slot] = entry->flow | entry->action >> ACTION_KEY_BITS << VALUE_FLOW_BITS;
	line->state &= ~(((1u << ACTION_STATE_BITS) - 1) << shift);
	line->state |= high << shift;
}

static void publish_entry(struct flow_table *table, const struct index *index, struct place place,
	const struct entry *entry)
{
	union line *line = &index->lines[place.line];
	union line image = *line;

	put(index, &image, place.slot, entry);
	line_publish(table, line, &image);
	table->line_of[entry->flow] = place.line;
}

void place_erase(struct flow_table *table, struct index *index, struct place place)
{
	union line *line = &index->lines[place.line];
	union line image = *line;

	if (index->is6) {
		image.six.record[place.slot] = 0;
		image.six.tag[place.slot] = 0;
	} else {
		put(index, &image, place.slot, &(struct entry){.flow = FLOW_NONE});
	}
	line_publish(table, line, &image);
}

void place_set_action(struct flow_table *table, struct index *index, struct place place,
	uint32_t action)
{
	struct entry entry = place_get(table, index, place);

	if (index->is6) {
		__atomic_store_n(&record_of(table, entry.flow)->action, action, __ATOMIC_RELEASE);
		return;
	}
	entry.action = action;
	publish_entry(table, index, place, &entry);
}

bool place_find(const struct flow_table *table, const struct flow_key *key, uint64_t hash,
	struct place *place)
{
	const struct index *index = &table->index[key->family == 6];

	for (unsigned which = 0; which < 2; which++) {
		const uint32_t line = hash_line(hash, which, index->n_lines);
		int slot = -1;
		if (key->family == 4)
			slot = line4_slot(&index->lines[line].four, &key->four);
		else
			slot = line6_slot(&table->view, &index->lines[line].six, &key->six,
				hash_tag(hash));
		if (slot < 0)
			continue;
		*place = (struct place){line, slot};
		return true;
	}
	return false;
}

struct place place_of(const struct flow_table *table, uint32_t flow)
{
	const struct index *index = &table->index[number_is6(table, flow)];
	struct place place = {.line = table->line_of[flow]};

	while (slot_flow(index, &index->lines[place.line], place.slot) != flow)
		place.slot++;
	return place;
}

static int free_slot(const struct index *index, uint32_t line)
{
	for (unsigned slot = 0; slot < n_slots(index); slot++)
		if (!slot_flow(index, &index->lines[line], slot))
			return slot;
	return -1;
}

// The other line of the entry at a place.
static uint32_t other_line(const struct flow_table *table, const struct index *index,
	struct place place)
{
	const struct entry entry = place_get(table, index, place);
	uint64_t hash;

	if (index->is6)
		table->view.hash6(&table->view, &record_of(table, entry.flow)->key, &hash, 1);
	else
		table->view.hash4(&table->view, &entry.key, &hash, 1);
	const uint32_t first = hash_line(hash, 0, index->n_lines);
	return first == place.line ? hash_line(hash, 1, index->n_lines) : first;
}

// Moves entries along the path that ends with the free place `to`, the last one first: each is in
// its new line before it is overwritten in the old one. Returns the place that becomes free.
static struct place move_back(struct flow_table *table, struct index *index, struct step last,
	struct place to)
{
	for (;;) {
		const struct step *from = &table->steps[last.parent];
		const struct place place = {from->line, last.slot};
		const struct entry entry = place_get(table, index, place);

		publish_entry(table, index, to, &entry);
		index->n_moves++;
		to = place;
		if (from->parent == NO_PARENT)
			return to;
		last = *from;
	}
}

// Finds the shortest way to make space in one of two full lines, breadth first. A shortest path
// visits no line twice. Returns whether *place is free now; otherwise nothing has changed.
static bool make_space(struct flow_table *table, struct index *index, const uint32_t line[2],
	struct place *place)
{
	struct step *steps = table->steps;
	unsigned n = 0;

	for (unsigned i = 0; i < 2; i++)
		steps[n++] = (struct step){.line = line[i], .parent = NO_PARENT};
	for (unsigned at = 0; at < n; at++)
		for (unsigned slot = 0; slot < n_slots(index); slot++) {
			const struct place from = {steps[at].line, slot};
			const struct step next = {.line = other_line(table, index, from),
				.parent = at,
				.slot = slot};
			int to = free_slot(index, next.line);

			if (to >= 0) {
				*place = move_back(table, index, next,
					(struct place){next.line, to});
				return true;
			}
			if (n < MAX_STEPS)
				steps[n++] = next;
		}
	return false;
}

int place_insert(struct flow_table *table, struct index *index, const struct entry *entry,
	uint64_t hash)
{
	const uint32_t line[2] = {hash_line(hash, 0, index->n_lines),
		hash_line(hash, 1, index->n_lines)};
	struct place place;

	for (unsigned which = 0; which < 2; which++) {
		int slot = free_slot(index, line[which]);
		if (slot < 0)
			continue;
		publish_entry(table, index, (struct place){line[which], slot}, entry);
		return 0;
	}
	if (!make_space(table, index, line, &place))
		return -ENOSPC;
	publish_entry(table, index, place, entry);
	return 0;
}
