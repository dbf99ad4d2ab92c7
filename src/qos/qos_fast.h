// The part of subscribers that workers use: finds them by address or interface, and polices their
// packets. No function here allocates, locks or makes system calls.
#pragma once

#include "base/bits.h"
#include "police/police_fast.h"
#include "qos/shape.h"
#include "stats/stats.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	QOS_MAX = 1 << 20, // subscribers; their indices are below
	QOS_NONE = 0xffffffff,
	QOS_LENGTHS = 4, // prefix lengths of a family in use at a time
	QOS_LINE_KEYS = 5,
	QOS_KEEP = 255, // this DSCP or 802.1p priority stays
	QOS_PROFILES = 1 << 16,
	QOS_IFACES = 1 << 16, // any number of an interface is below
};

enum qos_direction { QOS_UP, QOS_DOWN, QOS_DIRECTIONS };
enum qos_family { QOS_IP4, QOS_IP6, QOS_FAMILIES };

// A line of a hash table of 64-bit keys. An entry that was removed is not used again before a
// grace period has passed; its key is then set to QOS_NO_KEY, which no entry has.
struct qos_line {
	uint64_t key[QOS_LINE_KEYS]; // atomic
	uint32_t tag[QOS_LINE_KEYS]; // atomic: kind and value; 0: free
	uint32_t is_over;            // atomic: further keys are, or were, in the next line
} LINE_ALIGNED;
#define QOS_NO_KEY UINT64_MAX

enum { QOS_VALUE_BITS = 24, QOS_DEAD = 255 }; // kind 255: removed

// Lines: a power of two.
struct qos_index {
	uint64_t mask; // number of lines - 1
	uint64_t n_bytes;
	uint64_t n_over; // lines with is_over, which stays; control thread
	struct qos_line line[];
};

// Counters of one subscriber and direction, by enum police_colour.
struct qos_count {
	uint64_t packets[POLICE_COLOURS], bytes[POLICE_COLOURS];
} LINE_ALIGNED;

// What becomes of the packets of a colour.
struct qos_act {
	bool drops;
	uint8_t dscp, priority; // QOS_KEEP: as they are
};

enum qos_counts { QOS_IP, QOS_ETHERNET, QOS_WIRE };

// A profile as workers read it; never changed while they may.
struct qos_terms {
	uint8_t marker; // enum police_marker
	uint8_t counts; // enum qos_counts
	int16_t overhead;
	uint16_t mpu; // bytes that a frame counts for at least
	bool is_aware;
	bool shapes, is_fair;      // packets go through queues; by flow
	bool by_priority;          // 802.1p decides the class of a packet with a VLAN tag
	uint16_t priority_classes; // two bits for each priority
	uint64_t dscp_classes[2];  // two bits for each DSCP, 32 in a word
	struct qos_act act[POLICE_COLOURS];
	uint64_t yellow, red; // colour-aware: a bit for each DSCP
};

// By index of subscriber. The owner's word of a bucket is the number of its profile; 0: none.
struct qos_buckets {
	struct police *commit, *excess;
};

struct qos_view {
	const struct qos_index *index;             // atomic
	uint8_t n_lengths[QOS_FAMILIES];           // atomic
	uint8_t length[QOS_FAMILIES][QOS_LENGTHS]; // atomic
	const uint32_t *of_iface;                  // by interface, QOS_IFACES of them; atomic
	const uint32_t *of_tc;                     // the same, of Linux's qdiscs; atomic
	bool has_ifaces, has_tc, has_subscribers;  // atomic
	struct qos_buckets buckets[QOS_DIRECTIONS];
	const struct qos_terms *terms; // by number of profile
};

// What workers have: counters by worker and direction.
struct qos_live {
	struct qos_view view;
	struct qos_shapers *shapers; // NULL: no profile shapes
	struct qos_count *count[STATS_MAX_WORKERS][QOS_DIRECTIONS];
};

// Whether there is any subscriber. Worker.
static inline bool qos_is_on(const struct qos_view *view)
{
	return __atomic_load_n(&view->has_subscribers, __ATOMIC_RELAXED);
}

// The subscriber of an interface, QOS_NONE: none. Worker.
static inline uint32_t qos_of_iface(const struct qos_view *view, uint16_t iface)
{
	return __atomic_load_n(&view->of_iface[iface], __ATOMIC_ACQUIRE); // partner: qos_bind
}

// Whether any interface has a qdisc of Linux, / the subscriber that is that of an interface,
// QOS_NONE: none. Worker.
static inline bool qos_has_tc(const struct qos_view *view)
{
	return __atomic_load_n(&view->has_tc, __ATOMIC_RELAXED);
}
static inline uint32_t qos_of_tc(const struct qos_view *view, uint16_t iface)
{
	return __atomic_load_n(&view->of_tc[iface], __ATOMIC_ACQUIRE); // partner: qos_bind_tc
}

// Finds the subscribers of the packets in `mask` by address: addr[i] is an IPv4 address times 2^32,
// or the first 64 bits of an IPv6 address, host order. Writes subscriber[i] of those found, and
// returns a bit for each. Worker.
uint64_t qos_find(const struct qos_view *view, enum qos_family family, const uint64_t addr[],
	uint64_t mask, uint32_t subscriber[]);
// Fetches what qos_police will read and write. Worker.
void qos_prefetch(const struct qos_live *live, unsigned worker, enum qos_direction direction,
	const uint32_t subscriber[], uint64_t mask);

