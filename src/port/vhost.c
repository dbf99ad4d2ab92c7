// net_vhost offers guests everything that DPDK's vhost-user library has, and says nothing about its
// peers. So in both programs a function of that library is overridden (meson.build), the one by
// which the driver registers its callbacks: here features that dl3 cannot honour are taken back
// before the first peer is served, and the callbacks are followed. They run on the library's
// threads: of a peer, never two at once. The driver has one peer per device, but the library takes
// any number; here the newest one counts, since it is often the former one that was restarted.
#include "port/vhost.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "port/peer_memory.h"
#include "port/vhost_guard.h"
#include "port/vhost_open.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/virtio_net.h>
#include <pthread.h>
#include <rte_vhost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A vring of an even number is one that the guest receives from.
enum { VRINGS = 2 * PORT_MAX_QUEUES, SOCKET_MAX = 108, MAX_REGIONS = 8 };
enum { RESET_OWNER = 4, SET_MEM_TABLE = 5 }; // messages of vhost-user
static const uint64_t REMARK_AFTER_NS = 3000000000;

// Segmentation of UDP, and of TCP with CWR: nobody here does it. / Frames with open checksums, or
// of several segments: without offloads, dl3 forwards frames as they are.
static const uint64_t REFUSED = 1ull << VIRTIO_NET_F_GSO | 1ull << VIRTIO_NET_F_HOST_ECN |
                                1ull << VIRTIO_NET_F_HOST_UFO | 1ull << VIRTIO_NET_F_GUEST_ECN |
                                1ull << VIRTIO_NET_F_GUEST_UFO;
static const uint64_t OFFLOADS = 1ull << VIRTIO_NET_F_CSUM | 1ull << VIRTIO_NET_F_HOST_TSO4 |
                                 1ull << VIRTIO_NET_F_HOST_TSO6 | 1ull << VIRTIO_NET_F_GUEST_CSUM |
                                 1ull << VIRTIO_NET_F_GUEST_TSO4 | 1ull << VIRTIO_NET_F_GUEST_TSO6;

// Page faults of postcopy, inflight memory, and memory in slots: the messages for these end a
// connection (vhost_guard.c).
static const uint64_t REFUSED_PROTOCOL = 1ull << 8 | 1ull << 12 | 1ull << 15;

