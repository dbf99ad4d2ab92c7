// Packets on their way through the queues of subscribers. The queues of a subscriber and direction
// are in one shaper, and each shaper is one worker's, its owner: the others put packets into rings
// to it. It sends them when their time has come (qos_fast.h). A packet from one subscriber to
// another goes through queues of both.
#pragma once

#include "base/error.h"
#include "datapath/handover.h"
#include "qos/qos_fast.h"

// Of one worker.
struct shape_worker {
	const struct qos_shapers *all;
	struct qos_shaper *own; // NULL: it is no owner
	uint8_t offset;         // of struct shape_packet in an mbuf
	bool is_closing;        // it hands over no packets any more
	// By shaper: to its owner, and what wakes it; NULL for the owner itself.
	struct handover_ring *to[QOS_MOST_SHAPERS];
	struct port_wait *wait[QOS_MOST_SHAPERS];
	// Of an owner: from the others.
	unsigned n_from;
	struct handover_ring *from[STATS_MAX_WORKERS];
};

// What a packet has in its mbuf. Between the step `subscriber` and the owner, `since` is its shaped
// number (qos_shaped). If it `is_first`, it goes through other queues after these.
static inline struct shape_packet *shape_packet_of(const struct shape_worker *shape,
	struct rte_mbuf *m)
{
	return RTE_PTR_ADD(m, shape->offset);
}

// The other queues: in `mbuf->hash`, which nobody needs once a packet is to be shaped.
struct shape_second {
	uint32_t shaped;
	uint32_t bytes : SHAPE_BYTES_BITS, class : 2;
};
_Static_assert(sizeof(struct shape_second) <= sizeof(((struct rte_mbuf *)0)->hash), "fits");

static inline void shape_write_second(struct rte_mbuf *m, const struct shape_second *second)
{
	memcpy(&m->hash, second, sizeof(*second));
}

static inline struct shape_second shape_read_second(const struct rte_mbuf *m)
{
	struct shape_second second;

	memcpy(&second, &m->hash, sizeof(second));
	return second;
}

static inline struct rte_mbuf *shape_mbuf_of(const struct shape_worker *shape,
	struct shape_packet *packet)
{
	return RTE_PTR_SUB(packet, shape->offset);
}

struct worker;
struct burst;

// Makes them for `n` workers. -errno with `error` set, and nothing made. Control thread; owner:
// caller, shape_workers_free.
int shape_workers_make(struct shape_worker *out[], unsigned n, struct port_wait *const wait[],
	const struct qos_shapers *all, struct error *error);
void shape_workers_free(struct shape_worker *out[], unsigned n);

// The packets of `verdicts->shaped` are to go through queues of a direction; `packets` is what they
// were judged by. Part of the step `subscriber`.
void datapath_shape_later(struct worker *w, struct burst *b, enum qos_direction direction,
	const struct qos_packets *packets, const struct qos_verdicts *verdicts);
// A fragment of `length` bytes is to be shaped as the packet of which it is, of `whole` bytes.
void datapath_shape_fragment(const struct worker *w, struct rte_mbuf *fragment,
	struct rte_mbuf *packet, uint32_t length, uint32_t whole);

// Once per loop: sends what is due; takes settings, and packets of other workers. Returns how many
// packets it had in its hands. Any worker.
unsigned datapath_shape_poll(struct worker *w);
// Whether the worker may sleep: it holds nothing, and nothing waits for it. Any worker.
bool datapath_shape_is_quiet(const struct worker *w);
// When the worker begins. / Before it ends: an owner waits for the others, and drops what is held.
void datapath_shape_open(struct worker *w);
void datapath_shape_close(struct worker *w);

// --- Between shape.c and shape_owner.c.

enum { SHAPE_LIFE_SHIFT = 8 }; // of struct shape_packet.for_caller: port, and its life

// Packets, at most BURST_MAX, to the queues that they need, whosever these are; drops those that a
// ring has no space for. Keeps the order of packets of a subscriber. Changes `mbuf`.
void shape_pass(struct worker *w, struct rte_mbuf *mbuf[], unsigned n);
void shape_drop(struct worker *w, struct rte_mbuf *m, enum verdict verdict);
void shape_drop_all(struct worker *w, struct shape_drops *drops);
// Before what has left the queues is counted as sent or dropped: then the account is never ahead.
void shape_note_held(struct worker *w);
