// The ways of a tunnel: the headers of packets to its remote end, one for each next hop by which
// that is reached. Built anew whenever one of these hops changes, and published as a whole.
// Control thread.
#pragma once

#include "fib/hops.h"
#include "fib/template.h"

struct ways {
	unsigned n;      // 0: there is none
	uint8_t verdict; // why
	struct fib_template way[FIB_WAYS];
};

// The ways of a hop into a tunnel, with its labels, by the hop hops->under[] of the tunnel; those
// of a group by weight, the same one several times if there are fewer than FIB_WAYS.
void ways_build(struct ways *ways, const struct hops *hops, const struct fib_hop *into);
// Whether these are published in a template; NULL: they are not.
bool ways_equal(const struct fib_template *published, const struct ways *ways);
// One template, or for several ways one that leads to them. NULL: there is no space.
const struct fib_template *ways_publish(struct blocks *pool, const struct ways *ways);
// The longest inner packet that all ways take.
uint16_t ways_mtu(const struct fib_template *published);
// The blocks of which any published template consists, each once; of NULL 0.
unsigned ways_parts(const struct fib_template *published);
const struct fib_template *ways_part(const struct fib_template *published, unsigned i);
