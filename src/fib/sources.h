// Which addresses are our own, for workers that look at sources: kept as local IPv4 routes come and
// go, in whichever VRF. Control thread; workers read `shown`.
#pragma once

#include "fib/fib_fast.h"
#include "fib/rib.h"

enum { SOURCE_BITS = 32 * FIB_SOURCE_WORDS };

struct sources {
	struct fib_sources shown;
	uint32_t n_by_bit[SOURCE_BITS]; // addresses that need it
	uint32_t n_broad; // prefixes shorter than /32: while there are, all bits are set
};

// A prefix has become local, or is so no more. Those of IPv6 and of 127.0.0.0/8 do not count: Linux
// asks for no source of the one, and no source of the other gets so far.
void sources_add(struct sources *sources, const struct rib_prefix *prefix);
void sources_remove(struct sources *sources, const struct rib_prefix *prefix);
