// A file that is written beside its path and then replaces it, for results. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

// Calls `write` with a new file, which replaces `path` (absolute, chosen by others) once it is
// complete; whatever is at PATH.part stays as it is. `write` returns false with errno set if it
// fails. 0, or -errno with `error` set and `path` unchanged.
int new_file(const char *path, bool (*write)(void *ctx, FILE *file), void *ctx,
	struct error *error);
