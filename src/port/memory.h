// Huge pages or ordinary ones. Pure.
#pragma once

#include "base/complaint.h"
#include "port/facts.h"

#include <stdbool.h>

struct memory_choice {
	bool huge;
	struct complaint warning; // text[0] == 0: nothing to warn of
};

// What a person asks for, against the machine: -ENOMEM with a complaint when it has not so much.
// Huge pages count beside the rest: in a container they may be more than what is told as its
// memory.
int memory_check(unsigned mib, const struct facts_ram *ram, const struct facts_pages *pages,
	struct complaint *why);

// `wanted` is enum port_huge. -ENOMEM with a complaint when huge pages are there or required but
// too few are free for `mib`.
int memory_choose(struct memory_choice *choice, unsigned wanted, unsigned mib,
	const struct facts_pages *pages, struct complaint *why);

// Ordinary pages are all taken at the start, if need be by ending other programs: -ENOMEM with a
// complaint when fewer than `mib` are to be had.
int memory_check_ordinary(unsigned mib, const struct facts_ram *ram, struct complaint *why);
