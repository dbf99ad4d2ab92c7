// Kernel objects that act on packets but are not supported by workers: rules, nftables, iptables,
// xfrm, tc, multicast routes. Only their location matters: interfaces they apply to leave their
// packets to Linux, and all interfaces do if the kernel cannot report whether any exist. Internal
// to ifaces. Control thread.
#pragma once

#include "netlink/mirror.h"

struct foreign_thing {
	uint8_t kind;              // enum event_kind
	uint32_t seen;             // the last dump that contained it
	uint32_t n;                // number of rules that we cannot tell apart
	uint32_t name;             // hash of the name
	struct event_foreign what; // for a rule, only the family
	struct event_rule rule;
};

struct foreign {
	struct foreign_thing *thing;
	uint32_t n;
	size_t capacity;
	uint32_t reported, lacking; // kinds dumped completely so far; kinds never dumped completely
	uint8_t old_tables;         // FIB_IFACE_LINUX4, 6: families with legacy iptables rules
	uint8_t iface_flags;        // FIB_IFACE_LINUX4, 6: set on all interfaces because of these
	                            // objects
	uint8_t vrf_flags;          // set on interfaces in VRFs, because the l3mdev rule is missing
};

struct ifaces;
void foreign_close(struct foreign *foreign);
void foreign_event(struct ifaces *ifaces, const struct event *event);
void foreign_iface_gone(struct ifaces *ifaces, int ifindex);
// A dump could not return this kind completely. If no dump ever has, assume that objects exist.
void foreign_lacks(struct ifaces *ifaces, enum event_kind kind);
// Re-reads state for which there are no notifications.
void foreign_poll(struct ifaces *ifaces);
// Removes what the latest dump did not contain, except kinds that were dumped partially.
void foreign_sweep(struct ifaces *ifaces, uint32_t partial);
// Recomputes iface_flags, vrf_flags and the tc state of each interface.
void foreign_check(struct ifaces *ifaces);
// FIB_IFACE_LINUX4, 6: the flags that this object sets on all interfaces.
uint8_t foreign_flags(const struct foreign_thing *thing);
// Which of the default rules are present.
enum usual_rule { RULE_LOCAL = 1, RULE_MAIN = 2, RULE_L3MDEV = 4 };
unsigned foreign_usual_rules(const struct foreign *foreign, uint8_t family);
// Lists the objects. Returns false if `cb` stopped the iteration.
bool foreign_unsupported(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
