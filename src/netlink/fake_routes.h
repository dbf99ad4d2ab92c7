// Replaces routes.c: records the calls that ifaces makes to routes. Tests only.
#pragma once

#include "wire/addr.h"

enum { FAKE_MAX_CALLS = 64 };

enum fake_call_kind { CALL_CHANGED, CALL_GONE, CALL_ADDRESS, CALL_IP4_GONE, CALL_VRF };

struct fake_call {
	enum fake_call_kind kind;
	int ifindex;    // calls about interfaces
	uint32_t table; // calls about VRFs; for addresses, the VRF
	uint8_t vrf;    // the result of ifaces_vrf_of_table()
	struct wire_addr addr;
};

extern struct fake_call fake_call[FAKE_MAX_CALLS];
extern unsigned fake_n_calls;
unsigned fake_calls(enum fake_call_kind kind, int ifindex); // number of calls so far
