// Sorting edits by prefix, those of one prefix staying in their order. Control thread.
#pragma once

#include "fib/publish.h"

// `other` has room for `n` too; returns which of the two holds the result.
struct edit *sort_edits(struct edit *edits, struct edit *other, size_t n);
