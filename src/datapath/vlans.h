// Test fixture: the table of fake.h with additional VLANs and VRFs.
#pragma once

#include "datapath/fake.h"

enum { CUSTOMER = 0x8100 << 16, SERVICE = 0x88a8u << 16, PRIORITY = 5 << 13 };
enum {
	PLAIN_IN, // ports are interfaces 0 to 3
	PLAIN_OUT,
	TAGGED_IN = 10, // interfaces on port 0
	SERVICE_IN,
	QINQ_IN,
	RED_IN,
	BLUE_IN,
	TAGGED_OUT = 20, // interfaces on port 1
	QINQ_OUT,
	RED_OUT = 30, // on port 2
};
enum { RED = 1, BLUE = FIB_MAX_VRFS - 1 }; // VRFs

// fake_open plus all of the above. Each VRF has the routes that the main table has, to 10.1.0.0/16
// and 2001:db8:1::/48; they lead to RED_OUT and to port 3. 10.0.0.9 is local in BLUE.
int vlans_open(void **state);
// Inserts the tags of an interface.
void frame_tag_for(struct bytes *frame, uint16_t iface);
// A frame to us on an interface of port 0.
struct bytes frame_on(uint16_t iface, const char *dst);
