// Shared by the files of routes: the store, next-hop sets, next-hop objects and their relations.
// Control thread.
#pragma once

#include "netlink/hop_sets.h"
#include "netlink/mirror_inside.h"
#include "wire/addr.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The kernel's routes in memory: places (a prefix in a table), each with a list of routes, best
// first. No allocation per route.

enum { STORE_MAX = 1 << 24, STORE_MAX_DOMAINS = 1 << 15 };

// Tables that are looked up in sequence, in the order of the kernel's default rules.
enum store_rank { RANK_LOCAL, RANK_MAIN, RANK_DEFAULT };

struct store_route {
	uint32_t place;
	uint32_t next; // next best route of its place, 0: none
	uint32_t hop_set, hop_set_next, hop_set_prev;
	uint32_t metric;
	uint8_t rank;       // enum store_rank
	uint8_t narrow;     // TOS (IPv4) or length of the source prefix (IPv6)
	uint8_t generation; // of the last dump, or event since, that reported it
	uint8_t pass;       // IPv6: of the last dump that reported it
};
static_assert(sizeof(struct store_route) == 28, "a million of them fit in 28 MB");

struct store_place {
	uint8_t addr[16];
	uint32_t chain;      // next place in the hash bucket
	uint32_t first;      // the best route, 0: none left
	uint32_t next_dirty; // link in the list of places to update in the fib
	uint16_t domain;
	uint8_t len;
	uint8_t is_ipv6 : 1;
	uint8_t is_dirty : 1;
	uint8_t is_in_fib : 1;
	uint8_t is_linux : 1; // in the fib as left to Linux
	uint8_t is_broad : 1; // has a local route for more than one host
	uint8_t is_used : 1;  // false: its number is free
};
static_assert(sizeof(struct store_place) == 32, "two fill a cache line");

// A kernel table, or the three tables of the default rules together (RANK_*), with main's number.
struct store_domain {
	uint32_t table;
	uint32_t n_places;
	uint16_t vrf; // IFACES_NO_VRF: workers have none
};

struct store {
	struct store_place *place; // 0 is none; the same for routes
	struct store_route *route;
	uint32_t top_place, top_route;   // numbers below have been used at least once
	uint32_t idle_place, idle_route; // lists of free numbers
	uint32_t n_places, n_routes[2];  // IPv4, IPv6
	uint32_t *bucket;
	uint32_t n_buckets;
	uint32_t first_dirty, last_dirty, n_dirty;
	struct store_domain *domain;
	uint32_t n_domains;
	size_t domain_capacity;
	uint32_t last_domain; // cache: most likely the next one, too
};

int store_open(struct store *store);
void store_close(struct store *store);
size_t store_bytes(const struct store *store);

// The domain of a kernel table; created with vrf IFACES_NO_VRF if needed. -ENOSPC,
// -ENOMEM.
int store_domain(struct store *store, uint32_t table);

// The place of a prefix (host bits clear), 0: none. / Same, created if needed; 0: no space.
uint32_t store_find(const struct store *store, uint16_t domain, const struct wire_prefix *prefix);
uint32_t store_place(struct store *store, uint16_t domain, const struct wire_prefix *prefix);
// Frees a place that has no routes and is not dirty.
void store_free_place(struct store *store, uint32_t place);
struct wire_prefix store_prefix(const struct store_place *place);

// Inserts a new route (place and next set) at the position `iface`: the place's `first` or a
// route's `next`. 0: no space. / Removes it.
uint32_t store_insert(struct store *store, uint32_t place, uint32_t *iface);
void store_remove(struct store *store, uint32_t route);

// Marks the place to be updated in the fib. / Takes the next such place and clears its mark, 0:
// none.
void store_touch(struct store *store, uint32_t place);
uint32_t store_next_dirty(struct store *store);

enum { ROUTES_BATCH = 8192 };

