// Packets that leave by their input interface: Linux sees a limited number of them so that it can
// send redirects (RFC 1812, 5.2.7.2; RFC 4861, 8). The others are forwarded. Worker.
#include "datapath/steps.h"

#include <rte_cycles.h>

// A token bucket, stored as a theoretical arrival time (GCRA, ITU-T I.371).
static bool may_punt(struct worker *w, uint64_t now)
{
	uint64_t cycles = __atomic_load_n(&w->tap->redirect_cycles, __ATOMIC_RELAXED);
	uint64_t burst = __atomic_load_n(&w->tap->redirect_burst, __ATOMIC_RELAXED);
	bool has_limit = cycles > 0;

	if (cycles == UINT64_MAX) // redirects are off
		return false;
	if (has_limit && rte_ring_full(w->tap->punt[CLASS_REDIRECT]))
		return false;
	const uint64_t due = MAX_OF(w->redirects_due, now);
	if (due - now > (burst - 1) * cycles)
		return false;
	__atomic_store_n(&w->redirects_due, due + cycles, __ATOMIC_RELAXED); // trace.c reads it
	return true;
}

// Whether the packet leaves by the interface on which it came in.
static bool returns(const struct burst *b, uint16_t i)
{
	return fib_oif_load(b->view, b->hop[i]) == burst_iif(b, i);
}

// Whether some packet leaves through its input port, or may leave through its bridge.
static bool some_return(const struct burst *b)
{
	bool found = b->has & BURST_BRIDGES;

	if (b->has_one_port)
		return found || b->port[0] == b->in_port;
	for (uint16_t i = 0; i < b->n; i++)
		found |= b->port[i] == b->in_port;
	return found;
}

static __attribute__((noinline)) void punt_some(struct worker *w, struct burst *b)
{
	uint64_t now = rte_rdtsc(), kept = 0;

	for (uint16_t i = 0; i < b->n; i++) {
		if (b->redirect_mask >> i & 1 && returns(b, i) && may_punt(w, now))
			burst_drop(w, b, i, VERDICT_REDIRECT);
		else
			kept |= 1ull << i;
	}
	burst_keep(b, kept);
}

void datapath_redirect(struct worker *w, struct burst *b)
{
	if (unlikely(some_return(b)))
		punt_some(w, b);
}
