// Finds the word that the user probably meant. No thread, no state.
#pragma once

#include <stddef.h>

// The closest of `n` words to `word` ("" if none is close), by number of edits. `stride`: bytes
// from one word's pointer to the next.
const char *nearest_word(const char *word, const void *words, size_t n, size_t stride);
