// Measures the TSC offset of two workers (the exchange of NTP, RFC 5905, section 8, using the
// fastest of all exchanges). Worker.
#include "gen/offset.h"

#include "stats/stats.h"

#include <rte_cycles.h>
#include <rte_pause.h>

// Waits until `*number` is `wanted`. Returns false on reaching `deadline`.
static bool await(const uint64_t *number, uint64_t wanted, uint64_t deadline)
{
	while (__atomic_load_n(number, __ATOMIC_ACQUIRE) != wanted) {
		if (rte_rdtsc() > deadline)
			return false;
		rte_pause();
	}
	return true;
}

static uint64_t deadline_of(uint64_t hz)
{
	return rte_rdtsc() + hz / 1000 * OFFSET_PATIENCE_MS;
}

void offset_ask(struct offset_pair *pair, uint64_t round, uint64_t hz)
{
	uint64_t deadline = deadline_of(hz), fastest = UINT64_MAX, offset = 0;

	for (uint64_t i = 0; i < OFFSET_EXCHANGES; i++) {
		uint64_t number = round * OFFSET_EXCHANGES + i, before = rte_rdtsc_precise();

		__atomic_store_n(&pair->question.number, number, __ATOMIC_RELEASE);
		if (!await(&pair->answer.number, number, deadline))
			return;
		uint64_t after = rte_rdtsc_precise();
		uint64_t middle = before + (after - before) / 2;
		uint64_t there = __atomic_load_n(&pair->answer.tsc, __ATOMIC_RELAXED);

		if (after - before < fastest) {
			fastest = after - before;
			offset = there > middle ? there - middle : middle - there;
		}
	}
	stats_set(&pair->largest, MAX_OF(pair->largest, offset));
	stats_add(&pair->n_measured, 1);
}

void offset_answer(struct offset_pair *pair, uint64_t round, uint64_t hz)
{
	uint64_t deadline = deadline_of(hz);

	for (uint64_t i = 0; i < OFFSET_EXCHANGES; i++) {
		uint64_t number = round * OFFSET_EXCHANGES + i;

		if (!await(&pair->question.number, number, deadline))
			return;
		__atomic_store_n(&pair->answer.tsc, rte_rdtsc_precise(), __ATOMIC_RELAXED);
		__atomic_store_n(&pair->answer.number, number, __ATOMIC_RELEASE);
	}
}
