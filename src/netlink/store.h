// The kernel's routes in memory: places (a prefix in a table), each with a list of routes, best
// first. No allocation per route. Internal to routes. Control thread.
#pragma once

#include "wire/addr.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	uint8_t unused;
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
	uint8_t vrf; // IFACES_NO_VRF: workers have none
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

// The domain of a kernel table; created with vrf IFACES_NO_VRF if needed. -ENOSPC.
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
