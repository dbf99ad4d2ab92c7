// Creates windows and advances them over gaps.
#include "gen/window.h"

#include <string.h>

// With more flows, order is checked for the stream as a whole.
static uint32_t flows_in_order(uint32_t n_flows)
{
	return n_flows && n_flows <= GEN_FLOWS_IN_ORDER ? n_flows : 1;
}

size_t window_bytes(uint32_t n_flows)
{
	n_flows = flows_in_order(n_flows);
	return sizeof(struct window) + (n_flows > 1 ? n_flows * sizeof(uint64_t) : 0);
}

void window_begin(struct window *w, uint32_t n_flows)
{
	w->n_flows = flows_in_order(n_flows);
	w->flow_reciprocal = w->n_flows > 1 ? UINT64_MAX / w->n_flows + 1 : 0;
}

void window_forget(struct window *w, uint64_t from, uint64_t to)
{
	if (to - from >= WINDOW_NUMBERS) {
		memset(w->seen, 0, sizeof(w->seen));
		return;
	}
	while (from < to) {
		uint64_t word = from / 64 % WINDOW_WORDS, n = MIN_OF(64 - from % 64, to - from);

		if (n == 64) {
			uint64_t n_words = MIN_OF((to - from) / 64, WINDOW_WORDS - word);
			memset(&w->seen[word], 0, n_words * sizeof(w->seen[0]));
			n = 64 * n_words;
		} else {
			w->seen[word] &= ~(((1ull << n) - 1) << from % 64);
		}
		from += n;
	}
}

static __attribute__((noinline)) void take_next_flows(struct window *w, unsigned n)
{
	uint32_t flow[GEN_MAX_BURST];

	flows_fill(w->flows, w->next, flow, n);
	for (unsigned i = 0; i < n; i++)
		w->flow_next[flow[i]] = w->next + i + 1;
}

void window_take_next(struct window *w, unsigned n)
{
	uint64_t bits = n == 64 ? UINT64_MAX : (1ull << n) - 1;
	uint64_t word = w->next / 64, shift = w->next % 64;

	w->seen[word % WINDOW_WORDS] |= bits << shift;
	if (shift + n > 64)
		w->seen[(word + 1) % WINDOW_WORDS] |= bits >> (64 - shift);
	if (unlikely(w->flows != NULL)) {
		take_next_flows(w, n);
	} else if (w->n_flows > 1) {
		uint64_t flow = window_flow(w, w->next);
		for (unsigned i = 1; i <= n; i++) {
			w->flow_next[flow] = w->next + i;
			flow = flow + 1 < w->n_flows ? flow + 1 : 0;
		}
	}
	w->next += n;
}
