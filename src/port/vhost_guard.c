// DPDK's vhost-user library trusts its peers in some respects, as of 22.11.11 and later:
// - The one thread that serves all of them reads from and writes to sockets that block; and as it
//   replies, it holds locks for which workers wait when they transmit.
// - Workers write to the eventfd of a ring, which blocks if the peer wants it to.
// - Messages for inflight memory and postcopy are followed even if they were not offered: the
//   first kind writes outside of its memory, the second stops whoever reads memory that the peer
//   does not provide. The log of dirty pages is taken to begin where it does not.
// - What else a message says is not compared with the state of the rings (vhost_rules.c).
// So in both programs some functions of libc are overridden (meson.build; recvmsg and sendmsg are
// in memif.c).
#include "port/vhost_guard.h"

#include "base/bits.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

// A peer sends a message at once, with its payload. So long do the others wait for it in all, and
// each time that it is not so counts as a wait of at least LATE_MS. Less than a second.
static const struct timeval PATIENCE = {.tv_usec = 300000};
enum { LATE_MS = 10, HEADER_BYTES = 12, PAYLOAD_MAX = 512, FILES_MAX = 16 };

// Numbers of the messages that a front-end of a network device sends (vhost-user protocol), other
// than those for the log of dirty pages, requests of ours, an IOMMU, inflight memory, postcopy and
// memory in slots.
static const uint64_t SERVED = 0x180009fff3e;
static const uint64_t WITH_EVENT = 1ull << VHOST_MSG_SET_VRING_KICK |
                                   1ull << VHOST_MSG_SET_VRING_CALL |
                                   1ull << VHOST_MSG_SET_VRING_ERR;

static __thread int newest = -1, served = -1;
static vhost_guard_call *follower;

int accept(int socket, __SOCKADDR_ARG address, socklen_t *restrict bytes)
{
	int (*const next)(int, __SOCKADDR_ARG, socklen_t *) =
		(__typeof__(&accept))dlsym(RTLD_NEXT, "accept");

	return newest = next(socket, address, bytes);
}

int connect(int socket, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
	int (*const next)(int, __CONST_SOCKADDR_ARG, socklen_t) =
		(__typeof__(&connect))dlsym(RTLD_NEXT, "connect");

	newest = socket;
	return next(socket, address, bytes);
}

// A peer that has taken away what keeps the write from blocking gets no interrupt. One that fills
// its eventfd and takes the flag away between these two calls still stops the caller: Linux has no
// write to an eventfd that ignores the flag.
int eventfd_write(int file, eventfd_t value)
{
	int flags = fcntl(file, F_GETFL);

	if (flags < 0 || !(flags & O_NONBLOCK))
		return -1;
	return write(file, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

void vhost_guard_follow(vhost_guard_call *call)
{
	follower = call;
}

int vhost_guard_begin(int *socket)
{
	*socket = newest;
	if (newest < 0)
		return -1;
	setsockopt(newest, SOL_SOCKET, SO_RCVTIMEO, &PATIENCE, sizeof(PATIENCE));
	setsockopt(newest, SOL_SOCKET, SO_SNDTIMEO, &PATIENCE, sizeof(PATIENCE));
	return fcntl(newest, F_DUPFD_CLOEXEC, 0);
}

void vhost_guard_cut(int connection)
{
	if (connection >= 0)
		shutdown(connection, SHUT_RDWR);
}

void vhost_guard_end(int connection)
{
	vhost_guard_cut(connection);
	if (connection >= 0)
		close(connection);
}

static unsigned files_of(struct cmsghdr *head, int **files)
{
	if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
		return 0;
	*files = (int *)CMSG_DATA(head);
	return (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

static void close_files(struct msghdr *packet)
{
	int *files;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(packet); head; head = CMSG_NXTHDR(packet, head))
		for (unsigned i = files_of(head, &files); i > 0; i--)
			close(files[i - 1]);
	packet->msg_controllen = 0;
}

// Asks no file system, which may be the peer's.
static bool is_eventfd(int file)
{
	static const char NAME[] = "anon_inode:[eventfd]";
	char link[32], name[sizeof(NAME)];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	return readlink(link, name, sizeof(name)) == sizeof(NAME) - 1 &&
	       !memcmp(name, NAME, sizeof(NAME) - 1);
}

// The library closes former files while it holds locks, and files may wait for their peer in that.
// The flags of an eventfd belong to the peer, too. Returns what is wrong, or NULL.
static const char *tame_files(const struct vhost_message *message)
{
	static const char NO_EVENTFD[] =
		VHOST_ENDED("a file for the events of a ring is no eventfd");

	for (unsigned i = 0; i < message->n_files; i++) {
		int file = message->files[i];

		if (message->request == VHOST_MSG_SET_MEM_TABLE)
			continue;
		if (!(WITH_EVENT >> message->request & 1))
			return VHOST_ENDED("it has sent files with a message that has none");
		if (!is_eventfd(file))
			return NO_EVENTFD;
		if (message->request == VHOST_MSG_SET_VRING_CALL &&
			fcntl(file, F_SETFL, O_RDWR | O_NONBLOCK))
			return NO_EVENTFD;
	}
	return NULL;
}

// Waits until the payload is there. What is left of the peer's patience is kept as the timeout of
// its socket, rounded up by the kernel, by less than LATE_MS.
static bool has_payload(int socket, uint32_t bytes)
{
	struct pollfd end = {.fd = socket, .events = POLLRDHUP};
	struct timeval left;
	socklen_t n = sizeof(left);
	int there;

	if (ioctl(socket, FIONREAD, &there))
		return false;
	if ((uint32_t)there >= bytes)
		return true;
	if (getsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &left, &n))
		return false;
	left.tv_usec -= LATE_MS * 1000;
	for (; left.tv_usec > 0 && (uint32_t)there < bytes; left.tv_usec -= 1000)
		if (poll(&end, 1, 1) || ioctl(socket, FIONREAD, &there))
			return false;
	return left.tv_usec > 0 &&
	       !setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left));
}

