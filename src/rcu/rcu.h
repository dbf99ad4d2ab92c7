// RCU between one writer, the control thread, and the workers: quiescent states, grace periods and
// deferred frees. It does not know what it protects: modules publish pointers themselves and hand
// over what nobody can find any more.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { RCU_MAX_WORKERS = 128 };

struct rcu;
struct rcu_readers;

// `n_workers` from 1 to RCU_MAX_WORKERS, all offline. NULL with `error` set. Control thread; owner:
// caller.
struct rcu *rcu_create(unsigned n_workers, struct error *error);
void rcu_destroy(struct rcu *rcu); // requires all workers offline, no queue attached
// The reader side (rcu_fast.h); valid as long as `rcu`.
const struct rcu_readers *rcu_readers(const struct rcu *rcu);

// Starts a grace period and returns its token. / Whether all workers have passed it: then none
// still uses what it could not find any more when the period started. Control thread.
uint64_t rcu_start_grace(struct rcu *rcu);
bool rcu_has_passed(struct rcu *rcu, uint64_t token);
// Waits until all workers have passed the token; logs a worker that does not report for a second,
// once, and keeps waiting. Control thread.
void rcu_wait(struct rcu *rcu, uint64_t token);
// Frees what attached queues hold as far as grace periods have ended; cheap, call it often. Returns
// the id of a worker that has not reported a quiescent state for a second, otherwise -1. Control
// thread.
int rcu_poll(struct rcu *rcu);

// `n` units of memory of a kind, from unit `first` on; the owner of the queue defines kinds.
struct rcu_block {
	uint32_t first;
	uint16_t n;
	uint8_t kind;
};

// Grace periods are batched: one covers all blocks that were added since the one before.
enum { RCU_DEFER_MAX = 1 << 16, RCU_DEFER_GRACES = 1 << 10, RCU_DEFER_BATCH = 256 };

// One grace period: all blocks before `end` may be freed once workers have passed `token`.
struct rcu_grace {
	uint64_t token;
	uint32_t end;
};

// A queue of deferred frees: what workers may still read after it was replaced is kept until every
// worker has passed a quiescent state. Set `free`, `ctx` and `most` before use, the rest to 0.
// Positions only grow, so they are subtracted, never compared.
struct rcu_defer {
	void (*free)(void *ctx, struct rcu_block block);
	void *ctx;
	uint32_t most;   // blocks freed by one call, so that it does not take long; 0: no limit
	struct rcu *rcu; // NULL: no worker reads; blocks are freed at once
	struct rcu_defer *next;
	uint32_t head, tail; // blocks waiting
	uint32_t end;        // those before it are in a grace period
	uint32_t first_grace, n_graces;
	struct rcu_block ring[RCU_DEFER_MAX];
	struct rcu_grace grace[RCU_DEFER_GRACES];
};

// From here on workers may read what is added. / Waits until nothing is pending and a grace period
// has passed; then blocks are freed at once again. Control thread.
void rcu_defer_attach(struct rcu_defer *defer, struct rcu *rcu);
void rcu_defer_detach(struct rcu_defer *defer);
// Frees a block after a grace period; new readers must not be able to find it any more. Waits for
// workers if too many are pending. Control thread.
void rcu_defer_add(struct rcu_defer *defer, struct rcu_block block);
// Starts a grace period for all blocks added since the last one, if there are enough of them or
// `now` is set. Control thread.
void rcu_defer_close(struct rcu_defer *defer, bool now);
// Frees blocks whose grace period has ended; true: there are more of them. Control thread.
bool rcu_defer_poll(struct rcu_defer *defer);
// Waits for the oldest grace period and frees blocks of it, if any are pending. Control thread.
void rcu_defer_free_some(struct rcu_defer *defer);
// Waits until nothing is pending. Control thread.
void rcu_defer_drain(struct rcu_defer *defer);
// Waits for a grace period that starts now. Control thread.
void rcu_defer_wait(struct rcu_defer *defer);

static inline uint32_t rcu_defer_pending(const struct rcu_defer *defer)
{
	return defer->tail - defer->head;
}
