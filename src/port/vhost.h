// The peers of net_vhost devices: whether one is connected, what it has negotiated, and which
// queues its driver has enabled.
#pragma once

#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

struct vhost;

// Whom to tell which transmit queues the peer's driver receives from: bit N of `live` is queue N;
// and what it takes (enum port_takes). Called on the thread of DPDK's vhost-user library, or by
// vhost_make's caller; never twice at once.
struct vhost_steer {
	void (*call)(void *arg, unsigned port, uint64_t live, uint8_t takes);
	void *arg;
	unsigned port;
};

struct vhost_device {
	const char *path;  // of its socket; copied
	bool serves;       // listens on it; otherwise connects to it
	bool has_offloads; // either side may leave checksums and segmentation to the other
	bool may_merge;    // a guest may put a frame into several buffers: needed for long ones
	unsigned n_queues;
	struct vhost_steer steer;
};

// For a device, before it is configured. NULL: no memory, or no descriptor. / After it was closed;
// NULL is allowed. Control thread.
struct vhost *vhost_make(const struct vhost_device *device);
void vhost_free(struct vhost *vhost);

// Whether the peer's driver receives from at least one transmit queue. Control thread.
bool vhost_is_live(const struct vhost *vhost);
void vhost_read(const struct vhost *vhost, struct port_vhost *out);
// Logs what a user has to know of the peer, once it is true for some seconds. `name`: the port's.
void vhost_poll(struct vhost *vhost, const char *name);

// The transmit queue for worker number `worker` of a port with `n` of them: its own, or if the peer
// does not receive from that one, another one; without any its own. Pure.
uint16_t vhost_choose_queue(unsigned worker, unsigned n, uint64_t live);
