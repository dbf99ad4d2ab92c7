// Sorts edits by prefix; stable. Control thread.
#pragma once

#include "fib/publish.h"

// `other` has space for `n` edits, too; returns the array that holds the result.
struct edit *sort_edits(struct edit *edits, struct edit *other, size_t n);
