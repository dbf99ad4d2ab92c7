// The word that a person may have meant. No thread, no state.
#pragma once

#include <stddef.h>

// The closest of `n` words to `word` ("" when none is close), by number of edits. `stride`: bytes
// from one word's pointer to the next.
const char *nearest_word(const char *word, const void *words, size_t n, size_t stride);
