// All interfaces of the namespace by index, each with its kernel state and the result of its
// verdict. Internal to ifaces. Control thread.
#pragma once

#include "base/hash_table.h"
#include "netlink/ifaces.h"

// Settings of one interface, or of "all", for one family.
struct interface_conf {
	bool is_known;
	uint32_t seen; // the last dump that contained it
	int forwarding, rp_filter, ignore_linkdown, proxy_neigh;
};

// Sysctls for which there are no netlink notifications.
enum interface_sysctl {
	SYSCTL_IPV6 = 1, // not disabled
	SYSCTL_REDIRECTS = FIB_IFACE_REDIRECTS4 | FIB_IFACE_REDIRECTS6,
};

// Upper devices of an interface, recomputed before each verdict.
struct interface_above {
	uint32_t reasons; // enum iface_reason, one bit each
	unsigned n_macs;  // of macvlans that are up; may exceed FIB_IFACE_MACS
	struct wire_mac macs[FIB_IFACE_MACS];
};

struct interface {
	struct hash_node node; // first: see hash_table.h
	int ifindex;
	uint32_t seen; // the last dump that contained it
	bool is_known; // the interface itself was reported, not only its settings
	struct event_link iface;
	struct interface_conf conf[2]; // IPv4, IPv6
	struct interface_above above;
	uint32_t n_addresses4;
	uint16_t id;        // fib interface id; FIB_NO_IFACE: none
	uint8_t tc;         // enum event_side: tc is active there
	uint8_t sysctls;    // enum interface_sysctl, as last read
	uint8_t tcx;        // enum event_side; read together with them
	bool sysctls_read;  // and need not be read again before the next flush
	bool sysctls_known; // they have been read at least once
	unsigned mtu6;      // read with them; 0: unknown
	uint32_t reasons;   // of the current verdict
	uint16_t mtu;       // of its fib interface; routes depend on it and on the VRF
	uint8_t vrf;
	struct ifaces_state reported; // what routes were last notified of
};

struct interfaces {
	struct hash_table by_index;
};

int interfaces_open(struct interfaces *all);
void interfaces_close(struct interfaces *all);
struct interface *interfaces_find(const struct interfaces *all, int ifindex); // NULL: none
// Created empty if it does not exist. NULL: out of memory.
struct interface *interfaces_get(struct interfaces *all, int ifindex);
void interfaces_remove(struct interfaces *all, int ifindex);
// Iterates in no particular order; nothing may be added or removed during the iteration. Pass NULL
// to start; returns NULL at the end.
struct interface *interfaces_next(const struct interfaces *all, const struct interface *after);
