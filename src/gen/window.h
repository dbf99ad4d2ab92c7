// Which sequence numbers of a stream have arrived: exact for the last 2^20, plus the last frame of
// each flow. Worker; created by the control thread.
#pragma once

#include "base/bits.h"
#include "gen/flows.h"
#include "gen/stream.h"
#include "wire/stamp.h"

#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_NUMBERS = 1 << 20, WINDOW_WORDS = WINDOW_NUMBERS / 64 };

struct window {
	uint64_t next;    // the highest number that has arrived, plus one
	uint64_t missing; // numbers below `next` that have not arrived
	// Flow of a number: number - (number * flow_reciprocal >> 64) * n_flows. 1: order is
	// checked for the stream as a whole, and flow_next is not used.
	uint64_t n_flows, flow_reciprocal;
	const struct flows *flows;                // borrowed; NULL: sequential flows, as above
	uint64_t seen[WINDOW_WORDS] LINE_ALIGNED; // bit: number mod 2^20
	uint64_t flow_next[];                     // by flow: its highest number that has arrived,
	                                          // plus one
} LINE_ALIGNED;

enum window_verdict { WINDOW_NEW, WINDOW_NEW_REORDERED, WINDOW_DUPLICATE, WINDOW_TOO_OLD };

// Size of a window with `n_flows` flows.
size_t window_bytes(uint32_t n_flows);
// Turns zeroed memory into an empty window.
void window_begin(struct window *w, uint32_t n_flows);
// Clears the numbers from `from` up to, excluding, `to`; at most 128 KiB of work.
void window_forget(struct window *w, uint64_t from, uint64_t to);

// The full number from the last 40 bits in a stamp: the one nearest to `next`. Below 2^47, which no
// run reaches.
static inline uint64_t window_whole(const struct window *w, uint64_t last_bits)
{
	uint64_t ahead = (last_bits - w->next) & STAMP_40_BITS;
	uint64_t number = w->next + ahead - (ahead >> 39 << 40);

	return number >> 47 ? last_bits : number; // also if it would be negative
}

// Exact for numbers below 2^47 and up to GEN_FLOWS_IN_ORDER flows.
static inline uint64_t window_flow(const struct window *w, uint64_t number)
{
	if (unlikely(w->flows != NULL))
		return flows_of(w->flows, number);
	uint64_t round = (unsigned __int128)number * w->flow_reciprocal >> 64;

	return number - round * w->n_flows;
}

static inline enum window_verdict window_take_late(struct window *w, uint64_t number)
{
	uint64_t *word = &w->seen[number / 64 % WINDOW_WORDS], bit = 1ull << number % 64;

	if (w->next - number > WINDOW_NUMBERS)
		return WINDOW_TOO_OLD;
	if (*word & bit)
		return WINDOW_DUPLICATE;
	*word |= bit;
	w->missing--;
	if (w->n_flows == 1)
		return WINDOW_NEW_REORDERED;
	uint64_t *flow_next = &w->flow_next[window_flow(w, number)];
	if (*flow_next > number)
		return WINDOW_NEW_REORDERED;
	*flow_next = number + 1;
	return WINDOW_NEW;
}

// Advances to `number`, which is higher than the next one: those before it are missing.
static inline void window_skip(struct window *w, uint64_t number)
{
	window_forget(w, w->next, number);
	w->missing += number - w->next;
	w->next = number;
}

// Classifies a number below 2^47 and records it.
static inline enum window_verdict window_take(struct window *w, uint64_t number)
{
	if (unlikely(number < w->next))
		return window_take_late(w, number);
	if (unlikely(number > w->next))
		window_skip(w, number);
	w->seen[number / 64 % WINDOW_WORDS] |= 1ull << number % 64;
	w->next = number + 1;
	if (w->n_flows > 1)
		w->flow_next[window_flow(w, number)] = number + 1;
	return WINDOW_NEW;
}

// Whether `numbers` are the last 40 bits of the next n numbers in order.
static inline bool window_is_next(const struct window *w, const uint64_t numbers[], unsigned n)
{
	uint64_t difference = 0;

	for (unsigned i = 0; i < n; i++)
		difference |= numbers[i] ^ (w->next + i);
	return !(difference & STAMP_40_BITS);
}

// Records the next n numbers, 1 to 64, as window_take would.
void window_take_next(struct window *w, unsigned n);
