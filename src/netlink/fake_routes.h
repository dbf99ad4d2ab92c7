// In place of routes.c: writes down what links say to routes. Tests only.
#pragma once

#include "wire/addr.h"

enum { FAKE_MAX_CALLS = 64 };

enum fake_call_kind { CALL_CHANGED, CALL_GONE, CALL_ADDRESS, CALL_IP4_GONE, CALL_VRF };

struct fake_call {
	enum fake_call_kind kind;
	int ifindex;    // of links
	uint32_t table; // of VRFs; of addresses the VRF
	uint8_t vrf;    // what ifaces_vrf_of_table() said
	struct wire_addr addr;
};

extern struct fake_call fake_call[FAKE_MAX_CALLS];
extern unsigned fake_n_calls;
unsigned fake_calls(enum fake_call_kind kind, int ifindex); // how many so far
