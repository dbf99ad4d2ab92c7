// A worker's rings: created by the control thread, used by the worker.
#include "tap/rings.h"

#include <errno.h>
#include <rte_atomic.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <unistd.h>

enum { RING_LEAST = 64, RING_MOST = 8192, USED_BULKS = 4 };

static unsigned ring_frames(const struct tap_class_settings *class)
{
	return MIN_OF(MAX_OF(class->burst, (uint32_t)RING_LEAST), (uint32_t)RING_MOST);
}

static unsigned count_punted_most(const struct tap_class_settings classes[])
{
	unsigned n = 0;

	for (unsigned c = 0; c < N_CLASSES; c++)
		n += ring_frames(&classes[c]);
	return n;
}

unsigned tap_n_mbufs(const struct tap_settings *settings)
{
	return count_punted_most(settings->class) + RINGS_BULK + RINGS_USED + RINGS_INJECT;
}

static struct rte_ring *make_ring(unsigned frames)
{
	unsigned slots = rte_align32pow2(frames + 1);
	ssize_t bytes = rte_ring_get_memsize(slots);
	struct rte_ring *ring = aligned_alloc(CACHE_LINE_BYTES, round_up(bytes, CACHE_LINE_BYTES));

	if (ring && rte_ring_init(ring, "tap", frames,
			    RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) != 0) {
		free(ring);
		return NULL;
	}
	return ring;
}

void rings_limit_redirects(struct tap_worker *worker, const struct tap_class_settings *class,
	unsigned n_workers)
{
	uint64_t cycles = 0; // no limit here: the tap thread applies one

	if (class->forwards)
		cycles = class->rate ? rte_get_tsc_hz() * n_workers / class->rate : UINT64_MAX;
	__atomic_store_n(&worker->redirect_cycles, cycles, __ATOMIC_RELAXED);
	__atomic_store_n(&worker->redirect_burst, MAX_OF(class->burst / n_workers, 1u),
		__ATOMIC_RELAXED);
}

int tap_worker_make(struct tap_worker *worker, const struct tap_class_settings classes[])
{
	bool is_complete = true;

	memset(worker, 0, sizeof(*worker));
	for (unsigned v = 0; v < N_VERDICTS; v++)
		worker->class_of[v] = verdict_class(v);
	for (unsigned c = 0; c < N_CLASSES; c++) {
		worker->punt[c] = make_ring(ring_frames(&classes[c]));
		is_complete &= worker->punt[c] != NULL;
	}
	worker->inject = make_ring(RINGS_INJECT);
	worker->empty = make_ring(RINGS_INJECT);
	worker->used = make_ring(RINGS_USED);
	rings_limit_redirects(worker, &classes[CLASS_REDIRECT], 1);
	if (is_complete && worker->inject && worker->empty && worker->used)
		return 0;
	tap_worker_free(worker);
	return -ENOMEM;
}

static void free_ring(struct rte_ring **ring)
{
	struct rte_mbuf *mbufs[RINGS_BULK];
	unsigned n;

	while (*ring && (n = rte_ring_sc_dequeue_burst(*ring, (void **)mbufs, RINGS_BULK, NULL)))
		rte_pktmbuf_free_bulk(mbufs, n);
	free(*ring);
	*ring = NULL;
}

void tap_worker_free(struct tap_worker *worker)
{
	for (unsigned c = 0; c < N_CLASSES; c++)
		free_ring(&worker->punt[c]);
	free_ring(&worker->inject);
	free_ring(&worker->empty);
	free_ring(&worker->used);
}

// Lends the buffers owed to the tap thread, as far as the pool can supply them.
static void lend(struct tap_worker *worker)
{
	struct rte_mbuf *mbufs[RINGS_BULK];

	while (worker->n_owed) {
		unsigned n = MIN_OF(worker->n_owed, (unsigned)RINGS_BULK);

		if (rte_pktmbuf_alloc_bulk(worker->pool, mbufs, n) != 0)
			return;
		rte_ring_sp_enqueue_burst(worker->empty, (void **)mbufs, n, NULL);
		worker->n_owed -= n;
	}
}

void rings_lend(struct tap_worker *worker, struct rte_mempool *pool)
{
	worker->pool = pool;
	worker->n_owed = RINGS_INJECT;
	lend(worker);
}

static void free_used(struct tap_worker *worker)
{
	struct rte_mbuf *used[RINGS_BULK];

	for (unsigned i = 0; i < USED_BULKS; i++) {
		unsigned n =
			rte_ring_sc_dequeue_burst(worker->used, (void **)used, RINGS_BULK, NULL);

		rte_pktmbuf_free_bulk(used, n);
		if (n < RINGS_BULK)
			return;
	}
}

unsigned tap_exchange(struct tap_worker *worker, struct rte_mbuf *mbufs[], unsigned n)
{
	unsigned taken = rte_ring_sc_dequeue_burst(worker->inject, (void **)mbufs, n, NULL);

	free_used(worker);
	if (worker->pool) {
		worker->n_owed += taken;
		lend(worker);
	}
	return taken;
}

// Either this call sees that the thread is asleep, or the thread sees what was enqueued before.
static void ring(struct tap_wakeup *wakeup)
{
	uint64_t one = 1;

	rte_smp_mb();
	if (likely(!__atomic_load_n(&wakeup->is_asleep, __ATOMIC_RELAXED)))
		return;
	if (!__atomic_exchange_n(&wakeup->is_asleep, false, __ATOMIC_RELAXED))
		return;
	ssize_t n = write(wakeup->fd, &one, sizeof(one));

	(void)n; // if it fails, the thread checks by itself after a while
}

bool tap_punt(struct tap_worker *worker, struct stats_worker *stat, struct rte_mbuf *mbuf,
	unsigned verdict_and_port)
{
	unsigned verdict = verdict_and_port & ((1u << TAP_PORT_SHIFT) - 1);
	unsigned class = worker->class_of[verdict];

	if (class == CLASS_CONTENT)
		class = tap_classify(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len);
	if (class >= N_CLASSES)
		return false;
	mbuf->port = verdict_and_port >> TAP_PORT_SHIFT;
	mbuf->hash.usr = verdict;
	if (rte_ring_sp_enqueue(worker->punt[class], mbuf) != 0) {
		stats_add(&stat->verdict[VERDICT_PUNT_RING_FULL], 1);
		stats_add(&stat->ring_full[class], 1);
		return false;
	}
	stats_add(&stat->handed[verdict], 1);
	if (worker->wakeup)
		ring(worker->wakeup);
	return true;
}
