// One sentence for a person: what happened, to what, what to do. Filled where the mistake is found,
// printed at the rim.
#pragma once

enum { ERROR_MAX = 512 };

struct error {
	char text[ERROR_MAX];
};

// Fills the sentence (cut at ERROR_MAX - 1 bytes, control characters replaced by '?') and
// returns `err`, so that a finder can write `return complain(c, -EINVAL, ...)`. `c` may be NULL.
// Any thread; the caller owns `c`.
int error_set(struct error *c, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
