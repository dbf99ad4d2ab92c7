// Netlink sockets, synchronous requests, and the record of bursts. Control thread.
#include "netlink/listen_inside.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int netlink_namespace(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_here(int protocol)
{
	struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), on = 1, err;

	if (fd < 0)
		return -errno;
	// Kernels without these options reply as they always did.
	setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&own, sizeof(own)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int socket_open(int protocol, int namespace)
{
	int home = netlink_namespace(), fd;

	if (home < 0)
		return home;
	if (setns(namespace, CLONE_NEWNET)) {
		fd = -errno;
		close(home);
		return fd;
	}
	fd = open_here(protocol);
	// If the control thread could not return to its namespace, everything else would run in the
	// wrong one.
	if (setns(home, CLONE_NEWNET))
		abort();
	close(home);
	return fd;
}

uint32_t socket_make_space(int fd, uint32_t bytes)
{
	int want = bytes, have = 0;
	socklen_t n = sizeof(have);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &have, &n);
	// The kernel doubles the requested size for its own overhead.
	return have / 2;
}

int socket_join(int fd, const uint16_t groups[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int group = groups[i];

		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
			return -errno;
	}
	return 0;
}

int socket_buffer_open(int fd, uint8_t protocol, struct socket_buffer *held)
{
	struct mmsghdr message[NETLINK_SLOTS];
	struct iovec piece[NETLINK_SLOTS];
	struct sockaddr_nl from[NETLINK_SLOTS];
	int n, room = NETLINK_SLOTS - held->n;

	memset(message, 0, sizeof(message[0]) * room);
	for (int i = 0; i < room; i++) {
		piece[i] = (struct iovec){(uint8_t *)socket_slot(held, held->n + i),
			NETLINK_SLOT_BYTES};
		message[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &piece[i],
			.msg_iovlen = 1};
	}
	n = room ? recvmmsg(fd, message, room, MSG_DONTWAIT, NULL) : 0;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++)
		held->slot[held->n++] = (struct socket_slot){message[i].msg_len, protocol,
			message[i].msg_hdr.msg_flags & MSG_TRUNC, from[i].nl_pid != 0};
	return n;
}

int socket_read(int fd, void *bytes, size_t room)
{
	struct sockaddr_nl from;
	struct iovec piece = {bytes, room};
	struct msghdr message = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &piece,
		.msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &message, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (message.msg_flags & MSG_TRUNC || from.nl_pid)
		return -EBADMSG;
	return n;
}

const struct nlmsghdr *socket_next(struct socket_rest *rest)
{
	const struct nlmsghdr *message = (const void *)rest->bytes;
	uint32_t step;

	if (rest->n < NLMSG_HDRLEN || message->nlmsg_len < NLMSG_HDRLEN ||
		message->nlmsg_len > rest->n)
		return NULL;
	step = NLMSG_ALIGN(message->nlmsg_len);
	step = step < rest->n ? step : rest->n;
	*rest = (struct socket_rest){rest->bytes + step, rest->n - step};
	return message;
}

// Records the most recent bursts of kernel messages.

void bursts_note(struct bursts *bursts, uint64_t begin_ns, uint64_t end_ns, uint64_t messages)
{
	struct netlink_burst *last =
		&bursts->slot[(bursts->n + NETLINK_BURSTS - 1) % NETLINK_BURSTS];

	if (!messages)
		return;
	if (bursts->n && begin_ns <= last->end_ns + BURSTS_APART_NS) {
		last->end_ns = end_ns;
		last->messages += messages;
		return;
	}
	bursts->slot[bursts->n++ % NETLINK_BURSTS] =
		(struct netlink_burst){begin_ns, end_ns, messages};
}

unsigned bursts_read(const struct bursts *bursts, struct netlink_burst out[NETLINK_BURSTS])
{
	unsigned n = MIN_OF(bursts->n, (uint64_t)NETLINK_BURSTS);

	for (unsigned i = 0; i < n; i++)
		out[i] = bursts->slot[(bursts->n - n + i) % NETLINK_BURSTS];
	return n;
}

// Synchronous requests to the kernel.

enum { REQUEST_MAX = 512, PIECE_BYTES = 64 << 10 };

int ask_open(int namespace)
{
	struct timeval second = {.tv_sec = 1};
	int fd = socket_open(NETLINK_ROUTE, namespace);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	return fd;
}

static int send_request(int fd, uint32_t sequence, const struct listen_request *request)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	uint8_t bytes[REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *head = (void *)bytes;

	if (request->bytes < sizeof(*head) || request->bytes > sizeof(bytes))
		return -EINVAL;
	memcpy(bytes, request->message, request->bytes);
	head->nlmsg_seq = sequence;
	head->nlmsg_pid = 0;
	// A dump is terminated by NLMSG_DONE, any other request by an acknowledgement.
	if ((head->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		head->nlmsg_flags |= NLM_F_ACK;
	if (sendto(fd, bytes, request->bytes, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

// Processes the messages of one datagram. Returns true if the last message of the reply was among
// them; *err is then set.
static bool take_piece(const struct listen_request *request, uint32_t sequence,
	struct socket_rest rest, int *err)
{
	const struct nlmsghdr *message;
	struct event event;

	while ((message = socket_next(&rest))) {
		if (message->nlmsg_seq != sequence)
			continue;
		if (message->nlmsg_flags & NLM_F_DUMP_INTR)
			*err = -EINTR;
		if (decode_route(message, message->nlmsg_len, &event) != DECODE_EVENT)
			continue;
		if (event.kind == EVENT_DONE || event.kind == EVENT_ERROR) {
			*err = event.error ? event.error : *err;
			return true;
		}
		request->take(request->arg, &event);
	}
	return false;
}

int ask(int fd, uint32_t sequence, const struct listen_request *request)
{
	static uint8_t piece[PIECE_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	int n, err = send_request(fd, sequence, request);

	if (err)
		return err;
	do {
		n = socket_read(fd, piece, sizeof(piece));
		if (n <= 0)
			return n ? n : -ETIMEDOUT;
	} while (!take_piece(request, sequence, (struct socket_rest){piece, n}, &err));
	return err;
}
