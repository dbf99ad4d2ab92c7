// A shaper: holds packets of subscribers until their rates, and those of the aggregates and ports
// above them, let them pass (docs/internals/shaping.md). It knows neither devices nor buffers:
// packets are struct shape_packet, which the caller embeds in its buffers. Times are ticks that the
// caller passes and that never run backwards. One thread, the owner, calls all functions but
// shape_terms_of; nothing here locks, allocates after shape_open, or makes system calls. Counters
// may be read by any thread.
//
// Several shapers may share their nodes and counters (shape_open_beside), each with an owner of its
// own: a port, an aggregate or a subscriber is used by one of them at a time, and shape_hand gives
// a subscriber to another one.
//
// The account: enqueued = sent + dropped by reason + moved + held, at any moment.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_LEAST_RATE 64000ull       // bit/s
#define SHAPE_MOST_RATE 400000000000ull // bit/s
#define SHAPE_LEAST_HZ 100000000ull
#define SHAPE_MOST_HZ 10000000000ull

enum {
	SHAPE_CLASSES = 4, // 0 is strict, the others share what it leaves by weight
	SHAPE_FLOWS = 16,  // queues of a fair class
	SHAPE_MOST_SUBSCRIBERS = 1 << 21,
	SHAPE_MOST_AGGREGATES = 1 << 17,
	SHAPE_MOST_PORTS = 512,
	SHAPE_PROFILES = 1 << 16,
	SHAPE_BYTES_BITS = 18,
	SHAPE_MOST_BYTES = (1 << SHAPE_BYTES_BITS) - 1, // of a packet
	SHAPE_MOST_WEIGHT = 256,                        // among the children of a parent
	SHAPE_WEIGHT_BYTES = 96,      // that a weight of 1 gives a child per round
	SHAPE_MOST_CLASS_WEIGHT = 64, // among the classes of a subscriber
	SHAPE_BURST = 64,             // most packets of a call
	SHAPE_DELAYS = 8,             // of the histogram
	SHAPE_LEAST_BURST_US = 16,    // that a burst must last at its rate: two slots of the wheel
	SHAPE_MOST_BURST_MS = 400,
};

enum shape_drop {
	SHAPE_DROP_CODEL,   // the delay was too long for too long (RFC 8289)
	SHAPE_DROP_LIMIT,   // the subscriber holds as much as its profile allows
	SHAPE_DROP_POOL,    // the shaper has no space, or the subscriber has its share of it
	SHAPE_DROP_FLUSHED, // by shape_flush
	SHAPE_DROPS_OF_CLASS,
	SHAPE_DROP_UNKNOWN = SHAPE_DROPS_OF_CLASS, // there is no such subscriber
	SHAPE_DROPS,
};

// A packet as the shaper knows it. Owner: the shaper, from shape_enqueue until it is sent or
// dropped.
struct shape_packet {
	struct shape_packet *next;
	uint64_t since; // ticks: when it was enqueued
	// By the caller:
	uint32_t bytes : SHAPE_BYTES_BITS; // as the rates count them; at least 1
	uint32_t class : 2;                // 0 to SHAPE_CLASSES - 1
	uint32_t subflow : 8;              // a hash of the packet's flow, for fair classes
	uint32_t is_first : 1;             // for the caller
	uint32_t has_ecn : 1;              // it may be marked in place of being dropped
	uint32_t is_marked : 1; // false; the shaper sets it: its ECN is to say "congestion"
	uint32_t for_caller;
};

// Packets that the shaper drops. The caller empties it (n = 0) before each call.
struct shape_drops {
	unsigned n;
	struct {
		struct shape_packet *packet;
		enum shape_drop reason;
	} drop[4 * SHAPE_BURST];
};

struct shape_config {
	uint64_t hz; // ticks per second, SHAPE_LEAST_HZ to SHAPE_MOST_HZ
	uint32_t n_ports, n_aggregates, n_subscribers; // numbers from 0
	uint32_t most_held;                            // packets
	uint16_t mtu;                                  // bytes as the rates count them
};

// How a subscriber's classes share its rate, and how much they may hold.
struct shape_profile {
	uint8_t strict_percent;        // of the rate, which class 0 may have; 1 to 100
	uint8_t weight[SHAPE_CLASSES]; // 1 to SHAPE_MOST_CLASS_WEIGHT; [0] has no meaning
	bool is_fair; // FQ-CoDel (RFC 8290) in each class; otherwise one queue per class
	// No CoDel, and no limit as a time: a packet that would be above a limit is dropped itself.
	// As Linux's queues below a token bucket: what may leave at once is not held.
	bool is_fifo;
	bool marks;                      // CoDel marks packets with ECN
	uint32_t target_us, interval_us; // CoDel's; a target is at least one MTU at the rate
	uint32_t limit_us;               // held bytes at the rate, but at least 10 MTU
	uint32_t limit_bytes;            // held bytes, whatever the rate; at least 10 MTU, or FIFO
	uint32_t limit_packets;          // held packets; 0: no limit
};

enum shape_level { SHAPE_PORT, SHAPE_AGGREGATE, SHAPE_SUBSCRIBER };

