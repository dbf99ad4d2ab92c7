// Capturing frames where they pass: copies go into a ring of the thread that handles them. Without
// a capture, a worker tests one pointer per burst. Worker; tap thread.
#pragma once

#include "base/bits.h"
#include "stats/stats.h"

#include <pthread.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

enum { CAPTURE_BURST = 64, CAPTURE_PORT_UNKNOWN = UINT16_MAX };

// Two captures may run at a time: one that somebody reads, and an export of samples.
enum { CAPTURE_READ, CAPTURE_EXPORT, CAPTURE_SLOTS };

enum capture_kind {
	CAPTURE_IN,   // received
	CAPTURE_OUT,  // accepted by the device of its output port
	CAPTURE_DROP, // dropped, with a verdict
	CAPTURE_PUNT, // passed to Linux, with a verdict
};

// What happened to a frame, and on which port: of a dropped or punted one, its input port, or the
// output port if Linux sent it.
struct capture_event {
	uint8_t kind; // enum capture_kind
	uint8_t verdict;
	uint16_t port;
};

struct capture_session;

// Frames that are sampled apart: received and sent ones; dropped and punted ones.
enum capture_sampled { CAPTURE_FRAMES, CAPTURE_LOSSES, CAPTURE_SAMPLED };

// What a worker or the tap thread captures with. It has one writer.
struct capture_producer {
	const struct capture_session *session;
	uint8_t *ring;
	uint8_t *scratch; // for frames in several mbufs
	uint64_t ring_bytes;
	uint64_t head;      // atomic, release; partner: ring.c, capture_ring_peek
	uint64_t tail_seen; // an earlier value of `tail`
	uint64_t missed;    // frames for which the ring had no space; atomic, relaxed
	uint16_t in_port;   // of the packets that the worker handles; CAPTURE_PORT_UNKNOWN: Linux
	                    // sent them, and mbuf->port is the output port
	struct capture_producer *next;  // of the worker's other capture; NULL: none. Set with each
	                                // loop
	uint32_t skip[CAPTURE_SAMPLED]; // frames before the next sample
	uint64_t random;                // state of the generator of `skip`
	uint64_t tail LINE_ALIGNED;     // atomic, release; written by the capture thread
} LINE_ALIGNED;

// Where the running captures are published. Workers may use a session until they report a quiescent
// state, all others only with the lock held.
struct capture_live {
	struct capture_session *session[CAPTURE_SLOTS]; // NULL: none; atomic, acquire and release
	pthread_mutex_t lock; // of the tap thread's producer; not taken by workers
};

// The producer of a worker of this session, which begins a loop: it handles no received packet yet.
struct capture_producer *capture_producer_of(struct capture_session *session, unsigned worker);

// What a worker captures with from now on, a list; NULL: nothing. Called once per loop, after the
// worker has reported its quiescent state. `live` may be NULL.
static inline struct capture_producer *capture_producer(const struct capture_live *live,
	unsigned worker)
{
	struct capture_producer *list = NULL;

	for (unsigned i = 0; live && i < CAPTURE_SLOTS; i++) {
		struct capture_session *session =
			__atomic_load_n(&live->session[i], __ATOMIC_ACQUIRE);

		if (likely(!session))
			continue;
		struct capture_producer *producer = capture_producer_of(session, worker);

		producer->next = list;
		list = producer;
	}
	return list;
}

// Up to CAPTURE_BURST frames that were copied into the ring before it is known what happens to
// them. Bit i of the masks belongs to frame i.
struct capture_draft {
	uint64_t matched; // the filter wants them
	uint64_t copied;  // there was space for them
	uint64_t at[CAPTURE_BURST];
};

// Whether the session wants frames to which this happened.
bool capture_wants(const struct capture_producer *producer, const struct capture_event *event);
// Copies those frames that are sampled and match the filter. They are only read. What a former
// draft that was not published had copied is overwritten.
void capture_copy(struct capture_producer *producer, struct capture_draft *draft,
	enum capture_sampled sampled, struct rte_mbuf *const mbufs[], unsigned n);
// Hands over the first `n` frames of the draft; the others are forgotten. Returns the number of
// those that are missing because the ring was full. Does nothing if the session does not want them.
unsigned capture_publish(struct capture_producer *producer, const struct capture_draft *draft,
	const struct capture_event *event, unsigned n);

// Captures a frame that the tap thread drops. `live` may be NULL. Tap thread.
void capture_tap_drop(struct capture_live *live, unsigned slot, const struct rte_mbuf *mbuf,
	enum verdict verdict);
static inline void capture_tap(struct capture_live *live, const struct rte_mbuf *mbuf,
	enum verdict verdict)
{
	for (unsigned i = 0; live && i < CAPTURE_SLOTS; i++)
		if (unlikely(__atomic_load_n(&live->session[i], __ATOMIC_RELAXED) != NULL))
			capture_tap_drop(live, i, mbuf, verdict);
}
