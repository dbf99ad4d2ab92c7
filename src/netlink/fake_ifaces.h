// Fake interfaces whose state the test sets, and kernel route events parsed from text: for tests of
// routes in isolation. Tests only.
#pragma once

#include "netlink/routes_inside.h"

enum { FAKE_IFACES = 8, FAKE_FOREIGN = 7, FAKE_VRF_TABLE = 1000 };

// Interfaces 1 to 6 have fib interface ids 0 to 5 and are up; 7 is not a port of ours; others are
// unknown. Table FAKE_VRF_TABLE is VRF 1 while has_vrf is set.
struct fake {
	struct ifaces_state iface[FAKE_IFACES];
	bool has_vrf;
	unsigned n_dumps; // requested
	uint32_t lost;    // kinds (event_kinds_have) for which there was no memory
	struct mirror mirror;
	struct fib *fib;
	struct routes *routes;
};
extern struct fake fake;

void fake_open(void);
void fake_close(void);
// cmocka setup and teardown.
int fake_setup(void **state);
int fake_teardown(void **state);

// Delivers one event given as text in the syntax of `ip monitor`: "20.0.0.0/8 via 10.1.0.2 dev 1
// metric 5 replace", "local 10.0.0.1/32 dev 1 table 255", "20.0.0.0/8 nexthop via 10.1.0.2 dev 1
// weight 2 nexthop ...", "deleted 20.0.0.0/8 ...", "repeat 20.0.0.0/8 ..." (flags changed),
// "dump 20.0.0.0/8 ...", "id 1 via 10.1.0.2 dev 1", "id 10 group 1,5/2", "id 3 blackhole", "deleted
// id 1".
void fake_say(const char *words);
void fake_event(const char *words, struct event *out);
// Flushes until no work is left.
void fake_flush(void);
// The fib's result for an address in VRF 0 or another: "via 10.1.0.2 dev 1", "dev 1", "local",
// "linux", "nothing", "10.1.0.2 dev 1 weight 2, 10.2.0.2 dev 2 weight 1".
const char *fake_ask(const char *addr);
#define ASK(addr, answer) assert_string_equal(fake_ask(addr), answer)
const char *fake_ask_vrf(uint16_t vrf, const char *addr);

// Sets an interface up or down, or sets its carrier; routes are notified.
void fake_set_up(int ifindex, bool is_up);
void fake_set_carrier(int ifindex, bool has_carrier);
void fake_remove(int ifindex);
