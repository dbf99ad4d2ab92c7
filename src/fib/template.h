// Header templates of next hops: what precedes a packet on the wire. The control thread builds the
// header of each hop that leads to a neighbour; the step encap (datapath/encap.c) copies it in
// front of packets. A published template is never changed: hops_rewrite replaces it as a whole, and
// the old one is freed after a grace period. Control thread.
//
// Another header, as for a tunnel, is one function like append_labels in template.c, called by
// template_build in the order of the bytes on the wire; what it consists of is a field of struct
// iface or of struct fib_hop. Workers, their steps and the pool of templates stay as they are.
// docs/internals/changing.md names the files.
#pragma once

#include "fib/blocks.h"
#include "fib/fib_fast.h"
#include "iface/iface.h"

struct fib_hop;
struct hop;

enum { TEMPLATE_MACS = 12 };

// Builds the header of packets to a hop on an interface, with the hop's MAC address, known or not:
// - bytes[] up to `length`: destination and source MAC addresses, then everything that follows
//   them, at most FIB_TEMPLATE_MAX bytes. Packets of both families may use a hop (RFC 8950), so
//   their EtherType is not among them: it is left in place behind the header.
// - replaced: the bytes of a plain frame that give way to it: the MAC addresses (12); or 14 if the
//   header names the type of what follows itself, as that of MPLS does.
// - n_labels, label_ttl: those of the hop; the labels are the last bytes.
// - mtu_bytes: those that count against the MTU of the interface, less than 68 (the least MTU): 0
//   for VLAN tags, 4 for a label. The longest packet to the hop is shorter by as many, and so are
//   fragments (hops_mtu).
void template_build(struct fib_template *built, const struct hop *hop, const struct iface *iface);

// Appends the labels of a hop, without an EtherType.
void template_append_labels(struct fib_template *built, const struct fib_hop *hop);
// Whether the header is the MAC addresses alone, so that the hop needs no template.
bool template_is_plain(const struct fib_template *built);
bool templates_equal(const struct fib_template *a, const struct fib_template *b);

// The templates of a fib, in cache lines: one for headers of up to FIB_TEMPLATE_SMALL bytes. 0 or
// -ENOMEM; close it with blocks_close.
int templates_open(struct blocks *pool);
// A copy that may be published; NULL: there is no space. Owner: caller, until its block is freed.
const struct fib_template *template_publish(struct blocks *pool, const struct fib_template *built);
// The lines of a template, in units of the pool.
struct template_lines {
	uint32_t first, n;
};
struct template_lines template_lines(const struct blocks *pool,
	const struct fib_template *published);
