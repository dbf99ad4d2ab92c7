// What an idle worker waits for: a readable socket, an event from memif's peer or a device
// interrupt, or a wakeup by another thread; a timeout ends the wait in any case. Worker, unless
// noted.
#include "port/wait.h"

#include "port/table.h"

#include <errno.h>
#include <poll.h>
#include <rte_atomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_EVENTS = 16 };

// How a worker is notified of frames on a queue.
enum hop_set { HOP_SET_NONE, HOP_SET_SOCKET, HOP_SET_MEMIF, HOP_SET_INTERRUPT };

struct wait_queue {
	// Atomic; acquire and release, for `ring`. The worker may disable a method that fails.
	enum hop_set hop_set;
	const struct port_queue *io;
	struct memif_ring *ring; // HOP_SET_MEMIF
	unsigned slot;           // in `polled`, reserved for its socket; 0: none
};

struct port_wait {
	const struct port_worker *worker;
	struct wait_queue queues[PORT_WORKER_QUEUES]; // by place of the worker's queue
	// An edge-triggered epoll descriptor (nothing has to be read), then sockets, which report
	// what is still unread. The control thread replaces the descriptors of sockets (atomic,
	// relaxed; -1: none) when a device vanishes or returns, and ports come and go.
	unsigned n_polled; // atomic, relaxed
	struct pollfd polled[1 + PORT_WORKER_QUEUES];
	int wakeup;     // an eventfd
	bool is_asleep; // or about to be; atomic, partner: port_wake
} LINE_ALIGNED;

static int add_event(const struct port_wait *wait, int fd)
{
	struct epoll_event request = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(wait->polled[0].fd, EPOLL_CTL_ADD, fd, &request) ? -errno : 0;
}

static void set_method(struct wait_queue *queue, enum hop_set hop_set)
{
	__atomic_store_n(&queue->hop_set, hop_set, __ATOMIC_RELEASE);
}

static enum hop_set method_of(const struct wait_queue *queue)
{
	return __atomic_load_n(&queue->hop_set, __ATOMIC_ACQUIRE);
}

static void set_socket(struct port_wait *wait, const struct wait_queue *queue, int socket)
{
	if (queue->slot)
		__atomic_store_n(&wait->polled[queue->slot].fd, socket, __ATOMIC_RELAXED);
}

static void make_ring(struct port_table *ports, struct port_wait *wait, struct wait_queue *queue)
{
	const char *device = ports->settings->ports[queue->io->port].device;

	if (!queue->ring && strncmp(device, "net_memif", strlen("net_memif")) == 0)
		queue->ring = memif_ring_make(device, queue->io->queue, wait->polled[0].fd);
}

// How the driver of an open device notifies the worker, interrupts apart.
static void find_method(struct port_table *ports, struct port_wait *wait, struct wait_queue *queue)
{
	const struct kind *kind = &ports->devices[queue->io->port].kind;
	int socket = queue->slot ? below_socket(kind->netdev, queue->io->queue) : -1;

	if (socket >= 0) {
		set_socket(wait, queue, socket);
		set_method(queue, HOP_SET_SOCKET);
	} else if (queue->ring) {
		set_method(queue, HOP_SET_MEMIF);
	}
}

// The worker uses neither until the method is set.
static void add_queue(struct port_table *ports, struct port_wait *wait, unsigned place)
{
	struct wait_queue *queue = &wait->queues[place];

	queue->slot = ports->devices[queue->io->port].kind.netdev[0] ? 1 + place : 0;
	if (queue->slot >= wait->n_polled)
		__atomic_store_n(&wait->n_polled, queue->slot + 1, __ATOMIC_RELAXED);
	make_ring(ports, wait, queue);
}

