// Synchronous request to the kernel. Control thread.
#include "netlink/listen_inside.h"

#include "netlink/event.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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
