// What a vhost-user peer may say, and when. DPDK's library follows messages that fit neither the
// peer's memory nor the state of its rings, and then reads and writes outside of them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// DPDK's limits, and its rings of fewer slots than a burst (docs/internals/vhost.md).
enum { VHOST_RINGS = 256, VHOST_REGIONS = 8, VHOST_LEAST_SLOTS = 32, VHOST_MOST_SLOTS = 16384 };

// Numbers of messages (vhost-user protocol). linux/vhost.h has macros of similar names.
enum {
	VHOST_MSG_SET_FEATURES = 2,
	VHOST_MSG_RESET_OWNER = 4,
	VHOST_MSG_SET_MEM_TABLE = 5,
	VHOST_MSG_SET_VRING_NUM = 8,
	VHOST_MSG_SET_VRING_ADDR = 9,
	VHOST_MSG_SET_VRING_BASE = 10,
	VHOST_MSG_GET_VRING_BASE = 11,
	VHOST_MSG_SET_VRING_KICK = 12,
	VHOST_MSG_SET_VRING_CALL = 13,
	VHOST_MSG_SET_VRING_ERR = 14,
	VHOST_MSG_SET_PROTOCOL_FEATURES = 16,
	VHOST_MSG_SET_VRING_ENABLE = 18,
	VHOST_MSG_NET_SET_MTU = 20,
	VHOST_MSG_SET_STATUS = 39,
};

struct vhost_message {
	uint32_t request, n_bytes;
	const void *payload; // n_bytes, at any address
	const int *files;
	unsigned n_files;
};

struct vhost_ring {
	uint32_t slots; // 0: not known
	bool has_addresses, is_started;
	uint64_t descriptors, available, used; // in the peer's address space
};

struct vhost_rules {
	uint64_t offered, offered_protocol, features;
	unsigned n_regions;
	struct {
		uint64_t begin, end; // in the peer's address space
	} regions[VHOST_REGIONS];
	struct vhost_ring rings[VHOST_RINGS];
};

// For a new connection whose peer is offered these features.
void vhost_rules_begin(struct vhost_rules *rules, uint64_t offered, uint64_t offered_protocol);

// NULL if the library may have the message, otherwise one sentence: what is wrong, and what to do;
// static. What the message would set counts as not known until it is noted. Looks at the files.
const char *vhost_rules_check(struct vhost_rules *rules, const struct vhost_message *message);

// Once the library has done what a message wanted, which had been checked.
void vhost_rules_note(struct vhost_rules *rules, const struct vhost_message *message);
