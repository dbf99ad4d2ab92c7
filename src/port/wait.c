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
	enum hop_set hop_set; // atomic, relaxed: the worker may disable a method that fails
	const struct port_queue *io;
	struct memif_ring *ring; // HOP_SET_MEMIF
};

struct port_wait {
	unsigned n_queues;
	struct wait_queue queues[PORT_WORKER_QUEUES];
	// An edge-triggered epoll descriptor (nothing has to be read), then sockets, which report
	// what is still unread.
	unsigned n_polled;
	struct pollfd polled[1 + PORT_WORKER_QUEUES];
	int wakeup;     // an eventfd
	bool is_asleep; // or about to be; atomic, partner: port_wake
} LINE_ALIGNED;

static int add_event(const struct port_wait *wait, int fd)
{
	struct epoll_event request = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(wait->polled[0].fd, EPOLL_CTL_ADD, fd, &request) ? -errno : 0;
}

static void add_queue(struct port_table *ports, struct port_wait *wait, const struct port_queue *io)
{
	const char *device = ports->settings->ports[io->port].device;
	const struct kind *kind = &ports->devices[io->port].kind;
	struct wait_queue *queue = &wait->queues[wait->n_queues++];

	*queue = (struct wait_queue){.io = io};
	int socket = kind->netdev[0] ? below_socket(kind->netdev, io->queue) : -1;

	if (socket >= 0) {
		queue->hop_set = HOP_SET_SOCKET;
		wait->polled[wait->n_polled++] = (struct pollfd){socket, POLLIN, 0};
	} else if (strncmp(device, "net_memif", strlen("net_memif")) == 0) {
		queue->ring = memif_ring_make(device, io->queue, wait->polled[0].fd);
		queue->hop_set = queue->ring ? HOP_SET_MEMIF : HOP_SET_NONE;
	}
}

static int open_one(struct port_table *ports, struct port_worker *worker, struct error *error)
{
	struct port_wait *wait = aligned_alloc(_Alignof(struct port_wait), sizeof(*wait));

	if (!wait)
		return error_set(error, -ENOMEM,
			"workers[%u]: not enough memory for its wakeup sources", worker->id);
	memset(wait, 0, sizeof(*wait));
	worker->wait = wait;
	wait->n_polled = 1;
	wait->polled[0] = (struct pollfd){epoll_create1(EPOLL_CLOEXEC), POLLIN, 0};
	wait->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait->polled[0].fd < 0 || wait->wakeup < 0 || add_event(wait, wait->wakeup))
		return error_set(error, -errno,
			"workers[%u]: cannot wait for frames: %s; allow more open files (ulimit "
			"-n), or set \"idle: poll\" for it",
			worker->id, strerror(errno));
	for (unsigned q = 0; q < worker->n_queues; q++)
		add_queue(ports, wait, &worker->queues[q]);
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

static void add_interrupts(struct port_table *ports, struct port_wait *wait)
{
	for (unsigned q = 0; q < wait->n_queues; q++) {
		struct wait_queue *queue = &wait->queues[q];

		if (queue->hop_set != HOP_SET_NONE ||
			!ports->devices[queue->io->port].has_interrupts)
			continue;
		int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(queue->io->device, queue->io->queue);

		if (fd >= 0 && !add_event(wait, fd))
			queue->hop_set = HOP_SET_INTERRUPT;
	}
}

void wait_add_interrupts(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		if (ports->workers[i].wait)
			add_interrupts(ports, ports->workers[i].wait);
}

void wait_close(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		struct port_wait *wait = ports->workers[i].wait;

		if (!wait)
			continue;
		ports->workers[i].wait = NULL;
		for (unsigned q = 0; q < wait->n_queues; q++)
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
	for (unsigned q = 0; q < wait->n_queues; q++) {
		enum hop_set hop_set = __atomic_load_n(&wait->queues[q].hop_set, __ATOMIC_RELAXED);

		if (hop_set == HOP_SET_NONE ||
			(hop_set == HOP_SET_MEMIF && !memif_ring_is_reported(wait->queues[q].ring)))
			return false;
	}
	return true;
}

// If a driver's interrupts cannot be enabled on demand, they are always on.
static bool ask(struct wait_queue *queue)
{
	if (queue->hop_set == HOP_SET_MEMIF)
		return memif_ring_ask(queue->ring);
	if (queue->hop_set == HOP_SET_INTERRUPT) {
		int err = rte_eth_dev_rx_intr_enable(queue->io->device, queue->io->queue);

		if (err && err != -ENOTSUP)
			__atomic_store_n(&queue->hop_set, HOP_SET_NONE, __ATOMIC_RELAXED);
	}
	return true;
}

static void ask_no_more(const struct wait_queue *queue)
{
	if (queue->hop_set == HOP_SET_MEMIF)
		memif_ring_ask_no_more(queue->ring);
	else if (queue->hop_set == HOP_SET_INTERRUPT)
		rte_eth_dev_rx_intr_disable(queue->io->device, queue->io->queue);
}

bool port_wait_begin(struct port_wait *wait)
{
	if (!wait)
		return true;
	__atomic_store_n(&wait->is_asleep, true, __ATOMIC_SEQ_CST);
	for (unsigned q = 0; q < wait->n_queues; q++) {
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
static void read_error(const struct pollfd *polled)
{
	int error;
	socklen_t n = sizeof(error);

	if (polled->revents & POLLERR)
		getsockopt(polled->fd, SOL_SOCKET, SO_ERROR, &error, &n);
}

void port_wait_for(struct port_wait *wait, uint64_t ns)
{
	const struct timespec most = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	struct epoll_event events[MAX_EVENTS];

	if (!wait) {
		nanosleep(&most, NULL);
		return;
	}
	if (ppoll(wait->polled, wait->n_polled, &most, NULL) <= 0)
		return;
	if (wait->polled[0].revents)
		epoll_wait(wait->polled[0].fd, events, MAX_EVENTS, 0);
	for (unsigned i = 1; i < wait->n_polled; i++)
		read_error(&wait->polled[i]);
}

void port_wait_end(struct port_wait *wait)
{
	if (!wait)
		return;
	__atomic_store_n(&wait->is_asleep, false, __ATOMIC_RELAXED);
	for (unsigned q = 0; q < wait->n_queues; q++)
		ask_no_more(&wait->queues[q]);
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
