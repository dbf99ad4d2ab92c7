// net_vhost offers guests everything that DPDK's vhost-user library has, and says nothing about its
// peers. So in both programs a function of that library is overridden (meson.build), the one by
// which the driver registers its callbacks: here features that dl3 cannot honour are taken back
// before the first peer is served, and the callbacks are followed. They run on the library's
// threads: of a peer, never two at once. The driver has one peer per device, but the library takes
// any number; here the newest one counts, since it is often the former one that was restarted.
#include "port/vhost.h"

#include "base/bits.h"
#include "port/peer_memory.h"
#include "port/vhost_bounds.h"
#include "port/vhost_guard.h"
#include "port/vhost_open.h"
#include "port/vhost_peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/vhost_types.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <rte_log.h>
#include <rte_vhost.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Segmentation of UDP, and of TCP with CWR: nobody here does it. And what the library does not
// follow safely (docs/internals/vhost.md): the log of dirty pages, tables of descriptors elsewhere,
// addresses of an IOMMU, and packed rings.
static const uint64_t REFUSED = 1ull << VIRTIO_NET_F_GSO | 1ull << VIRTIO_NET_F_HOST_ECN |
                                1ull << VIRTIO_NET_F_HOST_UFO | 1ull << VIRTIO_NET_F_GUEST_ECN |
                                1ull << VIRTIO_NET_F_GUEST_UFO | 1ull << VHOST_F_LOG_ALL |
                                1ull << VIRTIO_RING_F_INDIRECT_DESC |
                                1ull << VIRTIO_F_IOMMU_PLATFORM | 1ull << VIRTIO_F_RING_PACKED;

// Frames with open checksums, or of several segments: without offloads, dl3 forwards frames as they
// are.
static const uint64_t OFFLOADS = 1ull << VIRTIO_NET_F_CSUM | 1ull << VIRTIO_NET_F_HOST_TSO4 |
                                 1ull << VIRTIO_NET_F_HOST_TSO6 | 1ull << VIRTIO_NET_F_GUEST_CSUM |
                                 1ull << VIRTIO_NET_F_GUEST_TSO4 | 1ull << VIRTIO_NET_F_GUEST_TSO6;

// The log's memory, requests of ours with files, sessions of cryptography, page faults of postcopy,
// inflight memory, and memory in slots: the messages for these end a connection (vhost_guard.c).
static const uint64_t REFUSED_PROTOCOL = 1ull << 1 | 1ull << 5 | 1ull << 7 | 1ull << 8 |
                                         1ull << 10 | 1ull << 11 | 1ull << 12 | 1ull << 15;

pthread_mutex_t vhost_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vhost *all;
static const struct rte_vhost_device_ops *theirs; // the same for all devices

uint16_t vhost_choose_queue(unsigned worker, unsigned n, uint64_t live)
{
	unsigned own = worker % n, place;

	if (!live || live >> own & 1)
		return own;
	place = worker % __builtin_popcountll(live);
	while (place--)
		live &= live - 1;
	return __builtin_ctzll(live);
}

// Before the library has a message: workers leave the rings while it maps memory, so that they need
// not wait for that.
static void pause_rings(struct vhost *vhost, bool is_paused)
{
	for (unsigned i = 0; i < VRINGS; i++)
		if ((i % 2 ? vhost->sends : vhost->receives) >> i / 2 & 1)
			theirs->vring_state_changed(vhost->vid, i, !is_paused);
}

static const char *before_all(int socket, const struct vhost_message *message, const char *why)
{
	vhost_bounds_end_mapping();
	pthread_mutex_lock(&vhost_lock);
	struct vhost *vhost = all;

	while (vhost && (vhost->vid < 0 || vhost->socket != socket))
		vhost = vhost->next;
	if (vhost && !why)
		why = vhost_rules_check(&vhost->rules, message);
	if (vhost && why)
		vhost_refuse(vhost, why);
	pthread_mutex_unlock(&vhost_lock);
	if (vhost && !why && message->request == VHOST_MSG_SET_MEM_TABLE) {
		pause_rings(vhost, true);
		vhost_bounds_begin_mapping();
	}
	return why;
}

struct vhost *vhost_make(const struct vhost_device *device)
{
	bool can = peer_memory_guard() && vhost_bounds_begin();
	struct vhost *vhost = can ? calloc(1, sizeof(*vhost)) : NULL;

