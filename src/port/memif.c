// memif's driver polls and offers no interrupts, but the protocol supports them: a receiver clears
// a flag in its ring, and the sender writes to an eventfd. So in both programs the sendmsg and
// recvmsg in this file override libc's (meson.build), read the messages with which driver and peer
// agree on rings, and map the headers of the driver's receive rings once more. Source: memif 2.0,
// as in DPDK's guide, "Memif Poll Mode Driver". Messages arrive on EAL's interrupt thread.
#include "base/bits.h"
#include "port/kind.h"
#include "port/vhost_guard.h"
#include "port/wait.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <rte_atomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 128, MAX_AGREEING = 64, MAX_REGIONS = 4 };
enum { INIT = 3, ADD_REGION = 4, ADD_RING = 5, CONNECT = 6, DISCONNECT = 8 };
enum { FLAG_TO_SERVER = 1, FLAG_NO_EVENTS = 1 };

struct message {
	uint16_t type;
	union {
		struct {
			uint16_t version;
			uint32_t id;
		} __attribute__((packed)) init;
		struct {
			uint16_t index;
			uint64_t bytes;
		} __attribute__((packed)) region;
		struct {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log2_slots;
		} __attribute__((packed)) ring;
		uint8_t rest[MESSAGE_BYTES - sizeof(uint16_t)];
	};
} __attribute__((packed));

// The header of a ring in shared memory: the peer may write anything there at any time.
struct ring_head {
	uint32_t cookie;
	uint16_t flags, head;
	uint8_t unused[56];
	uint16_t tail;
} __attribute__((aligned(64)));

struct memif_ring {
	struct memif_ring *next;
	char path[KIND_PATH_MAX];
	uint32_t id;
	uint16_t queue;
	bool is_client;
	int epoll;
	pthread_mutex_t lock; // protects all fields below; held no longer than a system call
	struct ring_head *head;
	void *map;
	size_t map_bytes;
	int event;
	int socket;     // number of the socket it was set up on; valid while head is set
	uint16_t seen;  // the sender's index when last read
	bool is_untold; // connected, but head or event is not available
};

// A connection during setup. `socket` 0: free.
struct agreeing {
	int socket;
	uint32_t id;
	int regions[MAX_REGIONS]; // 0: not received yet
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of both
static struct agreeing agreeing[MAX_AGREEING];
static struct memif_ring *rings;

static void forget(struct memif_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_bytes);
	if (ring->event >= 0) {
		epoll_ctl(ring->epoll, EPOLL_CTL_DEL, ring->event, NULL);
		close(ring->event);
	}
	ring->map = NULL;
	ring->head = NULL;
	ring->event = -1;
	ring->is_untold = false;
}

struct memif_ring *memif_ring_make(const char *device, uint16_t queue, int epoll)
{
	struct memif_ring *ring = calloc(1, sizeof(*ring));
	char number[16] = "0", role[16] = "";

