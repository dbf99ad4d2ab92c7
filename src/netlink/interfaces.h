// All interfaces of the namespace by index, each with what Linux has said of it and what became of
// that. Inside links. Control thread.
#pragma once

#include "netlink/ifaces.h"

// Settings of one interface, or of "all", for one family.
struct interface_conf {
	bool is_known;
	uint32_t seen; // the dump that named it last
	int forwarding, rp_filter, ignore_linkdown, proxy_neigh;
};

// Netlink does not tell of these.
enum interface_sysctl {
	SYSCTL_IPV6 = 1, // not disabled
	SYSCTL_REDIRECTS = FIB_IFACE_REDIRECTS4 | FIB_IFACE_REDIRECTS6,
};

// What stands on an interface, found out anew before each judgement.
struct interface_above {
	uint32_t reasons; // enum iface_reason, one bit each
	unsigned n_macs;  // of macvlans that are up; may exceed FIB_IFACE_MACS
	struct wire_mac macs[FIB_IFACE_MACS];
};

struct interface {
	struct interface *next; // in its bucket
	int ifindex;
	uint32_t seen; // the dump that named it last
	bool is_known; // Linux has told of the interface itself, not only of its settings
	struct event_link iface;
	struct interface_conf conf[2]; // IPv4, IPv6
	struct interface_above above;
	uint32_t n_addresses4;
	uint16_t id;        // link id; FIB_NO_IFACE
	uint8_t tc;         // enum event_side: tc does something there
	uint8_t sysctls;    // enum interface_sysctl, as they were read last
	uint8_t tcx;        // enum event_side; read with them
	bool sysctls_read;  // and need not be read before the next flush
	bool sysctls_known; // they were read once
	unsigned mtu6;      // likewise; 0: not known
	uint32_t reasons;   // of the judgement that holds
	uint16_t mtu;       // of its link, and the VRF: routes over it depend on them
	uint8_t vrf;
	struct ifaces_state told; // what routes were told last
};

struct interfaces {
	struct interface **bucket;
	uint32_t n_buckets, n; // a power of two
};

int interfaces_open(struct interfaces *all);
void interfaces_close(struct interfaces *all);
struct interface *interfaces_find(const struct interfaces *all, int ifindex); // NULL: none
// Made, with nothing known, when it is not there. NULL: no memory.
struct interface *interfaces_get(struct interfaces *all, int ifindex);
void interfaces_remove(struct interfaces *all, int ifindex);
// A walk in no order; nothing may be added or removed meanwhile. NULL: begin; returns NULL at the
// end.
struct interface *interfaces_next(const struct interfaces *all, const struct interface *after);
