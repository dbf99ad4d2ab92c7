// Keeps the newest bursts of Linux's messages. Control thread.
#include "netlink/bursts.h"

#include "base/bits.h"

void bursts_note(struct bursts *bursts, uint64_t begin_ns, uint64_t end_ns, uint64_t messages)
{
	struct netlink_burst *last =
		&bursts->slot[(bursts->n + NETLINK_BURSTS - 1) % NETLINK_BURSTS];

	if (!messages)
		return;
	if (bursts->n && begin_ns <= last->end_ns + BURSTS_APART_NS) {
		last->end_ns = end_ns;
		last->messages += messages;
		return;
	}
	bursts->slot[bursts->n++ % NETLINK_BURSTS] =
		(struct netlink_burst){begin_ns, end_ns, messages};
}

unsigned bursts_read(const struct bursts *bursts, struct netlink_burst out[NETLINK_BURSTS])
{
	unsigned n = MIN_OF(bursts->n, (uint64_t)NETLINK_BURSTS);

	for (unsigned i = 0; i < n; i++)
		out[i] = bursts->slot[(bursts->n - n + i) % NETLINK_BURSTS];
	return n;
}
