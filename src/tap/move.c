// Moves frames between the workers' rings and the TAP interfaces: to Linux in strict priority of
// classes and within their limits, from Linux as far as workers have lent buffers. Tap thread.
#include "tap/table.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	BULKS_MOST = 8,   // between two checks for frames from Linux
	INJECT_MOST = 32, // frames of one TAP interface before the next one is served
	SEGMENTS_MOST = 16,
	FRAME_LEAST = 60, // minimum Ethernet frame, without FCS
	SPILL_BYTES = 8,
	WAIT_NAP_NS = 50000,
	WAIT_MOST_NS = 1000000000,
};

static ssize_t write_segments(int fd, const struct rte_mbuf *mbuf)
{
	struct iovec parts[SEGMENTS_MOST];
	int n = 0;

	for (const struct rte_mbuf *m = mbuf; m; m = m->next) {
		if (n == SEGMENTS_MOST)
			return -1;
		parts[n++] = (struct iovec){rte_pktmbuf_mtod(m, void *), m->data_len};
	}
	return writev(fd, parts, n);
}

static ssize_t deliver(struct tap_table *taps, const struct rte_mbuf *mbuf)
{
	if (mbuf->hash.usr == VERDICT_ACL_REJECTED)
		return reject_packet(&taps->reject, mbuf) ? 0 : -1;
	int fd = taps->taps[mbuf->port].tap.fd;

	if (mbuf->nb_segs > 1)
		return write_segments(fd, mbuf);
	return write(fd, rte_pktmbuf_mtod(mbuf, const void *), mbuf->data_len);
}

static bool put(struct tap_table *taps, const struct rte_mbuf *mbuf)
{
	if (mbuf->port >= __atomic_load_n(&taps->n_taps, __ATOMIC_ACQUIRE) ||
		deliver(taps, mbuf) < 0)
		return false;
	stats_add(&taps->stats.punted_by_port[mbuf->port], 1);
	return true;
}

static void put_bulk(struct tap_table *taps, enum punt_class class, struct rte_mbuf *const mbufs[],
	unsigned n)
{
	const struct tap_class_settings *limit = &taps->class[class];
	struct stats_class *stat = &taps->stats.class[class];
	struct bucket *bucket = &taps->buckets[class];
	uint32_t rate = __atomic_load_n(&limit->rate, __ATOMIC_RELAXED);
	uint32_t burst = __atomic_load_n(&limit->burst, __ATOMIC_RELAXED);
	bool is_workers_own = __atomic_load_n(&limit->forwards, __ATOMIC_RELAXED);

	bucket_fill(bucket, rate, burst, clock_now_ns());
	for (unsigned i = 0; i < n; i++) {
		if (!is_workers_own && !bucket_take(bucket)) {
			stats_add(&stat->over_limit, 1);
			capture_tap(taps->captures, mbufs[i], VERDICT_PUNT_OVER_LIMIT);
		} else if (put(taps, mbufs[i])) {
			stats_add(&stat->punted, 1);
		} else {
			stats_add(&stat->refused, 1);
			capture_tap(taps->captures, mbufs[i], VERDICT_TAP_REFUSED);
		}
	}
}

static struct tap_worker *worker_in_turn(struct tap_table *taps, unsigned i)
{
	unsigned worker = taps->turn + i;

	return &taps->workers[worker < taps->n_workers ? worker : worker - taps->n_workers];
}

// The first bulk of the highest class that has one, round robin over workers. A worker that has not
// taken its used mbufs back yet is skipped.
static struct tap_worker *take_bulk(struct tap_table *taps, enum punt_class *class,
	struct rte_mbuf *mbufs[], unsigned *n)
{
	for (unsigned c = 0; c < N_CLASSES; c++)
		for (unsigned i = 0; i < taps->n_workers; i++) {
			struct tap_worker *worker = worker_in_turn(taps, i);

			if (rte_ring_empty(worker->punt[c]) ||
				rte_ring_free_count(worker->used) < RINGS_BULK)
				continue;
			*class = c;
			*n = rte_ring_sc_dequeue_burst(worker->punt[c], (void **)mbufs, RINGS_BULK,
				NULL);
			return worker;
		}
	return NULL;
}

bool move_has_punted(const struct tap_table *taps)
{
	for (unsigned l = 0; l < taps->n_workers; l++)
		for (unsigned c = 0; c < N_CLASSES; c++)
			if (!rte_ring_empty(taps->workers[l].punt[c]))
				return true;
	return false;
}

