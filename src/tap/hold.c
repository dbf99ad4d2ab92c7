// The holder: a separate process that keeps one detached queue of each TAP interface open. When its
// last queue is closed, a TAP loses its carrier and routing daemons withdraw their routes. While
// one queue is held, a crash of dl3d only interrupts replies. The holder owns nothing except these
// files.
#include "tap/hold.h"

#include "base/bits.h"
#include "tap/netns.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HELD_MOST = 1024, CLIENTS_MOST = 8, NOBODY_MS = 10000, LOOK_MS = 1000 };
enum { FIRST_GIVEN = 3 }; // descriptor; SD_LISTEN_FDS_START

struct held {
	char key[HOLD_KEY_MAX];
	int fd;
};

struct holder {
	int listener;
	int clients[CLIENTS_MOST]; // -1: free
	unsigned n_held;
	struct held held[HELD_MOST];
};

static struct held *find(struct holder *h, const char *key)
{
	for (unsigned i = 0; i < h->n_held; i++)
		if (strcmp(h->held[i].key, key) == 0)
			return &h->held[i];
	return NULL;
}

// A newer file of a TAP interface replaces the older one.
static bool hold(struct holder *h, const char *key, int fd)
{
	struct held *at = find(h, key);

	if (fd < 0 || strlen(key) >= sizeof(at->key) || (!at && h->n_held == HELD_MOST))
		return false;
	if (at)
		close(at->fd);
	else
		at = &h->held[h->n_held++];
	snprintf(at->key, sizeof(at->key), "%s", key);
	at->fd = fd;
	return true;
}

static bool drop(struct holder *h, const char *key)
{
	struct held *at = find(h, key);

	if (!at)
		return false;
	close(at->fd);
	*at = h->held[--h->n_held];
	return true;
}

static int take_descriptor(struct msghdr *packet)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(packet);
	int fd = -1;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		header->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static bool obey(struct holder *h, const char *message, int fd)
{
	if (strncmp(message, HOLD_WORD, strlen(HOLD_WORD)) == 0 &&
		hold(h, message + strlen(HOLD_WORD), fd))
		return true;
	if (fd >= 0)
		close(fd);
	if (strncmp(message, HOLD_RELEASE_WORD, strlen(HOLD_RELEASE_WORD)) == 0)
		return drop(h, message + strlen(HOLD_RELEASE_WORD));
	return false;
}

static void serve(struct holder *h, int *client)
{
	char message[HOLD_MESSAGE_MAX];
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {message, sizeof(message) - 1};
	struct msghdr packet = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(*client, &packet, MSG_CMSG_CLOEXEC);

	if (n > 0) {
		message[n] = 0;
		const char *answer = obey(h, message, take_descriptor(&packet)) ? HOLD_OK : HOLD_NO;

		if (send(*client, answer, strlen(answer), MSG_NOSIGNAL) >= 0)
			return;
	}
	close(*client);
	*client = -1;
}

static void accept_client(struct holder *h)
{
	int client = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);

	for (unsigned i = 0; client >= 0 && i < CLIENTS_MOST; i++)
		if (h->clients[i] < 0) {
			h->clients[i] = client;
			return;
		}
	if (client >= 0)
		close(client);
}

// A held file keeps its namespace alive, which it must not do if the TAP interface or the namespace
// was deleted.
static bool is_stale(const struct held *held)
{
	struct pollfd one = {.fd = held->fd};
	char name[HOLD_KEY_MAX];

	if (poll(&one, 1, 0) > 0) // error: its device was deleted
		return true;
	int netns = ioctl(held->fd, SIOCGSKNS);
	if (netns < 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(held->key, "/"), held->key);
	bool is_named = netns_is_named(netns, name);
	close(netns);
	return !is_named;
}

static void drop_stale(struct holder *h)
{
	for (unsigned i = h->n_held; i-- > 0;)
		if (is_stale(&h->held[i]))
			drop(h, h->held[i].key);
}

static bool is_needed(const struct holder *h)
{
	bool is_talking = false;

	for (unsigned i = 0; i < CLIENTS_MOST; i++)
		is_talking |= h->clients[i] >= 0;
	return h->n_held || is_talking;
}

static void serve_all(struct holder *h)
{
	struct pollfd polled[CLIENTS_MOST + 1];

	do {
		for (unsigned i = 0; i < CLIENTS_MOST; i++)
			polled[i] = (struct pollfd){.fd = h->clients[i], .events = POLLIN};
		polled[CLIENTS_MOST] = (struct pollfd){.fd = h->listener, .events = POLLIN};
		// The process that started us connects at once, or never.
		int n = poll(polled, ARRAY_LEN(polled), is_needed(h) ? LOOK_MS : NOBODY_MS);

		drop_stale(h);
		if (n <= 0)
			continue;
		for (unsigned i = 0; i < CLIENTS_MOST; i++)
			if (polled[i].revents)
				serve(h, &h->clients[i]);
		if (polled[CLIENTS_MOST].revents)
			accept_client(h);
	} while (is_needed(h));
}

// 0 with a listening socket; 1: another holder is listening; -errno.
static int open_listener(struct holder *h, const char *path)
{
	struct sockaddr_un address;
	int err = hold_address(path, &address);

	if (err)
		return err;
	h->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	umask(0177);
	if (bind(h->listener, (struct sockaddr *)&address, sizeof(address)) != 0) {
		int other = errno == EADDRINUSE ? hold_connect(path) : -errno;

		if (other >= 0)
			return 1;
		// A socket without a listener was left behind by a killed holder.
		if (other != -ECONNREFUSED)
			return other;
		unlink(path);
		if (bind(h->listener, (struct sockaddr *)&address, sizeof(address)) != 0)
			return -errno;
	}
	return listen(h->listener, CLIENTS_MOST) == 0 ? 0 : -errno;
}

// The service manager that started this process listens for it (sd_listen_fds(3)): it starts
// another one when this one has ended, and the path is its own.
static bool was_given_listener(struct holder *h)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");

	if (!pid || !n || atol(pid) != getpid() || atol(n) != 1)
		return false;
	h->listener = FIRST_GIVEN;
	return true;
}

int tap_hold_main(const char *socket_path)
{
	static struct holder holder;
	struct stat ours, now;

	for (unsigned i = 0; i < CLIENTS_MOST; i++)
		holder.clients[i] = -1;
	prctl(PR_SET_NAME, "dl3d-hold");
	signal(SIGPIPE, SIG_IGN);
	if (was_given_listener(&holder)) {
		serve_all(&holder);
		return 0;
	}
	int err = open_listener(&holder, socket_path);
	if (err)
		return err < 0 ? -err : 0;
	pid_t child = fork();
	if (child)
		return child < 0 ? errno : 0;
	listen(holder.listener, CLIENTS_MOST); // sets the credentials that SO_PEERCRED returns to
	                                       // clients
	bool is_known = stat(socket_path, &ours) == 0 && chdir("/") == 0;

	serve_all(&holder);
	// Another holder may have taken over the path.
	if (is_known && stat(socket_path, &now) == 0 && now.st_ino == ours.st_ino)
		unlink(socket_path);
	return 0;
}
