// Part of fib_fast.h: the ends of tunnels. Worker.
#pragma once

#include <stdint.h>

// The ends of tunnels: what comes to a local address from the other end of one is received on its
// interface. Immutable, and replaced as a whole.
enum fib_carrier {
	FIB_IP4_IN_IP,     // protocol 4
	FIB_IP6_IN_IP,     // protocol 41
	FIB_IP_IN_GRE,     // protocol 47: also labels
	FIB_MPLS_IN_IP,    // protocol 137
	FIB_FRAMES_IN_GRE, // protocol 47, type 0x6558
	N_FIB_CARRIERS
};

// What an end is found by; no padding, and all unused bytes are 0.
struct fib_end_key {
	uint8_t local[16], remote[16]; // IPv4 in the first four bytes
	uint32_t key;                  // of GRE, host order; with FIB_UDP_BY_PORT: the UDP port
	uint16_t vrf;                  // of the outer packet
	uint8_t is_ip6;                // the outer packet
	uint8_t carrier : 7,           // enum fib_carrier
		has_key : 1;
};

struct fib_end {
	struct fib_end_key key;
	uint16_t iface; // of the tunnel
	uint16_t flags; // enum iface_tunnel_flag
	uint16_t vxlan; // of a tunnel of frames: the number of its device
	uint32_t next;  // with the same hash: its number + 1; 0: none
};

// What comes to one of these UDP ports (FOU) is as if it were sent without UDP.
enum { FIB_MAX_UDP_ENDS = 16 };
enum fib_udp_flag {
	FIB_UDP_IP4 = 1,     // in IPv4
	FIB_UDP_IP6 = 2,     // in IPv6
	FIB_UDP_ZERO = 4,    // in IPv6, also without a checksum
	FIB_UDP_BY_PORT = 8, // tunnels that differ in nothing but their port are told apart by it
};
struct fib_udp_end {
	uint16_t port;
	uint8_t protocol; // of what is in it; 0: IPv4 or IPv6, as its first bits say
	uint8_t flags;    // enum fib_udp_flag
};
struct fib_ends {
	uint32_t n_ends, n_udp;
	uint32_t mask; // of hashes
	struct fib_udp_end udp[FIB_MAX_UDP_ENDS];
	const uint32_t *first; // by hash: number + 1; 0: none
	struct fib_end end[];
};
