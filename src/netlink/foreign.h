// What in Linux acts on packets and is unknown to workers: rules, nftables, iptables, xfrm, tc,
// multicast routes. Only where it is counts: links under it leave their packets to Linux, and all
// links do where Linux cannot tell whether there is anything. Inside links.
// Control thread.
#pragma once

#include "netlink/mirror.h"

struct foreign_thing {
	uint8_t kind;              // enum event_kind
	uint32_t seen;             // the dump that named it last
	uint32_t n;                // rules that look the same to us
	uint32_t name;             // hash of it
	struct event_foreign what; // of a rule only the family
	struct event_rule rule;
};

struct foreign {
	struct foreign_thing *thing;
	uint32_t n, room;
	uint32_t told, lacking; // kinds that a dump has told whole; those that none could tell yet
	uint8_t old_tables;     // FIB_IFACE_LINUX4, 6: where iptables of the old kind has rules
	uint8_t iface_flags;    // FIB_IFACE_LINUX4, 6: what all links get because of these
	uint8_t vrf_flags;      // and what links in VRFs get: their rule is missing
};

struct ifaces;
void foreign_close(struct foreign *foreign);
void foreign_event(struct ifaces *ifaces, const struct event *event);
void foreign_iface_gone(struct ifaces *ifaces, int ifindex);
// A dump could not tell this kind whole. Where none ever has, it may be anything.
void foreign_lacks(struct ifaces *ifaces, enum event_kind kind);
// Looks again at what nobody tells of.
void foreign_poll(struct ifaces *ifaces);
// What the newest dump did not name goes, but for the kinds that it told in part.
void foreign_sweep(struct ifaces *ifaces, uint32_t partial);
// Sums up: iface_flags, vrf_flags, and for each interface what tc has there.
void foreign_judge(struct ifaces *ifaces);
// FIB_IFACE_LINUX4, 6: what this thing takes away from all links.
uint8_t foreign_flags(const struct foreign_thing *thing);
// Which of the rules that every namespace has are there.
enum usual_rule { RULE_LOCAL = 1, RULE_MAIN = 2, RULE_L3MDEV = 4 };
unsigned foreign_usual_rules(const struct foreign *foreign, uint8_t family);
// False: `tell` wants no more.
bool foreign_unsupported(const struct ifaces *ifaces,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);
