// Reads stalls while the worker continues to record them. Any thread.
#include "stats/stalls.h"

unsigned stalls_read(const struct stalls *stalls, struct stall out[STALLS_KNOWN],
	uint64_t *n_forgotten)
{
	uint64_t n = __atomic_load_n(&stalls->n, __ATOMIC_ACQUIRE);
	uint64_t from = n - MIN_OF(n, (uint64_t)STALLS_KNOWN);
	unsigned n_known = n - from;

	for (uint64_t i = from; i < n; i++) {
		const struct stall *slot = &stalls->slot[i % STALLS_SLOTS];

		out[i - from].end = __atomic_load_n(&slot->end, __ATOMIC_ACQUIRE);
		out[i - from].cycles = __atomic_load_n(&slot->cycles, __ATOMIC_ACQUIRE);
	}
	// The slot of the next number may be partially written.
	uint64_t later = __atomic_load_n(&stalls->n, __ATOMIC_ACQUIRE);
	uint64_t whole = later - MIN_OF(later, (uint64_t)STALLS_KNOWN);
	uint64_t n_lost = MIN_OF(whole - from, (uint64_t)n_known);

	memmove(out, out + n_lost, (n_known - n_lost) * sizeof(*out));
	*n_forgotten = from + n_lost;
	return n_known - n_lost;
}
