// The window's loop: poll, read, run, answer. Each turn does a bounded amount of work for each
// client. Control thread.
#include "ctl/ctl.h"

#include "base/clock.h"
#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/socket.h"

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
	LAST_WORDS_MS = 100, // what ctl_close waits for clients to take their answers
};
static const uint64_t rest_ns = 1000000000; // after accept found no descriptor free

struct ctl {
	struct ctl_socket socket;
	struct ctl_verbs verbs;
	uint64_t resting_until_ns; // the listener is left alone until then
	unsigned n_clients;
	struct ctl_client clients[MAX_CLIENTS];
};

int ctl_open(struct ctl **out, const char *path, const char *group, const struct ctl_verbs *verbs,
	struct complaint *why)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	int err;

	if (!ctl)
		return complain(why, -ENOMEM, "control socket: out of memory");
	ctl->verbs = *verbs;
	err = ctl_socket_open(&ctl->socket, path, group, why);
	if (err) {
		free(ctl);
		return err;
	}
	*out = ctl;
	return 0;
}

// Nobody waits for a client that does not read: what does not fit is lost.
static void tell(int fd, const char *sentence)
{
	char *line = ctl_error_line(CTL_TURNED_AWAY, sentence);

	if (line && send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_MORE) > 0)
		send(fd, "\n", 1, MSG_NOSIGNAL);
	free(line);
}

// A full house makes room by closing the client that has been idle for longest, if that is long.
static void take_in(struct ctl *ctl, int fd, uint64_t now_ns)
{
	struct ctl_client *place = &ctl->clients[ctl->n_clients];

	if (ctl->n_clients < MAX_CLIENTS) {
		ctl->n_clients++;
	} else {
		place = ctl_client_find_idle(ctl->clients, MAX_CLIENTS, now_ns);
		if (!place) {
			tell(fd, "32 clients are connected already; close one and try again");
			close(fd);
			return;
		}
		tell(place->fd,
			"32 clients are connected and this one was idle for longest, so a new one "
			"got its place; connect again");
		ctl_client_close(place);
	}
	ctl_client_start(place, fd, now_ns);
}

static void accept_clients(struct ctl *ctl, uint64_t now_ns)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		int fd = accept4(ctl->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			if (errno != EAGAIN)
				ctl->resting_until_ns = now_ns + rest_ns;
			return;
		}
		take_in(ctl, fd, now_ns);
	}
}

static void run_requests(struct ctl *ctl, struct ctl_client *client, uint64_t now_ns)
{
	const char *line;
	size_t bytes;

	for (int i = 0; i < REQUESTS_PER_TURN && client->has_more && !ctl_client_is_full(client);
		i++) {
		enum ctl_line kind = ctl_client_next_line(client, &line, &bytes);
		char *answer = NULL;

		if (kind == CTL_LINE_WHOLE) {
			answer = ctl_answer(&ctl->verbs, line, bytes);
			client->asked_ns = clock_now_ns(); // a verb may have taken long
		} else if (kind == CTL_LINE_TOO_LONG) {
			answer = ctl_error_line(CTL_INVALID_REQUEST,
				"this line is longer than 1 MiB; send less at a time");
		}
		if (answer)
			ctl_client_add(client, answer, now_ns);
		free(answer);
		ctl_client_write(client, now_ns);
	}
}

static void serve_client(struct ctl *ctl, struct ctl_client *client, short events, uint64_t now_ns)
{
	// A peer that has hung up shows it at the next write, also while nothing is wanted from it.
	if (events & (POLLOUT | POLLHUP | POLLERR))
		ctl_client_write(client, now_ns);
	if (events & (POLLIN | POLLHUP | POLLERR) && !client->has_more)
		ctl_client_read(client);
	run_requests(ctl, client, now_ns);
}

static void drop_done(struct ctl *ctl, uint64_t now_ns)
{
	for (unsigned i = ctl->n_clients; i-- > 0;) {
		if (!ctl_client_is_done(&ctl->clients[i], now_ns))
			continue;
		ctl_client_close(&ctl->clients[i]);
		ctl->clients[i] = ctl->clients[--ctl->n_clients];
	}
}

// Requests that were left over from the last turn do not wait for the poll.
static bool has_work(const struct ctl *ctl)
{
	for (unsigned i = 0; i < ctl->n_clients; i++)
		if (ctl->clients[i].has_more && !ctl_client_is_full(&ctl->clients[i]))
			return true;
	return false;
}

void ctl_serve(struct ctl *ctl, int wake_fd, int timeout_ms)
{
	struct pollfd polled[MAX_CLIENTS + 2];
	bool rests = ctl->resting_until_ns > clock_now_ns();
	unsigned n = ctl->n_clients;
	uint64_t now_ns;

	// A negative descriptor is passed over.
	polled[0] = (struct pollfd){.fd = rests ? -1 : ctl->socket.fd, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		polled[2 + i] = (struct pollfd){.fd = ctl->clients[i].fd,
			.events = ctl_client_events(&ctl->clients[i])};
	if (poll(polled, 2 + n, has_work(ctl) ? 0 : timeout_ms) < 0)
		return; // a signal; its flag is the caller's to look at
	now_ns = clock_now_ns();
	for (unsigned i = 0; i < n; i++)
		serve_client(ctl, &ctl->clients[i], polled[2 + i].revents, now_ns);
	drop_done(ctl, now_ns);
	if (polled[0].revents)
		accept_clients(ctl, now_ns);
}

static void write_last_words(struct ctl_client *client, uint64_t until_ns)
{
	struct pollfd polled = {.fd = client->fd, .events = POLLOUT};

	ctl_client_write(client, 0);
	while (ctl_client_events(client) & POLLOUT) {
		uint64_t now_ns = clock_now_ns();

		if (now_ns >= until_ns || poll(&polled, 1, (until_ns - now_ns) / 1000000 + 1) <= 0)
			return;
		ctl_client_write(client, now_ns);
	}
}

void ctl_close(struct ctl *ctl)
{
	uint64_t until_ns = clock_now_ns() + LAST_WORDS_MS * 1000000ull;

	if (!ctl)
		return;
	ctl_socket_close(&ctl->socket);
	for (unsigned i = 0; i < ctl->n_clients; i++) {
		write_last_words(&ctl->clients[i], until_ns);
		ctl_client_close(&ctl->clients[i]);
	}
	free(ctl);
}
