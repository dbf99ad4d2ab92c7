// What workers may still read after it was replaced: kept until every worker has passed by, then
// freed. Control thread.
#pragma once

#include "fib/blocks.h"
#include "fib/hops.h"

enum deferred_kind {
	DEFERRED_LEAF4,
	DEFERRED_TAIL4,
	DEFERRED_LEAF6,
	DEFERRED_LINE6,
	DEFERRED_WIDE6,
	DEFERRED_HOP,
	N_DEFERRED_KINDS
};
enum { DEFER_MAX = 1 << 16, DEFER_MAX_GRACES = 1 << 10, DEFER_GRACE_BLOCKS = 256 };

struct deferred {
	uint32_t first;
	uint16_t n;
	uint8_t kind; // enum deferred_kind
};

// One grace period: all blocks before `end` are free once workers have passed `token`.
struct defer_grace {
	uint64_t token;
	uint32_t end;
};

struct fib_rcu;

// Two rings; positions only grow, so that they are subtracted, never compared.
struct defer {
	struct fib_rcu *rcu; // NULL: no worker reads, what comes is freed at once
	struct hops *hops;
	struct blocks *pool[DEFERRED_HOP];
	uint32_t head, tail; // blocks waiting
	uint32_t end;        // those before it have a grace period
	uint32_t first_grace, n_graces;
	struct deferred ring[DEFER_MAX];
	struct defer_grace grace[DEFER_MAX_GRACES];
};

// Frees a block after a grace period; no new reader can find it any more. Waits for workers when
// too many are pending.
void defer_add(struct defer *defer, struct deferred what);
// Starts a grace period for all that came since the last one, if that is enough to be worth it or
// `now` is set.
void defer_close(struct defer *defer, bool now);
// Frees what is due.
void defer_poll(struct defer *defer);
// Waits for workers until nothing is pending. / Until none can know anything older than this
// moment.
void defer_drain(struct defer *defer);
void defer_wait(struct defer *defer);

static inline uint32_t defer_pending(const struct defer *defer)
{
	return defer->tail - defer->head;
}
