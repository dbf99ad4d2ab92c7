// One connected client. A failure of any kind (out of memory, a broken connection) only ends the
// client. Control thread.
#include "rpc/client.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16 };

static size_t length(const struct rpc_bytes *b)
{
	return b->end - b->start;
}

static void clear(struct rpc_bytes *b)
{
	free(b->block);
	*b = (struct rpc_bytes){NULL, 0, 0, 0};
}

// Reserves space for `n` bytes at the end. Returns false if out of memory.
static bool reserve(struct rpc_bytes *b, size_t n)
{
	size_t room = b->room;
	char *block;

	if (room - b->end >= n)
		return true;
	if (b->start) {
		memmove(b->block, b->block + b->start, length(b));
		b->end -= b->start;
		b->start = 0;
	}
	while (room - b->end < n)
		room = room ? room * 2 : READ_BYTES;
	block = room == b->room ? b->block : realloc(b->block, room);
	if (!block)
		return false;
	b->block = block;
	b->room = room;
	return true;
}

// Drops the first `n` bytes; an empty block is freed if it is larger than usual.
static void consume(struct rpc_bytes *b, size_t n)
{
	b->start += n;
	if (b->start < b->end)
		return;
	b->start = b->end = 0;
	if (b->room > READ_BYTES)
		clear(b);
}

void rpc_client_start(struct rpc_client *client, int fd, uint64_t now_ns)
{
	*client = (struct rpc_client){.fd = fd, .asked_ns = now_ns};
}

void rpc_client_close(struct rpc_client *client)
{
	clear(&client->in);
	clear(&client->out);
	close(client->fd);
	client->fd = -1;
}

short rpc_client_events(const struct rpc_client *client)
{
	bool reads = !client->is_at_end && !client->has_more;

	return (reads ? POLLIN : 0) | (length(&client->out) ? POLLOUT : 0);
}

bool rpc_client_is_full(const struct rpc_client *client)
{
	return length(&client->out) > RPC_WAITING_BYTES;
}

bool rpc_client_is_done(const struct rpc_client *client, uint64_t now_ns)
{
	if (!length(&client->out))
		return client->is_at_end && !client->has_more;
	return now_ns > client->progress_ns + RPC_PATIENCE_SECONDS * 1000000000ull;
}

static uint64_t idle_ns(const struct rpc_client *client, uint64_t now_ns)
{
	uint64_t since_ns = MAX_OF(client->asked_ns, client->progress_ns);

	if (length(&client->out) || client->has_more || since_ns > now_ns)
		return 0;
	return now_ns - since_ns;
}

// Whether received data has not been processed yet.
static bool has_sent(const struct rpc_client *client)
{
	char byte;

	return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

struct rpc_client *rpc_client_find_idle(struct rpc_client clients[], unsigned n, uint64_t now_ns)
{
	uint64_t longest_ns = RPC_IDLE_SECONDS * 1000000000ull;
	struct rpc_client *found = NULL;

	for (unsigned i = 0; i < n; i++) {
		if (idle_ns(&clients[i], now_ns) <= longest_ns || has_sent(&clients[i]))
			continue;
		longest_ns = idle_ns(&clients[i], now_ns);
		found = &clients[i];
	}
	return found;
}

// The peer is gone or cannot be served: stops reading and writing.
static void give_up(struct rpc_client *client)
{
	client->is_at_end = client->is_deaf = true;
	client->has_more = false;
	clear(&client->out);
}

void rpc_client_read(struct rpc_client *client)
{
	ssize_t n;

	if (client->is_at_end)
		return;
	consume(&client->in, 0); // frees a block that was enlarged for a long line
	if (!reserve(&client->in, READ_BYTES)) {
		give_up(client);
		return;
	}
	n = recv(client->fd, client->in.block + client->in.end, READ_BYTES, 0);
	if (n > 0) {
		client->in.end += n;
		client->has_more = true;
	} else if (n == 0) {
		client->is_at_end = true; // an unterminated line is discarded
	} else if (errno != EAGAIN && errno != EINTR) {
		give_up(client);
	}
}

// The end of the first line in `in`, NULL if it is not complete yet.
static char *find_newline(struct rpc_client *client)
{
	size_t n = length(&client->in) - client->scanned;
	char *newline = NULL;

	if (n)
		newline = memchr(client->in.block + client->in.start + client->scanned, '\n', n);
	client->scanned = newline ? 0 : client->scanned + n;
	return newline;
}

// Drops the rest of an overlong line. Returns false if more of it is still to be received.
static bool skip(struct rpc_client *client)
{
	char *newline = find_newline(client);
	size_t n = length(&client->in);

	if (newline)
		n = newline + 1 - (client->in.block + client->in.start);
	client->scanned = 0;
	consume(&client->in, n);
	client->is_skipping = !newline;
	return newline;
}

enum rpc_line rpc_client_next_line(struct rpc_client *client, const char **line, size_t *bytes)
{
	char *newline;
	size_t n;

	if (client->is_skipping && !skip(client))
		goto none;
	newline = find_newline(client);
	n = length(&client->in);
	if (newline)
		n = newline - (client->in.block + client->in.start);
	if (n > RPC_LINE_BYTES) {
		client->is_skipping = true;
		client->scanned = 0;
		return RPC_LINE_TOO_LONG;
	}
	if (!newline)
		goto none;
	*line = client->in.block + client->in.start;
	*bytes = n;
	client->in.start += n + 1; // the bytes stay valid until the next read
	return RPC_LINE_WHOLE;
none:
	client->has_more = false;
	return RPC_LINE_NONE;
}

int rpc_client_leave(struct rpc_client *client)
{
	const bool is_clean = !client->is_deaf && !length(&client->out) && !length(&client->in);
	int fd = is_clean ? fcntl(client->fd, F_DUPFD_CLOEXEC, 0) : -1;

	give_up(client);
	return fd;
}

void rpc_client_add(struct rpc_client *client, const char *answer, uint64_t now_ns)
{
	size_t n = strlen(answer);

	if (client->is_deaf)
		return;
	if (!length(&client->out))
		client->progress_ns = now_ns;
	if (!reserve(&client->out, n + 1)) {
		give_up(client);
		return;
	}
	memcpy(client->out.block + client->out.end, answer, n);
	client->out.block[client->out.end + n] = '\n';
	client->out.end += n + 1;
}

void rpc_client_write(struct rpc_client *client, uint64_t now_ns)
{
	ssize_t n;

	while (length(&client->out)) {
		n = send(client->fd, client->out.block + client->out.start, length(&client->out),
			MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			client->is_deaf = true; // requests already received are still run
			clear(&client->out);
			return;
		}
		consume(&client->out, n);
		client->progress_ns = now_ns;
	}
}
