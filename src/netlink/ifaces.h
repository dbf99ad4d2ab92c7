// Kernel interfaces as far as the mirror needs them: which ones are ours (TAP interfaces and VLANs
// on them), upper and lower devices, VRF devices and their tables, addresses, settings (netconf).
// Internal to the mirror. Control thread.
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
// Publishes fib interface ids, VRF ids and settings to the fib, and port settings through the ops.
// Call before flushing neighbours and routes.
void ifaces_flush(struct ifaces *ifaces);
// Call after neighbours and routes have been updated for everything ifaces_flush did: released ids
// become free again. Returns true if ifaces_flush has more work to do.
bool ifaces_settled(struct ifaces *ifaces);
void ifaces_poll(struct ifaces *ifaces); // as mirror_poll
void ifaces_unsupported(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
void ifaces_info(const struct ifaces *ifaces, struct netlink_info *out); // fills in its fields

// Interface state used by routes.
struct ifaces_state {
	bool is_known;                             // reported by the kernel
	bool is_up;                                // IFF_UP
	bool has_carrier;                          // IFF_LOWER_UP
	bool ignores_linkdown4, ignores_linkdown6; // ignore_routes_with_linkdown
	bool is_loopback;
	uint16_t iface; // fib interface id; FIB_NO_IFACE: only Linux can send there (not our
	                // interface, or something on it is unsupported)
};
static_assert(sizeof(struct ifaces_state) == 8, "compared as bytes: no padding");
struct ifaces_state ifaces_state(const struct mirror *mirror, int ifindex);
const char *ifaces_name(const struct mirror *mirror, int ifindex); // "?": unknown

// The VRF of a kernel table; main, local and default (254, 255, 253) are VRF 0. IFACES_NO_VRF:
// workers have no such table. When a VRF is removed it becomes IFACES_NO_VRF at once, but its fib
// table stays open until routes have been flushed.
uint8_t ifaces_vrf_of_table(const struct mirror *mirror, uint32_t table);

// For display and for neighbour refresh.
int ifaces_ifindex(const struct mirror *mirror, uint16_t iface);        // 0: no such interface
const char *ifaces_vrf_name(const struct mirror *mirror, uint8_t vrf);  // NULL: not open
int ifaces_vrf_find(const struct mirror *mirror, const char *name);     // -ENOENT
uint32_t ifaces_table_of_vrf(const struct mirror *mirror, uint8_t vrf); // 0: not open
