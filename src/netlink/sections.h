// The sections of a dump, in an order in which each finds what it refers to. Internal to listen.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum protocol { PROTO_ROUTE, PROTO_NETFILTER, PROTO_XFRM, N_PROTOS };

enum section_flag {
	// An object deleted during the dump may hide one that still exists: the kernel resumes at a
	// position counted from the start.
	SECTION_FRAGILE = 1,
	SECTION_MAY_LACK = 2, // not supported by every kernel
	SECTION_ONE = 4,      // not a table: one reply, then an acknowledgement
};

struct section {
	const char *name; // as in "Linux's NAME cannot be dumped"
	uint8_t protocol;
	uint8_t family;
	uint16_t type;   // of the request
	uint16_t header; // bytes after struct nlmsghdr
	uint8_t kind;    // enum event_kind of the replies
	uint8_t flags;   // enum section_flag
};

extern const struct section sections[];
extern const unsigned n_sections;

// Builds the request for a section and returns its length.
enum { SECTION_REQUEST_BYTES = 128 };
size_t section_request(const struct section *section, uint32_t sequence,
	uint8_t out[SECTION_REQUEST_BYTES]);
