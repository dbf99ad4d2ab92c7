// Shared by the files of this module: subscribers and profiles as the control thread has them.
// Control thread.
#pragma once

#include "base/hash_table.h"
#include "police/police.h"
#include "qos/index.h"
#include "qos/qos.h"
#include "qos/shaper.h"

enum { FREE_LENGTH = 0, ENTRY_KIND = 1, COVER_KIND = 17, NO_PROFILE = 0 };

// A prefix: its first 64 bits, host order (IPv4: the upper 32).
struct prefix {
	uint64_t key;
	uint8_t family, length; // enum qos_family
};

// What a profile is for: to police, to shape, or an aggregate that others join.
enum profile_kind { PROFILE_POLICES, PROFILE_SHAPES, PROFILE_JOINS, PROFILE_KINDS };

// A profile as given; rates in bit/s, bursts in bytes.
struct profile {
	struct hash_node node; // must be first
	char name[QOS_NAME_MAX];
	uint32_t id;            // the same for all versions
	uint32_t slot;          // in qos.terms; 0: none yet
	uint32_t batch, change; // as of subscribers
	bool is_of_file;
	uint64_t rate, burst, excess_rate, excess_burst;
	struct qos_terms terms;
	uint8_t kind; // enum profile_kind
	// Only of those that do not police.
	uint8_t link;    // of an aggregate without parent
	bool may_exceed; // an aggregate: children may have a higher rate
	uint16_t weight; // among the children of the parent
	uint32_t parent; // id of an aggregate's parent, NO_PROFILE: none
	char parent_name[QOS_NAME_MAX];
	struct shape_profile queues;
	struct shape_terms shape_terms;
};

// By name of an interface.
struct iface_use {
	struct hash_node node; // must be first
	char name[QOS_IFACE_MAX];
	uint32_t index; // of the subscriber
};

// A subscriber; never changed, but replaced by another one.
struct subscriber {
	struct hash_node node; // must be first; in `by_name` or `gone`
	uint32_t index;
	uint32_t profile[QOS_DIRECTIONS]; // id, NO_PROFILE: none
	uint32_t parent;                  // id of an aggregate, NO_PROFILE: none
	uint32_t batch;                   // its place in qos.change is `change`
	uint32_t change;
	bool is_of_file, has_number;
	uint8_t n_prefixes, n_ifaces;
	struct prefix *prefix;
	struct iface_use *iface;
	char name[]; // with a terminating 0
};

// What was before a batch, and what will be after it; NULL: nothing.
struct change {
	struct subscriber *old, *new;
};
struct profile_change {
	struct profile *old, *new;
};

struct qos {
	struct qos_settings settings;
	struct qos_live live;
	struct qos_index *registry; // entries, and covers: of each prefix length in use, how many
	                            // longer prefixes are within a prefix
	uint64_t n_registered;
	struct qos_index *index; // of workers
	uint64_t n_indexed;      // with removed ones
	uint32_t n_prefixes[QOS_FAMILIES][QOS_LENGTHS];
	uint32_t n_published[QOS_FAMILIES][QOS_LENGTHS]; // that workers know
	uint8_t length[QOS_FAMILIES][QOS_LENGTHS];       // FREE_LENGTH: this place is free
	struct hash_table by_name, by_iface, profiles;
	struct hash_table gone;  // removed by this batch
	struct subscriber **at;  // by index
	uint64_t *taken;         // a bit by index: has a subscriber, or workers may still use it
	uint32_t end, next_free; // no index from `end` on was ever used
	uint32_t n_subscribers, n_addresses;
	struct profile **profile; // by id
	uint32_t *n_users;        // directions of subscribers, by id
	bool *slot_in_use;
	uint32_t n_profiles;
	struct qos_terms *terms; // by slot
	struct change *change;   // of this batch
	struct profile_change *profile_change;
	size_t n_changes, changes_capacity, n_profile_changes, profile_changes_capacity;
	uint32_t batch;
	bool has_names; // this batch concerns interfaces
	// Of the last batch: what workers may still use.
	uint64_t token;
	bool is_pending;
	uint64_t *place; // in `index`
	size_t n_places, places_capacity;
	uint32_t *left; // indices
	size_t n_left, left_capacity;
	uint32_t *left_slot;
	size_t n_left_slots, left_slots_capacity;
	uint64_t n_batches, n_applied;
};

