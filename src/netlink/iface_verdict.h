// Judges how workers have to treat an interface: a pure function of kernel state. Internal to
// ifaces. Control thread.
#pragma once

#include "netlink/ifaces_inside.h"

// Why workers cannot fully handle an interface; one bit each.
enum iface_reason {
	REASON_MASTER,
	REASON_UPPER,
	REASON_MANY_MACS,
	REASON_ELSEWHERE, // a macvlan in another VRF
	REASON_XDP,
	REASON_INGRESS,
	REASON_EGRESS,
	REASON_PRIORITIES, // priorities in VLAN tags, by DSCP: workers send priority 0 only
	REASON_NO_TABLE,   // its VRF has no table in the fib
	REASON_VRF_DOWN,
	REASON_FORWARDING4,
	REASON_FORWARDING6,
	REASON_RP_FILTER,
	REASON_NO_IPV6,
	REASON_PROXY_NDP,
	REASON_MTU,
	REASON_NO_ID,
	REASON_TAGS, // more VLAN tags than workers support
	N_IFACE_REASONS
};

struct iface_reason_row {
	uint8_t flags; // the resulting enum fib_iface_flag bits
	const char *what, *effect;
};
extern const struct iface_reason_row iface_reason[N_IFACE_REASONS];

struct iface_verdict {
	bool is_ours; // a port's TAP interface, or a VLAN on one
	struct fib_iface iface;
	uint32_t reasons;
};
void decide(const struct ifaces *ifaces, const struct interface *one, struct iface_verdict *out);

// Call before a round of verdicts: collects the upper devices of each interface.
void check_above(struct ifaces *ifaces);

// Whether workers may send by this interface, given these reasons.
bool check_lets_out(uint32_t reasons);
