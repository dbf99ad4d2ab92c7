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
	uint32_t number;        // of an aggregate, in shapers: see hierarchy_number
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
	uint32_t parent[QOS_DIRECTIONS];  // id of an aggregate, NO_PROFILE: none
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

// Work on many things, some at a time.
enum { WORK_MORE = 1 };
struct work_row {
	size_t (*n)(const struct qos *qos); // how many; NULL: one
	// Thing i: 0, WORK_MORE: call it again, or -errno with `error` set.
	int (*each)(struct qos *qos, size_t i, struct error *error);
};
struct work {
	const struct work_row *rows; // done in this order
	unsigned n_rows, row;
	size_t at;
};

// Without the batch that is under way; by index, and by id.
struct shown {
	struct subscriber **at;
	struct profile **profile;
	uint32_t *n_users; // directions of subscribers, and children of an aggregate
	uint32_t n_subscribers, n_addresses, n_ifaces, n_profiles;
};

// A table that is copied to a larger one.
struct growth {
	uint64_t n; // entries, 0: it is large enough
	struct qos_index *of, *to;
	struct qos_index *old; // is to be freed
	size_t n_old_bytes;
};

// What a batch needs in the tables of workers.
struct needs {
	uint64_t more, less, left;
};

// Who has a prefix within this one.
struct search {
	struct prefix within;
	uint32_t not, found; // this index does not count; QOS_NONE: nobody yet
};

// What has to be done before a change can be staged: a registry for n entries, a search, or, if it
// is neither, this prefix length at this place.
struct deferred {
	uint64_t n;
	bool searches;
	struct search search;
	uint8_t family, place, length;
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
	bool has_names;  // this batch concerns interfaces
	bool is_open;    // it is neither committed nor aborted
	bool is_of_tc;   // what is staged is of a qdisc
	unsigned n_tc;   // interfaces with one
	bool is_written; // workers may see who has which interface after it
	bool was_bound;  // an interface got a name before that
	uint64_t now;    // of buckets that start
	struct needs needs;
	struct growth growth;
	struct shown shown;
	struct qos_export *export; // that is under way, NULL: none
	// Of a load.
	bool in_turns;               // nothing waits for workers, but is called again
	bool is_waiting, is_pausing; // see work_wait
	bool is_deferring;           // what would take long is not done, but noted in `deferred`
	struct deferred deferred;
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
bool subscriber_has_prefix(const struct subscriber *one, const struct prefix *prefix);

// stage.c: one that this batch removes; NULL: there is none. / No worker knows this index any more.
struct subscriber *subscriber_gone(const struct qos *qos, const char *name);
void subscriber_free_index(struct qos *qos, uint32_t index);
void profile_enter(struct qos *qos, struct profile *one);
void profile_leave(struct qos *qos, struct profile *one);

// batch.c: work on at most `most` things: 0: all is done, WORK_MORE, or -errno with `error` set. /
// All of it.
void work_begin(struct work *work, const struct work_row *rows, unsigned n);
int work_some(struct qos *qos, struct work *work, unsigned most, struct error *error);
int work_all(struct qos *qos, const struct work_row *rows, unsigned n, struct error *error);
// Return WORK_MORE: it has to wait for workers, / it took as long as many other things.
int work_wait(struct qos *qos);
int work_pause(struct qos *qos);
// What qos_begin and qos_commit do beside reuse_rows and publish_rows.
void batch_open(struct qos *qos);
void batch_committed(struct qos *qos);
enum { ABORT_ROWS = 4, GROWTH_ROWS = 5, LENGTH_ROWS = 3, PREPARE_ROWS = 11, PUBLISH_ROWS = 12 };
enum { REUSE_ROWS = 5, SEARCH_ROWS = 1 };
extern const struct work_row abort_rows[ABORT_ROWS];

// shown.c
bool shown_open(struct shown *shown);
void shown_close(struct shown *shown);
// It has changed; `old` is freed by the caller. / The same of a profile, before subscribers; / one
// that was removed, after them.
void shown_change(struct qos *qos, const struct change *change);
void shown_change_profile(struct qos *qos, const struct profile_change *change);
void shown_forget_profile(struct qos *qos, const struct profile_change *change);

// export.c: before a profile, / what is shown at an index changes: writes it as it is.
void export_profiles(struct qos_export *export);
void export_keep(struct qos_export *export, uint32_t index);

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

// hierarchy.c: whether a subscriber's profiles and parent fit. / All that staged profiles concern,
// as rows of work. -EINVAL with `error` set. / Gives an aggregate without parent the link that it
// had as `old` (NULL: none), or a free one. -ENOSPC with `error` set.
int hierarchy_check(const struct qos *qos, const struct subscriber *one, struct error *error);
int hierarchy_check_aggregates(struct qos *qos, size_t i, struct error *error);
size_t hierarchy_n_subscribers(const struct qos *qos);
int hierarchy_check_subscriber(struct qos *qos, size_t index, struct error *error);
int hierarchy_link(const struct qos *qos, struct profile *one, const struct profile *old,
	struct error *error);
// The shaper of what is below an aggregate. / Gives an aggregate with an id a number: that which it
// had as `old`, unless it goes to another shaper, in which it is a new aggregate.
unsigned hierarchy_shaper(const struct qos *qos, const struct profile *aggregate);
void hierarchy_number(const struct qos *qos, struct profile *one, const struct profile *old);
extern const char *const direction_words[QOS_DIRECTIONS], *const parent_words[QOS_DIRECTIONS];

// tc.c: -EINVAL with `error` set: only a qdisc has such a name. / Whether it has.
int tc_check_name(const struct qos *qos, const char *name, const char *what, struct error *error);
bool tc_has_name(const char *name);

// file.c: stages a line, which is changed, but for -EAGAIN. / Whether a line that begins with this
// name is not that of a subscriber.
int qos_stage_line(struct qos *qos, char *line, bool is_of_file, struct error *error);
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

// Before more can be added, a prefix length is used: see struct deferred.
extern const struct work_row length_rows[LENGTH_ROWS], search_rows[SEARCH_ROWS];

// reserve.c: a larger registry; after registry_begin_growth. / Whether all fits, and space for what
// has been staged: -ENOMEM with `error` set. / What the last batch left is free, after a grace
// period.
void registry_begin_growth(struct qos *qos);
void growth_close(struct qos *qos);
extern const struct work_row growth_rows[GROWTH_ROWS], prepare_rows[PREPARE_ROWS],
	reuse_rows[REUSE_ROWS];

// publish.c: workers use what has been staged from now on, and it is shown; cannot fail.
extern const struct work_row publish_rows[PUBLISH_ROWS];
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
