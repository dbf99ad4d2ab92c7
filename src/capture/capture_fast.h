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
	uint64_t tail LINE_ALIGNED; // atomic, release; written by the capture thread
} LINE_ALIGNED;

// Where the running capture is published. Workers may use a session until they report a quiescent
// state, all others only with the lock held.
struct capture_live {
	struct capture_session *session; // NULL: none; atomic, acquire and release
	pthread_mutex_t lock;            // of the tap thread's producer; not taken by workers
};

// The producer of a worker of this session, which begins a loop: it handles no received packet yet.
struct capture_producer *capture_producer_of(struct capture_session *session, unsigned worker);

// What a worker captures with from now on; NULL: nothing. Called once per loop, after the worker
// has reported its quiescent state. `live` may be NULL.
static inline struct capture_producer *capture_producer(const struct capture_live *live,
	unsigned worker)
{
	struct capture_session *session =
		live ? __atomic_load_n(&live->session, __ATOMIC_ACQUIRE) : NULL;

	return likely(!session) ? NULL : capture_producer_of(session, worker);
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
// Copies frames that match the filter. They are only read. What a former draft that was not
// published had copied is overwritten.
void capture_copy(struct capture_producer *producer, struct capture_draft *draft,
	struct rte_mbuf *const mbufs[], unsigned n);
// Hands over the first `n` frames of the draft; the others are forgotten. Returns the number of
// those that are missing because the ring was full. Does nothing if the session does not want them.
unsigned capture_publish(struct capture_producer *producer, const struct capture_draft *draft,
	const struct capture_event *event, unsigned n);

// Captures a frame that the tap thread drops. `live` may be NULL. Tap thread.
void capture_tap_drop(struct capture_live *live, const struct rte_mbuf *mbuf, enum verdict verdict);
static inline void capture_tap(struct capture_live *live, const struct rte_mbuf *mbuf,
	enum verdict verdict)
{
	if (unlikely(live && __atomic_load_n(&live->session, __ATOMIC_RELAXED) != NULL))
		capture_tap_drop(live, mbuf, verdict);
}
