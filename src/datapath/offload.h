// Frames that guests of vhost-user ports leave open: without the checksum of TCP or UDP, or as one
// long TCP packet that is to be cut. Their mbufs have the flags with which DPDK leaves them to a
// device, RTE_MBUF_F_TX_*, and the lengths of their headers as they were received. Where they leave
// dl3d, the peer of the output port finishes them, or else offload.c does. Worker.
#pragma once

#include "stats/stats.h"

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

struct outgoing;
struct received;
struct worker;

static inline bool offload_is_open(const struct rte_mbuf *m)
{
	return m->ol_flags & (RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_TCP_SEG);
}

static inline bool offload_is_long(const struct rte_mbuf *m)
{
	return m->ol_flags & RTE_MBUF_F_TX_TCP_SEG;
}

// The length of the frame, or of the longest one into which it is to be cut, with the tags that it
// was received with.
static inline uint32_t offload_frame_bytes(const struct rte_mbuf *m)
{
	const uint32_t header_bytes = m->l2_len + m->l3_len + m->l4_len;

	return offload_is_long(m) ? header_bytes + m->tso_segsz : m->pkt_len;
}

// Checks what guests say of the frames that were just received, drops those of which it is not
// true, and sets has_offloads.
void offload_receive(struct worker *w, struct received *r);
// Transmits on one port that is up, as datapath_send_port: what its peer takes is left to it.
void offload_send(struct worker *w, uint8_t port, const struct outgoing *out);
// Passes an open frame to Linux finished, as worker_punt; with the same result.
bool offload_punt(struct worker *w, struct rte_mbuf *m, uint16_t in_port, enum verdict verdict);
// Finishes the checksum of an open frame that is not to be cut.
void offload_finish(struct rte_mbuf *m);
