// Test fixture for the whole pipeline: one worker with four fake devices and fake rings on a real
// table. No EAL. Frames are byte arrays; tests check afterwards where each one went.
#pragma once

#include "datapath/variant.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "rcu/rcu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	FAKE_PORTS = 4,
	FAKE_IFACES = 1024, // their indices are below
	FAKE_FRAMES = 2048, // received or injected between two calls of fake_reset
	FAKE_ROOM = 2048,
	FAKE_HEADROOM = 128,
	FAKE_VARIANTS = 3,
	FAKE_SMALL_BURST = 1,
	FAKE_PATIENCE = 8, // loops without a frame before the worker is stopped
};

struct bytes {
	uint16_t n;
	uint8_t at[FAKE_ROOM - FAKE_HEADROOM];
};

struct fake_device {
	struct rte_mbuf *waiting[FAKE_FRAMES], *sent[FAKE_FRAMES];
	unsigned n_waiting, n_read, n_sent;
	unsigned takes;        // number of frames that it still accepts
	uint64_t send_cycles;  // cycles that sending a burst takes
	uint64_t burst_cycles; // cycles that receiving a burst takes
	uint64_t stall_cycles; // length of the stall before frame stall_at
	unsigned stall_at;     // frame number
};

struct fake {
	struct worker worker;
	struct stats_worker stat;
	struct tap_worker tap;
	struct port_worker io;
	struct port_state states[STATS_MAX_PORTS];
	struct fake_device device[FAKE_PORTS];
	struct fib *fib;
	struct rcu *rcu;
	struct fib_live live;
	bool stop;
	unsigned n_idle, n_made;
	unsigned n_buffers; // that the pool of all mbufs still has; FAKE_FRAMES after a reset
	unsigned n_taken, n_returned; // buffers that the worker got from it, and those it freed
	unsigned n_split;             // of those that it got: only the beginning of a frame
	uint64_t loops_least;         // the worker runs at least this many loops
};
extern struct fake fake;
// The scalar variant, the variant chosen for this CPU, and that one again with a table marked as
// slow to look up, so that consecutive bursts (of FAKE_SMALL_BURST frames each) are pipelined.
// fake_open fills them in.
extern const struct datapath_variant *fake_variants[FAKE_VARIANTS];

// Opens the fixture. The table has, on each interface IFACE, a neighbour 10.IFACE.0.2 and
// 2001:db8:IFACE::2 with MAC 02:00:00:IFACE:00:02, and through it routes to 10.IFACE.0.0/16 and
// 2001:db8:IFACE::/48. Port MACs are 02:00:00:00:00:PORT+1.
int fake_open(void **state);
int fake_close(void **state);
// Clears all received, sent, counted and waiting frames; empties the rings; enables TAP interfaces;
// restores all interfaces.
void fake_reset(const struct datapath_variant *variant);
// Adds an interface with tags (0: none) in host order, TPID << 16 | VID. It has its port's MAC, and
// neighbours and routes as above in its VRF.
void fake_iface(uint16_t iface, uint8_t port, uint16_t vrf, const uint32_t tags[IFACE_MAX_TAGS]);
// Changes the settings of an interface.
void fake_set(uint16_t iface, const struct iface *settings);
void fake_route(uint16_t vrf, const char *prefix, const struct fib_hop *hop);

// A UDP packet from 192.0.2.1 or 2001:db8::1 to `dst`, TTL 64, in a frame to the port's MAC.
struct bytes frame_to(uint8_t port, const char *dst);
// Inserts a tag (TPID << 16 | TCI) before all others.
void frame_tag(struct bytes *frame, uint32_t tag);
// Corrects the IPv4 header checksum.
void frame_mend(struct bytes *frame);
// With a TTL, or hop limit, that is less by 1.
struct bytes forwarded_once(const struct bytes *frame);
// The expected output frame: to the neighbour on `iface`, with that interface's tags.
struct bytes frame_forwarded(const struct bytes *frame, uint16_t iface);

// An mbuf that contains the frame.
struct rte_mbuf *fake_mbuf(const struct bytes *frame);
// Queues a frame for reception on the port.
struct rte_mbuf *fake_receive(uint8_t port, const struct bytes *frame);
// Queues a frame as sent by Linux.
struct rte_mbuf *fake_inject(uint8_t port, const struct bytes *frame);
// Runs the worker until all frames are read, then stops it. Checks the packet accounting
// afterwards.
void fake_run(void);

// The next punted frame of a class; NULL: none.
struct rte_mbuf *fake_punted(enum punt_class class);
void expect_bytes(const struct rte_mbuf *mbuf, const struct bytes *frame);
// Checks that exactly one frame was sent, on this port, with these bytes.
void expect_sent(uint8_t port, const struct bytes *frame);
