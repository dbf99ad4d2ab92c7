// Access lists: rules that permit or stop packets, by interface and direction. The first rule that
// matches decides. Lists are never changed: a new one is built beside the old one, by DPDK's
// classifier, and swapped in (docs/internals/acl.md). Control thread, unless said otherwise.
#pragma once

#include "acl/acl_fast.h"
#include "base/error.h"
#include "police/police.h"
#include "rcu/rcu.h"
#include "wire/addr.h"
#include "wire/transport.h"

enum {
	ACL_NAME_MAX = 32,     // of a rule, a list, an interface; with the final 0
	ACL_MAX_RULES = 65536, // of a list
	ACL_MAX_LISTS = 1024,
	ACL_MAX_USES = 2 * ACL_MAX_IFACES, // in both directions
	ACL_MAX_PORTS = 256,
	ACL_MAX_COUNTERS = 1 << 20, // rules of all lists, their ends, and what is being replaced
	ACL_RULE_TEXT = 512,
	ACL_ANY_FRAGMENT = 7, // all of 1 << enum wire_fragment_class
	ACL_ANY_PROTOCOL = 256,
};

// Both limits belong to it.
struct acl_range {
	uint16_t least, most;
	bool is_set;
};

// A rate that the packets of a rule may have; those above it are dropped. All bytes are set.
struct acl_police {
	uint64_t rate;      // bit/s, or packets/s; 0: the rule has no limit
	uint64_t burst;     // bytes, at most POLICE_MOST_BURST, or packets; 0: acl_rule_end sets it
	uint32_t mtu;       // longer packets are above the rate, whatever it is; 0: none is
	uint16_t overhead;  // bytes to be counted for each packet besides its own
	uint8_t packets;    // packets are counted, not bytes
	uint8_t burst_unit; // 1: `burst` was said in bytes, 2: in packets; acl_rule_end clears it
	char bucket[ACL_NAME_MAX]; // rules of a table with the same one share the rate; "": its own
};

// One rule: all its conditions must hold. A packet for the router itself is judged by rules with
// `is_local` only, all others only by the rest.
struct acl_rule {
	char name[ACL_NAME_MAX];     // "": its number
	struct wire_prefix from, to; // family 0: any address
	uint8_t family;              // 4, 6, or 0: both
	uint8_t effect;              // enum acl_effect
	uint16_t protocol;           // or ACL_ANY_PROTOCOL
	struct acl_range from_port, to_port, icmp_type, icmp_code, dscp;
	uint8_t tcp_flags, tcp_mask; // mask 0: any
	uint8_t fragments;           // set of 1 << enum wire_fragment_class
	bool is_local;
	bool has_effect;
	uint8_t mark;              // DSCP to be set, or ACL_KEEP_DSCP
	char mirror[ACL_NAME_MAX]; // interface; "": none
	struct acl_police police;
};

// A rule without conditions. / Sets what `key` says, by its text: keys and values as in the
// configuration file (docs/guide). / Completes a rule that has all its keys, and checks it. / Reads
// a whole rule: "EFFECT [PROTOCOL] [KEY VALUE]... [local]". 0, or -EINVAL with `error` set. Any
// thread.
void acl_rule_start(struct acl_rule *rule);
int acl_rule_set(struct acl_rule *rule, const char *key, const char *value, struct error *error);
int acl_rule_end(struct acl_rule *rule, struct error *error);
int acl_rule_parse(struct acl_rule *rule, const char *text, struct error *error);
// Writes the rule in that text form, of at most ACL_RULE_TEXT bytes; returns `text`. Any thread.
const char *acl_rule_print(const struct acl_rule *rule, char *text);
const char *acl_effect_word(enum acl_effect effect);

// A list as configured.
struct acl_source {
	char name[ACL_NAME_MAX];
	struct acl_rule *rule; // n of them
	size_t n;
	bool denies_rest; // packets that no rule matches are denied
};

struct acl_use {
	char iface[ACL_NAME_MAX];
	char list[ACL_NAME_MAX];
	uint8_t direction; // enum acl_direction
};

// All lists and their uses.
struct acl_set {
	struct acl_source *list;
	struct acl_use *use;
	size_t n_lists, n_uses;
};

