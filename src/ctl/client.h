// Private to the room: one connected client, its lines in and its answers out. Nothing here blocks.
// Control thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CTL_LINE_BYTES = 1 << 20,    // the longest request
	CTL_WAITING_BYTES = 1 << 20, // with more answers than this unread, a client's requests wait
	CTL_PATIENCE_SECONDS = 10,   // a client that takes nothing for so long is cut off
	CTL_IDLE_SECONDS = 60,       // one that is idle for longer makes room for a new one
};

// Bytes [start, end) of a block of `room`.
struct ctl_bytes {
	char *block;
	size_t start, end, room;
};

struct ctl_client {
	int fd;
	struct ctl_bytes in, out;
	size_t scanned;       // bytes of `in` that are known to hold no newline
	bool is_skipping;     // the rest of a line that was too long
	bool has_more;        // a whole line may wait in `in`
	bool is_at_end;       // the peer sends no more
	bool is_deaf;         // the peer reads no more: answers are thrown away
	uint64_t progress_ns; // when it last took bytes, or when answers began to wait
	uint64_t asked_ns;    // when its last whole line was answered, or when it came
};

enum ctl_line { CTL_LINE_NONE, CTL_LINE_WHOLE, CTL_LINE_TOO_LONG };

// Takes the non-blocking descriptor. / Closes it and frees the buffers.
void ctl_client_start(struct ctl_client *client, int fd, uint64_t now_ns);
void ctl_client_close(struct ctl_client *client);

// What to poll for.
short ctl_client_events(const struct ctl_client *client);
// True while its requests have to wait because it does not read the answers.
bool ctl_client_is_full(const struct ctl_client *client);
// True when nothing is left to do for it, or when it has been too slow at `now_ns`.
bool ctl_client_is_done(const struct ctl_client *client, uint64_t now_ns);
// Of `n` clients the one that has been idle for longest, when that is longer than CTL_IDLE_SECONDS;
// NULL: none. Idle: no whole line came from it, and nothing was or is on its way to it.
struct ctl_client *ctl_client_find_idle(struct ctl_client clients[], unsigned n, uint64_t now_ns);

// Reads once; call it only when has_more is false.
void ctl_client_read(struct ctl_client *client);
// The next line without its newline, borrowed until the next read. A line that was too long is told
// once and skipped.
enum ctl_line ctl_client_next_line(struct ctl_client *client, const char **line, size_t *bytes);
// Queues an answer and its newline. Writes as much as the peer takes.
void ctl_client_add(struct ctl_client *client, const char *answer, uint64_t now_ns);
void ctl_client_write(struct ctl_client *client, uint64_t now_ns);
