// Packets on their way through the queues of subscribers. One worker, the owner, has them all: the
// others put theirs into rings to it. It sends them when their time has come (qos_fast.h).
#pragma once

#include "base/error.h"
#include "datapath/handover.h"
#include "qos/qos_fast.h"

// Of one worker.
struct shape_worker {
	struct qos_shaper *shaper;
	bool is_owner;
	uint8_t offset; // of struct shape_packet in an mbuf
	// To the owner, and what wakes it; NULL for the owner itself.
	struct handover_ring *to;
	struct port_wait *wait;
	// Of the owner: from the others.
	unsigned n_from;
	struct handover_ring *from[STATS_MAX_WORKERS];
};

// What a packet has in its mbuf. Between the step `subscriber` and the owner, `since` is the index
// of its subscriber.
static inline struct shape_packet *shape_packet_of(const struct shape_worker *shape,
	struct rte_mbuf *m)
{
	return RTE_PTR_ADD(m, shape->offset);
}

struct worker;
struct burst;

// Makes them for `n` workers. -errno with `error` set, and nothing made. Control thread; owner:
// caller, shape_workers_free.
int shape_workers_make(struct shape_worker *out[], unsigned n, struct port_wait *const wait[],
	struct qos_shaper *shaper, struct error *error);
void shape_workers_free(struct shape_worker *out[], unsigned n);

// The packets of `verdicts->shaped` are to go through queues; `packets` is what they were judged
// by. Part of the step `subscriber`.
void datapath_shape_later(struct worker *w, struct burst *b, const struct qos_packets *packets,
	const struct qos_verdicts *verdicts);
// A fragment of `length` bytes is to be shaped as the packet of which it is, of `whole` bytes.
void datapath_shape_fragment(const struct worker *w, struct rte_mbuf *fragment,
	struct rte_mbuf *packet, uint32_t length, uint32_t whole);

// Once per loop: sends what is due; takes settings, and packets of other workers. Returns how many
// packets it had in its hands. Owner.
unsigned datapath_shape_poll(struct worker *w);
// Whether the worker may sleep: it holds nothing, and nothing waits for it. Any worker.
bool datapath_shape_is_quiet(const struct worker *w);
// When the worker begins. / Before it ends: the owner waits for the others, and drops what is held.
void datapath_shape_open(struct worker *w);
void datapath_shape_close(struct worker *w);
