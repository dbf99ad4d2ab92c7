// Layout of what workers read: lines of 64 bytes, each replaced as a whole, and IPv6 records.
#pragma once

#include "base/bits.h"
#include "base/word16.h"
#include "flow/flow_fast.h"

#include <stddef.h>

// Three IPv4 flows. A key's `kind` holds the low bits of the action in its upper bits, a value the
// next ones above the flow number, and the state the highest ones. Value 0: the slot is free.
enum { LINE4_SLOTS = 3, LINE6_SLOTS = 10 };
struct line4 {
	struct flow_key4 key[LINE4_SLOTS];
	uint32_t value[LINE4_SLOTS];
	uint32_t state;
} LINE_ALIGNED;

// Ten IPv6 flows: numbers of records, 0: the slot is free; and 16 bits of the hash, never 0.
struct line6 {
	uint32_t record[LINE6_SLOTS];
	uint16_t tag[LINE6_SLOTS];
	uint32_t state;
} LINE_ALIGNED;

// The state is a sequence number in its lower bits, which is odd while the line is being changed;
// in IPv4 lines, the upper bits belong to the actions.
union line {
	struct line4 four;
	struct line6 six;
	word16 word[4];
	struct {
		uint8_t slots[60];
		uint32_t state;
	};
} LINE_ALIGNED;
_Static_assert(sizeof(union line) == CACHE_LINE_BYTES, "one cache line");

enum { STATE_SEQUENCE_BITS = 20, STATE_SEQUENCE = (1 << STATE_SEQUENCE_BITS) - 1 };

// An IPv6 flow. Only the action changes while workers can find it; atomic, release and acquire, so
// that they see what it stands for.
struct record6 {
	struct flow_key6 key;
	uint32_t action;
} LINE_ALIGNED;

// The line that is being changed, as it was before. Workers that come across a line in an odd state
// read this instead: they never wait for the control thread. The sequence number is odd while the
// shadow itself is being written, at which time no line is odd.
struct shadow {
	union line before;
	uint64_t sequence;
	const union line *line;
} LINE_ALIGNED;

// Actions have 22 bits: 12 in the key, 6 in the value, 4 in the state. Flow numbers have 26.
enum { ACTION_KEY_BITS = 12, ACTION_VALUE_BITS = 6, ACTION_STATE_BITS = 4 };
enum { VALUE_FLOW_BITS = 26, VALUE_FLOW = (1 << VALUE_FLOW_BITS) - 1 };
enum { KIND_BITS = 32 - ACTION_KEY_BITS, KIND_MASK = (1 << KIND_BITS) - 1 };
enum { ACTION_BITS = ACTION_KEY_BITS + ACTION_VALUE_BITS + ACTION_STATE_BITS };

// Puts the action of a slot together; slot LINE4_SLOTS yields anything.
static inline uint32_t line4_action(uint32_t kind, uint32_t value, uint32_t state, unsigned slot)
{
	const unsigned shift = STATE_SEQUENCE_BITS + ACTION_STATE_BITS * slot;
	const uint32_t high = state >> shift % 32 & ((1 << ACTION_STATE_BITS) - 1);

	return kind >> KIND_BITS | value >> VALUE_FLOW_BITS << ACTION_KEY_BITS |
	       high << (ACTION_KEY_BITS + ACTION_VALUE_BITS);
}

// Where the words of a slot are in a line, in units of four bytes; also of slot LINE4_SLOTS, which
// stands for none and yields anything.
enum { LINE4_KEY_WORDS = 4, LINE4_FIRST_VALUE = LINE4_SLOTS * LINE4_KEY_WORDS };
_Static_assert(offsetof(struct line4, value) == 4 * LINE4_FIRST_VALUE, "values follow keys");

static inline uint32_t line4_value_load(const struct line4 *line, unsigned slot)
{
	return __atomic_load_n((const uint32_t *)line + LINE4_FIRST_VALUE + slot, __ATOMIC_ACQUIRE);
}

static inline uint32_t line4_kind_load(const struct line4 *line, unsigned slot)
{
	return __atomic_load_n((const uint32_t *)line + LINE4_KEY_WORDS * slot, __ATOMIC_ACQUIRE);
}

// The two lines of a hash, and its tag.
static inline uint32_t hash_line(uint64_t hash, unsigned which, uint32_t n_lines)
{
	uint32_t half = which ? hash >> 32 : (uint32_t)hash;

	return (uint64_t)half * n_lines >> 32;
}

static inline uint16_t hash_tag(uint64_t hash)
{
	uint16_t tag = hash;

	return tag + !tag;
}

// Acquire, so that what is read afterwards is not older than the state. Partner: line_publish().
static inline uint32_t state_load(const uint32_t *state)
{
	return __atomic_load_n(state, __ATOMIC_ACQUIRE);
}
