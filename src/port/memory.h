// Huge pages or ordinary ones. Pure.
#pragma once

#include "base/error.h"
#include "port/facts.h"

#include <stdbool.h>

struct memory_choice {
	bool huge;
	struct error warning; // text[0] == 0: nothing to warn of
};

// What a person asks for, against the machine: -ENOMEM with `error` set when it has not so much.
// Huge pages count beside the rest: in a container they may be more than what is told as its
// memory.
int memory_check(unsigned mib, const struct facts_ram *ram, const struct facts_pages *pages,
	struct error *error);

// `wanted` is enum port_huge. -ENOMEM with `error` set when huge pages are there or required but
// too few are free for `mib`.
int memory_choose(struct memory_choice *choice, unsigned wanted, unsigned mib,
	const struct facts_pages *pages, struct error *error);

// Ordinary pages are all taken at the start, if need be by ending other programs: -ENOMEM with a
// error when fewer than `mib` are to be had.
int memory_check_ordinary(unsigned mib, const struct facts_ram *ram, struct error *error);