struct vhost {
	struct vhost *next;
	char path[SOCKET_MAX];
	bool serves, has_offloads;
	unsigned n_queues;
	struct vhost_steer steer;
	int vid;                  // the library's number of the connection; -1: none
	int connection;           // of vhost_guard_begin
	bool is_driven;           // its driver has set up its rings
	uint8_t takes;            // enum port_takes, while it is driven
	uint64_t receives, sends; // queues that the peer's driver has enabled, by number
	unsigned n_enabled;       // the highest one of these plus one, also above n_queues
	unsigned n_connections;
	struct {
		uintptr_t begin, end;
	} regions[MAX_REGIONS];     // of the peer's memory
	unsigned n_regions, n_lost; // peer_memory_n_lost before they were mapped
	bool has_lost;              // regions that are no longer here
	uint16_t slots[VRINGS];
	enum port_vhost_state state; // as last seen by vhost_poll
	uint64_t since_ns;           // when it had changed, or the remark
	const char *said;            // the last remark that was logged
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all below
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

struct vhost *vhost_make(const struct kind *kind, unsigned n_queues,
	const struct vhost_steer *steer)
{
	struct vhost *vhost = peer_memory_guard() ? calloc(1, sizeof(*vhost)) : NULL;

	if (!vhost)
		return NULL;
	vhost_open_find();
	snprintf(vhost->path, sizeof(vhost->path), "%s", kind->socket);
	vhost->serves = kind->serves;
	vhost->has_offloads = kind->has_offloads;
	vhost->n_queues = n_queues;
	vhost->steer = *steer;
	vhost->vid = vhost->connection = -1;
	pthread_mutex_lock(&lock);
	vhost->next = all;
	all = vhost;
	pthread_mutex_unlock(&lock);
	return vhost;
}

void vhost_free(struct vhost *vhost)
{
	if (!vhost)
		return;
	pthread_mutex_lock(&lock);
	for (struct vhost **at = &all; *at; at = &(*at)->next)
		if (*at == vhost) {
			*at = vhost->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	vhost_guard_end(vhost->connection); // the library does not say that it has closed its own
	free(vhost);
}

// Call with the lock held.
static struct vhost *find_path(const char *path)
{
	struct vhost *vhost = all;

	while (vhost && strcmp(vhost->path, path) != 0)
		vhost = vhost->next;
	return vhost;
}

// Call with the lock held.
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
	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	pthread_mutex_unlock(&lock);
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
	pthread_mutex_lock(&lock);
	vhost->is_driven = false;
	vhost->takes = 0;
	vhost->receives = vhost->sends = 0;
	vhost->n_enabled = 0;
	steer(vhost);
	pthread_mutex_unlock(&lock);
}

static void end_peer(struct vhost *vhost)
{
	let_go(vhost);
	pthread_mutex_lock(&lock);
	vhost_guard_end(vhost->connection);
	vhost->vid = vhost->connection = -1;
	vhost->n_regions = 0;
	vhost->has_lost = false;
	memset(vhost->slots, 0, sizeof(vhost->slots));
	pthread_mutex_unlock(&lock);
}

static void note_regions(struct vhost *vhost)
{
	struct rte_vhost_memory *memory = NULL;

	vhost->n_regions = 0;
	if (rte_vhost_get_mem_table(vhost->vid, &memory))
		return;
	vhost->n_regions = MIN_OF(memory->nregions, (uint32_t)MAX_REGIONS);
	for (unsigned i = 0; i < vhost->n_regions; i++) {
		vhost->regions[i].begin = (uintptr_t)memory->regions[i].mmap_addr;
		vhost->regions[i].end = vhost->regions[i].begin + memory->regions[i].mmap_size;
	}
	free(memory);
}

static void note_slots(struct vhost *vhost)
{
	struct rte_vhost_vring vring;

	for (unsigned i = 0; i < MIN_OF(2 * vhost->n_queues, (unsigned)VRINGS); i++)
		vhost->slots[i] = rte_vhost_get_vhost_vring(vhost->vid, i, &vring) ? 0 : vring.size;
}

// Call with the lock held.
static bool has_lost_memory(const struct vhost *vhost)
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
	if (request != SET_MEM_TABLE && request != RESET_OWNER)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	if (vhost && vhost->vid == vid) {
		vhost->has_lost = has_lost_memory(vhost);
		vhost->n_regions = 0;
		vhost->n_lost = peer_memory_n_lost();
	}
	pthread_mutex_unlock(&lock);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

// After the library has done what a message wants. Other threads must not ask it for memory and
// vrings, since the next message may free them.
static enum rte_vhost_msg_result on_message(int vid, void *message)
{
	uint32_t request;

