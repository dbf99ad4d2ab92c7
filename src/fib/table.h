// A complete forwarding table, internal to this module. Control thread; workers read `view`.
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
	bool follows_linux; // without the built-in routes that Linux does not have
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
	const struct lookups *lookups; // the best ones for this machine
	bool has_huge_pages;
	uint32_t n_untidy;                      // IPv4 changes since the last compaction
	uint32_t n_untidy_seen;                 // its value when fib_tidy was last called
	uint32_t n_quiet;                       // calls of fib_tidy without a change in between
	struct fib_view vrf_view[FIB_MAX_VRFS]; // view.vrfs points here
};