// Linux's multipath hash policies that workers follow.
enum { HASH_LAYER3, HASH_LAYER4 };

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
	uint8_t pass; // through Linux's IPv6 routes; a dump that is interrupted begins another
	uint32_t pass_sequence; // of its request
	bool is_dumping;
	bool lacks_broad; // there was no memory to list a broad local route
	bool lacks_seen;  // the same for an interface in `seen`
	bool is_short; // there was no memory for a batch of changes: they are applied in small ones
	uint32_t first_stale;
	uint32_t first_deferred, last_deferred;
	uint32_t batch;         // number of the current flush
	uint8_t hash_policy[2]; // IPv4, IPv6; see routes_follow_hash_policy
	uint8_t label_ttl;      // of labels for which no other is given; 0: that of the packet
	uint64_t n_refused;     // changes rejected by the fib
	uint64_t n_lost;        // routes dropped here because the store is full
	uint32_t *broad;        // places with is_broad
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

// There was no memory for a route or a next-hop object: another dump will cure that.
void routes_lost(const struct routes *routes, enum event_kind kind);

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

// After a dump: records the current state of all interfaces of routes that are not in `seen`.
void routes_see_all(struct routes *routes);

// The object has changed: updates its next-hop sets and those of the groups that contain it. / The
// object was deleted, together with the routes that refer to it and the groups of which it was the
// last member.
void routes_nexthop_changed(struct routes *routes, struct nexthop *nexthop);
void routes_nexthop_lost(struct routes *routes, struct nexthop *nexthop);

// The fib's table of hops or groups has no space for a set: its routes are left to Linux until
// there is.
void routes_defer(struct routes *routes, uint32_t hop_set);
void routes_retry(struct routes *routes); // retries

// Reads Linux's multipath hash policies: workers follow 0 and 1, and routes with several next hops
// are left to Linux under all others. Re-resolves the sets for which this makes a difference.
void routes_follow_hash_policy(struct routes *routes);

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

// Groups of equivalent routes within the list of a place, which is sorted in kernel order.

// Routes with the same rank, TOS or source length, and metric.
struct peers {
	uint32_t place;
	uint8_t rank, narrow;
	uint32_t metric;
};

static inline struct store_route *peers_at(struct routes *routes, uint32_t number)
{
	return &routes->store.route[number];
}

static inline struct hop_set *peers_hop_set(struct routes *routes, uint32_t number)
{
	return hop_sets_at(&routes->hop_sets, peers_at(routes, number)->hop_set);
}

// The position of the first peer, or where it would be inserted. / The position after the last
// peer, searching from `iface` on.
uint32_t *peers_first(struct routes *routes, const struct peers *peers);
uint32_t *peers_end(struct routes *routes, uint32_t *iface, const struct peers *peers);
bool peers_has(struct routes *routes, uint32_t number, const struct peers *peers);
// The peer that uses this next-hop set, searching from `first` on; 0: none.
uint32_t peers_find_hop_set(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t hop_set);
// Marks the route as reported by the kernel: the sweep after a dump keeps it.
void peers_seen(struct routes *routes, uint32_t route);
// Inserts a new route at `iface` that uses `hop_set`. If there is no space for it, the set is freed
// unless another route uses it. Returns the route, or 0.
uint32_t peers_put(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	uint32_t *iface);
// The kernel deleted a route that we do not have, while another one is in its place: either the
// route was lost earlier without a notification, or our state is wrong.
void peers_missed(struct routes *routes, const struct peers *peers);

// Route event handlers per address family.

// The requested next-hop set, created if needed; 0: out of memory (routes_lost).
uint32_t read_hop_set(struct routes *routes, const struct hop_set_request *request);

// routes->request was added with next-hop set `hop_set`, or was deleted.
void handle_add4(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event);
void handle_add6(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event);
void handle_delete4(struct routes *routes, const struct peers *peers);
void handle_delete6(struct routes *routes, const struct peers *peers);