static unsigned list_files(struct msghdr *packet, int *list)
{
	unsigned n = 0;
	int *files;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(packet); head; head = CMSG_NXTHDR(packet, head))
		for (unsigned i = 0, all = files_of(head, &files); i < all && n < FILES_MAX; i++)
			list[n++] = files[i];
	return n;
}

// A connection that has ended may still have messages, for a device whose peer is another one.
static bool has_hung_up(int socket)
{
	struct pollfd end = {.fd = socket};

	return poll(&end, 1, 0) > 0 && end.revents & POLLHUP;
}

// What is wrong with a message, whose payload is read and stays there; NULL: nothing yet.
static const char *fault_of(int socket, const struct msghdr *packet,
	const struct vhost_message *message, uint8_t *payload)
{
	const uint32_t bytes = message->n_bytes;

	if (message->request >= 64 || !(SERVED >> message->request & 1))
		return "its peer was disconnected: it has sent a message that no network device "
		       "needs; do not use an IOMMU, inflight memory or migration there";
	if (packet->msg_flags & MSG_CTRUNC)
		return VHOST_ENDED("it has sent more than 8 files with a message");
	if (bytes > PAYLOAD_MAX)
		return VHOST_ENDED("a message does not have its length");
	const char *why = tame_files(message);

	if (why)
		return why;
	if (!has_payload(socket, bytes) ||
		(bytes && recv(socket, payload, bytes, MSG_PEEK | MSG_DONTWAIT) != bytes))
		return "its peer was disconnected: it has sent a message without its end; use a "
		       "driver that sends messages whole";
	return NULL;
}

// The library reads the payload after this, and nobody can change it until then.
static const char *refusal_of(int socket, struct msghdr *packet)
{
	uint8_t payload[PAYLOAD_MAX];
	int files[FILES_MAX];
	uint32_t words[3]; // request, flags, bytes of the payload

	memcpy(words, packet->msg_iov[0].iov_base, sizeof(words));
	struct vhost_message message = {words[0], words[2], payload, files,
		list_files(packet, files)};

	if (has_hung_up(socket))
		return "it has gone";
	const char *why = fault_of(socket, packet, &message, payload);

	return follower ? follower(socket, &message, why) : why;
}

// Nobody else reads so few bytes with files.
ssize_t vhost_guard_received(int socket, struct msghdr *packet, ssize_t n)
{
	if (packet->msg_iovlen != 1 || packet->msg_iov[0].iov_len != HEADER_BYTES ||
		!packet->msg_control)
		return n;
	served = socket;
	if (n != HEADER_BYTES || !refusal_of(socket, packet))
		return n;
	close_files(packet);
	return 0;
}

int vhost_guard_flags(int socket, int flags)
{
	return socket == served ? flags | MSG_DONTWAIT : flags;
}

// A peer that does not read its replies.
void vhost_guard_failed(int socket)
{
	if (socket == served && errno == EAGAIN)
		shutdown(socket, SHUT_RDWR);
}
