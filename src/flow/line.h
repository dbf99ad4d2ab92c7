// Consistent reads of lines while the control thread changes them. Worker.
#pragma once

#include "flow/layout.h"

// A line as it was at one moment during the call, and the state that was seen. Never waits for the
// control thread: it starts again only if a change was completed meanwhile.
void line_snapshot(const struct flow_view *view, const union line *line, union line *copy,
	uint32_t *state);

// The slot of a key, or -1. `line` must be a snapshot, or the caller the control thread.
int line4_slot(const struct line4 *line, const struct flow_key4 *key);
int line6_slot(const struct flow_view *view, const struct line6 *line, const struct flow_key6 *key,
	uint16_t tag);

// Lookups of one key that are right whatever the control thread does meanwhile; the others call
// them where a line changed while they read it. Return the flow number. Worker.
uint32_t line4_find(const struct flow_view *view, const struct flow_key4 *key, uint64_t hash,
	uint32_t *action);
uint32_t line6_find(const struct flow_view *view, const struct flow_key6 *key, uint64_t hash,
	uint32_t *action);

static inline bool key4_equal(const struct flow_key4 *a, const struct flow_key4 *b)
{
	return !((a->kind ^ b->kind) & KIND_MASK) && a->src_be == b->src_be &&
	       a->dst_be == b->dst_be && a->src_port_be == b->src_port_be &&
	       a->dst_port_be == b->dst_port_be;
}

static inline bool key6_equal(const struct flow_key6 *a, const struct flow_key6 *b)
{
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	uint64_t differ = 0;

	for (unsigned i = 0; i < sizeof(*a); i += 8)
		differ |= load64(x + i) ^ load64(y + i);
	return !differ;
}
