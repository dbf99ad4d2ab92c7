// Consistent reads of lines while the control thread changes them. Worker.
#include "flow/line.h"

static void copy_words(union line *copy, const union line *line)
{
	for (unsigned i = 0; i < ARRAY_LEN(copy->word); i++)
		copy->word[i] = word16_load(&line->word[i]);
}

// Copies the line from the shadow, if it is the one that is being changed. Partner: line_publish().
static bool copy_shadow(const struct shadow *shadow, const union line *line, union line *copy)
{
	const uint64_t sequence = __atomic_load_n(&shadow->sequence, __ATOMIC_ACQUIRE);

	if (sequence & 1 || __atomic_load_n(&shadow->line, __ATOMIC_ACQUIRE) != line)
		return false;
	copy_words(copy, &shadow->before);
	return __atomic_load_n(&shadow->sequence, __ATOMIC_ACQUIRE) == sequence;
}

void line_snapshot(const struct flow_view *view, const union line *line, union line *copy,
	uint32_t *state)
{
	for (;;) {
		*state = state_load(&line->state);
		if (*state & 1) {
			if (copy_shadow(view->shadow, line, copy))
				return;
			continue;
		}
		copy_words(copy, line);
		if (state_load(&line->state) == *state)
			return;
	}
}

int line4_slot(const struct line4 *line, const struct flow_key4 *key)
{
	for (int slot = 0; slot < LINE4_SLOTS; slot++)
		if (line->value[slot] && key4_equal(&line->key[slot], key))
			return slot;
	return -1;
}

int line6_slot(const struct flow_view *view, const struct line6 *line, const struct flow_key6 *key,
	uint16_t tag)
{
	const struct record6 *records = view->records6;

	for (int slot = 0; slot < LINE6_SLOTS; slot++)
		if (line->tag[slot] == tag && key6_equal(&records[line->record[slot]].key, key))
			return slot;
	return -1;
}

static uint32_t find4_in(const struct flow_view *view, const union line *line,
	const struct flow_key4 *key, uint32_t *action, uint32_t *state)
{
	union line copy;

	line_snapshot(view, line, &copy, state);
	int slot = line4_slot(&copy.four, key);
	if (slot < 0)
		return FLOW_NONE;
	const uint32_t value = copy.four.value[slot];
	*action = line4_action(copy.four.key[slot].kind, value, copy.state, slot);
	return value & VALUE_FLOW;
}

static uint32_t find6_in(const struct flow_view *view, const union line *line,
	const struct flow_key6 *key, uint16_t tag, uint32_t *state)
{
	union line copy;

	line_snapshot(view, line, &copy, state);
	int slot = line6_slot(view, &copy.six, key, tag);
	return slot < 0 ? 0 : copy.six.record[slot];
}

// An entry that moves from the second line to the first is written to the first before it is erased
// in the second: if the first has not changed since it was read, no such entry was overlooked.
uint32_t line4_find(const struct flow_view *view, const struct flow_key4 *key, uint64_t hash,
	uint32_t *action)
{
	const union line *lines = view->lines4;
	const union line *first = &lines[hash_line(hash, 0, view->n_lines4)];
	const union line *second = &lines[hash_line(hash, 1, view->n_lines4)];
	uint32_t before, state;

	do {
		uint32_t flow = find4_in(view, first, key, action, &before);
		if (!flow)
			flow = find4_in(view, second, key, action, &state);
		if (flow)
			return flow;
	} while (state_load(&first->state) != before);
	return FLOW_NONE;
}

uint32_t line6_find(const struct flow_view *view, const struct flow_key6 *key, uint64_t hash,
	uint32_t *action)
{
	const union line *lines = view->lines6;
	const union line *first = &lines[hash_line(hash, 0, view->n_lines6)];
	const union line *second = &lines[hash_line(hash, 1, view->n_lines6)];
	const struct record6 *records = view->records6;
	const uint16_t tag = hash_tag(hash);
	uint32_t before, state;

	do {
		uint32_t record = find6_in(view, first, key, tag, &before);
		if (!record)
			record = find6_in(view, second, key, tag, &state);
		if (!record)
			continue;
		*action = __atomic_load_n(&records[record].action, __ATOMIC_ACQUIRE);
		return view->first6 + record;
	} while (state_load(&first->state) != before);
	return FLOW_NONE;
}
