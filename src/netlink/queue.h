// How Linux queues what an interface sends: a qdisc, a class of htb, or a filter that chooses a
// class, as the kernel reports them. Produced by decode, consumed by the mirror. Plain data, no
// pointers. Internal to netlink.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { QUEUE_KIND_MAX = 16, QUEUE_REASON_MAX = 64 };

enum queue_what {
	QUEUE_NONE,
	QUEUE_OTHER, // not followed: `reason`
	QUEUE_TBF,
	QUEUE_HTB,
	QUEUE_CLASS, // of htb
	QUEUE_FIFO,
	QUEUE_FQ_CODEL,
	QUEUE_FILTER, // that chooses a class: only that there is one
	N_QUEUE_WHATS
};

// A deletion has only the place and, of a qdisc, the kind.
struct event_queue {
	int ifindex;
	uint8_t what;            // enum queue_what
	uint32_t handle, parent; // TC_H_*; of a class: its own id
	uint32_t default_class;  // of htb: TC_H_MAKE, with its handle
	// Of tbf and a class: what may pass.
	uint64_t rate;          // bytes/s, not 0
	uint64_t burst;         // bytes
	uint16_t overhead;      // bytes more for each packet
	uint16_t mpu;           // bytes that each packet, with the overhead, counts for at least
	uint32_t limit_bytes;   // that wait; 0: no limit. Of tbf: before its own queue
	uint32_t limit_packets; // 0: no limit
	uint32_t target_us, interval_us; // of fq_codel
	bool marks;                      // of fq_codel: ECN
	char kind[QUEUE_KIND_MAX];
	char reason[QUEUE_REASON_MAX];
};
