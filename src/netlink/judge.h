// What an interface is to workers: pure, from what Linux has said. Inside links. Control thread.
#pragma once

#include "netlink/ifaces_inside.h"

// Why an interface is not as workers would like it; one bit each.
enum iface_reason {
	REASON_MASTER,
	REASON_UPPER,
	REASON_MANY_MACS,
	REASON_ELSEWHERE, // a macvlan in another VRF
	REASON_XDP,
	REASON_INGRESS,
	REASON_EGRESS,
	REASON_PRIORITIES, // of VLAN tags, by DSCP: workers send all with priority 0
	REASON_NO_TABLE,   // its VRF has none in the fib
	REASON_VRF_DOWN,
	REASON_FORWARDING4,
	REASON_FORWARDING6,
	REASON_RP_FILTER,
	REASON_NO_IPV6,
	REASON_PROXY_NDP,
	REASON_MTU,
	REASON_NO_ID,
	REASON_TAGS, // more VLAN tags than workers know
	N_IFACE_REASONS
};

struct iface_reason_row {
	uint8_t flags; // enum fib_iface_flag that it leads to
	const char *what, *effect;
};
extern const struct iface_reason_row iface_reason[N_IFACE_REASONS];

struct judgement {
	bool is_ours; // a port's TAP interface, or a VLAN on one
	struct fib_iface iface;
	uint32_t reasons;
};
void judge(const struct ifaces *ifaces, const struct interface *one, struct judgement *out);

// Before a round of judgements: what stands on each interface.
void judge_above(struct ifaces *ifaces);

// Frames can leave by its link, as far as anything on it is concerned.
bool judge_lets_out(uint32_t reasons);
