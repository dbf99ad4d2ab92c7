// Private to rpc: one connected client, with its request lines and responses. Nothing here blocks.
// Control thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RPC_LINE_BYTES = 1 << 20,    // maximum length of a request
	RPC_WAITING_BYTES = 1 << 20, // with more unread response bytes than this, a client's
	                             // requests wait
	RPC_PATIENCE_SECONDS = 10,   // a client that reads nothing for this long is disconnected
	RPC_IDLE_SECONDS = 60,       // a client idle for longer may be closed in favour of a new
	                             // one
};

// Bytes [start, end) of a block of `room` bytes.
struct rpc_bytes {
	char *block;
	size_t start, end, room;
};

struct rpc_client {
	int fd;
	struct rpc_bytes in, out;
	size_t scanned;       // bytes of `in` known to contain no newline
	bool is_skipping;     // discarding the rest of an overlong line
	bool has_more;        // `in` may contain a complete line
	bool is_at_end;       // the peer has stopped sending
	bool is_deaf;         // the peer has stopped reading: responses are discarded
	uint64_t progress_ns; // when it last read bytes, or when responses started to wait
	uint64_t asked_ns;    // when its last complete line was answered, or when it connected
};

enum rpc_line { RPC_LINE_NONE, RPC_LINE_WHOLE, RPC_LINE_TOO_LONG };

// Takes ownership of the non-blocking descriptor.
void rpc_client_start(struct rpc_client *client, int fd, uint64_t now_ns);
// Closes it and frees the buffers.
void rpc_client_close(struct rpc_client *client);

// Events to poll for.
short rpc_client_events(const struct rpc_client *client);
// True while its requests have to wait because it does not read the responses.
bool rpc_client_is_full(const struct rpc_client *client);
// True if there is nothing left to do for it, or if it has been too slow at `now_ns`.
bool rpc_client_is_done(const struct rpc_client *client, uint64_t now_ns);
// The client among `n` that has been idle longest, if longer than RPC_IDLE_SECONDS; NULL: none.
// Idle: no complete line was received, and no response was sent or is pending.
struct rpc_client *rpc_client_find_idle(struct rpc_client clients[], unsigned n, uint64_t now_ns);

// Reads once; call only if has_more is false.
void rpc_client_read(struct rpc_client *client);
// The next line without its newline, borrowed until the next read. An overlong line is reported
// once and skipped.
enum rpc_line rpc_client_next_line(struct rpc_client *client, const char **line, size_t *bytes);
// Queues a response and its newline.
void rpc_client_add(struct rpc_client *client, const char *answer, uint64_t now_ns);
// Ends the client, and returns another descriptor of its connection; -1 if that has responses to be
// written or requests to be read.
int rpc_client_leave(struct rpc_client *client);
// Writes as much as the peer accepts.
void rpc_client_write(struct rpc_client *client, uint64_t now_ns);
