// Shared by the files of this module. Control thread.
#pragma once

#include "acl/acl.h"
#include "base/hash_table.h"

// Whether the protocol has ports, or is the ICMP of the family. Any thread.
bool proto_has_ports(uint8_t proto);
bool proto_is_icmp(uint8_t proto, bool is_ip6);

// The counter of one rule, as long as a list has it.
struct counter {
	struct hash_node node; // must be first
	uint32_t index, n_users;
	char key[2 * ACL_NAME_MAX];
};

struct counters {
	struct hash_table by_key;
	struct acl_count *count[ACL_MAX_WORKERS];
	unsigned n_workers;
	uint32_t *free, n_free; // indices
};
int counters_open(struct counters *counters, unsigned n_workers);
void counters_close(struct counters *counters);
// The counter of a rule, "" is the end of the list; the same one for each user. NULL: no memory, or
// too many.
struct counter *counters_get(struct counters *counters, const char *list, const char *rule);
// When the last user has left it, the counter is 0 again and may go to another rule. No worker
// counts in it any more.
void counters_put(struct counters *counters, struct counter *counter);

// A list with what it was built from.
struct built {
	struct acl_list list; // for workers
	struct acl_source source;
	struct acl_action *action; // by rule number
	struct counter **counter;
	double seconds;
	unsigned n_users;
	bool has_mirrors;
};
// Builds a list from a copy of `source`, without the ports of mirrors (table.c sets these). 0, or
// -errno with `error` set.
int built_make(struct built **out, const struct acl_source *source, struct counters *counters,
	struct error *error);
void built_free(struct built *built, struct counters *counters);
// The number of the rule by its classifier.
uint32_t built_find(const struct built *built, const struct acl_packet *packet);

// classifier.c: an rte_acl context with the rules of one family. *out is NULL if there are none.
int classifier_make(void **out, const struct acl_source *source, bool is_ip6, struct error *error);
void classifier_free(void *classifier);

// rule.c: the number of a key, -1: there is none. / Whether the rule has conditions about the
// transport header, which a later fragment has not.
int rule_key(const char *name);
bool rule_asks_transport(const struct acl_rule *rule);

// source.c
int source_copy(struct acl_source *to, const struct acl_source *from);
bool source_equal(const struct acl_source *a, const struct acl_source *b);
// The lists of a set by name, NULL: no memory. Owner: caller, free. / One of them, NULL: none.
const struct acl_source **lists_sort(const struct acl_set *set);
const struct acl_source *lists_find(const struct acl_source *const sorted[], size_t n,
	const char *name);
// The name of a rule: its own, or its number, written into `text` of ACL_NAME_MAX bytes.
const char *rule_name(const struct acl_source *source, size_t i, char *text);