	if (!ring)
		return NULL;
	if (!kind_argument(device, "socket", ring->path, sizeof(ring->path)))
		snprintf(ring->path, sizeof(ring->path), "/run/memif.sock");
	kind_argument(device, "id", number, sizeof(number));
	kind_argument(device, "role", role, sizeof(role));
	ring->id = strtoul(number, NULL, 10);
	ring->is_client = strcmp(role, "client") == 0 || strcmp(role, "slave") == 0;
	ring->queue = queue;
	ring->epoll = epoll;
	ring->event = -1;
	pthread_mutex_init(&ring->lock, NULL);
	pthread_mutex_lock(&lock);
	ring->next = rings;
	__atomic_store_n(&rings, ring, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return ring;
}

void memif_ring_free(struct memif_ring *ring)
{
	pthread_mutex_lock(&lock);
	for (struct memif_ring **at = &rings; *at; at = &(*at)->next)
		if (*at == ring) {
			__atomic_store_n(at, ring->next, __ATOMIC_RELAXED);
			break;
		}
	pthread_mutex_unlock(&lock);
	forget(ring);
	pthread_mutex_destroy(&ring->lock);
	free(ring);
}

bool memif_ring_is_reported(struct memif_ring *ring)
{
	pthread_mutex_lock(&ring->lock);
	bool is_reported = !ring->is_untold;

	pthread_mutex_unlock(&ring->lock);
	return is_reported;
}

// Only the sender moves the tail of a ring to the client, and the head of one to the server.
static bool has_news(struct memif_ring *ring)
{
	uint16_t *index = ring->is_client ? &ring->head->tail : &ring->head->head;
	uint16_t now = __atomic_load_n(index, __ATOMIC_ACQUIRE);
	bool is_new = now != ring->seen;

	ring->seen = now;
	return is_new;
}

static void set_events(struct memif_ring *ring, bool wanted)
{
	uint16_t flags = __atomic_load_n(&ring->head->flags, __ATOMIC_RELAXED);

	flags = wanted ? flags & ~FLAG_NO_EVENTS : flags | FLAG_NO_EVENTS;
	__atomic_store_n(&ring->head->flags, flags, __ATOMIC_RELEASE);
}

// Frames from before the last poll, which found none, have been received.
bool memif_ring_ask(struct memif_ring *ring)
{
	bool is_quiet = true;

	pthread_mutex_lock(&ring->lock);
	if (ring->head && !has_news(ring)) {
		set_events(ring, true);
		rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
		is_quiet = !has_news(ring);
		if (!is_quiet)
			set_events(ring, false);
	} else if (ring->head) {
		is_quiet = false;
	}
	pthread_mutex_unlock(&ring->lock);
	return is_quiet;
}

void memif_ring_ask_no_more(struct memif_ring *ring)
{
	pthread_mutex_lock(&ring->lock);
	if (ring->head)
		set_events(ring, false);
	pthread_mutex_unlock(&ring->lock);
}

// Maps the one or two pages with the ring's header. Refuses files that can shrink: a peer could
// crash us by truncating one.
static void *map_head(int region, uint32_t offset, size_t *bytes, struct ring_head **head)
{
	size_t page = sysconf(_SC_PAGESIZE), before = offset % page;
	struct stat file;

	*bytes = before + sizeof(struct ring_head);
	if (offset % _Alignof(struct ring_head) || fstat(region, &file) ||
		(uint64_t)file.st_size < (uint64_t)offset + sizeof(struct ring_head) ||
		!(fcntl(region, F_GET_SEALS) & F_SEAL_SHRINK))
		return NULL;
	void *map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region, offset - before);

	if (map == MAP_FAILED)
		return NULL;
	*head = (struct ring_head *)((char *)map + before);
	return map;
}

static void take_ring(struct memif_ring *ring, const struct agreeing *a, const struct message *m,
	int event)
{
	struct epoll_event request = {.events = EPOLLIN | EPOLLET};

	pthread_mutex_lock(&ring->lock);
	int region = m->ring.region < MAX_REGIONS ? a->regions[m->ring.region] : 0;

	forget(ring);
	ring->socket = a->socket;
	ring->event = event < 0 ? -1 : fcntl(event, F_DUPFD_CLOEXEC, 0);
	if (region > 0)
		ring->map = map_head(region, m->ring.offset, &ring->map_bytes, &ring->head);
	if (!ring->map || ring->event < 0 ||
		epoll_ctl(ring->epoll, EPOLL_CTL_ADD, ring->event, &request)) {
		forget(ring);
		ring->is_untold = true;
	}
	pthread_mutex_unlock(&ring->lock);
}

// Reads the path of the server's socket; the name of an abstract one (socket-abstract) starts with
// a 0.
static bool read_path(int socket, bool is_client, char path[static KIND_PATH_MAX])
{
	struct sockaddr_un name = {0};
	socklen_t n = sizeof(name);

	int err = is_client ? getpeername(socket, (struct sockaddr *)&name, &n)
	                    : getsockname(socket, (struct sockaddr *)&name, &n);
	if (err || name.sun_family != AF_UNIX)
		return false;
	memset(path, 0, KIND_PATH_MAX);
	memcpy(path, name.sun_path + !name.sun_path[0], sizeof(name.sun_path) - !name.sun_path[0]);
	path[KIND_PATH_MAX - 1] = 0;
	return true;
}

static void add_ring(const struct agreeing *a, const struct message *m, bool is_client, int event)
{
	bool to_server = m->ring.flags & FLAG_TO_SERVER;
	char path[KIND_PATH_MAX];

	if (to_server == is_client || !read_path(a->socket, is_client, path))
		return;
	for (struct memif_ring *ring = rings; ring; ring = ring->next)
		if (ring->is_client == is_client && ring->id == a->id &&
			ring->queue == m->ring.index && strcmp(ring->path, path) == 0)
			take_ring(ring, a, m, event);
}

