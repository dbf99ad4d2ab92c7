// A whole forwarding table, as the files of this room share it. Control thread; lanes see `view`.
#pragma once

#include "fib/groups.h"
#include "fib/hops.h"
#include "fib/lookup.h"
#include "fib/publish.h"
#include "fib/retire.h"
#include "fib/rib.h"

struct fib {
	struct fib_view view;
	struct rib rib;
	struct hops hops;
	struct groups groups;
	struct publish4 publish4;
	struct publish6 publish6;
	struct retire retire;
	uint32_t n_routes[2]; // by enum rib_tree
	uint32_t n_neighbours;
	const struct lookups *lookups; // what this machine runs best
	bool has_huge_pages;
	bool is_small; // IPv4 in the form of IPv6, which starts at 256 KiB and not at 4 MiB
};
