// A tc filter of an ingress or clsact qdisc, as the kernel reports it, in the words of access
// lists. Produced by decode, consumed by the mirror. Plain data, no pointers. Internal to netlink.
#pragma once

#include "acl/acl.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	FILTER_KIND_MAX = 16,
	FILTER_REASON_MAX = 96,
	// One with ports, and one for fragments, whose ports read as 0.
	FILTER_MAX_RULES = 2,
	FILTER_BLOCK = -1, // TCM_IFINDEX_MAGIC_BLOCK: several interfaces share it
};

enum filter_what {
	FILTER_UNKNOWN, // not understood: `reason`
	// Does exactly what `rule` says, in this place, to packets that workers forward and for
	// which acl_is_alike() holds. Linux has to judge the others.
	FILTER_RULES,
	FILTER_TABLE, // no filter: the priority itself (handle 0), or a hash table of u32
};

// Filters of an interface and a side are tried by ascending priority. The first one whose rule
// matches decides, and a packet that none matches passes. Within a priority:
// - u32: by ascending handle. If there is more than one FILTER_TABLE with a handle, only one is
//   asked, and nobody knows which: the filters of this priority are not understood.
// - flower: by mask in the order in which masks were first used, which dumps do not tell. Filters
//   whose rules differ in effect, mark or policer, and which a packet may match both, are not
//   understood.
// - matchall: there is one.
//
// A filter is (ifindex, side, chain, priority, protocol, handle). An event that is no deletion
// replaces what was known of it. A deletion with handle 0 is about all filters of its chain,
// priority and protocol; `what` of a deletion is FILTER_UNKNOWN, without a reason. The removal of
// the qdisc removes its filters without an event of theirs.
//
// Frames with a VLAN tag are of the protocol of the tag on the port, and of their own on the VLAN
// interface: filters of a port with protocol `all` also judge what VLANs on it receive and send.
struct event_filter {
	int ifindex;       // or FILTER_BLOCK; side is then 0
	uint8_t side;      // enum event_side: EVENT_INGRESS or EVENT_EGRESS
	uint16_t priority; // of tc; less is first
	uint16_t protocol; // ETH_P_*, host order; ETH_P_ALL: all
	uint32_t chain, handle;
	char kind[FILTER_KIND_MAX]; // "flower", "u32", "matchall"...
	uint8_t what;               // enum filter_what
	// Why it is not understood: "key enc_key_id", "action mirred", "kind bpf".
	char reason[FILTER_REASON_MAX];
	// One after the other; 0: it concerns no packet that workers forward, as one about ARP, or
	// does nothing. Effects are ACL_PERMIT and ACL_DENY, with a mark or ACL_KEEP_DSCP; the
	// bucket of a policer is the index of the action police, which filters may share; names
	// are empty; acl_rule_end() has accepted them.
	uint8_t n_rules;
	struct acl_rule rule[FILTER_MAX_RULES];
};
