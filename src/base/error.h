// An error message for users: what happened, to what, and what to do. Filled where the error is
// detected, printed in one place by the caller.
#pragma once

enum { ERROR_MAX = 512 };

struct error {
	char text[ERROR_MAX];
};

// Formats the message (truncated to ERROR_MAX - 1 bytes, control characters replaced by '?') and
// returns `err`, so that a function can `return error_set(c, -EINVAL, ...)`. `c` may be NULL. Any
// thread; the caller owns `c`.
int error_set(struct error *c, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