bool move_punted(struct tap_table *taps)
{
	struct rte_mbuf *mbufs[RINGS_BULK];
	enum punt_class class;
	unsigned bulks, n;

	for (bulks = 0; bulks < BULKS_MOST; bulks++) {
		struct tap_worker *worker = take_bulk(taps, &class, mbufs, &n);

		if (!worker)
			break;
		put_bulk(taps, class, mbufs, n);
		rte_ring_sp_enqueue_burst(worker->used, (void **)mbufs, n, NULL);
		taps->turn = taps->turn + 1 < taps->n_workers ? taps->turn + 1 : 0;
	}
	return bulks > 0;
}

static bool has_passed(const struct rte_ring *ring, uint32_t position)
{
	return (int32_t)(__atomic_load_n(&ring->cons.tail, __ATOMIC_ACQUIRE) - position) >= 0;
}

static void wait_for(const struct rte_ring *ring, uint64_t until_ns)
{
	const struct timespec nap = {.tv_nsec = WAIT_NAP_NS};
	uint32_t position = __atomic_load_n(&ring->prod.tail, __ATOMIC_ACQUIRE);

	while (!has_passed(ring, position) && clock_now_ns() < until_ns)
		nanosleep(&nap, NULL);
}

void move_wait_punted(struct tap_table *taps)
{
	uint64_t until_ns = clock_now_ns() + WAIT_MOST_NS;

	for (unsigned i = 0; i < taps->n_workers && taps->thread_runs; i++)
		for (unsigned c = 0; c < N_CLASSES; c++)
			wait_for(taps->workers[i].punt[c], until_ns);
}

void move_wait_injected(const struct tap_worker *worker)
{
	port_wake(worker->wait);
	wait_for(worker->inject, clock_now_ns() + WAIT_MOST_NS);
}

static void free_used(struct tap_worker *worker)
{
	struct rte_mbuf *mbufs[RINGS_BULK];
	unsigned n;

	while ((n = rte_ring_sc_dequeue_burst(worker->used, (void **)mbufs, RINGS_BULK, NULL)))
		rte_pktmbuf_free_bulk(mbufs, n);
}

void move_rest(struct tap_table *taps)
{
	do
		for (unsigned i = 0; i < taps->n_workers; i++)
			free_used(&taps->workers[i]);
	while (move_punted(taps));
}

static struct rte_mbuf *borrow(struct tap_table *taps, unsigned worker)
{
	void *mbuf = taps->spare[worker];

	taps->spare[worker] = NULL;
	if (!mbuf && rte_ring_sc_dequeue(taps->workers[worker].empty, &mbuf) != 0)
		return NULL;
	return mbuf;
}

bool move_can_inject(struct tap_table *taps, unsigned port)
{
	unsigned worker = taps->taps[port].worker;

	return taps->spare[worker] || !rte_ring_empty(taps->workers[worker].empty);
}

// Pads short frames: not every device does.
static ssize_t read_frame(int fd, struct rte_mbuf *mbuf)
{
	uint8_t spill[SPILL_BYTES], *data = rte_pktmbuf_mtod(mbuf, uint8_t *);
	unsigned room = rte_pktmbuf_tailroom(mbuf);
	struct iovec parts[] = {{data, room}, {spill, sizeof(spill)}};
	ssize_t n = readv(fd, parts, ARRAY_LEN(parts));

	if (n < 0)
		return -errno;
	if (n > room)
		return -EMSGSIZE;
	if (n < FRAME_LEAST)
		memset(data + n, 0, FRAME_LEAST - n);
	return MAX_OF(n, (ssize_t)FRAME_LEAST);
}

int move_injected(struct tap_table *taps, unsigned port, unsigned *n_moved)
{
	struct tap_entry *tap = &taps->taps[port];
	struct tap_worker *worker = &taps->workers[tap->worker];

	for (unsigned i = 0; i < INJECT_MOST; i++) {
		struct rte_mbuf *mbuf = borrow(taps, tap->worker);

		if (!mbuf)
			return -ENOBUFS;
		ssize_t n = read_frame(tap->tap.fd, mbuf);

		if (n > 0) {
			mbuf->port = port;
			mbuf->pkt_len = mbuf->data_len = n;
			rte_ring_sp_enqueue(worker->inject, mbuf); // cannot fail: no more are lent
			                                           // than fit
			port_wake(worker->wait);
			++*n_moved;
			continue;
		}
		taps->spare[tap->worker] = mbuf;
		if (n != -EMSGSIZE)
			return n ? n : -EAGAIN;
		__atomic_store_n(&tap->n_too_long, tap->n_too_long + 1, __ATOMIC_RELAXED);
	}
	return 0;
}
