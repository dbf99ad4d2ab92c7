// Subscribers: customers with addresses and interfaces, whose packets share one policer in each
// direction (docs/internals/qos.md). Control thread, unless a function says otherwise.
#pragma once

#include "base/error.h"
#include "qos/qos_fast.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct rcu;
struct qos;

enum {
	QOS_NAME_MAX = 48,      // with the terminating 0
	QOS_IFACE_MAX = 16,     // of the name of an interface, the same
	QOS_LINE_MAX = 4096,    // bytes of a change as text
	QOS_MAX_ADDRESSES = 64, // of a subscriber; and of interfaces
	QOS_MTU = 1500,
};

struct qos_settings {
	struct rcu *rcu; // NULL: no worker reads
	unsigned n_workers;
	uint64_t hz;        // ticks a second, see police_rate
	uint32_t most_held; // packets in queues of the shaper; 0: no profile may shape
	// Workers that shape; without one the last worker.
	unsigned n_shapers;
	uint8_t shaper[QOS_MOST_SHAPERS];
	const uint64_t *clock; // of shapers, for tests; NULL: TSC
	unsigned n_ifaces;     // at most QOS_IFACES
	// The name of an interface, NULL: there is none.
	const char *(*iface_name)(void *ctx, unsigned iface);
	void *ctx;
};

// 0, or -ENOMEM with `error` set. Owner: caller, qos_close, when workers have ended.
int qos_open(struct qos **out, const struct qos_settings *settings, struct error *error);
void qos_close(struct qos *qos);
// What workers use, as long as `qos`.
const struct qos_live *qos_live(const struct qos *qos);

// Changes are made in batches, of which all or none are applied: begin, one qos_stage for each
// change, qos_prepare, then commit; or abort if any of them failed. Between begin and the end no
// other function may be called, unless its comment says so. Begin waits for workers that still use
// what the last batch replaced.
void qos_begin(struct qos *qos);
// A change as text:
//   profile NAME rate RATE [KEY VALUE]...       a profile, new or changed
//   no-profile NAME
//   add NAME [number N] [up PROFILE] [down PROFILE] [parent AGGREGATE] [up_parent AGGREGATE]
//       [address PREFIX]... [interface NAME]...
//   put NAME ...                                the same; replaces a subscriber of this name
//   set NAME ...                                what is named only; also without PREFIX or NAME
//   remove NAME
// `is_of_file`: see qos_stage_file_begin. 0, or -errno with `error` set: the batch is to be
// aborted.
int qos_stage(struct qos *qos, const char *text, bool is_of_file, struct error *error);
// Around changes that say all of the file: subscribers and profiles that an earlier one named, and
// these do not, are removed.
int qos_stage_file_begin(struct qos *qos, struct error *error);
int qos_stage_file_end(struct qos *qos, struct error *error);
// Whether there is memory for all of it. / Applies it; cannot fail. `now`: in ticks. / Forgets it.
int qos_prepare(struct qos *qos, struct error *error);
void qos_commit(struct qos *qos, uint64_t now);
void qos_abort(struct qos *qos);

// An interface has got a name; NULL: it is gone. / Names have changed. Also during a load.
void qos_bind(struct qos *qos, unsigned iface, const char *name);
void qos_refresh(struct qos *qos);

// Stages the queue of an interface of Linux: a subscriber QOS_TC and its name, with this profile
// (the text behind the name of one that shapes); NULL: there is none any more. 0, or -errno with
// `error` set: the batch is to be aborted. / What leaves by an interface of workers passes that
// queue from now on; NULL: none. After the batch; a queue that goes has no interface.
#define QOS_TC "tc:"
int qos_stage_tc(struct qos *qos, const char *iface, const char *profile, struct error *error);
void qos_bind_tc(struct qos *qos, unsigned iface, const char *name);

struct qos_usage {
	uint32_t n_subscribers, n_profiles, n_addresses, n_ifaces;
	uint8_t length[QOS_FAMILIES][QOS_LENGTHS]; // prefix lengths in use; 0: none
	uint64_t n_bytes; // reserved or allocated for subscribers and their addresses
	uint64_t n_batches, n_changes;
};
void qos_usage(const struct qos *qos, struct qos_usage *out);

