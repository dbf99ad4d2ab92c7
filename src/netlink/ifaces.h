// Linux's interfaces, as far as the mirror must know them: which are links of ours (TAP interfaces
// and VLANs on them), which stand above or below, VRF devices and their tables, addresses, settings
// (netconf). Inside the mirror. Control thread.
#pragma once

#include "netlink/mirror.h"

#include <assert.h>

enum { IFACES_NO_VRF = 255 };

struct ifaces;
int ifaces_create(struct ifaces **out, struct mirror *mirror, struct error *error);
void ifaces_destroy(struct ifaces *ifaces);

// EVENT_LINK, _ADDRESS, _NETCONF, _RULE, _QDISC, _POLICY, _POLICY_DEFAULT, _CHAIN, _MROUTE
void ifaces_event(struct ifaces *ifaces, const struct event *event);
void ifaces_tap_changed(struct ifaces *ifaces, unsigned port, int ifindex);
void ifaces_dump_begins(struct ifaces *ifaces);
void ifaces_dump_lacks(struct ifaces *ifaces, enum event_kind kind);
void ifaces_dump_ends(struct ifaces *ifaces, uint32_t partial); // as mirror_dump_ends
// Link ids, VRF ids and settings to the fib, ports' settings to the hands. Before neighbours and
// routes.
void ifaces_flush(struct ifaces *ifaces);
// Neighbours and routes have been brought in line with all that ifaces_flush did: ids that were
// given up are free again. True: there is more for ifaces_flush.
bool ifaces_settled(struct ifaces *ifaces);
void ifaces_poll(struct ifaces *ifaces); // as mirror_poll
void ifaces_unsupported(const struct ifaces *ifaces,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);
void ifaces_info(const struct ifaces *ifaces, struct netlink_info *out); // its fields

// What routes need to know of an interface.
struct ifaces_state {
	bool is_known;                             // Linux has told of it
	bool is_up;                                // IFF_UP
	bool has_carrier;                          // IFF_LOWER_UP
	bool ignores_linkdown4, ignores_linkdown6; // ignore_routes_with_linkdown
	bool is_loopback;
	uint16_t iface; // link id; FIB_NO_IFACE: only Linux can send there (no link of ours, or one
	                // with something on it that workers do not know)
};
static_assert(sizeof(struct ifaces_state) == 8, "compared as bytes: no padding");
struct ifaces_state ifaces_state(const struct mirror *mirror, int ifindex);
const char *ifaces_name(const struct mirror *mirror, int ifindex); // "?": unknown

// The VRF whose routes stand in a kernel table; main, local and default (254, 255, 253) are VRF 0.
// IFACES_NO_VRF: workers have no such table. A VRF that goes is NO_VRF at once, but its fib table
// stays open until routes have been flushed.
uint8_t ifaces_vrf_of_table(const struct mirror *mirror, uint32_t table);

// For people and for keeping neighbours alive.
int ifaces_ifindex(const struct mirror *mirror, uint16_t iface);        // 0: no such link
const char *ifaces_vrf_name(const struct mirror *mirror, uint8_t vrf);  // NULL: not open
int ifaces_vrf_find(const struct mirror *mirror, const char *name);     // -ENOENT
uint32_t ifaces_table_of_vrf(const struct mirror *mirror, uint8_t vrf); // 0: not open
