// Private to the room: one connected client, its lines in and its answers out. Nothing here blocks.
// Control thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RPC_LINE_BYTES = 1 << 20,    // the longest request
	RPC_WAITING_BYTES = 1 << 20, // with more answers than this unread, a client's requests wait
	RPC_PATIENCE_SECONDS = 10,   // a client that takes nothing for so long is cut off
	RPC_IDLE_SECONDS = 60,       // one that is idle for longer makes room for a new one
};

// Bytes [start, end) of a block of `room`.
struct rpc_bytes {
	char *block;
	size_t start, end, room;
};

struct rpc_client {
	int fd;
	struct rpc_bytes in, out;
	size_t scanned;       // bytes of `in` that are known to hold no newline
	bool is_skipping;     // the rest of a line that was too long
	bool has_more;        // a whole line may wait in `in`
	bool is_at_end;       // the peer sends no more
	bool is_deaf;         // the peer reads no more: answers are thrown away
	uint64_t progress_ns; // when it last took bytes, or when answers began to wait
	uint64_t asked_ns;    // when its last whole line was answered, or when it came
};

enum rpc_line { RPC_LINE_NONE, RPC_LINE_WHOLE, RPC_LINE_TOO_LONG };

// Takes the non-blocking descriptor. / Closes it and frees the buffers.
void rpc_client_start(struct rpc_client *client, int fd, uint64_t now_ns);
void rpc_client_close(struct rpc_client *client);

// What to poll for.
short rpc_client_events(const struct rpc_client *client);
// True while its requests have to wait because it does not read the answers.
bool rpc_client_is_full(const struct rpc_client *client);
// True when nothing is left to do for it, or when it has been too slow at `now_ns`.
bool rpc_client_is_done(const struct rpc_client *client, uint64_t now_ns);
// Of `n` clients the one that has been idle for longest, when that is longer than RPC_IDLE_SECONDS;
// NULL: none. Idle: no whole line came from it, and nothing was or is on its way to it.
struct rpc_client *rpc_client_find_idle(struct rpc_client clients[], unsigned n, uint64_t now_ns);

// Reads once; call it only when has_more is false.
void rpc_client_read(struct rpc_client *client);
// The next line without its newline, borrowed until the next read. A line that was too long is told
// once and skipped.
enum rpc_line rpc_client_next_line(struct rpc_client *client, const char **line, size_t *bytes);
// Queues an answer and its newline. Writes as much as the peer takes.
void rpc_client_add(struct rpc_client *client, const char *answer, uint64_t now_ns);
void rpc_client_write(struct rpc_client *client, uint64_t now_ns);
