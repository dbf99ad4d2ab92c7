// Linux's interfaces, as far as the mirror must know them: which are links of ours (twins and VLANs
// on them), which stand above or below, VRF devices and their tables, addresses, settings
// (netconf). Inside the mirror. Control thread.
#pragma once

#include "sync/mirror.h"

#include <assert.h>

enum { LINKS_NO_VRF = 255 };

struct links;
int links_create(struct links **out, struct mirror *mirror, struct complaint *why);
void links_destroy(struct links *links);

// EVENT_LINK, _ADDRESS, _NETCONF, _RULE, _QDISC, _POLICY, _POLICY_DEFAULT, _CHAIN, _MROUTE
void links_event(struct links *links, const struct event *event);
void links_twin_changed(struct links *links, unsigned port, int ifindex);
void links_dump_begins(struct links *links);
void links_dump_lacks(struct links *links, enum event_kind kind);
void links_dump_ends(struct links *links, uint32_t partial); // as mirror_dump_ends
// Link ids, VRF ids and settings to the fib, ports' settings to the hands. Before neighbours and
// routes.
void links_flush(struct links *links);
// Neighbours and routes have been brought in line with all that links_flush did: ids that were
// given up are free again. True: there is more for links_flush.
bool links_settled(struct links *links);
void links_tend(struct links *links); // as mirror_tend
void links_unsupported(const struct links *links,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg);
void links_info(const struct links *links, struct sync_info *out); // its fields

// What routes need to know of an interface.
struct links_state {
	bool is_known;                             // Linux has told of it
	bool is_up;                                // IFF_UP
	bool has_carrier;                          // IFF_LOWER_UP
	bool ignores_linkdown4, ignores_linkdown6; // ignore_routes_with_linkdown
	bool is_loopback;
	uint16_t link; // link id; FIB_NO_LINK: only Linux can send there (no link of ours, or one
	               // with something on it that lanes do not know)
};
static_assert(sizeof(struct links_state) == 8, "compared as bytes: no padding");
struct links_state links_state(const struct mirror *mirror, int ifindex);
const char *links_name(const struct mirror *mirror, int ifindex); // "?": unknown

// The VRF whose routes stand in a kernel table; main, local and default (254, 255, 253) are VRF 0.
// LINKS_NO_VRF: lanes have no such table. A VRF that goes is NO_VRF at once, but its fib table
// stays open until routes have been flushed.
uint8_t links_vrf_of_table(const struct mirror *mirror, uint32_t table);

// For people and for keeping neighbours alive.
int links_ifindex(const struct mirror *mirror, uint16_t link);         // 0: no such link
const char *links_vrf_name(const struct mirror *mirror, uint8_t vrf);  // NULL: not open
int links_vrf_find(const struct mirror *mirror, const char *name);     // -ENOENT
uint32_t links_table_of_vrf(const struct mirror *mirror, uint8_t vrf); // 0: not open