static int open_one(struct port_table *ports, struct port_worker *worker, struct error *error)
{
	struct port_wait *wait = aligned_alloc(_Alignof(struct port_wait), sizeof(*wait));

	if (!wait)
		return error_set(error, -ENOMEM,
			"workers[%u]: not enough memory for its wakeup sources", worker->id);
	memset(wait, 0, sizeof(*wait));
	worker->wait = wait;
	wait->worker = worker;
	wait->n_polled = 1;
	for (unsigned q = 0; q < PORT_WORKER_QUEUES; q++) {
		wait->queues[q].io = &worker->queues[q];
		wait->polled[1 + q] = (struct pollfd){-1, POLLIN, 0};
	}
	wait->polled[0] = (struct pollfd){epoll_create1(EPOLL_CLOEXEC), POLLIN, 0};
	wait->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait->polled[0].fd < 0 || wait->wakeup < 0 || add_event(wait, wait->wakeup))
		return error_set(error, -errno,
			"workers[%u]: cannot wait for frames: %s; allow more open files (ulimit "
			"-n), or set \"idle: poll\" for it",
			worker->id, strerror(errno));
	for (unsigned q = 0; q < worker->n_queues; q++) {
		add_queue(ports, wait, q);
		find_method(ports, wait, &wait->queues[q]);
	}
	return 0;
}

int wait_open(struct port_table *ports, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < ports->plan.n_workers && !err; i++)
		if (ports->workers[i].may_sleep)
			err = open_one(ports, &ports->workers[i], error);
	return err;
}

static void add_interrupt(struct port_table *ports, struct port_wait *wait,
	struct wait_queue *queue)
{
	const struct port_device *device = &ports->devices[queue->io->port];

	if (method_of(queue) != HOP_SET_NONE || !device->has_interrupts)
		return;
	int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(device->id, queue->io->queue);

	if (fd >= 0 && !add_event(wait, fd))
		set_method(queue, HOP_SET_INTERRUPT);
}

// Whether the worker waits, and for a queue of this number.
static bool waits(const struct port_table *ports, unsigned worker, unsigned queue)
{
	const struct port_wait *wait = ports->workers[worker].wait;

	return wait && queue < port_n_queues(wait->worker);
}

void wait_add_interrupts(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; waits(ports, i, q); q++)
			add_interrupt(ports, ports->workers[i].wait,
				&ports->workers[i].wait->queues[q]);
}

// Closing a device takes its interrupts out of the epoll descriptor.
void wait_leave(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; waits(ports, i, q); q++) {
			struct port_wait *wait = ports->workers[i].wait;

			if (wait->queues[q].io->port != port)
				continue;
			set_method(&wait->queues[q], HOP_SET_NONE);
			set_socket(wait, &wait->queues[q], -1);
		}
}

void wait_return(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; waits(ports, i, q); q++) {
			struct port_wait *wait = ports->workers[i].wait;

			if (wait->queues[q].io->port != port)
				continue;
			find_method(ports, wait, &wait->queues[q]);
			add_interrupt(ports, wait, &wait->queues[q]);
		}
}

void wait_add(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; waits(ports, i, q); q++)
			if (ports->workers[i].queues[q].port == port)
				add_queue(ports, ports->workers[i].wait, q);
}

void wait_remove(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; waits(ports, i, q); q++) {
			struct wait_queue *queue = &ports->workers[i].wait->queues[q];

			if (queue->io->port != port || !queue->ring)
				continue;
			memif_ring_free(queue->ring);
			queue->ring = NULL;
		}
}

void wait_close(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		struct port_wait *wait = ports->workers[i].wait;

		if (!wait)
			continue;
		ports->workers[i].wait = NULL;
		for (unsigned q = 0; q < PORT_WORKER_QUEUES; q++)
			if (wait->queues[q].ring)
				memif_ring_free(wait->queues[q].ring);
		if (wait->wakeup >= 0)
			close(wait->wakeup);
		if (wait->polled[0].fd >= 0)
			close(wait->polled[0].fd);
		free(wait);
	}
}