uint32_t name_hash(const char *name);
struct subscriber *subscriber_named(const struct qos *qos, const char *name);
struct profile *profile_named(const struct qos *qos, const char *name);
void subscriber_free(struct subscriber *subscriber);

// text.c: a profile of its words, which strtok_r takes from *rest. / A subscriber, whose profiles
// exist; `base`: what it is where nothing else is said, NULL: nothing.
int profile_read(const struct qos *qos, struct profile *out, char **rest, struct error *error);
const char *profile_print(const struct profile *profile, char text[QOS_PROFILE_TEXT]);
int subscriber_read(const struct qos *qos, struct subscriber **out, const char *name, char **rest,
	const struct subscriber *base, struct error *error);
int name_check(const char *name, const char *what, struct error *error);

// A profile while it is read.
struct profile_reading {
	const struct qos *qos;
	struct profile *profile;
	const char *burst, *excess_burst; // as given, since they may be a time of a rate
	bool is_peak;
	const char *only[PROFILE_KINDS]; // a key that only this kind has; NULL: none was given
	const char *weight;              // this key; only those that do not police have it
	struct error *error;
};
extern const char *const counts_words[QOS_WIRE + 1], *const colour_words[POLICE_COLOURS],
							     *const kind_words[PROFILE_KINDS];
int profile_mistake(const struct profile_reading *reading, const char *key, const char *value,
	const char *expected);
int profile_read_burst(const struct profile_reading *reading, const char *key, const char *given,
	uint64_t rate, uint64_t *out);

// shape_words.c: what a profile is where nothing is said. / Reads a key: 0, -EINVAL with `error`
// set, or 1: it is no key of shaping. / After all keys.
void shape_start(struct profile *profile);
int shape_read_pair(struct profile_reading *reading, const char *key, char *value);
int shape_read_end(struct profile_reading *reading);

// hierarchy.c: whether a subscriber's profiles and parent fit. / All that staged profiles concern.
// -EINVAL with `error` set. / Gives an aggregate without parent the link that it had as `old`
// (NULL: none), or a free one. -ENOSPC with `error` set.
int hierarchy_check(const struct qos *qos, const struct subscriber *one, struct error *error);
int hierarchy_check_profiles(const struct qos *qos, struct error *error);
int hierarchy_link(const struct qos *qos, struct profile *one, const struct profile *old,
	struct error *error);

// file.c: whether a line that begins with this name is not that of a subscriber.
bool file_means_more(const char *name);

// words.c: numbers with units. -EINVAL: invalid, or out of range.
int words_rate(const char *text, uint64_t *bits);
int words_burst(const char *text, uint64_t rate, uint64_t *bytes); // also "20ms" of a rate
int words_time(const char *text, uint64_t *us);
bool words_number(const char *text, long least, long most, long *out);
const char *words_print_rate(uint64_t bits, char text[32]);
int words_prefix(const char *text, struct prefix *out, struct error *error);
struct wire_prefix words_of_prefix(const struct prefix *prefix);

// registry.c: names, numbers and prefixes of subscribers, who must not overlap. Adds one; -errno
// with `error` set: it overlaps with another one, or there is no memory, and nothing has changed. /
// Removes it. / Adds one that was removed, and has space.
int registry_add(struct qos *qos, struct subscriber *subscriber, struct error *error);
void registry_remove(struct qos *qos, struct subscriber *subscriber);
void registry_restore(struct qos *qos, struct subscriber *subscriber);
// The place of a prefix length that is in use.
unsigned registry_place(const struct qos *qos, const struct prefix *prefix);

// publish.c: space for what has been staged. -ENOMEM with `error` set. / Workers use it from now
// on. / What the last batch left is free, after a grace period.
int publish_reserve(struct qos *qos, struct error *error);
void publish(struct qos *qos, uint64_t now);
void publish_reclaim(struct qos *qos);
// Workers know who has which interface.
void publish_ifaces(struct qos *qos);

static inline uint32_t entry_kind(uint8_t family, unsigned place)
{
	return ENTRY_KIND + family * QOS_LENGTHS + place;
}

static inline uint32_t cover_kind(uint8_t family, unsigned place)
{
	return COVER_KIND + family * QOS_LENGTHS + place;
}

static inline uint64_t prefix_bits(unsigned length)
{
	return UINT64_MAX << (64 - length);
}
