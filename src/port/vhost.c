// net_vhost offers guests everything that DPDK's vhost-user library has, and says nothing about its
// peers. So in both programs a function of that library is overridden (meson.build), the one by
// which the driver registers its callbacks: here features that dl3 cannot honour are taken back
// before the first peer is served, and the callbacks are followed. They run on the library's
// thread.
#include "port/vhost.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/virtio_net.h>
#include <pthread.h>
#include <rte_vhost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A vring of an even number is one that the guest receives from.
enum { VRINGS = 2 * PORT_MAX_QUEUES, SOCKET_MAX = 108 };
static const uint64_t REMARK_AFTER_NS = 3000000000;

// Frames with unfinished checksums, or longer than the MTU: dl3 forwards frames as they are.
static const uint64_t REFUSED = 1ull << VIRTIO_NET_F_CSUM | 1ull << VIRTIO_NET_F_GSO |
                                1ull << VIRTIO_NET_F_HOST_TSO4 | 1ull << VIRTIO_NET_F_HOST_TSO6 |
                                1ull << VIRTIO_NET_F_HOST_ECN | 1ull << VIRTIO_NET_F_HOST_UFO;

struct vhost {
	struct vhost *next;
	char path[SOCKET_MAX];
	bool serves;
	unsigned n_queues;
	struct vhost_steer steer;
	int vid;                  // the library's number of the connection; -1: none
	bool is_driven;           // its driver has set up its rings
	uint64_t receives, sends; // queues that the peer's driver has enabled, by number
	unsigned n_enabled;       // the highest one of these plus one, also above n_queues
	unsigned n_connections;
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

struct vhost *vhost_make(const char *path, bool serves, unsigned n_queues,
	const struct vhost_steer *steer)
{
	struct vhost *vhost = calloc(1, sizeof(*vhost));

	if (!vhost)
		return NULL;
	snprintf(vhost->path, sizeof(vhost->path), "%s", path);
	vhost->serves = serves;
	vhost->n_queues = n_queues;
	vhost->steer = *steer;
	vhost->vid = -1;
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
	free(vhost);
}

// Call with the lock held.
static struct vhost *find(int vid)
{
	char path[SOCKET_MAX] = "";
	struct vhost *vhost = all;

	if (rte_vhost_get_ifname(vid, path, sizeof(path)))
		return NULL;
	while (vhost && strcmp(vhost->path, path) != 0)
		vhost = vhost->next;
	return vhost;
}

static void steer(const struct vhost *vhost)
{
	uint64_t all_ours = vhost->n_queues < 64 ? (1ull << vhost->n_queues) - 1 : UINT64_MAX;

	if (vhost->steer.call)
		vhost->steer.call(vhost->steer.arg, vhost->steer.port, vhost->receives & all_ours);
}

static int on_connection(int vid)
{
	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	if (vhost) {
		vhost->vid = vid;
		vhost->n_connections++;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

// The library frees what belongs to the connection after this.
static void on_disconnection(int vid)
{
	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	if (vhost && vhost->vid == vid)
		vhost->vid = -1;
	pthread_mutex_unlock(&lock);
}

static int on_driver(int vid)
{
	int err = theirs->new_device(vid);

	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	if (vhost)
		vhost->is_driven = !err;
	pthread_mutex_unlock(&lock);
	return err;
}

static void on_driver_gone(int vid)
{
	theirs->destroy_device(vid);
	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

	if (vhost) {
		vhost->is_driven = false;
		vhost->receives = vhost->sends = 0;
		vhost->n_enabled = 0;
		steer(vhost);
	}
	pthread_mutex_unlock(&lock);
}

static void set_bit(uint64_t *bits, unsigned bit, bool is_set)
{
	*bits = is_set ? *bits | 1ull << bit : *bits & ~(1ull << bit);
}

static int on_vring(int vid, uint16_t vring, int enable)
{
	int err = theirs->vring_state_changed(vid, vring, enable);
	unsigned queue = vring / 2;

	pthread_mutex_lock(&lock);
	struct vhost *vhost = find(vid);

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

	if (rte_vhost_driver_disable_features(path, REFUSED))
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

static uint16_t ring_of(const struct vhost *vhost, unsigned vring)
{
	struct rte_vhost_vring found;

	if (vhost->vid < 0 || rte_vhost_get_vhost_vring(vhost->vid, vring, &found))
		return 0;
	return found.size;
}

static uint64_t features_of(const struct vhost *vhost)
{
	uint64_t features = 0;

	if (vhost->vid >= 0)
		rte_vhost_get_negotiated_features(vhost->vid, &features);
	return features;
}

// Call with the lock held. A peer that cannot share its memory has negotiated, and goes no further.
static const char *remark_of(const struct vhost *vhost)
{
	switch (state_of(vhost)) {
	case PORT_VHOST_WAITING:
		return NULL;
	case PORT_VHOST_STARTING:
		return features_of(vhost) && !ring_of(vhost, 0)
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
		out->queues[i].tx_slots = ring_of(vhost, 2 * i);
		out->queues[i].rx_slots = ring_of(vhost, 2 * i + 1);
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
	pthread_mutex_unlock(&lock);
	if (says)
		log_warn("port %s: %s", name, says);
}
