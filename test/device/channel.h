// What a frame meets on its way from one port to another, known exactly: a limit, losses, corrupted
// bytes, frames that change places, duplicates, a delay, a bounded ring. No DPDK. One thread puts,
// one takes; they may be two.
//
// A channel is read from words NAME=NUMBER; what is not named does not happen:
//   from=0 to=1         the ports
//   limit_pps=250000    above this rate frames are lost: a token bucket of limit_depth (128)
//   frames.
//   queues=1            what the limit lets through leaves at its rate, as out of a buffer of
//                       limit_depth frames: of a burst at P packets/s
//                       1 + limit_depth / (1 - limit_pps / P) frames pass
//   due_at=50           the limit judges a frame by when it was due (40 bits of the TSC that stand
//                       there in it, as in stamp.h), not by when it came: no pause of the
//                       machine makes one lost. Not for several streams.
//   after_ns=100000     for so long after a frame above the limit all others are lost, too
//   drop_every=100      the 100th, 200th ... frame is lost
//   corrupt_every=100   of every 100th frame the byte at corrupt_at is changed, by corrupt_with
//                       (255, exclusive or)
//   swap_every=100      every 100th frame is held back until swap_by (1) more have passed
//   duplicate_every=100 every 100th frame comes twice
//   delay_ns=10000      from the putting until it can be taken
//   late_every=100      every 100th frame waits for late_ns longer, and so do those behind it
//   ring=4096           so many frames wait to be taken; what finds no room is lost
//   refuses=1           what is above the limit or finds no room is refused, not lost
//   slot=2048           bytes of the longest frame
//   dump=1000           so many frames are written down as they come in (the plugin's affair)
// While it runs it can be told to die for a while: all frames are lost for as many nanoseconds as
// somebody writes into the row CHANNEL_DIE_NS, from the next frame on. With 1 in CHANNEL_HOLD,
// frames wait in the ring, until it is 0 again. Each stage counts the frames that reach it, in this
// order.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum channel_count {
	CHANNEL_OFFERED, // refused ones included
	CHANNEL_REFUSED,
	CHANNEL_DEAD,
	CHANNEL_OVER_LIMIT,
	CHANNEL_AFTER_LIMIT,
	CHANNEL_DROPPED,
	CHANNEL_CORRUPTED,
	CHANNEL_SWAPPED,
	CHANNEL_DUPLICATED,
	CHANNEL_TOO_LONG,
	CHANNEL_RING_FULL, // nobody took them in time
	CHANNEL_N_PUTTING,
	CHANNEL_TAKEN = CHANNEL_N_PUTTING, // written by the thread that takes
	CHANNEL_DIE_NS,                    // no count, but an order; 0 as soon as it is obeyed
	CHANNEL_HOLD,                      // an order, too: while it is not 0, nothing comes out
	CHANNEL_N_COUNTS,
};

// Names stand beside the numbers, so that a reader of the shared memory needs no table.
struct channel_row {
	char name[24];
	uint64_t n;
};

struct channel_account {
	struct channel_row rows[CHANNEL_N_COUNTS];
} __attribute__((aligned(64)));

struct channel_settings {
	uint64_t from, to, limit_pps, limit_depth, queues, due_at, after_ns, drop_every,
		corrupt_every, corrupt_at, corrupt_with, swap_every, swap_by, duplicate_every,
		delay_ns, late_every, late_ns, ring, refuses, slot, dump;
};

struct channel;

// False and a sentence in `error` when the words are not understood. `words` is cut up.
bool channel_read(struct channel_settings *out, char *words, char error[], size_t size);
// `account` is borrowed. NULL when there is no memory.
struct channel *channel_create(const struct channel_settings *settings, uint64_t tsc_hz,
	struct channel_account *account);
void channel_destroy(struct channel *channel);

// A frame comes in at `now`. False: refused, and not yet counted.
bool channel_put(struct channel *channel, const void *frame, uint32_t bytes, uint64_t now);
// `n` frames, the one that channel_put refused and those behind it, go back.
void channel_refuse(struct channel *channel, unsigned n);
// Whether a frame is ready at `now`.
bool channel_has(const struct channel *channel, uint64_t now);
// Copies the next frame that is ready at `now` to `to`; its length, 0 when there is none or it is
// longer than `room`.
uint32_t channel_take(struct channel *channel, void *to, uint32_t room, uint64_t now);