// Checks names and references: lists have different names, rules of a list too, no interface has
// two lists in one direction. 0, or -EINVAL with `error` set. Any thread.
int acl_set_check(const struct acl_set *set, struct error *error);
// Checks that rules which share a bucket have the same rate and burst. 0, or -EINVAL with `error`
// set. Any thread.
int acl_set_check_buckets(const struct acl_set *set, struct error *error);
// A copy with the lists and uses of `change` in place of those with the same name or the same
// interface and direction; a list without rules whose `rule` is NULL is removed, and a use with the
// list "". Owner: caller, acl_set_free. -ENOMEM with `error` set.
int acl_set_merge(struct acl_set *out, const struct acl_set *set, const struct acl_set *change,
	struct error *error);
void acl_set_free(struct acl_set *set);

struct acl_settings {
	unsigned n_workers; // at most ACL_MAX_WORKERS
	struct rcu *rcu;    // NULL: no worker reads
	// The name of the interface with this number, valid until interfaces change; NULL: there is
	// none at present. Numbers are less than n_ifaces, at most ACL_MAX_IFACES; those less than
	// n_ports, at most ACL_MAX_PORTS, are ports, and mirrors lead only to these.
	const char *(*iface_name)(void *ctx, unsigned iface);
	unsigned n_ifaces, n_ports;
	void *ctx;
	uint64_t hz; // of the TSC, for policers; 0: that of this machine
};

struct acl_table;

// An empty table. EAL must be initialised before lists are built. 0, or -ENOMEM with `error` set.
int acl_open(struct acl_table **out, const struct acl_settings *settings, struct error *error);
// Workers must have ended.
void acl_close(struct acl_table *table);
const struct acl_live *acl_live(const struct acl_table *table);

// Replaces everything by a copy of `set`; lists that did not change are not built again. A rule
// keeps its counter, and the tokens of its policer, if a list of the same name has a rule of the
// same name. Waits for a grace period. 0, or -errno with `error` set, and nothing has changed.
int acl_apply(struct acl_table *table, const struct acl_set *set, struct error *error);
// The same in two steps: builds, / applies, which cannot fail. / Or gives up what was built. In
// between nothing else is applied.
struct acl_pending;
int acl_prepare(struct acl_table *table, const struct acl_set *set, struct acl_pending **out,
	struct error *error);
void acl_commit(struct acl_table *table, struct acl_pending *pending);
void acl_drop(struct acl_table *table, struct acl_pending *pending);
const struct acl_set *acl_current(const struct acl_table *table);
// Looks up the names of all interfaces again, which may have come or gone.
void acl_refresh(struct acl_table *table);
// The interface with this number gets this name; call it before workers know the interface, or NULL
// when they no longer do. Cheap if it has the name already.
void acl_bind(struct acl_table *table, unsigned iface, const char *name);
// Whether an interface with the name of this use exists.
bool acl_use_is_bound(const struct acl_table *table, const struct acl_use *use);

// Counter of a rule, by its number from 1 on, summed over the workers; 0: the end of the list.
struct acl_count acl_rule_count(const struct acl_table *table, const char *list, size_t rule);
// How many of these its policer has found to be above the rate; 0 without one.
struct acl_count acl_rule_red(const struct acl_table *table, const char *list, size_t rule);
// Seconds that the latest build of the list took, and the memory of its classifiers.
double acl_list_seconds(const struct acl_table *table, const char *list);

// What a list of the view that workers use was built from; NULL: it is none of this table.
const struct acl_source *acl_source_of(const struct acl_table *table, const struct acl_list *list);

// A packet in words.
struct acl_packet {
	struct wire_addr src, dst;
	uint16_t src_port, dst_port; // or type and code of ICMP
	uint8_t proto, dscp, tcp_flags;
	uint8_t fragment; // enum wire_fragment_class
	bool is_local;
};
// Reads it from a frame without FCS, VLAN tags included. -EINVAL with `error` set: it is no IP
// packet that rules can judge. Any thread.
int acl_packet_read(struct acl_packet *out, const uint8_t *frame, size_t n, struct error *error);
// The first condition of the rule that the packet does not meet, NULL: it matches. Any thread.
const char *acl_rule_mismatch(const struct acl_rule *rule, const struct acl_packet *packet);
// The rule that the workers' classifier finds, 0: none. -ENOENT: no such list.
int acl_find(const struct acl_table *table, const char *list, const struct acl_packet *packet);
