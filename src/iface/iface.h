// Interfaces: ports, bridges, VLANs on both, and tunnels, identified by an index, which is not a
// Linux ifindex. The control thread writes; workers read through iface_fast.h under RCU. What
// follows from a change, for routes and next hops, is the caller's: fib_iface_set.
#pragma once

#include "iface/iface_fast.h"
#include "wire/addr.h"

#include <stddef.h>

enum {
	IFACE_MAX_PORTS = 256, // their indices fit into a byte
	IFACE_MAX = 65534, // ports, VLANs, bridges, tunnels; the index of a port is its port index
	IFACE_MAX_VRFS = 4096, // VRF ids have 12 bits
	IFACE_MAX_TAGS = 2,    // VLAN tags of an interface
	IFACE_MACS = 8,        // additional MAC addresses of an interface
};

// A VLAN tag on the wire, host order.
struct iface_tag {
	uint16_t tpid; // 0x8100, 0x88a8
	uint16_t vid;  // 1 to 4094
};

// A tunnel of layer 3: packets to it are sent in packets from `local` to `remote`, and what comes
// from there to `local` is received on it.
// VXLAN carries frames, and has many remote ends, of which nothing is said here: which frame goes
// to which one is in the MAC table (mac/mac.h), and how that is reached is fib_vtep_hold's.
enum iface_tunnel_kind {
	IFACE_NO_TUNNEL,
	IFACE_IPIP,  // IP, or labels, in IP (RFC 2003, 2473, 4213), or in UDP with IFACE_TUNNEL_UDP
	IFACE_GRE,   // GRE (RFC 2784, 2890)
	IFACE_VXLAN, // VXLAN (RFC 7348); no two of a family, VRF and UDP port have one VNI
	IFACE_GRETAP, // frames in GRE (type 0x6558): as VXLAN, but with one remote end, `remote`
};
enum { IFACE_MAX_VXLANS = 4096 /* with those of GRE */, IFACE_MAX_VNI = (1 << 24) - 1 };

enum iface_tunnel_flag {
	IFACE_TUNNEL_IP4 = 1,             // it carries IPv4 packets
	IFACE_TUNNEL_IP6 = 2,             // and IPv6 packets
	IFACE_TUNNEL_UDP = 4,             // IPIP: sent in UDP (FOU)
	IFACE_TUNNEL_CHECKSUM = 8,        // GRE, UDP: sent with a checksum
	IFACE_TUNNEL_WANTS_CHECKSUM = 16, // GRE: packets without are not received
	IFACE_TUNNEL_KEY = 32,            // GRE: sent with `key`
	IFACE_TUNNEL_WANTS_KEY = 64,      // GRE: received with `wanted_key` only; else without one
	IFACE_TUNNEL_DF = 128,            // IPv4: sent with DF; else with that of the inner packet
	IFACE_TUNNEL_TOS = 256,           // sent with the DSCP of the inner packet
	IFACE_TUNNEL_LIMIT = 512,         // IPv6: sent with `limit` in an option (RFC 2473, 4.1.1)
	IFACE_TUNNEL_LINUX = 1024, // received as by a device of Linux: in UDP to the ports of
	                           // fib_udp_ends_set, with a checksum of GRE only if it is
	                           // wanted; sent as by it: GRE over IPv6 with an ECN of 0
	                           // unless with IFACE_TUNNEL_TOS, others with ECT(0) where
	                           // the inner packet has CE
	IFACE_TUNNEL_BOUND = 2048, // sent by the interface `link` only
	// It carries packets with MPLS labels (RFC 4023, 7510), and receives them if it has
	// IFACE_MPLS. In UDP there are labels then, and no IP packets, but for IFACE_TUNNEL_LINUX.
	IFACE_TUNNEL_MPLS = 4096,
	// Packets that get labels here are sent with the DSCP (with IFACE_TUNNEL_TOS), the ECN
	// bits, the DF and, without a ttl, the TTL of their own, as other ones are. Otherwise these
	// are `tos`, 0, that of IFACE_TUNNEL_DF and 64, as in Linux.
	IFACE_TUNNEL_LABELLED_TOS = 8192,
	IFACE_TUNNEL_ZERO_CHECKSUM = 16384, // UDP over IPv6: received without a checksum, too
	// VXLAN and GRETAP only. Of those above, VXLAN has CHECKSUM, TOS, DF, LINUX (of its ECN
	// only) and ZERO_CHECKSUM; GRETAP has CHECKSUM, TOS, DF, LIMIT, LINUX, and those of GRE.
	// Without DF, packets are sent without, unless they are of IFACE_TUNNEL_INNER_DF.
	IFACE_TUNNEL_INNER_DF = 1 << 15,   // IPv4: sent with the DF of an inner IPv4 packet
	IFACE_TUNNEL_ONLY_LOCAL = 1 << 16, // received by what comes to `local` only, not to any
	                                   // address
};

