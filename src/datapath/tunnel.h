// Tunnels: the headers of packets into them, and packets out of them. Internal to the datapath.
// Worker.
#pragma once

#include "datapath/burst.h"

// What the outer header takes from the packet that it is written in front of.
struct tunnel_inner {
	uint32_t bytes; // of it, labels of the header not included
	uint16_t type;  // its EtherType: of IPv4, IPv6 or MPLS; 0: any, with labels in the header
	uint8_t tos;    // that of IP, or 0
	uint8_t ttl;    // to be sent
	bool has_df;
	uint64_t hash; // of its flow
};

// The ECN of an outer header by that of the packet in it: equal (RFC 6040, 4.1), or ECT(0) in place
// of CE, as Linux does (RFC 3168, 9.1.1).
static inline uint8_t tunnel_ecn(uint8_t tos, bool has_no_ce)
{
	enum { ECT0 = 2, CE = 3 };
	const uint8_t ecn = tos & CE;

	return has_no_ce && ecn == CE ? ECT0 : ecn;
}

// Whether a tunnel with this template carries packets of an EtherType; with labels in its header:
// whether these may precede them. Part of check and mpls.
bool tunnel_carries(const struct fib_template *t, uint16_t type);
// Writes the header of a tunnel in front of a packet, whose first byte would be the one of a plain
// frame, and its output port. Returns the first byte; NULL: not enough headroom. Part of encap and
// mpls.
uint8_t *tunnel_prepend(struct worker *w, struct rte_mbuf *m, const struct fib_template *any,
	const struct tunnel_inner *inner, uint8_t *port);
// Writes the header of a tunnel in front of packet i, which was rewritten already, and its output
// port. False: not enough headroom. Part of encap.
bool tunnel_write(struct worker *w, struct burst *b, uint16_t i, const struct fib_template *any);

// Whether packet i, to an address of the router, may be one of a tunnel that ends there. / Keeps it
// for datapath_decap; the caller removes it from the burst. Part of check.
bool tunnel_may_end(const struct burst *b, uint16_t i);
void tunnel_keep(struct worker *w, const struct burst *b, uint16_t i);

struct parse;
// Adds the packets in those that were kept to the bursts of w->poll, which were begun for frames of
// this port; the others get their verdict. What precedes a packet is still there, so that it is
// punted as it was received; unlabel and untag remove it.
void tunnel_take(struct parse *p, const struct tunnelled *in);
