// Reads pauses while the worker continues to record them. Any thread.
#include "stats/pauses.h"

unsigned pauses_read(const struct pauses *pauses, struct pause out[PAUSES_KNOWN],
	uint64_t *n_forgotten)
{
	uint64_t n = __atomic_load_n(&pauses->n, __ATOMIC_ACQUIRE);
	uint64_t from = n - MIN_OF(n, (uint64_t)PAUSES_KNOWN);
	unsigned n_known = n - from;

	for (uint64_t i = from; i < n; i++) {
		const struct pause *slot = &pauses->slot[i % PAUSES_SLOTS];

		out[i - from].end = __atomic_load_n(&slot->end, __ATOMIC_ACQUIRE);
		out[i - from].cycles = __atomic_load_n(&slot->cycles, __ATOMIC_ACQUIRE);
	}
	// The slot of the next number may be partially written.
	uint64_t later = __atomic_load_n(&pauses->n, __ATOMIC_ACQUIRE);
	uint64_t whole = later - MIN_OF(later, (uint64_t)PAUSES_KNOWN);
	uint64_t n_lost = MIN_OF(whole - from, (uint64_t)n_known);

	memmove(out, out + n_lost, (n_known - n_lost) * sizeof(*out));
	*n_forgotten = from + n_lost;
	return n_known - n_lost;
}