	memcpy(&request, message, sizeof(request));
	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	if (vhost && vhost->vid == vid) {
		if (request == SET_MEM_TABLE)
			note_regions(vhost); // at other times there may be none
		note_slots(vhost);
	}
	pthread_mutex_unlock(&lock);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static int on_connection(int vid)
{
	static const struct rte_vhost_user_extern_ops listening = {.pre_msg_handle = before_message,
		.post_msg_handle = on_message};
	struct vhost *vhost = find_now(vid);
	int connection = vhost ? vhost_guard_begin() : -1;

	if (vhost && vhost->vid >= 0)
		end_peer(vhost);
	rte_vhost_extern_callback_register(vid, &listening, NULL);
	pthread_mutex_lock(&lock);
	if (vhost) {
		vhost->vid = vid;
		vhost->connection = connection;
		vhost->n_connections++;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

// The library frees what belongs to the connection after this.
static void on_disconnection(int vid)
{
	struct vhost *vhost = find_now(vid);

	if (vhost && vhost->vid == vid)
		end_peer(vhost);
}

static uint64_t features_of(const struct vhost *vhost)
{
	uint64_t features = 0;

	if (vhost->vid >= 0)
		rte_vhost_get_negotiated_features(vhost->vid, &features);
	return features;
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
	int err = theirs->new_device(vid);

	pthread_mutex_lock(&lock);
	if (vhost) {
		vhost->is_driven = !err;
		vhost->takes = err ? 0 : takes_of(features_of(vhost));
		steer(vhost);
	}
	pthread_mutex_unlock(&lock);
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

	pthread_mutex_lock(&lock);
	if (vhost && enable && queue >= vhost->n_enabled)
		vhost->n_enabled = queue + 1;
	else if (vhost && !enable && queue + 1 == vhost->n_enabled)
		vhost->n_enabled = queue;
	if (vhost && vring < VRINGS) {
		set_bit(vring % 2 ? &vhost->sends : &vhost->receives, queue, enable);
		steer(vhost);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static const struct rte_vhost_device_ops followed = {
	.new_device = on_driver,
	.destroy_device = on_driver_gone,
	.vring_state_changed = on_vring,
	.new_connection = on_connection,
	.destroy_connection = on_disconnection,
};

// Called by the driver between the registration of its socket and the first connection.
int rte_vhost_driver_callback_register(const char *path,
	const struct rte_vhost_device_ops *const ops)
{
	int (*const next)(const char *, const struct rte_vhost_device_ops *) =
		(__typeof__(&rte_vhost_driver_callback_register))dlsym(RTLD_NEXT,
			"rte_vhost_driver_callback_register");
	uint64_t protocol;

	pthread_mutex_lock(&lock);
	const struct vhost *vhost = find_path(path);
	const uint64_t refused = REFUSED | (vhost && vhost->has_offloads ? 0 : OFFLOADS);

	pthread_mutex_unlock(&lock);
	if (rte_vhost_driver_disable_features(path, refused) ||
		rte_vhost_driver_get_protocol_features(path, &protocol) ||
		rte_vhost_driver_set_protocol_features(path, protocol & ~REFUSED_PROTOCOL))
		return -1;
	theirs = ops;
	return next(path, &followed);
}

bool vhost_is_live(const struct vhost *vhost)
{
	pthread_mutex_lock(&lock);
	bool is_live = vhost->is_driven && vhost->receives;

	pthread_mutex_unlock(&lock);
	return is_live;
}

static enum port_vhost_state state_of(const struct vhost *vhost)
{
	return vhost->is_driven  ? PORT_VHOST_CONNECTED
	       : vhost->vid >= 0 ? PORT_VHOST_STARTING
	                         : PORT_VHOST_WAITING;
}

// Call with the lock held. A peer that cannot share its memory has negotiated, and goes no further.
static const char *remark_of(const struct vhost *vhost)
{
	switch (state_of(vhost)) {
	case PORT_VHOST_WAITING:
		return NULL;
	case PORT_VHOST_STARTING:
		return features_of(vhost) && !vhost->slots[0]
		               ? "guest memory is not shared; give QEMU's memory backend share=on"
		               : "its peer is connected, but has set up no queue; start the "
		                 "virtio-net driver there";
	case PORT_VHOST_CONNECTED:
		if (vhost->n_enabled > vhost->n_queues)
			return "the guest has enabled more queues than the port has, and sends "
			       "frames on them that are lost; give both the same number";
		return vhost->receives ? NULL : "the guest has enabled none of its queues";
	}
	return NULL;
}

void vhost_read(const struct vhost *vhost, struct port_vhost *out)
{
	const unsigned n = MIN_OF(vhost->n_queues, (unsigned)PORT_MAX_QUEUES);

	pthread_mutex_lock(&lock);
	const char *remark = vhost->said ? remark_of(vhost) : NULL;

	*out = (struct port_vhost){.is_server = vhost->serves,
		.state = state_of(vhost),
		.n_connections = vhost->n_connections,
		.features = features_of(vhost),
		.n_queues = n,
		.remark = remark};
	snprintf(out->socket, sizeof(out->socket), "%s", vhost->path);
	for (unsigned i = 0; i < n; i++) {
		out->queues[i].receives = vhost->sends >> i & 1;
		out->queues[i].sends = vhost->receives >> i & 1;
		out->queues[i].tx_slots = vhost->slots[2 * i];
		out->queues[i].rx_slots = vhost->slots[2 * i + 1];
	}
	pthread_mutex_unlock(&lock);
}

void vhost_poll(struct vhost *vhost, const char *name)
{
	const uint64_t now_ns = clock_now_ns();
	const char *says = NULL;

	pthread_mutex_lock(&lock);
	const char *remark = remark_of(vhost);
	enum port_vhost_state state = state_of(vhost);

	if (state != vhost->state || !remark) {
		vhost->state = state;
		vhost->since_ns = now_ns;
		vhost->said = NULL;
	} else if (remark != vhost->said && now_ns - vhost->since_ns > REMARK_AFTER_NS) {
		says = vhost->said = remark;
	}
	if (has_lost_memory(vhost)) {
		vhost_guard_cut(vhost->connection);
		vhost->n_regions = 0;
		vhost->has_lost = false;
		says = "its peer has taken away memory that it had shared, and was disconnected; "
		       "start it again";
	}
	pthread_mutex_unlock(&lock);
	if (says)
		log_warn("port %s: %s", name, says);
}
