// The words of rules: protocols, effects, classes of fragments, families, TCP flags. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct word {
	const char *text;
	uint16_t value;
};

struct words {
	const struct word *row;
	size_t n;
};
extern const struct words acl_protocols, acl_effects, acl_fragments, acl_families, acl_flags,
	acl_truths;

// The value of a word of `length` bytes; -1: it is not one of them.
int words_find(const struct words *words, const char *text, size_t length);
// NULL: no word has this value.
const char *words_text(const struct words *words, unsigned value);