struct iface_tunnel {
	struct wire_addr local, remote; // both of one family; VXLAN has no `remote`: family 0
	uint8_t kind;                   // enum iface_tunnel_kind
	uint8_t ttl;                    // of outer packets; 0: that of the inner one
	uint8_t tos;                    // its DSCP bits, without IFACE_TUNNEL_TOS
	uint8_t limit;
	uint16_t vrf;                    // of outer packets
	uint16_t source_port, dest_port; // UDP; source_port 0: by flow, 49152 and up
	uint16_t link;                   // index, with IFACE_TUNNEL_BOUND
	uint16_t path_mtu; // bytes of the longest outer packet that reaches `remote`; 0: unknown
	uint16_t last_source_port; // VXLAN: by flow, from source_port to this one; with
	                           // source_port 0: 49152 to 65535
	uint16_t vxlan; // VXLAN, GRETAP: a number that no other one has, below IFACE_MAX_VXLANS
	uint32_t flags; // enum iface_tunnel_flag
	uint32_t key, wanted_key; // VXLAN: `key` is the VNI, to 16,777,215
};
// It is compared as bytes: there are none between its fields.
_Static_assert(sizeof(struct iface_tunnel) ==
			       offsetof(struct iface_tunnel, wanted_key) + sizeof(uint32_t) &&
		       offsetof(struct iface_tunnel, flags) == 2 * sizeof(struct wire_addr) +
								       4 * sizeof(uint8_t) +
								       7 * sizeof(uint16_t),
	"padding");

// Settings of an interface: used to receive frames, to write headers and to check lengths.
struct iface {
	struct wire_mac mac;  // source MAC of output frames; unicast frames with this destination
	                      // are accepted
	struct wire_mac peer; // destination MAC of routes to "the peer" of the interface
	bool has_peer;
	uint8_t rpf4;                         // enum iface_rpf, of received IPv4 packets
	uint8_t n_tags;                       // 0: the port itself, a bridge or a tunnel
	bool is_bridge;                       // a bridge, a VLAN on one, or VXLAN: it has no port
	struct iface_tunnel tunnel;           // of a kind: likewise
	uint8_t n_macs;                       // number of additional addresses (macvlan, VRRP)
	uint16_t port;                        // index; of a VLAN on a bridge: that of the bridge;
	                                      // of a bridge: 0
	uint16_t vrf;                         // table for lookups of received packets
	uint16_t flags;                       // enum iface_flag
	uint16_t mtu;                         // bytes of the IP packet, 68 to 9600
	uint16_t mtu6;                        // MTU for IPv6, if lower than mtu; 0: use mtu
	struct iface_tag tag[IFACE_MAX_TAGS]; // outer one first
	struct wire_mac macs[IFACE_MACS];
};

struct iface_entry;

// A table of interfaces. Its memory is touched page by page, as interfaces are added.
struct iface_table {
	struct iface_view view; // for workers
	struct iface_in *in;
	struct iface_slot *slot;
	struct iface_macs *macs;
	struct iface_entry *entry;
	uint32_t end; // interfaces from here on never had settings
};

// 0, or -ENOMEM. Control thread, like all functions below.
int iface_table_open(struct iface_table *table);
void iface_table_close(struct iface_table *table);
// Memory used for settings.
size_t iface_table_bytes(const struct iface_table *table);

// Whether an interface may get these settings: an untagged one has its port's index, a tagged one
// another, a bridge, a VLAN on one or a tunnel one beyond those of ports; port, tags, VRF, MTU and
// number of MAC addresses are in range; a VLAN on a bridge has one tag, and its bridge is there; no
// other interface of the port or bridge has these tags.
bool iface_is_sound(const struct iface_table *table, uint16_t iface, const struct iface *settings);
// Whether the kind, port or tags differ from the latest settings. Those of a tunnel may change.
bool iface_moves(const struct iface_table *table, uint16_t iface, const struct iface *settings);
// Changes settings, which must be sound; an interface that moves must have been deleted before, and
// published. Workers see the change after iface_publish.
void iface_set(struct iface_table *table, uint16_t iface, const struct iface *settings);
// Changes the VRF of the latest settings only.
void iface_set_vrf(struct iface_table *table, uint16_t iface, uint16_t vrf);
void iface_delete(struct iface_table *table, uint16_t iface);
// Publishes the current state of an interface to workers. They drop frames for which they have just
// looked up a deleted interface: its index may be given to another VLAN.
void iface_publish(struct iface_table *table, uint16_t iface);

// The current settings of an interface; NULL: there is no such interface.
const struct iface *iface_current(const struct iface_table *table, uint16_t iface);
// The latest ones, also of a deleted interface; NULL: there never was such an interface.
const struct iface *iface_latest(const struct iface_table *table, uint16_t iface);
// The VRF of an interface's neighbours: the latest one set, initially 0.
uint16_t iface_vrf(const struct iface_table *table, uint16_t iface);

// An interface's tags as on the wire.
struct iface_tags iface_wire_tags(const struct iface *iface);

// A tunnel of layer 3.
static inline bool iface_is_tunnel(const struct iface *iface)
{
	return iface->tunnel.kind == IFACE_IPIP || iface->tunnel.kind == IFACE_GRE;
}

// A tunnel of frames: VXLAN or GRETAP. Its neighbours are found as those on a bridge are: is_bridge
// is set, too.
static inline bool iface_carries_frames(const struct iface *iface)
{
	return iface->tunnel.kind == IFACE_VXLAN || iface->tunnel.kind == IFACE_GRETAP;
}

// The MTU for packets of a family.
static inline uint16_t iface_mtu(const struct iface *iface, uint8_t family)
{
	return family == 6 && iface->mtu6 ? iface->mtu6 : iface->mtu;
}
