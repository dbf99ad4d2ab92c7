// The server loop: poll, read, run, respond. Each iteration does a bounded amount of work per
// client. Control thread.
#include "rpc/rpc.h"

#include "base/clock.h"
#include "rpc/answer.h"
#include "rpc/client.h"
#include "rpc/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MAX_CLIENTS = 32,
	REQUESTS_PER_TURN = 16,
	LAST_WORDS_MS = 100, // rpc_close waits this long for clients to read their responses
};
static const uint64_t rest_ns = 1000000000; // after accept ran out of descriptors

struct rpc {
	struct rpc_socket socket;
	struct rpc_methods methods;
	uint64_t resting_until_ns; // accept is suspended until then
	unsigned n_clients;
	struct rpc_client clients[MAX_CLIENTS];
};

int rpc_open(struct rpc **out, const char *path, const char *group,
	const struct rpc_methods *methods, struct error *error)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));
	int err;

	if (!rpc)
		return error_set(error, -ENOMEM, "control socket: out of memory");
	rpc->methods = *methods;
	err = rpc_socket_open(&rpc->socket, path, group, error);
	if (err) {
		free(rpc);
		return err;
	}
	*out = rpc;
	return 0;
}

// Does not wait for a client that does not read: what does not fit is lost.
static void tell(int fd, const char *sentence)
{
	char *line = rpc_error_line(RPC_TURNED_AWAY, sentence);

	if (line && send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_MORE) > 0)
		send(fd, "\n", 1, MSG_NOSIGNAL);
	free(line);
}

// If all slots are used, the client that has been idle longest is closed, if it was idle long
// enough.
static void take_in(struct rpc *rpc, int fd, uint64_t now_ns)
{
	struct rpc_client *place = &rpc->clients[rpc->n_clients];

	if (rpc->n_clients < MAX_CLIENTS) {
		rpc->n_clients++;
	} else {
		place = rpc_client_find_idle(rpc->clients, MAX_CLIENTS, now_ns);
		if (!place) {
			tell(fd, "32 clients are already connected; close one and try again");
			close(fd);
			return;
		}
		tell(place->fd, "disconnected: 32 clients are connected, this one was idle for "
				"longest, and a new one replaces it; connect again");
		rpc_client_close(place);
	}
	rpc_client_start(place, fd, now_ns);
}

static void accept_clients(struct rpc *rpc, uint64_t now_ns)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		int fd = accept4(rpc->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			if (errno != EAGAIN)
				rpc->resting_until_ns = now_ns + rest_ns;
			return;
		}
		take_in(rpc, fd, now_ns);
	}
}

static void run_requests(struct rpc *rpc, struct rpc_client *client, uint64_t now_ns)
{
	const struct rpc_methods *methods = &rpc->methods;
	const char *line;
	size_t bytes;

	for (int i = 0; i < REQUESTS_PER_TURN && client->has_more && !rpc_client_is_full(client);
		i++) {
		enum rpc_line kind = rpc_client_next_line(client, &line, &bytes);
		char *answer = NULL;

		if (kind == RPC_LINE_WHOLE) {
			answer = rpc_answer(methods, line, bytes);
			client->asked_ns = clock_now_ns(); // a method may have taken long
		} else if (kind == RPC_LINE_TOO_LONG) {
			answer = rpc_error_line(RPC_INVALID_REQUEST,
				"this line is longer than 1 MiB; send less at a time");
		}
		if (answer)
			rpc_client_add(client, answer, now_ns);
		free(answer);
		rpc_client_write(client, now_ns);
		if (kind == RPC_LINE_WHOLE && methods->takes_over &&
			methods->takes_over(methods->ctx))
			methods->take_over(methods->ctx, rpc_client_leave(client));
	}
}

static void serve_client(struct rpc *rpc, struct rpc_client *client, short events, uint64_t now_ns)
{
	// The next write detects that a peer has hung up, even if nothing is to be written.
	if (events & (POLLOUT | POLLHUP | POLLERR))
		rpc_client_write(client, now_ns);
	if (events & (POLLIN | POLLHUP | POLLERR) && !client->has_more)
		rpc_client_read(client);
	run_requests(rpc, client, now_ns);
}

static void drop_done(struct rpc *rpc, uint64_t now_ns)
{
	for (unsigned i = rpc->n_clients; i-- > 0;) {
		if (!rpc_client_is_done(&rpc->clients[i], now_ns))
			continue;
		rpc_client_close(&rpc->clients[i]);
		rpc->clients[i] = rpc->clients[--rpc->n_clients];
	}
}

// If requests are left over from the last iteration, poll does not block.
static bool has_work(const struct rpc *rpc)
{
	for (unsigned i = 0; i < rpc->n_clients; i++)
		if (rpc->clients[i].has_more && !rpc_client_is_full(&rpc->clients[i]))
			return true;
	return false;
}

uint64_t rpc_serve(struct rpc *rpc, int wake_fd, int timeout_ms)
{
	struct pollfd polled[MAX_CLIENTS + 2];
	bool rests = rpc->resting_until_ns > clock_now_ns();
	unsigned n = rpc->n_clients;
	uint64_t now_ns;

	// poll ignores negative descriptors.
	polled[0] = (struct pollfd){.fd = rests ? -1 : rpc->socket.fd, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		polled[2 + i] = (struct pollfd){.fd = rpc->clients[i].fd,
			.events = rpc_client_events(&rpc->clients[i])};
	const int n_ready = poll(polled, 2 + n, has_work(rpc) ? 0 : timeout_ms);
	now_ns = clock_now_ns();
	if (n_ready < 0)
		return now_ns; // a signal; the caller checks its flag
	for (unsigned i = 0; i < n; i++)
		serve_client(rpc, &rpc->clients[i], polled[2 + i].revents, now_ns);
	drop_done(rpc, now_ns);
	if (polled[0].revents)
		accept_clients(rpc, now_ns);
	return now_ns;
}

static void write_last_words(struct rpc_client *client, uint64_t until_ns)
{
	struct pollfd polled = {.fd = client->fd, .events = POLLOUT};

	rpc_client_write(client, 0);
	while (rpc_client_events(client) & POLLOUT) {
		uint64_t now_ns = clock_now_ns();

		if (now_ns >= until_ns || poll(&polled, 1, (until_ns - now_ns) / 1000000 + 1) <= 0)
			return;
		rpc_client_write(client, now_ns);
	}
}

void rpc_close(struct rpc *rpc)
{
	uint64_t until_ns = clock_now_ns() + LAST_WORDS_MS * 1000000ull;

	if (!rpc)
		return;
	rpc_socket_close(&rpc->socket);
	for (unsigned i = 0; i < rpc->n_clients; i++) {
		write_last_words(&rpc->clients[i], until_ns);
		rpc_client_close(&rpc->clients[i]);
	}
	free(rpc);
}
