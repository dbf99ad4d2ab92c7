// The window: a UNIX socket that speaks JSON-RPC 2.0, one message per line. Others fill its table
// of verbs. Control thread only.
#pragma once

#include "base/clock.h"
#include "base/complaint.h"
#include "stat/pauses.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ctl;

// A verb: `params` is an object (never NULL, borrowed). Returns a new reference to the result, or
// NULL with the complaint filled (it becomes the error's message, code -32000).
struct ctl_verb {
	const char *name;
	json_t *(*run)(void *house, const json_t *params, struct complaint *why);
};

// The verbs that can be called, and what is handed to each.
struct ctl_verbs {
	const struct ctl_verb *table;
	size_t n;
	void *house;
};

// Opens the socket at `path`: mode 0660, owned by `group` when not NULL; the last folder of the
// path is made (0755) when missing. A file left by a dead process is replaced; a living one's is
// "in use". `verbs` is copied, what it points to is borrowed until ctl_close. 0 or -errno with a
// complaint.
int ctl_open(struct ctl **out, const char *path, const char *group, const struct ctl_verbs *verbs,
	struct complaint *why);

// Whether ctl_open would find path and group as it wants them; touches nothing. A living program's
// socket is no mistake: it may be that of the program that is to read the file again. 0 or -errno
// with a complaint.
int ctl_check(const char *path, const char *group, struct complaint *why);

// Serves clients for at most `timeout_ms` (-1: no limit) or until something happened, a signal
// included; also returns when `wake_fd` (-1: none) becomes readable, which the caller then reads.
// Bounded per call, so that one client cannot starve the others. At most 32 clients, requests of at
// most 1 MiB; requests of a client that does not read its answers wait, and after 10 s it is cut
// off. A 33rd client is let in by closing the one that has been idle for longest, when that is more
// than 60 s (no whole request came, nothing was sent to it), else it is turned away with a
// sentence.
void ctl_serve(struct ctl *ctl, int wake_fd, int timeout_ms);

// Writes what was already answered (at most 0.1 s), closes clients, removes the socket file. NULL
// is no mistake.
void ctl_close(struct ctl *ctl);

// One line in (newline or not), one line out (malloc'ed, without newline; NULL for a notification):
// the pure middle, for tests and fuzzing.
char *ctl_answer(const struct ctl_verbs *verbs, const char *line, size_t bytes);

// --- For those who fill the table.

enum ctl_param_type { CTL_NUMBER, CTL_TEXT, CTL_LIST, CTL_REAL, CTL_FLAG };

// A parameter that a verb takes. `out` is a long, a const char *, a const json_t *, a double or a
// bool, and stays as it is when the parameter is absent.
struct ctl_param {
	const char *name;
	int type; // enum ctl_param_type
	bool is_wanted;
	long min, max; // CTL_NUMBER, CTL_REAL: the value; CTL_LIST: how many members
	void *out;
};

// Takes exactly the parameters in the rows: 0, or -EINVAL and one sentence for one that is unknown,
// missing, of another type, out of range.
int ctl_params_read(const json_t *params, const struct ctl_param rows[], size_t n,
	struct complaint *why);
// For verbs without parameters.
int ctl_params_none(const json_t *params, struct complaint *why);

// null for NULL; bytes that are no UTF-8 become '?'.
json_t *ctl_text_json(const char *text);

// A verb for people, and the answer of the verb help.
struct ctl_help {
	const char *name, *params, *text;
};
json_t *ctl_help_json(const struct ctl_help rows[], size_t n);

// A lane that notes its pauses; which times are some: stat/pauses.h.
struct ctl_lane {
	unsigned lane;
	int core;
	const struct pauses *pauses;
};

// The lanes of a program, and two moments by both clocks: when it started, and now.
struct ctl_gaps {
	const struct ctl_lane *lane;
	unsigned n_lanes;
	struct clock_pair born, now;
};
// The answer of the verb gaps, the oldest first; NULL with a complaint.
json_t *ctl_gaps_json(const struct ctl_gaps *gaps, const json_t *params, struct complaint *why);
