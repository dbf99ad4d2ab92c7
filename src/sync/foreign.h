// What in Linux acts on packets and is unknown to lanes: rules, nftables, iptables, xfrm, tc,
// multicast routes. Only where it is counts: links under it leave their packets to Linux, and all
// links do where Linux cannot tell whether there is anything. Inside links.
// Control thread.
#pragma once

#include "sync/mirror.h"

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
	uint8_t old_tables;     // FIB_LINK_LINUX4, 6: where iptables of the old kind has rules
	uint8_t link_flags;     // FIB_LINK_LINUX4, 6: what all links get because of these
	uint8_t vrf_flags;      // and what links in VRFs get: their rule is missing
};

struct links;
void foreign_close(struct foreign *foreign);
void foreign_event(struct links *links, const struct event *event);
void foreign_link_gone(struct links *links, int ifindex);
// A dump could not tell this kind whole. Where none ever has, it may be anything.
void foreign_lacks(struct links *links, enum event_kind kind);
// Looks again at what nobody tells of.
void foreign_tend(struct links *links);
// What the newest dump did not name goes, but for the kinds that it told in part.
void foreign_sweep(struct links *links, uint32_t partial);
// Sums up: link_flags, vrf_flags, and for each interface what tc has there.
void foreign_judge(struct links *links);
// FIB_LINK_LINUX4, 6: what this thing takes away from all links.
uint8_t foreign_flags(const struct foreign_thing *thing);
// Which of the rules that every namespace has are there.
enum usual_rule { RULE_LOCAL = 1, RULE_MAIN = 2, RULE_L3MDEV = 4 };
unsigned foreign_usual_rules(const struct foreign *foreign, uint8_t family);
// False: `tell` wants no more.
bool foreign_unsupported(const struct links *links,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg);
