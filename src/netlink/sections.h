// What a dump asks for, part by part, in an order in which each finds what it refers to. Inside
// listen.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum protocol { PROTO_ROUTE, PROTO_NETFILTER, PROTO_XFRM, N_PROTOS };

enum section_flag {
	// What goes while it is dumped may hide something that stays: the kernel counts its way
	// through and goes on at the same count.
	SECTION_FRAGILE = 1,
	SECTION_MAY_LACK = 2, // not every kernel has it
	SECTION_ONE = 4,      // no table: one answer, and a word that this was all
};

struct section {
	const char *name; // as in "Linux's NAME cannot be dumped"
	uint8_t protocol;
	uint8_t family;
	uint16_t type;   // of the request
	uint16_t header; // bytes behind struct nlmsghdr
	uint8_t kind;    // enum event_kind of what comes
	uint8_t flags;   // enum section_flag
};

extern const struct section sections[];
extern const unsigned n_sections;

// The request for a section. Its length.
enum { SECTION_REQUEST_BYTES = 128 };
size_t section_request(const struct section *section, uint32_t sequence,
	uint8_t out[SECTION_REQUEST_BYTES]);
