// A whole forwarding table, as the files of this room share it. Control thread; workers see `view`.
#pragma once

#include "fib/defer.h"
#include "fib/groups.h"
#include "fib/hops.h"
#include "fib/ifaces.h"
#include "fib/lookup.h"
#include "fib/publish.h"
#include "fib/rib.h"
#include "fib/sources.h"

struct fib {
	struct fib_view view;
	uint64_t open_vrfs; // a bit for each
	struct sources sources;
	struct rib rib;
	struct fib_ifaces ifaces;
	struct hops hops;
	struct groups groups;
	struct publish4 publish4;
	struct publish6 publish6;
	struct defer defer;
	uint32_t n_routes[RIB_TREES];
	uint32_t n_all_routes;
	uint32_t n_neighbours;
	const struct lookups *lookups; // what this machine runs best
	bool has_huge_pages;
	uint32_t n_untidy;                      // IPv4 changes since all was moved together
	uint32_t n_untidy_seen;                 // when fib_tidy was last called
	uint32_t n_quiet;                       // calls of it since then without a change
	struct fib_view vrf_view[FIB_MAX_VRFS]; // what view.vrfs leads to
};
