// Random rules, and random packets as words and as bytes. For tests and benches.
#pragma once

#include "acl/acl.h"

// EAL without huge pages and devices. False: it failed.
bool testing_start_eal(unsigned mib);

// xorshift64*
uint32_t testing_random(uint64_t *state);

// A rule that acl_rule_end accepts. Conditions are drawn so that some packets match it.
void testing_rule(struct acl_rule *rule, uint64_t *state);
struct acl_source testing_list(const char *name, size_t n, uint64_t *state); // owner: caller, rule

enum { TESTING_ROOM = 512 };
// A packet in words, and from its IP header on as bytes.
struct testing_packet {
	struct acl_packet words;
	uint8_t bytes[TESTING_ROOM];
	size_t n;
	bool is_parsable;
};
void testing_packet(struct testing_packet *out, uint64_t *state);

// What a list says about a packet, rule by rule: the number of the first one that matches, or 0.
uint32_t testing_find(const struct acl_source *source, const struct acl_packet *packet);
