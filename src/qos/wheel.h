// A timing wheel: numbers ("entries") that are due at slots of time. Two rings: a near one with a
// list per slot, and a far one with a list per window of slots, whose entries are moved to the
// near one some windows ahead, a few at a time. Lists are made of cells with several entries, so
// that what is due together is prefetched together. One thread; the owner of the shaper.
#pragma once

#include "base/bits.h"

#include <stddef.h>
#include <stdint.h>

enum {
	WHEEL_NEAR = 4096,       // slots
	WHEEL_WINDOW_SHIFT = 10, // of slots per window
	WHEEL_FAR = 1024,        // windows
	WHEEL_LISTS = WHEEL_NEAR + WHEEL_FAR,
	WHEEL_CELL = 14, // entries per cell
};

// Of each entry; the caller embeds them at equal distances.
struct wheel_entry {
	uint32_t place; // cell << 4 | position; valid while the entry is in the wheel
	uint32_t slot;  // low bits of the slot at which it is due
};

struct wheel_cell {
	uint32_t next; // 0: none
	uint16_t n, list;
	uint32_t id[WHEEL_CELL];
};
_Static_assert(sizeof(struct wheel_cell) == CACHE_LINE_BYTES, "a cell is a line");

struct wheel {
	uint64_t at;    // the first slot that is not done
	uint64_t moved; // the first window whose entries may be in the far ring
	uint8_t *entries;
	size_t stride;
	struct wheel_cell *cells; // from 1
	uint32_t n, n_cells, free, n_touched;
	uint64_t words; // a bit per word of `bits` that is not 0
	uint64_t bits[WHEEL_NEAR / 64];
	uint32_t head[WHEEL_LISTS]; // cell that is not full, or 0; all others of a list are full
};

// `entries`: address of the struct wheel_entry of entry 0; that of entry i is `stride` * i bytes
// further. Entries are less than `n`. `slot`: of now. 0 or -ENOMEM.
int wheel_init(struct wheel *w, void *entries, size_t stride, uint32_t n, uint64_t slot);
void wheel_free(struct wheel *w);

// `id` is not in the wheel. A slot that is done already is due at once; one that is more than
// 1 << 30 slots away is due then.
void wheel_insert(struct wheel *w, uint32_t id, uint64_t slot);
// `id` is in the wheel.
void wheel_remove(struct wheel *w, uint32_t id);
// Removes entries that are due at `slot` or before, and writes them to `due`, in the order of
// their slots. `most` (at least WHEEL_CELL) bounds these and, apart from them, the entries that
// are moved to the near ring; what remains is for the next call. Entries are prefetched.
unsigned wheel_expire(struct wheel *w, uint64_t slot, uint32_t due[], unsigned most);
