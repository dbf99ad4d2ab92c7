// What the files of this room share: the verbs, words for people. Control thread.
#pragma once

#include "verbs/verbs.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

// Each row of schema/verbs.toml wants its function here; one that is missing stops the build.
#define VERB_PROTOTYPE(verb, word, takes, means)                                                   \
	json_t *verb_##verb(void *house, const json_t *params, struct complaint *why);
SCHEMA_VERBS(VERB_PROTOTYPE)
#undef VERB_PROTOTYPE

// The account with the law's terms and what is in flight: received + injected - sent - punted -
// dropped, which may be off by what moves while it is read.
void account_read(const struct verbs_house *house, struct stat_account *account);
json_t *account_json(const struct stat_account *account);

// Packets that all lanes have counted under a next hop's id, whoever had it.
uint64_t hop_counted(const void *house, uint16_t id);

// Words: kind of a route, name of a port (NULL for FIB_NO_LINK), MAC address.
const char *kind_word(unsigned kind);
const char *port_word(const struct verbs_house *house, unsigned port);
json_t *mac_json(const struct wire_mac *mac);
json_t *addr_json(const struct wire_addr *addr); // null for family 0
json_t *prefix_json(const struct wire_prefix *prefix);
// Sets kind, via and port.
void set_hop(json_t *json, const struct verbs_house *house, const struct fib_hop *hop);
// Sets the members of a group and returns how many; other hops have none.
unsigned set_members(json_t *json, const struct verbs_house *house, const struct fib_hop *hop);
json_t *number_json(uint64_t number);
