// What workers do with received MPLS labels: an entry of 4 bytes for each of the 2^20, of which
// only what is touched takes memory: 4 MiB at most. It is all that is stored. Control thread;
// workers read `entry`.
#pragma once

#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <stddef.h>
#include <stdint.h>

struct labels {
	uint32_t *entry; // by label; NULL: none was ever set
	uint32_t n;      // labels that are set
	uint32_t end;    // labels from here on never were
};

void labels_close(struct labels *labels);
// Memory that workers may read.
size_t labels_bytes(const struct labels *labels);
