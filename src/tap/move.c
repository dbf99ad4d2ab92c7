// Moves frames between the lanes' rings and the twins: out in strict order of classes within their
// limits, in as far as lanes have lent buffers. The twins' thread.
#include "tap/room.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	BULKS_MOST = 8,   // between two looks at what Linux sends
	INJECT_MOST = 32, // frames of one twin before the next one's turn
	SEGMENTS_MOST = 16,
	FRAME_LEAST = 60, // of Ethernet, without FCS
	SPILL_BYTES = 8,
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

static bool put(struct tap_room *room, const struct rte_mbuf *mbuf)
{
	if (mbuf->port >= room->n_twins)
		return false;
	int fd = room->twins[mbuf->port].twin.fd;
	ssize_t n = mbuf->nb_segs == 1
	                    ? write(fd, rte_pktmbuf_mtod(mbuf, const void *), mbuf->data_len)
	                    : write_segments(fd, mbuf);

	if (n < 0)
		return false;
	stat_add(&room->stats.punted_by_port[mbuf->port], 1);
	return true;
}

static void put_bulk(struct tap_room *room, enum punt_class class, struct rte_mbuf *const mbufs[],
	unsigned n)
{
	const struct tap_class_settings *limit = &room->class[class];
	struct stat_class *stat = &room->stats.class[class];
	struct bucket *bucket = &room->buckets[class];
	uint32_t rate = __atomic_load_n(&limit->rate, __ATOMIC_RELAXED);
	uint32_t burst = __atomic_load_n(&limit->burst, __ATOMIC_RELAXED);
	bool is_lanes_own = __atomic_load_n(&limit->forwards, __ATOMIC_RELAXED);

	bucket_fill(bucket, rate, burst, clock_now_ns());
	for (unsigned i = 0; i < n; i++) {
		if (!is_lanes_own && !bucket_take(bucket))
			stat_add(&stat->over_limit, 1);
		else if (put(room, mbufs[i]))
			stat_add(&stat->punted, 1);
		else
			stat_add(&stat->refused, 1);
	}
}

static struct tap_lane *lane_in_turn(struct tap_room *room, unsigned i)
{
	unsigned lane = room->turn + i;

	return &room->lanes[lane < room->n_lanes ? lane : lane - room->n_lanes];
}

// The first bulk of the highest class that has one; lanes take turns. A lane that has not yet taken
// its used mbufs back waits.
static struct tap_lane *take_bulk(struct tap_room *room, enum punt_class *class,
	struct rte_mbuf *mbufs[], unsigned *n)
{
	for (unsigned c = 0; c < N_CLASSES; c++)
		for (unsigned i = 0; i < room->n_lanes; i++) {
			struct tap_lane *lane = lane_in_turn(room, i);

			if (rte_ring_empty(lane->punt[c]) ||
				rte_ring_free_count(lane->used) < RINGS_BULK)
				continue;
			*class = c;
			*n = rte_ring_sc_dequeue_burst(lane->punt[c], (void **)mbufs, RINGS_BULK,
				NULL);
			return lane;
		}
	return NULL;
}

bool move_has_punted(const struct tap_room *room)
{
	for (unsigned l = 0; l < room->n_lanes; l++)
		for (unsigned c = 0; c < N_CLASSES; c++)
			if (!rte_ring_empty(room->lanes[l].punt[c]))
				return true;
	return false;
}

bool move_punted(struct tap_room *room)
{
	struct rte_mbuf *mbufs[RINGS_BULK];
	enum punt_class class;
	unsigned bulks, n;

	for (bulks = 0; bulks < BULKS_MOST; bulks++) {
		struct tap_lane *lane = take_bulk(room, &class, mbufs, &n);

		if (!lane)
			break;
		put_bulk(room, class, mbufs, n);
		rte_ring_sp_enqueue_burst(lane->used, (void **)mbufs, n, NULL);
		room->turn = room->turn + 1 < room->n_lanes ? room->turn + 1 : 0;
	}
	return bulks > 0;
}

static void free_used(struct tap_lane *lane)
{
	struct rte_mbuf *mbufs[RINGS_BULK];
	unsigned n;

	while ((n = rte_ring_sc_dequeue_burst(lane->used, (void **)mbufs, RINGS_BULK, NULL)))
		rte_pktmbuf_free_bulk(mbufs, n);
}

void move_rest(struct tap_room *room)
{
	do
		for (unsigned i = 0; i < room->n_lanes; i++)
			free_used(&room->lanes[i]);
	while (move_punted(room));
}

static struct rte_mbuf *borrow(struct tap_room *room, unsigned lane)
{
	void *mbuf = room->spare[lane];

	room->spare[lane] = NULL;
	if (!mbuf && rte_ring_sc_dequeue(room->lanes[lane].empty, &mbuf) != 0)
		return NULL;
	return mbuf;
}

bool move_can_inject(struct tap_room *room, unsigned port)
{
	unsigned lane = room->twins[port].lane;

	return room->spare[lane] || !rte_ring_empty(room->lanes[lane].empty);
}

// A short frame is padded: not every device does it.
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

int move_injected(struct tap_room *room, unsigned port, unsigned *n_moved)
{
	struct room_twin *twin = &room->twins[port];
	struct tap_lane *lane = &room->lanes[twin->lane];

	for (unsigned i = 0; i < INJECT_MOST; i++) {
		struct rte_mbuf *mbuf = borrow(room, twin->lane);

		if (!mbuf)
			return -ENOBUFS;
		ssize_t n = read_frame(twin->twin.fd, mbuf);

		if (n > 0) {
			mbuf->port = port;
			mbuf->pkt_len = mbuf->data_len = n;
			rte_ring_sp_enqueue(lane->inject, mbuf); // no more are lent than fit
			port_wake(lane->wait);
			++*n_moved;
			continue;
		}
		room->spare[twin->lane] = mbuf;
		if (n != -EMSGSIZE)
			return n ? n : -EAGAIN;
		__atomic_store_n(&twin->n_too_long, twin->n_too_long + 1, __ATOMIC_RELAXED);
	}
	return 0;
}
