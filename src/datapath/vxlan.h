// Frames into and out of VXLAN (RFC 7348). Worker.
#pragma once

#include "datapath/burst.h"
#include "mac/mac_fast.h"
#include "wire/headers.h"

// How a frame to a remote end leaves. Valid until the worker reports a quiescent state.
struct vxlan_way {
	const struct fib_vxlan *vxlan;
	const struct fib_vtep *vtep;
	const struct fib_template *template; // NULL: the MAC addresses of `hop` alone
	struct fib_hop_entry hop;
	uint32_t hash, vni;
	uint16_t udp_port; // 0: the device's
	uint8_t port;      // output port
};

// A frame to be sent: `m`, from its first byte on, and as many bytes more as it will be longer.
struct vxlan_frame {
	struct rte_mbuf *m;
	uint32_t bytes;
};

// Whether a frame can be sent to a remote end; VERDICT_FORWARD: it can, and *way is filled.
enum verdict vxlan_find_way(const struct worker *w, const struct vxlan_frame *frame,
	const struct mac_remote *remote, struct vxlan_way *way);
// Writes the headers in front of the frame, of which all must be there.
void vxlan_write(struct worker *w, const struct vxlan_way *way, struct rte_mbuf *m);

// The EtherType of a frame, of n bytes, behind its tags, and where its packet begins. Tags: as many
// as Linux skips.
static inline uint16_t vxlan_skip_tags(const uint8_t *frame, uint32_t n, uint32_t *at)
{
	enum { MOST_TAGS = 8 };
	uint16_t type = frame[12] << 8 | frame[13];

	*at = WIRE_ETHER_BYTES;
	while (unlikely(type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ) &&
		n >= *at + WIRE_VLAN_BYTES &&
		*at < WIRE_ETHER_BYTES + MOST_TAGS * WIRE_VLAN_BYTES) {
		type = frame[*at + 2] << 8 | frame[*at + 3];
		*at += WIRE_VLAN_BYTES;
	}
	return type;
}

// The member by which frames that are flooded in the domain of a key leave by VXLAN; 0: none.
uint16_t vxlan_flood_member(const struct mac_view *view, uint64_t key);

struct parse;

// Frames out of VXLAN, of one burst, by device. `end` is the address of the sender.
struct vxlan_inner {
	uint16_t n;
	struct rte_mbuf *mbuf[BURST_MAX]; // with what precedes the frame
	uint16_t before[BURST_MAX];       // bytes of that
	uint16_t member[BURST_MAX];
	uint8_t end[BURST_MAX][16];
	bool is_ip6[BURST_MAX]; // the outer packet
};

// What an outer header says of congestion, and the checksums that cover the inner packet; NULL:
// there is none.
struct tunnel_outer {
	uint8_t *udp_sum, *gre_sum;
	uint8_t tos;
};

// A frame in a packet.
struct vxlan_taken {
	struct rte_mbuf *m;
	uint8_t *frame;             // at least an Ethernet header of it is contiguous
	uint32_t bytes, contiguous; // of the frame
	const uint8_t *ip;          // the outer header
	bool is_ip6;                // that
	struct tunnel_outer outer;
};

// Whether there are VXLAN devices that receive.
static inline bool vxlan_receives(const struct fib_view *view)
{
	return view->overlay && fib_vxlan_ends_load(view->overlay);
}
// Reads packet i, to an address of the router, and adds its frame. VERDICT_LOCAL: it is none of
// VXLAN. Any other but VERDICT_FORWARD: why it is stopped.
enum verdict vxlan_peel(const struct parse *p, const struct tunnelled *in, unsigned i,
	struct vxlan_inner *out);
// Adds the frame as one of a device. Any verdict but VERDICT_FORWARD: why it is stopped.
enum verdict vxlan_take(const struct parse *p, const struct vxlan_taken *in, uint16_t number,
	struct vxlan_inner *out);
// Bridges frames; those to a bridge itself are added to the bursts of w->poll, which were begun.
void vxlan_bridge(struct parse *p, const struct vxlan_inner *in);

// decap.c. RFC 6040, 4.2: what the outer header says of congestion is written into the inner one,
// as Linux does. Doing it again changes nothing, and the checksums are kept right, so the packet
// may still be punted as it was received.
enum verdict tunnel_take_ecn(uint8_t *packet, bool is_ip6, const struct tunnel_outer *outer);
// decap.c. Adds a whole packet to the burst of its family, as received on the interface. Returns
// its verdict.
enum verdict tunnel_add_packet(struct parse *p, struct rte_mbuf *m, uint8_t *packet, bool is_ip6,
	uint16_t iface);
