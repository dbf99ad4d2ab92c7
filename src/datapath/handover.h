// Packets that one worker receives and others process. The receive worker hashes the innermost
// headers of a packet (wire/innermost.h); the upper 8 bits of the hash select a slot of its table,
// and the slot a worker. For each pair there is a ring with one writer and one reader, so the
// packets of a flow stay in order: they come by one queue, and go through one ring. Nothing waits:
// what a full ring does not take is dropped as worker_ring_full.
//
// Slots move from one worker to another while packets flow. The receive worker first holds the
// packets of these slots, until their former workers have processed all that was in their rings;
// then the slots are moved, and the held packets follow. What it cannot hold is dropped as
// worker_ring_full, too.
//
// Steps that need one owner for some packets can hand them over in the same way: handover_put()
// asks for no hash.
#pragma once

#include "base/error.h"
#include "port/port_fast.h"
#include "stats/stats.h"

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

enum { HANDOVER_SLOTS = 256, HANDOVER_RING = PORT_HAND_SLOTS, HANDOVER_HELD = PORT_HAND_SLOTS };
enum { HANDOVER_BURST = 64 };
_Static_assert((HANDOVER_RING & (HANDOVER_RING - 1)) == 0, "a power of two");

// From one worker to another. Positions only grow: they count packets. `mbuf->port` is the index of
// the input port.
struct handover_ring {
	// Written by the receive worker.
	uint64_t put LINE_ALIGNED; // atomic, release: packets put in
	uint64_t seen_done;        // `done` when last read
	bool is_open;              // atomic: packets may still come
	// Written by the other one.
	uint64_t done LINE_ALIGNED; // atomic, release: packets that it has processed
	uint64_t taken;             // and those in its hands
	struct rte_mbuf *packet[HANDOVER_RING] LINE_ALIGNED;
};

// Of a worker that hands packets to others.
struct handover_out {
	unsigned n;
	struct handover_ring *ring[PORT_MAX_HANDS];
	struct port_wait *wait[PORT_MAX_HANDS]; // wakes the worker; NULL: it never sleeps long
	uint8_t to[HANDOVER_SLOTS];             // index of the ring; atomic, relaxed
	uint64_t n_came[HANDOVER_SLOTS]; // packets, by slot, those that no ring took included
	// Written by the control thread: what the table is to become, and how often that changed
	// (atomic, release).
	uint8_t wanted[HANDOVER_SLOTS];
	uint32_t n_changes LINE_ALIGNED;
	// A move that is going on. `is_moving` and `n_followed` are read by the control thread.
	uint32_t n_followed; // changes that the table has, once nothing moves; atomic, release
	bool is_moving;      // atomic, release
	bool moves[HANDOVER_SLOTS];
	uint8_t next[HANDOVER_SLOTS];
	uint64_t fence[PORT_MAX_HANDS]; // of each ring: `put` when the move began; 0: no slot
	                                // leaves it
	unsigned n_held;
	uint8_t held_slot[HANDOVER_HELD];
	struct rte_mbuf *held[HANDOVER_HELD];
	// Packets of the present burst, by ring.
	uint16_t n_staged[PORT_MAX_HANDS];
	struct rte_mbuf *staged[PORT_MAX_HANDS][HANDOVER_BURST];
} LINE_ALIGNED;

// Of a worker that is handed packets.
struct handover_in {
	unsigned n;
	struct handover_ring *ring[STATS_MAX_WORKERS];
	struct port_queue from; // stands for the queue of the packets in hand
};

struct worker;
struct received;

// Makes the rings between `n` workers: out[i] and in[i] of worker io[i], NULL if it has none.
// -ENOMEM with `error` set, and nothing made. Control thread; owner: caller, handover_free.
int handover_make(unsigned n, const struct port_worker *const io[], struct handover_out *out[],
	struct handover_in *in[], struct error *error);
void handover_free(unsigned n, struct handover_out *out[], struct handover_in *in[]);

// Puts packets into a ring and wakes its worker; returns how many it has taken. The caller still
// owns the others. Receive worker.
uint16_t handover_put(struct handover_out *out, unsigned ring, struct rte_mbuf *mbuf[], uint16_t n);
// The same for a ring and what wakes its reader. Writer of the ring.
uint16_t handover_ring_put(struct handover_ring *ring, struct port_wait *wait,
	struct rte_mbuf *mbuf[], uint16_t n);
// How many it would take now, at least. Writer of the ring.
unsigned handover_ring_space(struct handover_ring *ring);
// Hands over what was received. Receive worker.
void datapath_handover(struct worker *w, const struct received *r);
// Begins a move that the control thread wants, or ends one; called once per loop. Receive worker.
void handover_follow(struct worker *w);
// When the worker begins and before it ends: until all moves are over and held packets handed on.
void handover_open(struct worker *w);
void handover_close(struct worker *w);

// Takes the packets at the head of r->ring that have one input port, at most w->io->burst; within a
// batch, only those of the same port. Returns their number. / Tells that those taken are processed.
uint16_t handover_take(struct worker *w, struct received *r);
static inline void handover_done(struct handover_ring *ring)
{
	__atomic_store_n(&ring->done, ring->taken, __ATOMIC_RELEASE);
}

// Whether packets may come, or are there. Reader.
bool handover_is_over(const struct handover_in *in);
// Whether the worker has no packets, neither in its rings nor held, and nothing to move. Worker.
bool handover_is_quiet(const struct worker *w);

// Moves slots in `mask` to the ring; the worker does so in its next loops. / Whether all that was
// wanted has been done. / The ring of a slot now. Control thread.
void handover_move(struct handover_out *out, const bool slots[HANDOVER_SLOTS], unsigned ring);
bool handover_has_moved(const struct handover_out *out);
static inline unsigned handover_slot(const struct handover_out *out, unsigned slot)
{
	return __atomic_load_n(&out->to[slot], __ATOMIC_RELAXED);
}
