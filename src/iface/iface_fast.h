// What workers read of interfaces. No function here allocates, locks or makes system calls.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { IFACE_NONE = 0xffff };

enum iface_kind { IFACE_PORT, IFACE_VLAN, IFACE_BRIDGE, IFACE_TUNNEL };

enum iface_flag {
	IFACE_DOWN = 1,   // down in Linux: received frames are dropped
	IFACE_LINUX = 2,  // all frames are punted: it has a feature that only Linux supports
	IFACE_LINUX4 = 4, // the same, for transit IPv4 packets only (forwarding off)
	IFACE_LINUX6 = 8, // the same, for transit IPv6 packets only
	// Linux sends ICMP redirects: packets whose output interface is the input interface are
	// punted (rate-limited).
	IFACE_REDIRECTS4 = 16,
	IFACE_REDIRECTS6 = 32,
	IFACE_DISCOVERY6 = 64, // proxy NDP: all neighbour discovery is punted
	IFACE_OUT_LINUX = 128, // packets to its neighbours are punted: only Linux may send there
	IFACE_MPLS = 256,      // frames with MPLS labels are taken (net.mpls.conf.IF.input)
};

// Reverse path filter (RFC 3704; the values are those of rp_filter in Linux): the route to the
// source of a packet has to lead to its input interface (strict), or has to exist (loose).
enum iface_rpf { IFACE_RPF_OFF, IFACE_RPF_STRICT, IFACE_RPF_LOOSE };

// VLAN tags as on the wire, outer one first: TPID and TCI of each. One aligned word.
struct iface_tags {
	uint8_t bytes[8];
} __attribute__((aligned(8)));

// How to handle received frames of an interface: one word, read by iface_in_load once per burst
// (untagged) or per tagged frame. A port without settings: no flags, the main VRF. A deleted
// interface: IFACE_DOWN.
struct iface_in {
	uint16_t flags; // enum iface_flag
	uint16_t vrf;
	uint16_t iface;
	uint8_t n_macs;     // not 0: check iface_has_mac for other addresses than the port's own
	uint8_t n_tags : 2, // of a port or bridge: most tags of any interface on it, 0: tagged
	                    // frames are unknown; of a VLAN: its own
		rpf4 : 2,   // enum iface_rpf, of received IPv4 packets
		kind : 4;   // enum iface_kind
} __attribute__((aligned(8)));

struct iface_slot;
struct iface_macs;

// The workers' part of a table of interfaces.
struct iface_view {
	const struct iface_in *in; // by interface; the first ones are the ports
	const struct iface_slot *slot;
	const struct iface_macs *macs;
};

// How to handle received frames of an interface. Worker.
static inline struct iface_in iface_in_load(const struct iface_view *view, uint16_t iface)
{
	const void *from = &view->in[iface];
	uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
	struct iface_in in;

	memcpy(&in, &word, sizeof(in));
	return in;
}

// The VLAN interface with a frame's port, or bridge, and tags, ignoring priorities (inner tag 0: a
// single tag); IFACE_NONE: there is none. It searches, so do not call it for every packet. Worker.
uint16_t iface_tagged(const struct iface_view *view, uint16_t port, const struct iface_tags *tags);
// Whether a MAC address is the interface's own or one of its additional ones. Worker.
bool iface_has_mac(const struct iface_view *view, uint16_t iface, const uint8_t mac[6]);
