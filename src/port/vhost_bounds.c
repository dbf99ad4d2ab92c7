// DPDK 22.11.11, lib/vhost/virtio_net.c, of split rings (docs/internals/vhost.md):
// - mbuf_to_desc writes a frame behind a buffer if the frame's header is spread over more than two.
// - reserve_avail_buf_split takes more buffers than the ring has slots, if the peer's index jumps
//   and buffers may be merged: so frames are handed over one by one then.
// - desc_to_mbuf takes any number of mbufs for one frame; and if there are none left, what it has
//   freed is written to: so there is a maximum, and they are freed afterwards.
// - fill_vec_buf_split follows a table of descriptors elsewhere, though none was agreed on; and it
//   copies one that is in two regions after it has checked a length that it then reads again: so
//   there is no memory for the copy, and the ring stands.
// So some functions of libc and of the library are overridden (meson.build).
#include "port/vhost_bounds.h"

#include "base/bits.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_vhost.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

// LONGEST: bytes of a frame, for an IP packet of 65535. BEHIND: more than that. TAKEN: mbufs in one
// call, for at most 32 such frames in buffers of at least 2 KiB.
enum { CONNECTIONS = 1024, MAPPINGS = 1024 };
enum { LONGEST = 65 * 1024, BEHIND = 128 * 1024, TAKEN = 32 * 33 + 44 };

typedef uint16_t dequeue_call(int, uint16_t, struct rte_mempool *, struct rte_mbuf **, uint16_t);
typedef uint16_t enqueue_call(int, uint16_t, struct rte_mbuf **, uint16_t);
typedef void *mmap_call(void *, size_t, int, int, int, off64_t);

