// What lanes may still read after it was replaced: kept until every lane has passed by, then freed.
// Control thread.
#pragma once

#include "fib/blocks.h"
#include "fib/hops.h"

enum retired_kind {
	RETIRED_LEAF4,
	RETIRED_TAIL4,
	RETIRED_LEAF6,
	RETIRED_LINE6,
	RETIRED_WIDE6,
	RETIRED_HOP,
	N_RETIRED_KINDS
};
enum { RETIRE_MAX = 1 << 16, RETIRE_MAX_GRACES = 1 << 10, RETIRE_GRACE_BLOCKS = 256 };

struct retired {
	uint32_t first;
	uint16_t n;
	uint8_t kind; // enum retired_kind
};

// One grace period: all blocks before `end` are free once lanes have passed `token`.
struct retire_grace {
	uint64_t token;
	uint32_t end;
};

struct fib_door;

// Two rings; positions only grow, so that they are subtracted, never compared.
struct retire {
	struct fib_door *door; // NULL: no lane reads, what comes is freed at once
	struct hops *hops;
	struct blocks *pool[RETIRED_HOP];
	uint32_t head, tail; // blocks waiting
	uint32_t end;        // those before it have a grace period
	uint32_t first_grace, n_graces;
	struct retired ring[RETIRE_MAX];
	struct retire_grace grace[RETIRE_MAX_GRACES];
};

// Frees a block after a grace period; no new reader can find it any more. Waits for lanes when too
// many are pending.
void retire_add(struct retire *retire, struct retired what);
// Starts a grace period for all that came since the last one, if that is enough to be worth it or
// `now` is set.
void retire_close(struct retire *retire, bool now);
// Frees what is due.
void retire_tend(struct retire *retire);
// Waits for lanes until nothing is pending. / Until none can know anything older than this moment.
void retire_drain(struct retire *retire);
void retire_wait(struct retire *retire);

static inline uint32_t retire_pending(const struct retire *retire)
{
	return retire->tail - retire->head;
}
