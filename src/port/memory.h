// Selects huge or ordinary pages. Pure.
#pragma once

#include "base/error.h"
#include "port/facts.h"

#include <stdbool.h>

struct memory_choice {
	bool huge;
	struct error warning; // text[0] == 0: no warning
};

// Checks a configured amount of memory against the machine: -ENOMEM with `error` set if it has
// less. Huge pages are counted separately: in a container they may exceed the reported memory.
int memory_check(unsigned mib, const struct facts_ram *ram, const struct facts_pages *pages,
	struct error *error);

// `wanted` is enum port_huge. -ENOMEM with `error` set if huge pages are reserved or required, but
// fewer than `mib` are free.
int memory_choose(struct memory_choice *choice, unsigned wanted, unsigned mib,
	const struct facts_pages *pages, struct error *error);

// All ordinary pages are touched at start, which could make Linux kill other programs: -ENOMEM with
// `error` set if less than `mib` is available.
int memory_check_ordinary(unsigned mib, const struct facts_ram *ram, struct error *error);
