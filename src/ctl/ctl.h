// The window: a UNIX socket that speaks JSON-RPC 2.0, one message per line. Others fill its table of verbs. Control thread only.
#pragma once

#include "base/complaint.h"

#include <jansson.h>
#include <stddef.h>

struct ctl;

// A verb: `params` is an object (never NULL, borrowed). Returns a new reference to the result, or NULL with the
// complaint filled (it becomes the error's message, code -32000).
struct ctl_verb {
	const char *name;
	json_t *(*run)(void *house, const json_t *params, struct complaint *why);
};

// Opens the socket at `path`: mode 0660, owned by `group` when not NULL. A file left by a dead process is replaced; a living one's
// is "in use". The verbs table and `house` (handed to each verb) are borrowed until ctl_close. 0 or -errno with a complaint.
int ctl_open(struct ctl **out, const char *path, const char *group, const struct ctl_verb *verbs, size_t n_verbs,
	void *house, struct complaint *why);

// Serves clients for at most `timeout_ms` or until something happened; also returns when `wake_fd` (-1: none) becomes
// readable, which the caller then reads. Bounded per call, so that one client cannot starve the others.
void ctl_serve(struct ctl *ctl, int wake_fd, int timeout_ms);

// Answers what was already run, closes clients, removes the socket file.
void ctl_close(struct ctl *ctl);

// One line in, one line out (malloc'ed, NULL for a notification): the pure middle, for tests and fuzzing.
char *ctl_answer(const struct ctl_verb *verbs, size_t n_verbs, void *house, const char *line, size_t bytes);