// What is set of a port, an aggregate or a subscriber.
struct shape_setting {
	uint64_t bits;    // per second, SHAPE_LEAST_RATE to SHAPE_MOST_RATE
	uint64_t burst;   // bytes: at least one MTU and weight * SHAPE_WEIGHT_BYTES, and at least
	                  // SHAPE_LEAST_BURST_US and at most SHAPE_MOST_BURST_MS at the rate
	uint32_t parent;  // of an aggregate: port; of a subscriber: aggregate
	uint16_t weight;  // 1 to SHAPE_MOST_WEIGHT, among the children of the parent
	uint16_t profile; // of a subscriber
};

// A setting as the owner computes with it.
struct shape_terms {
	uint64_t per_byte; // ticks << SHAPE_FRACTION
	uint32_t burst;    // ticks
	uint32_t parent;
	uint16_t quantum; // bytes
	uint16_t profile;
	bool owes; // a new one begins with a debt of a burst
};

// Of a class of a subscriber. 32-bit counters overflow to 0. Written by the owner.
struct shape_class_stats {
	uint64_t packets, bytes; // sent
	uint32_t dropped[SHAPE_DROPS_OF_CLASS];
	uint32_t delays[SHAPE_DELAYS]; // sent packets by delay: shape_delay_bound
};

struct shape_totals {
	uint64_t enqueued, sent, held; // packets; enqueued: all that the caller has passed
	uint64_t moved;                // by shape_moved
	uint64_t dropped[SHAPE_DROPS];
};

struct shape;

// 0, or -EINVAL or -ENOMEM with `error` set. Table memory is reserved, and used as subscribers and
// packets come.
int shape_open(struct shape **shape, const struct shape_config *config, uint64_t now,
	struct error *error);
// The same for another owner, with the nodes and counters of `first`, but queues of its own.
int shape_open_beside(struct shape **shape, struct shape *first, uint64_t now, struct error *error);
// Packets that are held are the caller's concern: flush first. The first one last.
void shape_close(struct shape *shape);
// Bytes of tables that have been used so far.
uint64_t shape_memory(const struct shape *shape);

// 0, or -EINVAL with `error` set. A change is in force for the next packet; packets stay.
int shape_set_profile(struct shape *shape, uint16_t number, const struct shape_profile *profile,
	struct error *error);
// Checks a setting and computes its terms. 0, or -EINVAL with `error` set. Any thread.
int shape_terms_of(const struct shape_config *config, const struct shape_setting *setting,
	enum shape_level level, struct shape_terms *terms, struct error *error);

// Adds or changes. What a bucket holds, or owes, stays the same in bytes: what fits into the new
// burst. A new one has no tokens, or a debt. Packets stay, also if the parent changes. 0, -ENOENT:
// no such parent or profile; -EINVAL: no such number.
int shape_set(struct shape *shape, enum shape_level level, uint32_t number,
	const struct shape_terms *terms, uint64_t now);
// 0, -ENOENT, or -EBUSY: it has children, or holds packets.
int shape_remove(struct shape *shape, enum shape_level level, uint32_t number);

// Takes packets that the subscriber holds out of their queues, at most `most`, each flow in its
// order, and writes them to `out`; they count as held until shape_moved. Returns their number. If
// it is less than `most`, the subscriber is away: it keeps what its bucket holds or owes, and
// another shaper, or this one again, may shape_set it.
unsigned shape_hand(struct shape *shape, uint32_t subscriber, struct shape_packet *out[],
	unsigned most);
// `n` packets that shape_hand, or shape_hold, has counted as held are another one's now. / The
// caller holds `n` more on the way to another shaper.
void shape_moved(struct shape *shape, unsigned n);
void shape_hold(struct shape *shape, unsigned n);

// A bit for each subscriber[i] that there is not, or that is away. `n`: at most SHAPE_BURST.
uint64_t shape_missing(const struct shape *shape, const uint32_t subscriber[], unsigned n);
// Enqueues packet[i] of subscriber[i]. `n`: at most SHAPE_BURST. Drops at most four per packet,
// which may be others of the same subscriber.
void shape_enqueue(struct shape *shape, uint64_t now, const uint32_t subscriber[],
	struct shape_packet *const packet[], unsigned n, struct shape_drops *drops);

// How much to dequeue, and from where.
struct shape_round {
	uint64_t now;
	uint32_t port;
	unsigned most; // packets, at most SHAPE_BURST
};

// Returns how many packets `sent` has then, in order. The work is bounded by `most` and by the
// space in `drops`: if fewer packets come than asked for, others may still be due.
unsigned shape_dequeue(struct shape *shape, const struct shape_round *round,
	struct shape_packet *sent[], struct shape_drops *drops);

// Drops packets that the subscriber holds, as far as `drops` has space. Returns whether none are
// left.
bool shape_flush(struct shape *shape, uint32_t subscriber, struct shape_drops *drops);
// Of all subscribers of a port, some at a time: `*next` is 0 at first. Returns whether it is done.
bool shape_flush_port(struct shape *shape, uint32_t port, uint32_t *next,
	struct shape_drops *drops);

const struct shape_class_stats *shape_class_stats(const struct shape *shape, uint32_t subscriber,
	unsigned class);
const struct shape_totals *shape_totals(const struct shape *shape);
// Sets the counters of a subscriber to 0.
void shape_clear_stats(struct shape *shape, uint32_t subscriber);
// Packets that a subscriber holds. Any thread.
unsigned shape_held(const struct shape *shape, uint32_t subscriber);
// delays[i] counts delays of fewer ticks than this (and not fewer than of i - 1), the last one all
// others. Each bound is four times the one before; the first is 64 to 128 us.
uint64_t shape_delay_bound(const struct shape *shape, unsigned i);
