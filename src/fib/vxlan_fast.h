// Part of fib_fast.h: what workers read of VXLAN devices and their remote ends (VTEPs). Worker.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	FIB_MAX_VXLANS = 4096,
	FIB_MAX_VTEPS = (1 << 17) - 1, // numbers are 1 to this
	FIB_VXLAN_MAX = 64,            // outer IPv6, UDP and VXLAN, or IPv6 with an option and GRE
	FIB_MAX_VXLAN_PORTS = 16,      // UDP ports of all devices
};

// A device. Immutable: it is replaced as a whole.
struct fib_vxlan {
	uint32_t sum;              // IPv4: of the words of the outer header that stay as they are
	uint32_t vni;              // host order; of GRE: the key
	uint32_t flags;            // enum iface_tunnel_flag
	uint16_t iface;            // its interface
	uint16_t first_port;       // of sources
	uint16_t n_ports;          // at least 1; 0: GRE, without UDP
	uint16_t vrf;              // of outer packets
	uint8_t is_ip6;            // outer packets
	uint8_t n_bytes;           // of `bytes`
	uint8_t sum_at;            // of GRE: where its checksum is; 0: it has none
	bool takes_tos, takes_ttl; // the DSCP, the TTL of the inner packet
	// The outer header, and UDP and VXLAN, or GRE. Encap writes the remote address, lengths,
	// id, checksums and the source port; they are 0.
	uint8_t bytes[FIB_VXLAN_MAX] __attribute__((aligned(8)));
} LINE_ALIGNED;

// Several remote ends, of which a flow uses one, by its hash. Immutable.
struct fib_vtep_group {
	uint32_t n;
	uint32_t vtep[]; // none of them is a group
};

// A remote end, in one VRF: 32 bytes. Only `hop` and `group` change while it is held.
struct fib_vtep {
	uint8_t addr[16];                   // IPv4 in the first four bytes
	const struct fib_vtep_group *group; // atomic; NULL: it is none
	uint32_t hop; // id of the hop to it, or of a group; 0: no route. Atomic
	uint16_t vrf;
	uint8_t is_ip6;
} __attribute__((aligned(32)));

// What an arriving packet is found by: family and VRF of the outer one, UDP port, VNI. Two words
// are one entry: a key, which is not 0, and the number of the device.
struct fib_vxlan_end {
	uint64_t key;
	uint64_t vxlan;
};
struct fib_vxlan_ends {
	uint32_t mask; // of places; a free one follows each run
	uint32_t n_udp;
	uint16_t udp[FIB_MAX_VXLAN_PORTS];
	struct fib_vxlan_end end[];
};

static inline uint64_t fib_vxlan_key(bool is_ip6, uint16_t vrf, uint16_t udp_port, uint32_t vni)
{
	return 1ull << 63 | (uint64_t)is_ip6 << 62 | (uint64_t)vrf << 40 |
	       (uint64_t)udp_port << 24 | vni;
}

// The live part of a table.
struct fib_overlay {
	const struct fib_vxlan *vxlan[FIB_MAX_VXLANS]; // atomic; NULL: none
	const struct fib_vxlan_ends *ends;             // atomic; NULL: none
	const struct fib_vtep *vtep;                   // by number
};

// The device with a number; NULL: there is none. Valid until the worker reports a quiescent state.
static inline const struct fib_vxlan *fib_vxlan_load(const struct fib_overlay *overlay,
	uint16_t number)
{
	return __atomic_load_n(&overlay->vxlan[number], __ATOMIC_ACQUIRE);
}

// NULL: no device receives anything.
static inline const struct fib_vxlan_ends *fib_vxlan_ends_load(const struct fib_overlay *overlay)
{
	return __atomic_load_n(&overlay->ends, __ATOMIC_ACQUIRE);
}
// Whether any device receives on this UDP port. / The number of the device of an arriving packet;
// FIB_MAX_VXLANS: there is none.
bool fib_vxlan_has_port(const struct fib_vxlan_ends *ends, uint16_t udp_port);
uint16_t fib_vxlan_find(const struct fib_vxlan_ends *ends, uint64_t key);
