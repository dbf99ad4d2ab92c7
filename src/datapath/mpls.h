// Packets with MPLS labels: what a worker does with those that a port or a tunnel delivers. Worker.
#pragma once

#include "datapath/burst.h"

// Packets that begin with a label stack. The order is kept among those that are looked up, and
// among those that go to a next hop by their labels, as all packets of a flow do.
struct labelled {
	uint16_t n;                       // at most BURST_MAX, the packets of the bursts included
	struct rte_mbuf *mbuf[BURST_MAX]; // as received: punted as it is
	// The first label: in the first segment, which has at least 14 bytes before it (what is
	// pushed takes their place).
	uint8_t *stack[BURST_MAX];
	uint32_t bytes[BURST_MAX]; // from there to the end of the packet; what follows is cut off
	uint16_t iif[BURST_MAX];   // input interface: of its frames, or the tunnel's
};

// Looks up the labels, which must be on (fib_labels_load): sends what leads to a next hop, with
// other labels or none, stops what cannot be forwarded, and adds packets of IP to be looked up to
// the end of the bursts of w->poll, which have been begun for frames of this port: they arrived on
// `iif`, are in the VRF of their label, and go through all steps from PHASE_BEFORE on; unlabel and
// untag remove what precedes them. `view`: of the main VRF.
void datapath_mpls(struct worker *w, const struct fib_view *view, uint16_t in_port,
	const struct labelled *in);
