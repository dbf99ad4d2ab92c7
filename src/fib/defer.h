// Deferred free: what workers may still read after it was replaced is kept until every worker has
// passed a quiescent state, then freed. Control thread.
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

// One grace period: all blocks before `end` may be freed once workers have passed `token`.
struct defer_grace {
	uint64_t token;
	uint32_t end;
};

struct fib_rcu;

// Two rings. Positions only grow, so they are subtracted, never compared.
struct defer {
	struct fib_rcu *rcu; // NULL: no worker reads; blocks are freed at once
	struct hops *hops;
	struct blocks *pool[DEFERRED_HOP];
	uint32_t head, tail; // blocks waiting
	uint32_t end;        // those before it are in a grace period
	uint32_t first_grace, n_graces;
	struct deferred ring[DEFER_MAX];
	struct defer_grace grace[DEFER_MAX_GRACES];
};

// Frees a block after a grace period; new readers must not be able to find it any more. Waits for
// workers if too many are pending.
void defer_add(struct defer *defer, struct deferred what);
// Starts a grace period for all blocks added since the last one, if there are enough of them or
// `now` is set.
void defer_close(struct defer *defer, bool now);
// Frees blocks whose grace period has ended.
void defer_poll(struct defer *defer);
// Waits until nothing is pending.
void defer_drain(struct defer *defer);
// Waits for a grace period that starts now.
void defer_wait(struct defer *defer);

static inline uint32_t defer_pending(const struct defer *defer)
{
	return defer->tail - defer->head;
}
