// JSON-RPC 2.0 server on a UNIX socket, one message per line. Other modules provide the table of
// methods. Control thread only.
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "stats/stalls.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct rpc;

// A method: `params` is an object (never NULL, borrowed). Returns a new reference to the result, or
// NULL with `error` set (it becomes the error's message, code -32000).
struct rpc_method {
	const char *name;
	json_t *(*run)(void *ctx, const json_t *params, struct error *error);
};

// The available methods, and the context passed to each.
struct rpc_methods {
	const struct rpc_method *table;
	size_t n;
	void *ctx;
	// Called after each request, when its response has been written; NULL: never. True: the
	// method has taken the connection over to write something else to it. `fd` is then a
	// non-blocking descriptor of its own, which it closes, and the client is forgotten; -1: the
	// connection cannot be taken over, since the client has not read its responses or has sent
	// further requests, and it is closed.
	bool (*takes_over)(void *ctx);
	void (*take_over)(void *ctx, int fd);
};

// Opens the socket at `path`: mode 0660, owned by `group` if not NULL; the last directory of the
// path is created (0755) if missing. A file left by a dead process is replaced; one in use by a
// running process is an error ("in use"). `methods` is copied, what it points to is borrowed until
// rpc_close. 0, or -errno with `error` set.
int rpc_open(struct rpc **out, const char *path, const char *group,
	const struct rpc_methods *methods, struct error *error);

// Checks whether rpc_open would accept path and group; changes nothing. A socket of a running
// process is accepted: it may be the program that is to reload the file. 0, or -errno with `error`
// set.
int rpc_check(const char *path, const char *group, struct error *error);

// Serves clients for at most `timeout_ms` (-1: no limit) or until something has happened, including
// a signal; also returns when `wake_fd` (-1: none) becomes readable, which the caller then reads.
// Bounded per call, so that one client cannot starve the others. At most 32 clients, requests of at
// most 1 MiB; requests of a client that does not read its responses wait, and after 10 s it is
// disconnected. A 33rd client is accepted by closing the one that has been idle longest, if for
// more than 60 s (no complete request received, nothing sent to it); otherwise it is refused with
// an error message. Returns the time at which it stopped waiting (clock_now_ns()).
uint64_t rpc_serve(struct rpc *rpc, int wake_fd, int timeout_ms);

// Writes pending responses (for at most 0.1 s), closes clients, removes the socket file. NULL is
// allowed.
void rpc_close(struct rpc *rpc);

// One line in (with or without newline), one line out (malloc'ed, without newline; NULL for a
// notification): without I/O, for tests and fuzzing.
char *rpc_answer(const struct rpc_methods *methods, const char *line, size_t bytes);

// --- For implementations of methods.

enum rpc_param_type { RPC_NUMBER, RPC_TEXT, RPC_LIST, RPC_REAL, RPC_FLAG, RPC_ANY };

// A parameter of a method. `out` points to a long, a const char *, a const json_t * (RPC_LIST,
// RPC_ANY), a double or a bool, and is unchanged if the parameter is absent.
struct rpc_param {
	const char *name;
	int type; // enum rpc_param_type
	bool is_wanted;
	long min, max; // RPC_NUMBER, RPC_REAL: the value; RPC_LIST: number of members
	void *out;
};

// Reads exactly the parameters in the rows: 0, or -EINVAL with `error` set if one is unknown,
// missing, of the wrong type or out of range.
int rpc_params_read(const json_t *params, const struct rpc_param rows[], size_t n,
	struct error *error);
// For methods without parameters.
int rpc_params_none(const json_t *params, struct error *error);

// null for NULL; bytes that are not valid UTF-8 become '?'.
json_t *rpc_text_json(const char *text);
// null if the value is not known, for counters of devices that may not exist.
json_t *rpc_count_json(uint64_t count, bool is_known);

// Description of a method, and the result of the method help.
struct rpc_help {
	const char *name, *params, *text;
};
json_t *rpc_help_json(const struct rpc_help rows[], size_t n);

// A worker that records its stalls; for their definition see stats/stalls.h.
struct rpc_worker {
	unsigned worker;
	int core;
	const struct stalls *stalls;
};

// The workers of a program, and two points in time on both clocks: its start, and now.
struct rpc_gaps {
	const struct rpc_worker *worker;
	unsigned n_workers;
	struct clock_pair born, now;
};
// The result of the method gaps, oldest first; NULL with `error` set.
json_t *rpc_gaps_json(const struct rpc_gaps *gaps, const json_t *params, struct error *error);
