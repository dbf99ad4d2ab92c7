// Test fixture: the table of vlans.h with access lists, and with filters of tc.
#pragma once

#include "acl/acl.h"
#include "datapath/vlans.h"

enum { LISTS_MAX_RULES = 4 };

// Empty at first. No worker has them yet.
extern struct acl_table *lists, *filters;

// EAL, vlans_open, and both tables for clocks of `hz` ticks a second (0: the TSC's). 172.20.0.0/16
// is local, and 172.21.0.0/16 has a next hop on PLAIN_OUT that is not resolved.
int lists_open(void **state, uint64_t hz);
int lists_close(void **state);
// The table has one list, "list", with these rules, up to LISTS_MAX_RULES or NULL, used on an
// interface; whether it denies the rest.
void lists_use(struct acl_table *table, unsigned iface, enum acl_direction direction,
	bool denies_rest, const char *const text[]);
