// Keeps the newest bursts of Linux's messages. Control thread.
#include "sync/bursts.h"

#include "base/bits.h"

void bursts_note(struct bursts *bursts, uint64_t begin_ns, uint64_t end_ns, uint64_t messages)
{
	struct sync_burst *last = &bursts->slot[(bursts->n + SYNC_BURSTS - 1) % SYNC_BURSTS];

	if (!messages)
		return;
	if (bursts->n && begin_ns <= last->end_ns + BURSTS_APART_NS) {
		last->end_ns = end_ns;
		last->messages += messages;
		return;
	}
	bursts->slot[bursts->n++ % SYNC_BURSTS] = (struct sync_burst){begin_ns, end_ns, messages};
}

unsigned bursts_read(const struct bursts *bursts, struct sync_burst out[SYNC_BURSTS])
{
	unsigned n = MIN_OF(bursts->n, (uint64_t)SYNC_BURSTS);

	for (unsigned i = 0; i < n; i++)
		out[i] = bursts->slot[(bursts->n - n + i) % SYNC_BURSTS];
	return n;
}
