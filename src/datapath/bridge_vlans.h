// Frames of a bridge of Linux that filters by VLAN. Worker.
#pragma once

#include "datapath/burst.h"
#include "mac/mac_fast.h"

// The VLAN of a frame that comes in by a port with these VLANs; 0: it is not let in, or has no
// whole header.
uint16_t bridge_vlans_in(const struct mac_vlans *in, const struct rte_mbuf *m);
// Bytes of the tag of the bridge with which a frame came in, in a VLAN or with a priority only.
uint16_t bridge_vlans_tag_bytes(const struct mac_vlans *in, const struct rte_mbuf *m);
// Whether a port with these VLANs (NULL: none) lets a frame of the VLAN out that came in by `in`,
// and there is space for a tag if it needs one. `mtu`: of the output port.
bool bridge_vlans_out(const struct mac_vlans *in, const struct mac_vlans *out, uint16_t vid,
	const struct rte_mbuf *m, uint16_t mtu);
// Gives the frame, which bridge_vlans_out lets out, the tag with which it leaves, or none. Priority
// and DEI of a tag remain.
// How many bytes longer a frame gets that leaves with that tag.
unsigned bridge_vlans_more(const struct mac_vlans *out, uint16_t vid, const struct rte_mbuf *m);
void bridge_vlans_tag(const struct mac_vlans *out, uint16_t vid, struct rte_mbuf *m);