static void end_agreeing(struct agreeing *a)
{
	for (unsigned i = 0; i < MAX_REGIONS; i++)
		if (a->regions[i])
			close(a->regions[i]);
	*a = (struct agreeing){0};
}

// The entry of a connection, or one for a new connection: a free one, otherwise the oldest is
// replaced.
static struct agreeing *find_agreeing(int socket, bool is_new)
{
	static unsigned turn;
	struct agreeing *free_one = NULL;

	for (unsigned i = 0; i < MAX_AGREEING; i++) {
		if (agreeing[i].socket == socket)
			return &agreeing[i];
		if (!agreeing[i].socket)
			free_one = &agreeing[i];
	}
	if (!is_new)
		return NULL;
	return free_one ? free_one : &agreeing[turn++ % MAX_AGREEING];
}

// The peer has disconnected; releases its memory.
static void end_connection(int socket)
{
	struct agreeing *a = find_agreeing(socket, false);

	if (a)
		end_agreeing(a);
	for (struct memif_ring *ring = rings; ring; ring = ring->next) {
		pthread_mutex_lock(&ring->lock);
		if (ring->head && ring->socket == socket)
			forget(ring);
		pthread_mutex_unlock(&ring->lock);
	}
}

static void handle_signals(int socket, const struct message *m, bool is_client, int fd)
{
	struct agreeing *a = find_agreeing(socket, m->type == INIT);

	if (!a)
		return;
	if (m->type == INIT) {
		end_agreeing(a);
		a->socket = socket;
		a->id = m->init.id;
	} else if (m->type == ADD_REGION && m->region.index < MAX_REGIONS && fd >= 0) {
		if (a->regions[m->region.index])
			close(a->regions[m->region.index]);
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

		a->regions[m->region.index] = MAX_OF(copy, 0);
	} else if (m->type == ADD_RING) {
		add_ring(a, m, is_client, fd);
	} else if (m->type == CONNECT) {
		end_agreeing(a);
	}
}

static bool is_memif(int socket)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return socket > 0 && __atomic_load_n(&rings, __ATOMIC_RELAXED) &&
	       !getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_SEQPACKET;
}

static int descriptor_of(const struct msghdr *packet)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(packet); c;
		c = CMSG_NXTHDR((struct msghdr *)packet, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
			c->cmsg_len >= CMSG_LEN(sizeof(fd)))
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

// Inspects `n` bytes of a packet on any socket of this process.
static void listen_in(int socket, const struct msghdr *packet, ssize_t n, bool is_client)
{
	struct message m;

	if ((n && n != MESSAGE_BYTES) || packet->msg_iovlen != 1 || !is_memif(socket))
		return;
	if (!n)
		m.type = DISCONNECT;
	else
		memcpy(&m, packet->msg_iov[0].iov_base, sizeof(m));
	pthread_mutex_lock(&lock);
	if (m.type == DISCONNECT)
		end_connection(socket);
	else
		handle_signals(socket, &m, is_client, descriptor_of(packet));
	pthread_mutex_unlock(&lock);
}

// Clients propose rings, so sending such a message makes us the client. It is inspected before it
// is sent, since the server may use the ring after that.
ssize_t sendmsg(int socket, const struct msghdr *packet, int flags)
{
	ssize_t (*const next)(int, const struct msghdr *, int) =
		(__typeof__(&sendmsg))dlsym(RTLD_NEXT, "sendmsg");

	if (packet->msg_iovlen == 1)
		listen_in(socket, packet, packet->msg_iov[0].iov_len, true);
	ssize_t n = next(socket, packet, vhost_guard_flags(socket, flags));

	if (n < 0)
		vhost_guard_failed(socket);
	return n;
}

ssize_t recvmsg(int socket, struct msghdr *packet, int flags)
{
	ssize_t (*const next)(int, struct msghdr *, int) =
		(__typeof__(&recvmsg))dlsym(RTLD_NEXT, "recvmsg");
	ssize_t n = next(socket, packet, flags);

	listen_in(socket, packet, n, false);
	return vhost_guard_received(socket, packet, n);
}
