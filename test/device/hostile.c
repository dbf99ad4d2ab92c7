// A vhost-user front-end that breaks every rule of the protocol and of its rings, to see that dl3d
// stands it: hostile SOCKET listen|connect SEED SECONDS MAC. It shares nothing with dl3d. MAC is
// that of dl3d's port: some frames are fit to be routed back to us, so that dl3d also sends into
// our rings. It ends after SECONDS, but not before it has done everything at least once, and
// prints how often it connected, and what it did. While its rings run, it does not set a memory
// table or the place and size of rings wrongly: DPDK 22.11.11 does not stand that.
// Source: QEMU's docs/interop/vhost-user.rst.
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_US = 100000, VERSION = 1, NEEDS_REPLY = 8 };

enum {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_LOG_BASE = 6,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
	SET_INFLIGHT_FD = 32,
	SET_STATUS = 39,
	MOST_REQUESTS = 44,
};

struct message {
	uint32_t request, flags, bytes;
	union {
		uint64_t u64;
		struct {
			uint32_t index, number;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t n, unused;
			struct {
				uint64_t guest, bytes, user, offset;
			} regions[MOST_REGIONS];
		} memory;
		struct {
			uint64_t bytes, offset;
		} log;
		uint8_t any[512];
	};
} __attribute__((packed));

struct hostile me = {.listener = -1, .health = 10, .undone = (1u << 12) - 1};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static bool is_over(void)
{
	return !me.undone && now_ns() > me.end_ns;
}