	if (!vhost)
		return NULL;
	vhost_open_find();
	vhost_guard_follow(before_all);
	snprintf(vhost->path, sizeof(vhost->path), "%s", device->path);
	vhost->serves = device->serves;
	vhost->has_offloads = device->has_offloads;
	vhost->may_merge = device->may_merge;
	vhost->n_queues = device->n_queues;
	vhost->steer = device->steer;
	vhost->vid = vhost->connection = vhost->socket = -1;
	pthread_mutex_lock(&vhost_lock);
	vhost->next = all;
	all = vhost;
	pthread_mutex_unlock(&vhost_lock);
	return vhost;
}

void vhost_free(struct vhost *vhost)
{
	if (!vhost)
		return;
	pthread_mutex_lock(&vhost_lock);
	for (struct vhost **at = &all; *at; at = &(*at)->next)
		if (*at == vhost) {
			*at = vhost->next;
			break;
		}
	pthread_mutex_unlock(&vhost_lock);
	vhost_guard_end(vhost->connection); // the library does not say that it has closed its own
	free(vhost);
}

// Call these with the lock held.
static struct vhost *find_path(const char *path)
{
	struct vhost *vhost = all;

	while (vhost && strcmp(vhost->path, path) != 0)
		vhost = vhost->next;
	return vhost;
}

static struct vhost *find(int vid)
{
	char path[SOCKET_MAX] = "";

	return rte_vhost_get_ifname(vid, path, sizeof(path)) ? NULL : find_path(path);
}

static void steer(const struct vhost *vhost)
{
	uint64_t all_ours = vhost->n_queues < 64 ? (1ull << vhost->n_queues) - 1 : UINT64_MAX;

	if (vhost->steer.call)
		vhost->steer.call(vhost->steer.arg, vhost->steer.port, vhost->receives & all_ours,
			vhost->takes);
}

static struct vhost *find_now(int vid)
{
	pthread_mutex_lock(&vhost_lock);
	struct vhost *vhost = find(vid);

	pthread_mutex_unlock(&vhost_lock);
	return vhost;
}

// If the peer goes before its driver runs, the library tells the driver of queues that are enabled,
// and not of their end.
static void let_go(struct vhost *vhost)
{
	int vid = vhost->vid;

	if (vhost->is_driven)
		theirs->destroy_device(vid);
	for (unsigned i = 0; i < VRINGS; i++)
		if ((i % 2 ? vhost->sends : vhost->receives) >> i / 2 & 1)
			theirs->vring_state_changed(vid, i, 0);
	pthread_mutex_lock(&vhost_lock);
	vhost->is_driven = false;
	vhost->takes = 0;
	vhost->receives = vhost->sends = 0;
	vhost->n_enabled = 0;
	steer(vhost);
	pthread_mutex_unlock(&vhost_lock);
}

static void end_peer(struct vhost *vhost)
{
	let_go(vhost);
	pthread_mutex_lock(&vhost_lock);
	vhost_guard_end(vhost->connection);
	vhost->vid = vhost->connection = vhost->socket = -1;
	vhost->n_regions = 0;
	vhost->has_lost = false;
	memset(vhost->vrings, 0, sizeof(vhost->vrings));
	pthread_mutex_unlock(&vhost_lock);
}

static void note_regions(struct vhost *vhost)
{
	struct rte_vhost_memory *memory = NULL;

	vhost->n_regions = 0;
	if (rte_vhost_get_mem_table(vhost->vid, &memory))
		return;
	vhost->n_regions = MIN_OF(memory->nregions, (uint32_t)VHOST_REGIONS);
	for (unsigned i = 0; i < vhost->n_regions; i++) {
		vhost->regions[i].begin = (uintptr_t)memory->regions[i].mmap_addr;
		vhost->regions[i].end = vhost->regions[i].begin + memory->regions[i].mmap_size;
	}
	free(memory);
}

// The index in a part of a ring that the library has found; NULL if that is not in memory that is
// known to be there. If a new table of memory fails, the library keeps addresses in the former.
static const uint16_t *index_in(const struct vhost *vhost, const void *part, size_t offset)
{
	const uintptr_t at = (uintptr_t)part + offset;

	for (unsigned i = 0; part && i < vhost->n_regions; i++)
		if (vhost->regions[i].begin <= at && at + sizeof(uint16_t) <= vhost->regions[i].end)
			return (const uint16_t *)at;
	return NULL;
}

