// What is known of a device's peer, for users and for workers. Control thread.
#include "port/vhost_peer.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "port/vhost_guard.h"

#include <rte_vhost.h>
#include <stdio.h>

static const uint64_t REMARK_AFTER_NS = 3000000000, REFUSAL_AFTER_NS = 10000000000;
enum { POLLS_STOOD = 3 };

void vhost_refuse(struct vhost *vhost, const char *why)
{
	vhost->refusal = why;
	vhost->is_refused = true;
	vhost->n_refusals++;
}

bool vhost_is_live(const struct vhost *vhost)
{
	pthread_mutex_lock(&vhost_lock);
	bool is_live = vhost->is_driven && vhost->receives;

	pthread_mutex_unlock(&vhost_lock);
	return is_live;
}

static enum port_vhost_state state_of(const struct vhost *vhost)
{
	return vhost->is_driven  ? PORT_VHOST_CONNECTED
	       : vhost->vid >= 0 ? PORT_VHOST_STARTING
	                         : PORT_VHOST_WAITING;
}

uint64_t vhost_features_of(const struct vhost *vhost)
{
	uint64_t features = 0;

	if (vhost->vid >= 0)
		rte_vhost_get_negotiated_features(vhost->vid, &features);
	return features;
}

// Workers take buffers of a ring that guests send on in each of their polls, whatever they hold,
// until there is one that the library cannot follow. Call with the lock held.
static void watch_vrings(struct vhost *vhost)
{
	for (unsigned i = 1; i < MIN_OF(2 * vhost->n_queues, (unsigned)VRINGS); i += 2) {
		struct vhost_vring *vring = &vhost->vrings[i];

		if (!(vhost->sends >> i / 2 & 1) || !vring->available || !vring->used) {
			vring->n_stood = 0;
			continue;
		}
		uint16_t available = __atomic_load_n(vring->available, __ATOMIC_RELAXED);
		uint16_t used = __atomic_load_n(vring->used, __ATOMIC_RELAXED);

		if (used == available || used != vring->seen)
			vring->n_stood = 0;
		else if (vring->n_stood < POLLS_STOOD)
			vring->n_stood++;
		vring->seen = used;
	}
}

static bool stands(const struct vhost *vhost)
{
	for (unsigned i = 1; i < MIN_OF(2 * vhost->n_queues, (unsigned)VRINGS); i += 2)
		if (vhost->vrings[i].n_stood == POLLS_STOOD)
			return true;
	return false;
}

// Call with the lock held. A peer that cannot share its memory has negotiated, and goes no further.
static const char *remark_of(const struct vhost *vhost)
{
	switch (state_of(vhost)) {
	case PORT_VHOST_WAITING:
		return vhost->is_refused ? vhost->refusal : NULL;
	case PORT_VHOST_STARTING:
		if (vhost->is_refused)
			return vhost->refusal;
		return vhost_features_of(vhost) && !vhost->vrings[0].slots
		               ? "guest memory is not shared; give QEMU's memory backend share=on"
		               : "its peer is connected, but has set up no queue; start the "
		                 "virtio-net driver there";
	case PORT_VHOST_CONNECTED:
		if (vhost->n_enabled > vhost->n_queues)
			return "the guest has enabled more queues than the port has, and sends "
			       "frames on them that are lost; give both the same number";
		if (stands(vhost))
			return "a queue that the guest sends on stands, since a buffer is not in "
			       "its memory or a chain of buffers has no end; restart its driver";
		return vhost->receives ? NULL : "the guest has enabled none of its queues";
	}
	return NULL;
}

void vhost_read(const struct vhost *vhost, struct port_vhost *out)
{
	const unsigned n = MIN_OF(vhost->n_queues, (unsigned)PORT_MAX_QUEUES);

	pthread_mutex_lock(&vhost_lock);
	const char *remark = vhost->said || vhost->is_refused ? remark_of(vhost) : NULL;

	*out = (struct port_vhost){.is_server = vhost->serves,
		.state = state_of(vhost),
		.n_connections = vhost->n_connections,
		.features = vhost_features_of(vhost),
		.n_queues = n,
		.remark = remark};
	snprintf(out->socket, sizeof(out->socket), "%s", vhost->path);
	for (unsigned i = 0; i < n; i++) {
		out->queues[i].receives = vhost->sends >> i & 1;
		out->queues[i].sends = vhost->receives >> i & 1;
		out->queues[i].tx_slots = vhost->vrings[2 * i].slots;
		out->queues[i].rx_slots = vhost->vrings[2 * i + 1].slots;
	}
	pthread_mutex_unlock(&vhost_lock);
}

// Call with the lock held. A peer can be refused again and again: once in a while is enough.
static const char *new_refusal(struct vhost *vhost, uint64_t now_ns, unsigned *n)
{
	*n = vhost->n_refusals - vhost->n_told;
	if (!*n || (vhost->told_ns && now_ns - vhost->told_ns < REFUSAL_AFTER_NS))
		return NULL;
	vhost->n_told = vhost->n_refusals;
	vhost->told_ns = now_ns;
	return vhost->refusal;
}

// Call with the lock held.
static void cut_without_memory(struct vhost *vhost)
{
	if (!vhost_has_lost_memory(vhost))
		return;
	vhost_guard_cut(vhost->connection);
	vhost->n_regions = 0;
	vhost->has_lost = false;
	vhost_refuse(vhost, "its peer has taken away memory that it had shared, and was "
			    "disconnected; start it again");
}

void vhost_poll(struct vhost *vhost, const char *name)
{
	const uint64_t now_ns = clock_now_ns();
	const char *says = NULL;
	unsigned n;

	pthread_mutex_lock(&vhost_lock);
	watch_vrings(vhost);
	cut_without_memory(vhost);
	const char *refusal = new_refusal(vhost, now_ns, &n);
	const char *remark = remark_of(vhost);
	enum port_vhost_state state = state_of(vhost);

	if (state != vhost->state || !remark || vhost->is_refused) {
		vhost->state = state;
		vhost->since_ns = now_ns;
		vhost->said = NULL;
	} else if (remark != vhost->said && now_ns - vhost->since_ns > REMARK_AFTER_NS) {
		says = vhost->said = remark;
	}
	pthread_mutex_unlock(&vhost_lock);
	if (refusal && n == 1)
		log_warn("port %s: %s", name, refusal);
	else if (refusal)
		log_warn("port %s: %s (this is the latest of %u reasons)", name, refusal, n);
	if (says)
		log_warn("port %s: %s", name, says);
}
