// Private to hops.c and hop_entries.c: the words that workers read. Control thread.
#pragma once

#include "fib/hops.h"

// To a neighbour, resolved or not.
static inline bool hop_leads_out(const struct fib_hop *key)
{
	return key->kind == FIB_VIA || key->kind == FIB_PEER;
}

// Writes the port of a hop in the summary of plain ones. Cache lines that every worker reads are
// written only if a value changes.
void hops_write_port(struct hops *hops, uint32_t id, uint8_t port);
// Raises frame_max as far as the plain hops allow: called after each change of an interface, and by
// hops_sweep if hops are no longer plain.
void hops_widen_plain(struct hops *hops);
