// What is known of a device's peer, for users and for workers. Control thread.
#include "port/vhost_peer.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "port/vhost_guard.h"

#include <rte_vhost.h>
#include <stdio.h>

static const uint64_t REMARK_AFTER_NS = 3000000000, REFUSAL_AFTER_NS = 10000000000;

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

// Call with the lock held. A peer that cannot share its memory has negotiated, and goes no further.
static const char *remark_of(const struct vhost *vhost)
{
	switch (state_of(vhost)) {
	case PORT_VHOST_WAITING:
		return vhost->is_refused ? vhost->refusal : NULL;
	case PORT_VHOST_STARTING:
		if (vhost->is_refused)
			return vhost->refusal;
		return vhost_features_of(vhost) && !vhost->slots[0]
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
		out->queues[i].tx_slots = vhost->slots[2 * i];
		out->queues[i].rx_slots = vhost->slots[2 * i + 1];
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

void vhost_poll(struct vhost *vhost, const char *name)
{
	const uint64_t now_ns = clock_now_ns();
	const char *says = NULL;
	unsigned n;

	pthread_mutex_lock(&vhost_lock);
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
	if (vhost_has_lost_memory(vhost)) {
		vhost_guard_cut(vhost->connection);
		vhost->n_regions = 0;
		vhost->has_lost = false;
		says = "its peer has taken away memory that it had shared, and was disconnected; "
		       "start it again";
	}
	pthread_mutex_unlock(&vhost_lock);
	if (refusal && n == 1)
		log_warn("port %s: %s", name, refusal);
	else if (refusal)
		log_warn("port %s: %s (this is the latest of %u reasons)", name, refusal, n);
	if (says)
		log_warn("port %s: %s", name, says);
}
