// Shared by the files of routes: the store, next-hop sets, next-hop objects and their relations.
// Control thread.
#pragma once

#include "netlink/hop_sets.h"
#include "netlink/ifaces.h"
#include "netlink/nexthops.h"
#include "netlink/routes.h"
#include "netlink/store.h"

enum { ROUTES_BATCH = 8192 };

// The state of an interface as last reported to routes.
struct routes_seen {
	int ifindex;
	bool is_up, has_carrier;
	bool has_lost_nexthops; // when its carrier was lost
};

struct routes {
	struct mirror *mirror;
	struct store store;
	struct hop_sets hop_sets;
	struct nexthops nexthops;
	uint32_t nexthop_sequence, nexthop_port_id; // of the last next-hop object event
	uint8_t generation;
	bool is_dumping;
	uint32_t first_stale;
	uint32_t first_deferred, last_deferred;
	uint32_t batch;     // number of the current flush
	uint64_t n_refused; // changes rejected by the fib
	uint64_t n_lost;    // routes dropped here for lack of space
	uint32_t *broad;    // places with is_broad
	uint32_t n_broad;
	size_t broad_capacity;
	struct routes_seen *seen;
	uint32_t n_seen;
	size_t seen_capacity;
	uint64_t look_again_ns;               // the next route lifetime ends at this time; 0: no
	                                      // route has one
	struct fib_change *changes;           // ROUTES_BATCH
	uint32_t *changed, *changed_hop_set;  // their places and next-hop sets
	struct hop_set_request request, rest; // scratch space
};

// Makes a route use a next-hop set instead of its current one (0: none).
void routes_lead(struct routes *routes, uint32_t route, uint32_t hop_set);
// Removes a route that the kernel has deleted.
void routes_drop(struct routes *routes, uint32_t route);
void routes_drop_hop_set(struct routes *routes, uint32_t hop_set); // all routes that use it
// The resolved hop of a set is no longer valid.
void routes_stale(struct routes *routes, uint32_t hop_set);
// Frees a set that no route uses.
void routes_free_hop_set(struct routes *routes, uint32_t hop_set);
// Updates the list of broad local routes after a place has changed.
void routes_poll_broad(struct routes *routes, uint32_t place);

// The object has changed: updates its next-hop sets and those of the groups that contain it. / The
// object was deleted, together with the routes that refer to it and the groups of which it was the
// last member.
void routes_nexthop_changed(struct routes *routes, struct nexthop *nexthop);
void routes_nexthop_lost(struct routes *routes, struct nexthop *nexthop);

// The fib's table of hops or groups has no space for a set: its routes are left to Linux until
// there is.
void routes_defer(struct routes *routes, uint32_t hop_set);
void routes_retry(struct routes *routes); // retries

// Resolves a set to a fib hop; valid for this batch.
const struct hop_set *routes_resolve(struct routes *routes, uint32_t hop_set);

// The desired fib content for a place.
struct routes_choice {
	bool is_nothing; // no usable route
	uint8_t reason;  // enum hop_set_reason; if not HOP_SET_OK, hop is FIB_LINUX
	uint32_t hop_set;
	struct fib_hop hop;
};
void routes_choose(struct routes *routes, uint32_t place, struct routes_choice *out);
// Never put in the fib: the built-in result (to Linux, with its own class) is kept.
bool routes_is_builtin(const struct store_place *place);