struct mapping {
	uint8_t *begin; // what the library knows; NULL: not in use
	uint8_t *whole;
	size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping mappings[MAPPINGS];
static unsigned n_mappings; // atomic, relaxed: written with the lock held
static __thread bool is_mapping, has_failed, is_at_rings;
static bool is_merged[CONNECTIONS]; // atomic, relaxed
static dequeue_call *next_dequeue;
static enqueue_call *next_enqueue;
static int limited_ops;

void vhost_bounds_begin_mapping(void)
{
	is_mapping = true;
	has_failed = false;
}

bool vhost_bounds_end_mapping(void)
{
	is_mapping = false;
	return has_failed;
}

void vhost_bounds_set_merged(int vid, bool merged)
{
	if ((unsigned)vid < CONNECTIONS)
		__atomic_store_n(&is_merged[vid], merged, __ATOMIC_RELAXED);
}

static bool keep(uint8_t *begin, uint8_t *whole, size_t bytes)
{
	bool is_kept = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MAPPINGS && !is_kept; i++)
		if (!mappings[i].begin) {
			mappings[i] = (struct mapping){begin, whole, bytes};
			is_kept = true;
		}
	__atomic_store_n(&n_mappings, n_mappings + is_kept, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return is_kept;
}

static bool take_back(const void *begin, struct mapping *out)
{
	bool is_found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MAPPINGS && !is_found; i++)
		if (mappings[i].begin == begin) {
			*out = mappings[i];
			mappings[i].begin = NULL;
			is_found = true;
		}
	__atomic_store_n(&n_mappings, n_mappings - is_found, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return is_found;
}

// Files of huge pages want an address that is a multiple of one.
static void *map_with_more(mmap_call *next, size_t bytes, int flags, int file, off64_t offset)
{
	const int usable = PROT_READ | PROT_WRITE;
	struct stat found;
	const size_t page = fstat(file, &found) ? 4096 : MAX_OF((size_t)found.st_blksize, 4096ul);
	const size_t all = bytes + page + BEHIND;
	const int reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint8_t *whole = all < bytes ? MAP_FAILED : next(NULL, all, PROT_NONE, reserved, -1, 0);

	if (whole == MAP_FAILED)
		return MAP_FAILED;
	uint8_t *begin = (uint8_t *)round_up((uintptr_t)whole, page);
	bool failed = next(begin, bytes, usable, flags | MAP_FIXED, file, offset) == MAP_FAILED;

	has_failed |= failed;
	if (mprotect(begin + bytes, BEHIND, usable) || (failed && mprotect(begin, bytes, usable)) ||
		!keep(begin, whole, all)) {
		munmap(whole, all);
		return MAP_FAILED;
	}
	return begin;
}

void *mmap64(void *address, size_t bytes, int access, int flags, int file, off64_t offset)
{
	mmap_call *const next = (mmap_call *)dlsym(RTLD_NEXT, "mmap64");

	if (!is_mapping || file < 0 || !(flags & MAP_SHARED))
		return next(address, bytes, access, flags, file, offset);
	return map_with_more(next, bytes, flags, file, offset);
}

int munmap(void *address, size_t bytes)
{
	int (*const next)(void *, size_t) = (__typeof__(&munmap))dlsym(RTLD_NEXT, "munmap");
	struct mapping found;

	if (__atomic_load_n(&n_mappings, __ATOMIC_RELAXED) && take_back(address, &found))
		return next(found.whole, found.bytes);
	return next(address, bytes);
}

// What the library allocates while it follows a ring is the copy of a table of descriptors.
void *rte_malloc_socket(const char *type, size_t bytes, unsigned align, int node)
{
	void *(*const next)(const char *, size_t, unsigned, int) =
		(__typeof__(&rte_malloc_socket))dlsym(RTLD_NEXT, "rte_malloc_socket");

	return is_at_rings ? NULL : next(type, bytes, align, node);
}

// A mempool for one call of the library: it has a maximum, and is otherwise the one in pool_data.
static __thread struct {
	struct rte_mempool pool;
	unsigned n_taken, n_held;
	void *taken[TAKEN];
} burst;

// The library frees the mbufs of a frame that does not get all that it needs, and then still
// writes what it has noted to copy to them.
static int take(struct rte_mempool *pool, void **mbufs, unsigned n)
{
	if (n <= TAKEN - burst.n_taken && !rte_mempool_get_bulk(pool->pool_data, mbufs, n)) {
		memcpy(burst.taken + burst.n_taken, mbufs, n * sizeof(*mbufs));
		burst.n_taken += n;
		return 0;
	}
	for (; burst.n_held < burst.n_taken; burst.n_held++)
		rte_mbuf_refcnt_update(burst.taken[burst.n_held], 1);
	return -ENOENT;
}

static int allocate(struct rte_mempool *pool)
{
	return -ENOTSUP;
}

static void release(struct rte_mempool *pool)
{
}

static int put(struct rte_mempool *pool, void *const *mbufs, unsigned n)
{
	return -ENOTSUP;
}

static unsigned count(const struct rte_mempool *pool)
{
	return 0;
}

static const struct rte_mempool_ops limited = {.name = "dl3_limited",
	.alloc = allocate,
	.free = release,
	.enqueue = put,
	.dequeue = take,
	.get_count = count};

bool vhost_bounds_begin(void)
{
	if (!next_dequeue) {
		limited_ops = rte_mempool_register_ops(&limited);
		next_enqueue = (enqueue_call *)dlsym(RTLD_NEXT, "rte_vhost_enqueue_burst");
		next_dequeue = (dequeue_call *)dlsym(RTLD_NEXT, "rte_vhost_dequeue_burst");
	}
	return next_dequeue && next_enqueue && limited_ops >= 0;
}

uint16_t rte_vhost_dequeue_burst(int vid, uint16_t queue, struct rte_mempool *pool,
	struct rte_mbuf **frames, uint16_t n)
{
	burst.pool.ops_index = limited_ops;
	burst.pool.pool_data = pool;
	burst.n_taken = burst.n_held = 0;
	is_at_rings = true;
	uint16_t n_frames = next_dequeue(vid, queue, &burst.pool, frames, n);

	is_at_rings = false;
	for (unsigned i = 0; i < burst.n_held; i++)
		rte_pktmbuf_free_seg(burst.taken[i]);
	return n_frames;
}

// Those in front of one that another guest has made too long.
static uint16_t count_short(struct rte_mbuf *const *frames, uint16_t n)
{
	uint16_t n_short = 0;

	while (n_short < n && frames[n_short]->pkt_len <= LONGEST)
		n_short++;
	return n_short;
}

uint16_t rte_vhost_enqueue_burst(int vid, uint16_t queue, struct rte_mbuf **__rte_restrict frames,
	uint16_t n)
{
	uint16_t n_frames = 0;

	n = count_short(frames, n);
	is_at_rings = true;
	if ((unsigned)vid >= CONNECTIONS || !__atomic_load_n(&is_merged[vid], __ATOMIC_RELAXED))
		n_frames = next_enqueue(vid, queue, frames, n);
	else
		while (n_frames < n && next_enqueue(vid, queue, frames + n_frames, 1) == 1)
			n_frames++;
	is_at_rings = false;
	return n_frames;
}
