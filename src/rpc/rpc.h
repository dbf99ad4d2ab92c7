// The window: a UNIX socket that speaks JSON-RPC 2.0, one message per line. Others fill its table
// of methods. Control thread only.
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "stats/pauses.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct rpc;

// A method: `params` is an object (never NULL, borrowed). Returns a new reference to the result, or
// NULL with the error filled (it becomes the error's message, code -32000).
struct rpc_method {
	const char *name;
	json_t *(*run)(void *ctx, const json_t *params, struct error *error);
};

// The methods that can be called, and what is handed to each.
struct rpc_methods {
	const struct rpc_method *table;
	size_t n;
	void *ctx;
};

// Opens the socket at `path`: mode 0660, owned by `group` when not NULL; the last folder of the
// path is made (0755) when missing. A file left by a dead process is replaced; a living one's is
// "in use". `methods` is copied, what it points to is borrowed until rpc_close. 0 or -errno with a
// error.
int rpc_open(struct rpc **out, const char *path, const char *group,
	const struct rpc_methods *methods, struct error *error);

// Whether rpc_open would find path and group as it wants them; touches nothing. A living program's
// socket is no mistake: it may be that of the program that is to read the file again. 0 or -errno
// with `error` set.
int rpc_check(const char *path, const char *group, struct error *error);

// Serves clients for at most `timeout_ms` (-1: no limit) or until something happened, a signal
// included; also returns when `wake_fd` (-1: none) becomes readable, which the caller then reads.
// Bounded per call, so that one client cannot starve the others. At most 32 clients, requests of at
// most 1 MiB; requests of a client that does not read its answers wait, and after 10 s it is cut
// off. A 33rd client is let in by closing the one that has been idle for longest, when that is more
// than 60 s (no whole request came, nothing was sent to it), else it is turned away with a
// sentence.
void rpc_serve(struct rpc *rpc, int wake_fd, int timeout_ms);

// Writes what was already answered (at most 0.1 s), closes clients, removes the socket file. NULL
// is no mistake.
void rpc_close(struct rpc *rpc);

// One line in (newline or not), one line out (malloc'ed, without newline; NULL for a notification):
// the pure middle, for tests and fuzzing.
char *rpc_answer(const struct rpc_methods *methods, const char *line, size_t bytes);

// --- For those who fill the table.

enum rpc_param_type { RPC_NUMBER, RPC_TEXT, RPC_LIST, RPC_REAL, RPC_FLAG };

// A parameter that a method takes. `out` is a long, a const char *, a const json_t *, a double or a
// bool, and stays as it is when the parameter is absent.
struct rpc_param {
	const char *name;
	int type; // enum rpc_param_type
	bool is_wanted;
	long min, max; // RPC_NUMBER, RPC_REAL: the value; RPC_LIST: how many members
	void *out;
};

// Takes exactly the parameters in the rows: 0, or -EINVAL and one sentence for one that is unknown,
// missing, of another type, out of range.
int rpc_params_read(const json_t *params, const struct rpc_param rows[], size_t n,
	struct error *error);
// For methods without parameters.
int rpc_params_none(const json_t *params, struct error *error);

// null for NULL; bytes that are no UTF-8 become '?'.
json_t *rpc_text_json(const char *text);

// A method for people, and the answer of the method help.
struct rpc_help {
	const char *name, *params, *text;
};
json_t *rpc_help_json(const struct rpc_help rows[], size_t n);

// A worker that notes its pauses; which times are some: stats/pauses.h.
struct rpc_worker {
	unsigned worker;
	int core;
	const struct pauses *pauses;
};

// The workers of a program, and two moments by both clocks: when it started, and now.
struct rpc_gaps {
	const struct rpc_worker *worker;
	unsigned n_workers;
	struct clock_pair born, now;
};
// The answer of the method gaps, the oldest first; NULL with `error` set.
json_t *rpc_gaps_json(const struct rpc_gaps *gaps, const json_t *params, struct error *error);