static void nap(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

// Never blocks: what the peer does not read in time is lost.
static bool send_with(int peer, const struct message *message, size_t bytes, const int *files,
	unsigned n_files)
{
	union {
		char room[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = {.room = {0}};
	struct iovec part = {(void *)message, bytes};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};

	if (n_files) {
		packet.msg_control = control.room;
		packet.msg_controllen = CMSG_SPACE(n_files * sizeof(int));
		struct cmsghdr *head = CMSG_FIRSTHDR(&packet);

		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(n_files * sizeof(int));
		memcpy(CMSG_DATA(head), files, n_files * sizeof(int));
	}
	me.n_messages++;
	return sendmsg(peer, &packet, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool tell(int peer, uint32_t request, struct message *message, uint32_t bytes, int file)
{
	message->request = request;
	message->flags = VERSION;
	message->bytes = bytes;
	return send_with(peer, message, offsetof(struct message, any) + bytes, &file, file >= 0);
}

static bool tell_u64(int peer, uint32_t request, uint64_t value, int file)
{
	struct message message = {.u64 = value};

	return tell(peer, request, &message, sizeof(value), file);
}

static bool tell_state(int peer, uint32_t request, uint32_t index, uint32_t number)
{
	struct message message = {.state = {index, number}};

	return tell(peer, request, &message, sizeof(message.state), -1);
}

static uint64_t ask(int peer, uint32_t request)
{
	struct message message = {0};

	if (!tell(peer, request, &message, 0, -1))
		return 0;
	if (recv(peer, &message, sizeof(message), 0) < (ssize_t)offsetof(struct message, any) + 8)
		return 0;
	me.n_replies++;
	return message.u64;
}

static void fill_regions(struct message *message, unsigned n)
{
	message->memory.n = n;
	for (unsigned i = 0; i < n; i++) {
		uint64_t bytes = MEMORY / n, at = i * bytes;

		message->memory.regions[i].guest = guest_address(at);
		message->memory.regions[i].bytes = bytes;
		message->memory.regions[i].user = guest_address(at) + USER_OFFSET;
		message->memory.regions[i].offset = at;
	}
}

static bool share_memory(int peer, bool is_true)
{
	struct message message = {.request = SET_MEM_TABLE, .flags = VERSION};
	int files[MOST_REGIONS];
	unsigned n = 1u << below(4);

	fill_regions(&message, n);
	for (unsigned i = 0; i < n; i++)
		files[i] = me.file;
	message.bytes = 8 + n * sizeof(message.memory.regions[0]);
	if (!is_true) {
		uint64_t *word = (uint64_t *)&message.memory.regions[below(n)] + below(4);

		*word = one_in(2) ? edge() : *word + (below(3) - 1) * 4096;
		if (one_in(4))
			message.memory.n = edge();
	}
	return send_with(peer, &message, offsetof(struct message, any) + message.bytes, files, n);
}

// What a worker writes to after it has filled a ring: it may block there.
static int make_call(int *also)
{
	uint8_t page[4096] = {0};
	int ends[2], call;

	*also = -1;
	switch (below(64)) {
	case 0 ... 15: // full
		call = eventfd(0, 0);
		eventfd_write(call, UINT64_MAX - 1);
		return call;
	case 16:
		if (pipe2(ends, O_NONBLOCK))
			return eventfd(0, 0);
		while (write(ends[1], page, sizeof(page)) > 0)
			;
		fcntl(ends[1], F_SETFL, 0);
		*also = ends[0];
		return ends[1];
	default:
		return eventfd(0, EFD_NONBLOCK);
	}
}

static bool set_up_vring(int peer, unsigned index)
{
	uint64_t at = guest_address(RINGS_AT + index * RING_BYTES) + USER_OFFSET;
	struct message message = {
		.addr = {.index = index, .desc = at, .avail = at + AVAIL_AT, .used = at + USED_AT}};
	int also, call = make_call(&also), kick = eventfd(0, EFD_NONBLOCK);
	bool is_told = tell_state(peer, SET_VRING_NUM, index, me.n_slots) &&
	               tell_state(peer, SET_VRING_BASE, index, me.is_packed ? 1 << 15 : 0) &&
	               tell(peer, SET_VRING_ADDR, &message, sizeof(message.addr), -1) &&
	               tell_u64(peer, SET_VRING_CALL, index, call) &&
	               tell_u64(peer, SET_VRING_KICK, index, kick) &&
	               tell_state(peer, SET_VRING_ENABLE, index, 1);

	close(call);
	close(kick);
	if (also >= 0)
		close(also);
	return is_told;
}

static bool set_up(int peer)
{
	uint64_t features = ask(peer, GET_FEATURES), optional = 1ull << VIRTIO_F_VERSION_1;

	if (!features)
		return false;
	memset(me.memory, 0, TABLES_AT);
	me.n_vrings = 2 * (1 + below(MOST_VRINGS / 2));
	me.n_slots = 1u << (3 + below(8));
	if (one_in(2)) // without the packed ring
		features &= ~(1ull << 34);
	for (unsigned bit = 0; bit < 64; bit++)
		if (one_in(4) && !(optional >> bit & 1) && bit != 30)
			features &= ~(1ull << bit);
	me.is_packed = features >> 34 & 1;
	tell(peer, SET_OWNER, &(struct message){0}, 0, -1);
	if (features >> 30 & 1)
		tell_u64(peer, SET_PROTOCOL_FEATURES, ask(peer, GET_PROTOCOL_FEATURES), -1);
	if (!tell_u64(peer, SET_FEATURES, features, -1) || !share_memory(peer, !one_in(20)))
		return false;
	for (unsigned i = 0; i < me.n_vrings; i++)
		if (!set_up_vring(peer, i))
			return false;
	return tell_u64(peer, SET_STATUS, 15, -1); // its driver runs
}

// The memory that dl3d has mapped is no longer there.
static void cut_memory(void)
{
	static const uint32_t lengths[] = {0, 4096, TABLES_AT, MEMORY / 2, MEMORY - 4096};

	if (ftruncate(me.file, lengths[below(5)]))
		return;
	me.n_cuts++;
	nap(2000);
	if (ftruncate(me.file, MEMORY))
		exit(3);
}

static void send_nonsense(int peer)
{
	struct message message;
	int files[16] = {0};
	unsigned n_files = one_in(2) ? 0 : below(12);

	for (unsigned i = 0; i < sizeof(message) / 4; i++)
		((uint32_t *)&message)[i] = one_in(2) ? edge() : below(MOST_VRINGS);
	for (unsigned i = 0; i < n_files; i++)
		files[i] = one_in(2) ? me.file : peer;
	message.request = one_in(20) ? any() : below(MOST_REQUESTS);
	if (message.request == SET_MEM_TABLE || message.request == SET_VRING_NUM ||
		message.request == SET_VRING_ADDR)
		message.request = GET_FEATURES;
	message.flags = VERSION | (one_in(2) ? NEEDS_REPLY : 0);
	message.bytes = one_in(20) ? any() : 8 * below(40);
	size_t bytes = offsetof(struct message, any) + (message.bytes <= 512 ? message.bytes : 0);

	// Sometimes only a part, and then silence.
	send_with(peer, &message, one_in(20) ? below(bytes) + 1 : bytes, files, n_files);
}

// Inflight memory of a size of its own, and a log that begins where its file ends.
static void send_lies(int peer)
{
	struct {
		uint64_t bytes, offset;
		uint16_t n_queues, n_slots;
	} inflight = {4096, 0, MOST_VRINGS, UINT16_MAX};
	struct message message = {.log = {4096, one_in(2) ? 4096 : 0}};

	if (one_in(2)) {
		tell(peer, SET_LOG_BASE, &message, sizeof(message.log), me.file);
		return;
	}
	memcpy(message.any, &inflight, sizeof(inflight));
	tell(peer, SET_INFLIGHT_FD, &message, sizeof(inflight), me.file);
}

// Does not read the replies.
static void flood(int peer)
{
	for (unsigned i = 0; i < 2000; i++) {
		struct message message = {.request = SET_VRING_ENABLE,
			.flags = VERSION | NEEDS_REPLY,
			.bytes = sizeof(message.state),
			.state = {below(me.n_vrings), below(2)}};

		if (!send_with(peer, &message, offsetof(struct message, any) + message.bytes, NULL,
			    0))
			return;
	}
}

enum { ACTIONS = 11, FILLS = 40 };

static bool misbehave(int peer)
{
	unsigned vring = below(me.n_vrings), action = below(ACTIONS + FILLS);

	if (me.undone && one_in(4))
		action = __builtin_ctz(me.undone);
	me.undone &= ~(1u << (action < ACTIONS ? action : ACTIONS));
	switch (action) {
	case 0:
		send_nonsense(peer);
		return true;
	case 1:
		return tell_state(peer, SET_VRING_ENABLE, vring, 1);
	case 2:
		cut_memory();
		return true;
	case 3:
		return tell_state(peer, SET_VRING_ENABLE, vring, below(2));
	case 4:
		return tell_state(peer, SET_VRING_BASE, vring, edge());
	case 5:
		send_lies(peer);
		return true;
	case 6:
		ask(peer, GET_FEATURES);
		return true;
	case 7:
		ask(peer, one_in(2) ? GET_VRING_BASE : GET_PROTOCOL_FEATURES);
		return true;
	case 8:
		if (one_in(8))
			flood(peer);
		return true;
	case 9:
		if (one_in(4))
			send_lies(peer);
		return true;
	case 10:
		for (unsigned i = below(8); i-- > 0;)
			rings_scribble();
		return true;
	default:
		rings_fill();
		nap(below(300));
		return true;
	}
}

static int open_peer(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_usec = PATIENCE_US};
	int peer;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", me.path);
	if (me.listens) {
		peer = accept(me.listener, NULL, NULL);
	} else {
		peer = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(peer, (struct sockaddr *)&address, sizeof(address))) {
			close(peer);
			peer = -1;
		}
	}
	if (peer < 0) {
		nap(10000);
		return -1;
	}
	setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return peer;
}

// Where dl3d listens, a second one comes while the first one is still there.
static void run_session(void)
{
	int peer = open_peer(), other = !me.listens && one_in(4) ? open_peer() : -1;

	if (peer < 0)
		return;
	me.n_connections++;
	if (set_up(peer)) {
		unsigned n = below(60);

		while (n-- && !is_over() && misbehave(peer))
			if (other >= 0 && one_in(30))
				set_up(other);
	}
	close(peer);
	if (other >= 0)
		close(other);
}

static void start_listening(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_usec = PATIENCE_US};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", me.path);
	me.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	setsockopt(me.listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (bind(me.listener, (struct sockaddr *)&address, sizeof(address)) ||
		listen(me.listener, 8))
		exit(2);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	me.path = argv[1];
	me.listens = strcmp(argv[2], "listen") == 0;
	me.random = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
	me.end_ns = now_ns() + strtoull(argv[4], NULL, 10) * 1000000000;
	if (sscanf(argv[5], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", me.mac, me.mac + 1, me.mac + 2,
		    me.mac + 3, me.mac + 4, me.mac + 5) != 6)
		return 2;
	me.file = memfd_create("guest", MFD_CLOEXEC);
	if (me.file < 0 || ftruncate(me.file, MEMORY))
		return 3;
	me.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, me.file, 0);
	if (me.memory == MAP_FAILED)
		return 3;
	if (me.listens)
		start_listening();
	while (!is_over())
		run_session();
	printf("{\"connections\": %lu, \"messages\": %lu, \"replies\": %lu, \"chains\": %lu, "
	       "\"scribbles\": %lu, \"cuts\": %lu}\n",
		me.n_connections, me.n_messages, me.n_replies, me.n_chains, me.n_scribbles,
		me.n_cuts);
	return 0;
}
