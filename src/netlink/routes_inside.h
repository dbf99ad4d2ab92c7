// What the files of routes share: the store, the ways, the next-hop objects, and how they hang
// together. Control thread.
#pragma once

#include "netlink/hop_sets.h"
#include "netlink/ifaces.h"
#include "netlink/nexthops.h"
#include "netlink/routes.h"
#include "netlink/store.h"

enum { ROUTES_BATCH = 8192 };

// An interface as it was when routes heard of it last.
struct routes_seen {
	int ifindex;
	bool is_up, has_carrier;
	bool has_lost_nexthops; // when its carrier went
};

struct routes {
	struct mirror *mirror;
	struct store store;
	struct hop_sets hop_sets;
	struct nexthops nexthops;
	uint32_t nexthop_sequence, nexthop_port_id; // of the last event of a next-hop object
	uint8_t generation;
	bool is_dumping;
	uint32_t first_stale;
	uint32_t first_deferred, last_deferred;
	uint32_t batch;     // number of the flush that is at work
	uint64_t n_refused; // changes that the fib did not take
	uint64_t n_lost;    // routes that found no room here
	uint32_t *broad;    // places with is_broad
	uint32_t n_broad, room_broad;
	struct routes_seen *seen;
	uint32_t n_seen, room_seen;
	uint64_t look_again_ns;               // some route's lifetime is over then; 0: none has one
	struct fib_change *changes;           // ROUTES_BATCH
	uint32_t *changed, *changed_hop_set;  // their places and ways
	struct hop_set_request request, rest; // being filled
};

// Lets a route lead a way, in place of the one that it has led so far (0: none).
void routes_lead(struct routes *routes, uint32_t route, uint32_t hop_set);
// The route is gone from Linux.
void routes_drop(struct routes *routes, uint32_t route);
void routes_drop_hop_set(struct routes *routes, uint32_t hop_set); // all routes that lead it
// What was resolved of a way does not hold any more.
void routes_stale(struct routes *routes, uint32_t hop_set);
// Frees a way that no route leads.
void routes_free_hop_set(struct routes *routes, uint32_t hop_set);
// Keeps the list of broad local routes, after a place has changed.
void routes_poll_broad(struct routes *routes, uint32_t place);

// The object has changed: its ways, and those of groups that it is in. / It is gone, and with it
// the routes that name it, and groups of which it was the last member.
void routes_nexthop_changed(struct routes *routes, struct nexthop *nexthop);
void routes_nexthop_lost(struct routes *routes, struct nexthop *nexthop);

// A way that finds no room in the fib's table of hops or groups: Linux's until there is some.
void routes_defer(struct routes *routes, uint32_t hop_set);
void routes_feed(struct routes *routes); // looks whether there is

// Where a way leads in the fib's terms; good for this batch.
const struct hop_set *routes_resolve(struct routes *routes, uint32_t hop_set);

// What the fib is to hold of a place.
struct routes_choice {
	bool is_nothing; // no route, or none that is usable
	uint8_t reason;  // enum hop_set_reason; other than HOP_SET_OK: hop is FIB_LINUX
	uint32_t hop_set;
	struct fib_hop hop;
};
void routes_choose(struct routes *routes, uint32_t place, struct routes_choice *out);
// Never in the fib: the built-in answer (to Linux, by a class of its own) stays.
bool routes_is_builtin(const struct store_place *place);
