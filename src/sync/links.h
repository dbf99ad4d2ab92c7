// Linux's interfaces, as far as the mirror must know them: which are links of ours (twins and VLANs
// on them), which stand above or below, VRF devices and their tables, addresses, settings
// (netconf). Inside the mirror. Control thread.
#pragma once

#include "sync/mirror.h"

enum { LINKS_NO_VRF = 255 };

// What routes need to know of an interface.
struct links_state {
	bool is_known;                             // Linux has told of it
	bool is_up;                                // IFF_UP
	bool has_carrier;                          // IFF_LOWER_UP
	bool ignores_linkdown4, ignores_linkdown6; // ignore_routes_with_linkdown
	uint16_t link; // ours: link id; else FIB_NO_LINK: only Linux can send there
	bool is_loopback;
};
struct links_state links_state(const struct mirror *mirror, int ifindex);
const char *links_name(const struct mirror *mirror, int ifindex); // "?": unknown

// The VRF whose routes stand in a kernel table; main, local and default (254, 255, 253) are VRF 0.
// LINKS_NO_VRF: lanes have no such table.
uint8_t links_vrf_of_table(const struct mirror *mirror, uint32_t table);