// Packets to be policed, at most POLICE_BURST; only those in `mask` count.
struct qos_packets {
	uint64_t mask;
	uint32_t subscriber[POLICE_BURST];
	uint32_t ip_bytes[POLICE_BURST]; // of its IP packets
	uint32_t frames[POLICE_BURST];   // in which it leaves, at least 1
	uint8_t dscp[POLICE_BURST];      // as it leaves, unless it is marked here
};

// A bit for each packet: dropped; to be shaped; with a DSCP or a priority to be written.
struct qos_verdicts {
	uint64_t dropped, has_dscp, has_priority, shaped;
	uint8_t dscp[POLICE_BURST], priority[POLICE_BURST];
	// Only of those in `shaped`, which are to go through the queues of their subscriber.
	uint32_t cost[POLICE_BURST];                 // bytes
	const struct qos_terms *terms[POLICE_BURST]; // until the next grace period
};

// Gives packets colours, counts them and says what becomes of each. `now`: in ticks of the rates.
// `is_traced`: no token is taken. Worker.
struct qos_basis {
	const struct qos_live *live;
	unsigned worker;
	enum qos_direction direction;
	bool is_traced;
	uint64_t now;
};
void qos_police(const struct qos_basis *basis, const struct qos_packets *packets,
	struct qos_verdicts *out);

// The class of a packet with this DSCP. / With this 802.1p priority, if terms->by_priority.
static inline unsigned qos_class_of_dscp(const struct qos_terms *terms, uint8_t dscp)
{
	return terms->dscp_classes[dscp >> 5 & 1] >> 2 * (dscp & 31) & 3;
}
static inline unsigned qos_class_of_priority(const struct qos_terms *terms, uint8_t priority)
{
	return terms->priority_classes >> 2 * (priority & 7) & 3;
}

// --- The shapers, each of one worker, its owner (docs/internals/shaping.md). Only the owner calls
// functions without another word.

enum {
	QOS_LINKS = 256, // numbers of aggregates without a parent, from 1
	QOS_MOST_SHAPERS = 64,
	QOS_SHAPED = QOS_DIRECTIONS * QOS_MAX, // shaped numbers are below
};

// The number of a subscriber's queues in one direction.
static inline uint32_t qos_shaped(enum qos_direction direction, uint32_t subscriber)
{
	return direction == QOS_UP ? QOS_MAX + subscriber : subscriber;
}

// How many there are, and one of them; the id of the worker that owns it. Any thread.
unsigned qos_n_shapers(const struct qos_shapers *all);
struct qos_shaper *qos_shaper(const struct qos_shapers *all, unsigned i);
unsigned qos_shaper_owner(const struct qos_shaper *shaper);
// Which one has the queues of a shaped number: only it changes that. Worker.
unsigned qos_shaper_of(const struct qos_shapers *all, uint32_t shaped);
// Now, in ticks. Worker.
uint64_t qos_shapers_now(const struct qos_shapers *all);
// How often a port with this index was removed: changes before another port gets the index. Worker.
uint8_t qos_shapers_life(const struct qos_shapers *all, uint8_t port);

// Between begin and end the control thread waits for settings to be in force.
void qos_shaper_begin(struct qos_shaper *shaper);
void qos_shaper_end(struct qos_shaper *shaper);
// Whether there are settings that are not in force. / Applies some of them; drops packets of
// subscribers who are not shaped any more, as far as `drops` has space. Those of a subscriber who
// goes to another shaper are moving then: nothing further is applied until they have been taken.
bool qos_shaper_has_news(const struct qos_shaper *shaper);
void qos_shaper_follow(struct qos_shaper *shaper, uint64_t now, struct shape_drops *drops);

// Packets on the way to another shaper; `since` is their shaped number. They count as held. Its
// index, or -1: none may be taken now. / Takes at most `most`; then they are no more held here. /
// Adds a packet for the same shaper, behind those that move. False: it is to be dropped, as there
// are too many, until none is left.
int qos_shaper_moving_to(const struct qos_shaper *shaper);
unsigned qos_shaper_take_moving(struct qos_shaper *shaper, struct shape_packet *out[],
	unsigned most);
bool qos_shaper_add_moving(struct qos_shaper *shaper, struct shape_packet *packet);

// Packets of these shaped numbers, which this shaper has, are to come: applies settings that they
// need. After it others may have some of them. `n`: at most SHAPE_BURST.
void qos_shaper_expect(struct qos_shaper *shaper, uint64_t now, const uint32_t shaped[],
	unsigned n);
// As shape_enqueue; after qos_shaper_expect.
void qos_shaper_put(struct qos_shaper *shaper, uint64_t now, const uint32_t shaped[],
	struct shape_packet *const packet[], unsigned n, struct shape_drops *drops);
// Takes packets that may be sent, at most SHAPE_BURST; the links take turns. Bounded work. Returns
// the number.
unsigned qos_shaper_take(struct qos_shaper *shaper, uint64_t now, struct shape_packet *sent[],
	struct shape_drops *drops);
// Drops what is held, some at a time: `*next` is 0 at first. Returns whether it is done.
bool qos_shaper_flush(struct qos_shaper *shaper, uint32_t *next, struct shape_drops *drops);
// Packets held, and dropped by reason. Any thread.
const struct shape_totals *qos_shaper_totals(const struct qos_shaper *shaper);