bool port_wait_is_woken(const struct port_wait *wait)
{
	if (!wait)
		return false;
	for (unsigned q = 0, n = port_n_queues(wait->worker); q < n; q++) {
		enum hop_set hop_set = method_of(&wait->queues[q]);

		if (port_is_closed(wait->queues[q].io))
			continue;
		if (hop_set == HOP_SET_NONE ||
			(hop_set == HOP_SET_MEMIF && !memif_ring_is_reported(wait->queues[q].ring)))
			return false;
	}
	return true;
}

// If a driver's interrupts cannot be enabled on demand, they are always on.
static bool ask(struct wait_queue *queue)
{
	enum hop_set hop_set = method_of(queue);

	if (hop_set == HOP_SET_MEMIF)
		return memif_ring_ask(queue->ring);
	if (hop_set == HOP_SET_INTERRUPT && !port_is_closed(queue->io)) {
		int err = rte_eth_dev_rx_intr_enable(queue->io->device, queue->io->queue);

		if (err && err != -ENOTSUP)
			set_method(queue, HOP_SET_NONE);
	}
	return true;
}

static void ask_no_more(const struct wait_queue *queue)
{
	enum hop_set hop_set = method_of(queue);

	if (hop_set == HOP_SET_MEMIF)
		memif_ring_ask_no_more(queue->ring);
	else if (hop_set == HOP_SET_INTERRUPT && !port_is_closed(queue->io))
		rte_eth_dev_rx_intr_disable(queue->io->device, queue->io->queue);
}

bool port_wait_begin(struct port_wait *wait)
{
	if (!wait)
		return true;
	__atomic_store_n(&wait->is_asleep, true, __ATOMIC_SEQ_CST);
	for (unsigned q = 0, n = port_n_queues(wait->worker); q < n; q++) {
		if (ask(&wait->queues[q]))
			continue;
		while (q)
			ask_no_more(&wait->queues[--q]);
		__atomic_store_n(&wait->is_asleep, false, __ATOMIC_RELAXED);
		return false;
	}
	return true;
}

// A socket error (its interface went down) is a single event; reading it clears it.
static void read_error(struct pollfd *polled)
{
	int error, fd = __atomic_load_n(&polled->fd, __ATOMIC_RELAXED);
	socklen_t n = sizeof(error);

	if (polled->revents & POLLERR && fd >= 0)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
	polled->revents = 0;
}

void port_wait_for(struct port_wait *wait, uint64_t ns)
{
	const struct timespec most = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	struct epoll_event events[MAX_EVENTS];

	if (!wait) {
		nanosleep(&most, NULL);
		return;
	}
	unsigned n = __atomic_load_n(&wait->n_polled, __ATOMIC_RELAXED);

	if (ppoll(wait->polled, n, &most, NULL) <= 0)
		return;
	if (wait->polled[0].revents)
		epoll_wait(wait->polled[0].fd, events, MAX_EVENTS, 0);
}

void port_wait_end(struct port_wait *wait)
{
	if (!wait)
		return;
	__atomic_store_n(&wait->is_asleep, false, __ATOMIC_RELAXED);
	for (unsigned q = 0, n = port_n_queues(wait->worker); q < n; q++)
		ask_no_more(&wait->queues[q]);
	for (unsigned i = 1; i < __atomic_load_n(&wait->n_polled, __ATOMIC_RELAXED); i++)
		read_error(&wait->polled[i]);
}

// The fence ensures that what the caller has written is visible before it checks whether the worker
// sleeps; the worker announces its sleep before it checks for new work.
void port_wake(struct port_wait *wait)
{
	const uint64_t one = 1;

	if (!wait)
		return;
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&wait->is_asleep, __ATOMIC_RELAXED))
		return;
	ssize_t n = write(wait->wakeup, &one, sizeof(one));

	(void)n; // fails only if the counter is full, after 2^64 wakeups
}