// One subscriber for display; strings are valid until the next change.
struct qos_info {
	uint32_t number;                                                     // from 1 on
	const char *name, *profile[QOS_DIRECTIONS], *parent[QOS_DIRECTIONS]; // NULL: none
	bool is_of_file;
	unsigned n_addresses, n_ifaces;
	struct qos_count count[QOS_DIRECTIONS]; // of all workers
};
// The subscriber of this name / the first one with a number from *number on, which is set to the
// one after it. False: none.
bool qos_find_name(const struct qos *qos, const char *name, struct qos_info *out);
bool qos_next(const struct qos *qos, uint32_t *number, struct qos_info *out);
// What a shaper has sent and dropped of a subscriber by class, packets that it holds, the worker
// that owns it, and the upper bounds of delays in us. False: there is no such number, or its
// packets are not shaped in this direction.
struct qos_shaping {
	struct shape_class_stats class[SHAPE_CLASSES];
	unsigned held, worker;
	uint64_t delay_us[SHAPE_DELAYS - 1];
};
bool qos_shaping(const struct qos *qos, uint32_t number, enum qos_direction direction,
	struct qos_shaping *out);
// A port was removed: packets that wait for it are dropped when their time comes. Before another
// port gets its index.
void qos_port_gone(struct qos *qos, unsigned port);
// Address and interface i of it.
struct wire_prefix qos_address(const struct qos *qos, uint32_t number, unsigned i);
const char *qos_iface(const struct qos *qos, uint32_t number, unsigned i);
// Profile after this number, NULL: none; its text as of qos_stage, without "profile". `n_users`:
// directions of subscribers.
enum { QOS_PROFILE_TEXT = 1024 };
bool qos_next_profile(const struct qos *qos, uint32_t *number, char text[QOS_PROFILE_TEXT],
	uint32_t *n_users);

// Loads a file in turns: what qos_begin, qos_stage for each line and so on do, in parts. Until it
// is done no other batch may begin; what is displayed is what was there before, until the file is
// applied. Owner of `fd`: the load, also if NULL is returned, with `error` set. Control thread;
// owner: caller, qos_load_close, which ends it: what has not begun to be applied is taken back.
struct qos_load;
struct qos_load *qos_load_open(struct qos *qos, int fd, const char *path, struct error *error);
void qos_load_close(struct qos_load *load);
// Does up to `most` things, of about a microsecond each; `now`: in ticks. QOS_LOAD_MORE: there are
// more, / QOS_LOAD_PAUSES: and it took longer, / QOS_LOAD_WAITS: and it waits for workers. 0: it is
// done; -errno with `error` set: nothing was changed.
enum { QOS_LOAD_MORE = 1, QOS_LOAD_PAUSES, QOS_LOAD_WAITS };
int qos_load_some(struct qos_load *load, unsigned most, uint64_t now, struct error *error);
// What it does, and how many lines it has read. In the order in which it does them.
enum qos_load_phase {
	QOS_LOAD_BEGINS, // until workers have done what an earlier batch was about
	QOS_LOAD_READS,
	QOS_LOAD_CHECKS,
	QOS_LOAD_APPLIES,
	QOS_LOAD_ENDS,
	QOS_LOAD_TAKES_BACK,
	QOS_LOAD_DONE
};
enum qos_load_phase qos_load_phase(const struct qos_load *load, uint64_t *n_lines);

// Stages each line of a file as "put", or as what it says: profile, no-profile, remove. Blank lines
// and what follows # are skipped. `text` is changed. -errno with `error` set to "PATH:LINE: ...".
int qos_stage_lines(struct qos *qos, const char *path, char *text, size_t n, bool is_of_file,
	struct error *error);
// Writes all profiles and subscribers as lines that can be staged, each with its counters as a
// comment. False: it could not be written.
#define QOS_EXPORT_HEAD "# Behind #: packets/bytes that were green, yellow and red, up and down."
bool qos_export(struct qos *qos, FILE *out);
// The same in parts, one export at a time; batches may begin and end meanwhile, but what is written
// is what there was when it was opened. Owner: caller, qos_export_close; of `out`, too. NULL with
// `error` set. / Writes up to `most` lines; returns whether there are more. / Subscribers so far.
struct qos_export;
struct qos_export *qos_export_open(struct qos *qos, FILE *out, struct error *error);
void qos_export_close(struct qos_export *export);
bool qos_export_some(struct qos_export *export, unsigned most);
uint32_t qos_export_n(const struct qos_export *export);
