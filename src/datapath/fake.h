// For tests of the whole walk: a worker with four devices and rings of our own making, on a real
// table. No EAL. Frames are bytes; what went where is asked afterwards.
#pragma once

#include "datapath/variant.h"
#include "fib/fib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	FAKE_PORTS = 4,
	FAKE_FRAMES = 2048, // received or injected between two fake_reset
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
	unsigned takes;        // frames that it has room for
	uint64_t send_cycles;  // that sending a burst takes
	uint64_t burst_cycles; // that receiving one takes
	uint64_t pause_cycles; // and that nothing happens, before frame number
	unsigned pause_at;     // this one
};

struct fake {
	struct worker worker;
	struct stats_worker stat;
	struct tap_worker tap;
	struct port_worker io;
	struct port_state states[FAKE_PORTS];
	struct fake_device device[FAKE_PORTS];
	struct fib *fib;
	struct fib_rcu *rcu;
	bool stop;
	unsigned n_idle, n_made;
	uint64_t loops_least; // the worker is not stopped before
};
extern struct fake fake;
// The scalar one, the one that this CPU gets, and that one with a table whose lookups wait, so that
// bursts follow each other in trains, of FAKE_SMALL_BURST frames each; fake_open fills them in.
extern const struct datapath_variant *fake_variants[FAKE_VARIANTS];

// The table of fake_open: on each of these links a neighbour 10.LINK.0.2 and 2001:db8:LINK::2 with
// MAC 02:00:00:LINK:00:02, and by it routes to 10.LINK.0.0/16 and 2001:db8:LINK::/48. Ports are
// 02:00:00:00:00:PORT+1.
int fake_open(void **state);
int fake_close(void **state);
// Nothing received, sent, counted or waiting; rings empty; TAP interfaces there; all links as they
// were.
void fake_reset(const struct datapath_variant *variant);
// A link with tags (0: none) in host order, TPID << 16 | VID; its MAC is its port's. Its neighbours
// and routes as above, in its VRF.
void fake_iface(uint16_t iface, uint8_t port, uint8_t vrf, const uint32_t tags[FIB_MAX_TAGS]);
// Changes what was told of a link.
void fake_set(uint16_t iface, const struct fib_iface *settings);
void fake_route(uint8_t vrf, const char *prefix, const struct fib_hop *hop);

// A UDP packet from 192.0.2.1 or 2001:db8::1 to `dst`, TTL 64, in a frame to the port's MAC.
struct bytes frame_to(uint8_t port, const char *dst);
// Puts a tag (TPID << 16 | TCI) before all others.
void frame_tag(struct bytes *frame, uint32_t tag);
// Makes the checksum of its IPv4 header good again.
void frame_mend(struct bytes *frame);
// The frame as it must leave: to the neighbour on `link`, with that link's tags.
struct bytes frame_forwarded(const struct bytes *frame, uint16_t iface);

// An mbuf of these bytes.
struct rte_mbuf *fake_mbuf(const struct bytes *frame);
// The port will receive it. / Linux has sent it.
struct rte_mbuf *fake_receive(uint8_t port, const struct bytes *frame);
struct rte_mbuf *fake_inject(uint8_t port, const struct bytes *frame);
// The worker runs until all is read, and ends. The law stands afterwards.
void fake_run(void);

// The next frame of a class; NULL: none.
struct rte_mbuf *fake_punted(enum punt_class class);
void expect_bytes(const struct rte_mbuf *mbuf, const struct bytes *frame);
// The only frame that has left, on this port, with these bytes.
void expect_sent(uint8_t port, const struct bytes *frame);
