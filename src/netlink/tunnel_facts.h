// What Linux tells of tunnels only when it is asked: the UDP ports on which it receives them (FOU,
// net/ipv4/fou_core.c), and how long packets may be that reach the other end. Control thread.
#pragma once

#include "wire/addr.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

struct mirror_udp_port {
	uint16_t port;
	uint8_t protocol; // of what is in it
	bool is_ip6;
	bool is_plain; // workers may take it: FOU, with IPv4, IPv6, MPLS or GRE in it, at all
	               // addresses
};

// Decoding. Pure. A message lies in its buffer as a whole.
// False: not a port, or malformed.
bool decode_udp_port(const struct nlmsghdr *message, struct mirror_udp_port *out);
// The number of a family, from the answer to CTRL_CMD_GETFAMILY; 0: it has none.
uint16_t decode_family(const struct nlmsghdr *message);
// The MTU of a route, as RTM_GETROUTE returns it; 0: it has none of its own.
uint32_t decode_route_mtu(const struct nlmsghdr *message);

struct tunnel_facts {
	int generic, route; // sockets
	uint16_t family;    // of FOU; 0: not known yet
};

// Opens sockets in the network namespace of the calling thread. 0 or -errno; close it in any case.
int tunnel_facts_open(struct tunnel_facts *facts);
void tunnel_facts_close(struct tunnel_facts *facts);
// All UDP ports. Returns how many there are, of which at most `most` are written; 0: also if this
// kernel has no FOU; -errno: it did not answer within a second.
int tunnel_facts_ports(struct tunnel_facts *facts, struct mirror_udp_port out[], unsigned most);
// The longest packet to an address, by the interface `ifindex` or in the VRF of that device (0:
// any), in bytes. 0: that of the interface by which it is sent, or unknown.
uint32_t tunnel_facts_mtu(struct tunnel_facts *facts, const struct wire_addr *addr, int ifindex);
