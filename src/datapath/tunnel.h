// Tunnels: the headers of packets into them, and packets out of them. Internal to the datapath.
// Worker.
#pragma once

#include "datapath/burst.h"

// Whether a tunnel with this template carries packets of a family. Part of check.
bool tunnel_carries(const struct fib_template *t, bool is_ip6);
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