static void note_vrings(struct vhost *vhost)
{
	for (unsigned i = 0; i < MIN_OF(2 * vhost->n_queues, (unsigned)VRINGS); i++) {
		struct rte_vhost_vring found = {0};
		struct vhost_vring *vring = &vhost->vrings[i];

		if (rte_vhost_get_vhost_vring(vhost->vid, i, &found))
			found = (struct rte_vhost_vring){0};
		vring->slots = found.size;
		vring->available = index_in(vhost, found.avail, offsetof(struct vring_avail, idx));
		vring->used = index_in(vhost, found.used, offsetof(struct vring_used, idx));
	}
}

static void forget_memory(struct vhost *vhost)
{
	vhost->n_regions = 0;
	for (unsigned i = 0; i < VRINGS; i++)
		vhost->vrings[i].available = vhost->vrings[i].used = NULL;
}

bool vhost_has_lost_memory(const struct vhost *vhost)
{
	for (unsigned i = 0; i < vhost->n_regions; i++)
		if (peer_memory_is_lost(vhost->regions[i].begin, vhost->regions[i].end,
			    vhost->n_lost))
			return true;
	return vhost->has_lost;
}

// Before the library does what a message wants: its memory is unmapped, and the next may be where
// another peer's was that is lost already.
static enum rte_vhost_msg_result before_message(int vid, void *message)
{
	uint32_t request;

	memcpy(&request, message, sizeof(request)); // it begins with its number
	if (request != VHOST_MSG_SET_MEM_TABLE)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	pthread_mutex_lock(&vhost_lock);
	struct vhost *vhost = find(vid);

	if (vhost && vhost->vid == vid) {
		vhost->has_lost = vhost_has_lost_memory(vhost);
		forget_memory(vhost);
		vhost->n_lost = peer_memory_n_lost();
	}
	pthread_mutex_unlock(&vhost_lock);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

// After the library has done what a message wants. Other threads must not ask it for memory and
// vrings, since the next message may free them.
static enum rte_vhost_msg_result on_message(int vid, void *message)
{
	uint32_t words[3]; // request, flags, bytes of the payload
	bool is_memory, has_failed = vhost_bounds_end_mapping();

	memcpy(words, message, sizeof(words));
	is_memory = words[0] == VHOST_MSG_SET_MEM_TABLE;
	struct vhost_message noted = {words[0], words[2], (const uint8_t *)message + sizeof(words),
		NULL, 0};

	pthread_mutex_lock(&vhost_lock);
	struct vhost *vhost = find(vid);
	bool is_ours = vhost && vhost->vid == vid;

