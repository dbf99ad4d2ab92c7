// Shared by the files of this module. Control thread.
#pragma once

#include "acl/acl.h"
#include "base/hash_table.h"

// Whether the protocol has ports, or is the ICMP of the family. Any thread.
bool proto_has_ports(uint8_t proto);
bool proto_is_icmp(uint8_t proto, bool is_ip6);

enum { COUNTER_KEY_MAX = 2 * ACL_NAME_MAX + 8 };

// The hash of a key below.
uint32_t key_hash(const char *key);

// The counter of one rule, or of its packets above the rate, as long as a list has it.
struct counter {
	struct hash_node node; // must be first
	uint32_t index, n_users;
	char key[COUNTER_KEY_MAX];
};

struct counters {
	struct hash_table by_key;
	struct acl_count *count[ACL_MAX_WORKERS];
	unsigned n_workers;
	uint32_t *free, n_free; // indices
};
int counters_open(struct counters *counters, unsigned n_workers);
void counters_close(struct counters *counters);
// The counter of a rule, "" is the end of the list, "RULE red" what is above its rate; the same one
// for each user. NULL: no memory, or too many.
struct counter *counters_get(struct counters *counters, const char *list, const char *rule);
// When the last user has left it, the counter is 0 again and may go to another rule. No worker
// counts in it any more.
void counters_put(struct counters *counters, struct counter *counter);

// A bucket, as long as a rule has it.
struct bucket {
	struct hash_node node; // must be first
	uint32_t n_users;
	uint32_t changed; // in which commit its rate was set last
	char key[COUNTER_KEY_MAX];
	struct police police;
};

struct buckets {
	struct hash_table by_key;
	uint64_t hz;
	uint32_t n_commits;
};
int buckets_open(struct buckets *buckets, uint64_t hz);
void buckets_close(struct buckets *buckets);
// The bucket that the rule names, or its own; the same one for each user. A new one is full. NULL:
// no memory.
struct bucket *buckets_get(struct buckets *buckets, const struct acl_source *source, size_t rule);
// Its rate is that of the rule from now on; in a commit, the first one counts. Afterwards, wait for
// a grace period.
void buckets_set(struct buckets *buckets, struct bucket *bucket, const struct acl_police *rate);
// No worker uses it any more, if this was the last user.
void buckets_put(struct buckets *buckets, struct bucket *bucket);

// What rules count and spend, which outlives their lists.
struct balances {
	struct counters counters;
	struct buckets buckets;
};

// A list with what it was built from.
struct built {
	struct acl_list list; // for workers
	struct acl_source source;
	struct acl_action *action; // by rule number
	struct counter **counter;
	struct acl_policer *policer; // by rule number; this and the next two NULL: no rule has one
	struct counter **red;
	struct bucket **bucket;
	bool is_new; // its policers do not have its rates yet
	double seconds;
	unsigned n_users;
	bool has_mirrors;
};
// Builds a list from a copy of `source`, without the ports of mirrors (table.c sets these). 0, or
// -errno with `error` set.
int built_make(struct built **out, const struct acl_source *source, struct balances *balances,
	struct error *error);
void built_free(struct built *built, struct balances *balances);
// Sets the rates of its policers, if it is new.
void built_set_rates(struct built *built, struct balances *balances);
// The number of the rule by its classifier.
uint32_t built_find(const struct built *built, const struct acl_packet *packet);

// classifier.c: an rte_acl context with the rules of one family. *out is NULL if there are none.
int classifier_make(void **out, const struct acl_source *source, bool is_ip6, struct error *error);
void classifier_free(void *classifier);

// rule.c: the number of a key, -1: there is none. / Whether the rule has conditions about the
// transport header, which a later fragment has not.
int rule_key(const char *name);
bool rule_asks_transport(const struct acl_rule *rule);

// rule_police.c: what police.rate and police.burst say. -EINVAL: invalid. / Completes and checks
// the policer of a rule. / As text: a rate of at most POLICE_TEXT bytes, a burst.
enum { POLICE_TEXT = 40 };
int police_read_rate(struct acl_police *police, const char *text);
int police_read_burst(struct acl_police *police, const char *text);
int police_end(struct acl_rule *rule, struct error *error);
const char *police_print_rate(const struct acl_police *police, char *text);
const char *police_print_burst(const struct acl_police *police, char *text);

// source.c
int source_copy(struct acl_source *to, const struct acl_source *from);
bool source_equal(const struct acl_source *a, const struct acl_source *b);
// The lists of a set by name, NULL: no memory. Owner: caller, free. / One of them, NULL: none.
const struct acl_source **lists_sort(const struct acl_set *set);
const struct acl_source *lists_find(const struct acl_source *const sorted[], size_t n,
	const char *name);
// The name of a rule: its own, or its number, written into `text` of ACL_NAME_MAX bytes.
const char *rule_name(const struct acl_source *source, size_t i, char *text);
