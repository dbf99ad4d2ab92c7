// A mirror with a real fib, synthetic events and ops that record their calls; fake routes.
// Tests only.
#pragma once

#include "netlink/mirror_inside.h"

#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { FAKE_LISTS = 16 };
enum { FAKE_TAP = 10 }; // ifindex of port 0's TAP interface; those of further ports follow

struct fake_linux {
	struct fib *fib;
	struct mirror *mirror;
	struct mirror_ops ops;
	struct mirror_port port[PORT_MAX]; // as last requested through the ops
	unsigned n_asked;                  // number of requests
	uint16_t mtu_max;                  // ports refuse a larger MTU
	uint32_t refused_mtu[PORT_MAX];    // of TAP interfaces, and what they were set back to
	uint16_t restored_mtu[PORT_MAX];
	bool keeps_mtu;                     // TAP interfaces cannot be set back
	char no_redirects[16], no_ipv6[16]; // interfaces with these sysctls set
	char has_mtu6[16];                  // the interface whose IPv6 MTU is mtu6
	unsigned mtu6;
	uint8_t tcx[FAKE_TAP + 2]; // by ifindex
	bool hides_lost_routes;    // sysctl
	uint8_t old_tables;        // the family with legacy iptables tables; 0: none
	unsigned n_dumps_requested;
	int dumps_filters; // of this interface; 0: of none
	uint8_t dumps_side;
	int linuxs; // an interface of which Linux has to have the frames before lists change
	bool refuses_filters;                 // workers get no list
	unsigned n_given;                     // changes of lists so far
	char given[FAKE_LISTS][ACL_NAME_MAX]; // lists that workers have
	size_t given_rules[FAKE_LISTS];
	unsigned given_effects[FAKE_LISTS]; // of their rules: an octal digit each, in their order
	uint32_t lost;             // kinds (event_kinds_have) for which there was no memory
	struct mac_table *macs;    // fake_macs
	bool is_bridged[PORT_MAX]; // ports whose frames go to a bridge
	uint8_t bridge_filters;    // enum mirror_filters
	bool has_guard;            // Linux has what it is asked to guard
	unsigned n_guarded;        // ports, as it was asked last
	struct guard_port guarded[8];
	bool is_judged;     // port 0 has an access list
	uint32_t storm_pps; // limit of each kind, on port 0
	bool guard_follows;
	struct event_link asked_link; // what it tells of an interface if it is asked
	const struct event *routers;  // and of groups; NULL: nothing
	int dump_error;               // as it answers then
	unsigned n_seen;              // hosts that Linux was told of
	struct mirror_seen seen;      // the latest
	bool in_dump;
	bool is_deaf; // discards all events
};

// The instance used by most tests. fake_setup opens it with two ports that forward, everything
// flushed.
extern struct fake_linux fake;
// The MAC table for those that are opened from now on; NULL: workers forward for no bridge.
extern struct mac_table *fake_macs;
int fake_setup(void **state);
int fake_teardown(void **state);

// Ports with MTU 1500 and the MAC addresses of their TAP interfaces; no kernel event delivered yet.
void fake_open(struct fake_linux *fake, unsigned n_ports);
void fake_close(struct fake_linux *fake);
// fake_bridges.c: sets those that concern bridges.
void fake_bridge_ops(struct mirror_ops *ops);
void fake_flush(struct fake_linux *fake); // until no work is left

// The default rules of every namespace, and forwarding enabled for "all".
void fake_basics(struct fake_linux *fake);
struct event_link fake_tap(unsigned port);                                      // up, "p0"
struct event_link fake_device(int ifindex, const char *name, const char *kind); // up
struct event_link fake_vlan(int ifindex, int lower, uint16_t vid);
struct event_link fake_vrf(int ifindex, const char *name, uint32_t table);

void fake_iface(struct fake_linux *fake, const struct event_link *iface);
// With forwarding enabled for both families.
void fake_router(struct fake_linux *fake, const struct event_link *iface);
void fake_taps(struct fake_linux *fake, unsigned n_ports); // all of them
void fake_conf(struct fake_linux *fake, int ifindex, uint8_t family, int forwarding);
void fake_rp_filter(struct fake_linux *fake, int ifindex, int value);
void fake_iface_gone(struct fake_linux *fake, int ifindex);
void fake_address(struct fake_linux *fake, int ifindex, const char *prefix, bool is_delete);
struct fake_seen {
	uint8_t mac; // 0: none
	uint16_t state;
};
void fake_neighbour(struct fake_linux *fake, int ifindex, const char *addr, struct fake_seen seen);
void fake_route(struct fake_linux *fake, const struct event_route *route, bool is_delete);
void fake_neighbour_gone(struct fake_linux *fake, int ifindex, const char *addr);
void fake_foreign(struct fake_linux *fake, enum event_kind kind, const struct event_foreign *thing,
	bool is_delete);
void fake_filter(struct fake_linux *fake, const struct event_filter *filter, bool is_delete);
// The number of a list that workers have, -1: they have not.
int fake_list(const struct fake_linux *fake, const char *name);
void fake_rule(struct fake_linux *fake, const struct event_rule *rule, bool is_delete);

struct wire_addr fake_addr(const char *text);
struct wire_mac fake_mac(uint8_t last);
// The fib interface of an ifindex; NULL: none.
const struct iface *fake_fib_iface(const struct fake_linux *fake, int ifindex);
// How many entries of this name are in the list of unsupported objects, and where the first one is.
unsigned fake_unsupported(const struct fake_linux *fake, const char *what, char where[64]);

// fake_routes.c, linked instead of the files of routes: records the calls that ifaces makes to
// them.
enum { FAKE_MAX_CALLS = 64 };

enum fake_call_kind { CALL_CHANGED, CALL_GONE, CALL_ADDRESS, CALL_IP4_GONE, CALL_VRF };

struct fake_call {
	enum fake_call_kind kind;
	int ifindex;    // calls about interfaces
	uint32_t table; // calls about VRFs; for addresses, the VRF
	uint16_t vrf;   // the result of ifaces_vrf_of_table()
	struct wire_addr addr;
};

extern struct fake_call fake_call[FAKE_MAX_CALLS];
extern unsigned fake_n_calls;
unsigned fake_calls(enum fake_call_kind kind, int ifindex); // number of calls so far