	if (is_ours) {
		vhost_rules_note(&vhost->rules, &noted);
		if (is_memory)
			note_regions(vhost); // at other times there may be none
		vhost->has_lost |= is_memory && has_failed;
		note_vrings(vhost);
	}
	pthread_mutex_unlock(&vhost_lock);
	if (is_ours && is_memory)
		pause_rings(vhost, false);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static int on_connection(int vid)
{
	static const struct rte_vhost_user_extern_ops listening = {.pre_msg_handle = before_message,
		.post_msg_handle = on_message};
	struct vhost *vhost = find_now(vid);
	int socket = -1, connection = vhost ? vhost_guard_begin(&socket) : -1;
	uint64_t features = 0, protocol = 0;

	if (vhost && vhost->vid >= 0)
		end_peer(vhost);
	rte_vhost_extern_callback_register(vid, &listening, NULL);
	if (vhost && (rte_vhost_driver_get_features(vhost->path, &features) ||
			     rte_vhost_driver_get_protocol_features(vhost->path, &protocol)))
		return -1;
	pthread_mutex_lock(&vhost_lock);
	if (vhost) {
		vhost_rules_begin(&vhost->rules, features, protocol);
		vhost->vid = vid;
		vhost->connection = connection;
		vhost->socket = socket;
		vhost->n_connections++;
	}
	pthread_mutex_unlock(&vhost_lock);
	return 0;
}

// The library frees what belongs to the connection after this.
static void on_disconnection(int vid)
{
	struct vhost *vhost = find_now(vid);

	if (vhost && vhost->vid == vid)
		end_peer(vhost);
}

// Segments come with open checksums.
static uint8_t takes_of(uint64_t features)
{
	if (!(features >> VIRTIO_NET_F_GUEST_CSUM & 1))
		return 0;
	return PORT_TAKES_CHECKSUM |
	       (features >> VIRTIO_NET_F_GUEST_TSO4 & 1 ? PORT_TAKES_TSO4 : 0) |
	       (features >> VIRTIO_NET_F_GUEST_TSO6 & 1 ? PORT_TAKES_TSO6 : 0);
}

static int on_driver(int vid)
{
	struct vhost *vhost = find_now(vid);

	if (vhost && vhost->vid != vid)
		return -1;
	vhost_bounds_set_merged(vid, !vhost || vhost->rules.features >> VIRTIO_NET_F_MRG_RXBUF & 1);
	int err = theirs->new_device(vid);

	pthread_mutex_lock(&vhost_lock);
	if (vhost) {
		vhost->is_driven = !err;
		vhost->is_refused &= err != 0;
		vhost->takes = err ? 0 : takes_of(vhost_features_of(vhost));
		steer(vhost);
	}
	pthread_mutex_unlock(&vhost_lock);
	return err;
}

static void on_driver_gone(int vid)
{
	struct vhost *vhost = find_now(vid);

	if (!vhost)
		theirs->destroy_device(vid);
	else if (vhost->vid == vid)
		let_go(vhost);
}

static void set_bit(uint64_t *bits, unsigned bit, bool is_set)
{
	*bits = is_set ? *bits | 1ull << bit : *bits & ~(1ull << bit);
}

static int on_vring(int vid, uint16_t vring, int enable)
{
	struct vhost *vhost = find_now(vid);
	unsigned queue = vring / 2;

	if (vhost && vhost->vid != vid)
		return 0;
	int err = theirs->vring_state_changed(vid, vring, enable);

	pthread_mutex_lock(&vhost_lock);
	if (vhost && enable && queue >= vhost->n_enabled)
		vhost->n_enabled = queue + 1;
	else if (vhost && !enable && queue + 1 == vhost->n_enabled)
		vhost->n_enabled = queue;
	if (vhost && vring < VRINGS) {
		set_bit(vring % 2 ? &vhost->sends : &vhost->receives, queue, enable);
		steer(vhost);
	}
	pthread_mutex_unlock(&vhost_lock);
	return err;
}

static const struct rte_vhost_device_ops followed = {
	.new_device = on_driver,
	.destroy_device = on_driver_gone,
	.vring_state_changed = on_vring,
	.new_connection = on_connection,
	.destroy_connection = on_disconnection,
};

// What a peer can make it say at any rate, some of it on workers; we say it less often.
static void be_quiet(void)
{
	if (rte_log_get_global_level() > RTE_LOG_WARNING)
		return; // the user wants to know more
	rte_log_set_level_pattern("lib.vhost.data", RTE_LOG_CRIT);
	rte_log_set_level_pattern("lib.vhost.config", RTE_LOG_ERR);
}

// Called by the driver between the registration of its socket and the first connection.
int rte_vhost_driver_callback_register(const char *path,
	const struct rte_vhost_device_ops *const ops)
{
	int (*const next)(const char *, const struct rte_vhost_device_ops *) =
		(__typeof__(&rte_vhost_driver_callback_register))dlsym(RTLD_NEXT,
			"rte_vhost_driver_callback_register");
	uint64_t protocol;

	pthread_mutex_lock(&vhost_lock);
	const struct vhost *vhost = find_path(path);
	const bool has_offloads = vhost && vhost->has_offloads;
	const bool may_merge = !vhost || vhost->may_merge;
	const uint64_t refused = REFUSED | (has_offloads ? 0 : OFFLOADS) |
	                         (may_merge ? 0 : 1ull << VIRTIO_NET_F_MRG_RXBUF);

	pthread_mutex_unlock(&vhost_lock);
	be_quiet();
	if (rte_vhost_driver_disable_features(path, refused) ||
		rte_vhost_driver_get_protocol_features(path, &protocol) ||
		rte_vhost_driver_set_protocol_features(path, protocol & ~REFUSED_PROTOCOL))
		return -1;
	theirs = ops;
	return next(path, &followed);
}
