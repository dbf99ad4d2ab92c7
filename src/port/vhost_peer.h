// The state of a device's peer, shared by what follows it (vhost.c) and what reports it
// (vhost_report.c).
#pragma once

#include "port/vhost.h"
#include "port/vhost_rules.h"

#include <pthread.h>

// A vring of an even number is one that the guest receives from.
enum { VRINGS = 2 * PORT_MAX_QUEUES, SOCKET_MAX = 108 };

// What is known of a ring, once the library has it.
struct vhost_vring {
	uint16_t slots;
	const uint16_t *available, *used; // their indexes, in the peer's memory; NULL: not mapped
	uint16_t seen;                    // *used in the last poll
	uint8_t n_stood;                  // polls in which it had buffers and none was taken
};

struct vhost {
	struct vhost *next;
	char path[SOCKET_MAX];
	bool serves, has_offloads;
	unsigned n_queues;
	struct vhost_steer steer;
	bool may_merge;           // buffers: its frames may be too long for one of them
	int vid;                  // the library's number of the connection; -1: none
	int connection, socket;   // of vhost_guard_begin
	bool is_driven;           // its driver has set up its rings
	uint8_t takes;            // enum port_takes, while it is driven
	uint64_t receives, sends; // queues that the peer's driver has enabled, by number
	unsigned n_enabled;       // the highest one of these plus one, also above n_queues
	unsigned n_connections;
	struct {
		uintptr_t begin, end;
	} regions[VHOST_REGIONS];   // of the peer's memory
	unsigned n_regions, n_lost; // peer_memory_n_lost before they were mapped
	bool has_lost;              // regions that are no longer here
	struct vhost_rules rules;
	const char *refusal;         // why a connection was ended, last
	bool is_refused;             // so, and its driver has not set up its rings since then
	unsigned n_refusals, n_told; // of them, logged
	uint64_t told_ns;
	struct vhost_vring vrings[VRINGS];
	enum port_vhost_state state; // as last seen by vhost_poll
	uint64_t since_ns;           // when it had changed, or the remark
	const char *said;            // the last remark that was logged
};

extern pthread_mutex_t vhost_lock; // of all below and of each struct vhost

// What it has negotiated; without a peer 0. Call with the lock held.
uint64_t vhost_features_of(const struct vhost *vhost);
// Whether memory that it had shared is gone. Call with the lock held.
bool vhost_has_lost_memory(const struct vhost *vhost);
// Its connection is ended because of this, which is static. Call with the lock held.
void vhost_refuse(struct vhost *vhost, const char *why);
