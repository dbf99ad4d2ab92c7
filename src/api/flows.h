// Shared by the files about flows. Control thread.
#pragma once

#include "api/inside.h"
#include "flow/flow.h"

#include <net/if.h>

// An action as users give it. A file has names, the table has numbers.
struct flow_spec {
	struct flow_action action; // held: 0
	struct fib_hop hop;        // only with FLOW_TO_HOP
};

// Names of interfaces, for many lookups at once; looked up again for each batch.
struct flow_names;

// How long ageing, and a job, may take in a turn of the control loop.
enum { FLOWS_SLICE_NS = 1000000 };

// One job at a time: loading a file, or saving to one.
enum flow_job_state { FLOW_JOB_NONE, FLOW_JOB_RUNNING, FLOW_JOB_DONE, FLOW_JOB_FAILED };
struct flow_job {
	uint8_t state; // enum flow_job_state
	bool is_save, is_at_start, deletes, keeps_counters, is_applying, is_waiting;
	char path[CONFIG_PATH_MAX];
	struct flow_save *save;
	struct flow_load *load;
	uint32_t *action; // by number in the file: that in the table, which the job uses; 0: none
	uint32_t n_actions, n_resolved;
	uint16_t *vrf; // by VRF in the file; FLOW_NO_VRF: there is none of its name here
	struct flow_names *names;
	uint64_t n_renamed; // of flows, when the names were read
	uint64_t n_of;      // flows to be saved or loaded
	struct flow_loaded loaded;
	uint64_t n_saved;
	uint64_t started_ns, ended_ns;
	struct error reason;  // why it failed
	struct error refusal; // why the first flow was refused
};

// An interface to which actions refer, also after it was removed.
struct flow_iface {
	uint32_t n_actions;     // that have it, as their next hop's or as their mirror
	char name[IF_NAMESIZE]; // the last known one; "": no action has it
};

struct flows {
	struct flow_table *table;
	bool drops_missing;                // workers read it
	uint32_t timeout_s[FLOW_TIMEOUTS]; // of the table; in the file there may be fewer
	bool was_loaded;                   // the file of the configuration, or it need not be
	char unloaded[CONFIG_PATH_MAX];    // that file, if not all of its flows were loaded
	struct flow_job job;
	struct flow_ended *ended;
	struct flow_learning *learning;
	struct flow_iface *iface; // by id: those that actions have
	uint64_t n_renamed;       // changes of names of interfaces
};

// flow_actions.c
// Reads {do, via, dev, ...}. 0, or -EINVAL with `error` set. *names is made if it is needed.
int flow_spec_read(const struct api_ctx *ctx, const json_t *json, struct flow_names **names,
	struct flow_spec *out, struct error *error);
// Whether the record of an action is valid, whatever there is here. / Reads one that is: -errno
// with `error` set if this system does not have what it names.
int flow_record_check(const uint8_t record[FLOW_RECORD_BYTES], struct error *error);
int flow_spec_from_record(const struct api_ctx *ctx, const uint8_t record[FLOW_RECORD_BYTES],
	struct flow_names **names, struct flow_spec *out, struct error *error);
// The number of the action, which is in use until flow_action_unuse. 0, or -errno with `error` set.
int flow_spec_use(struct api_ctx *ctx, const struct flow_spec *spec, uint32_t *number,
	struct error *error);
// Sets do, via, dev, dscp, mirror and subscriber.
json_t *flow_action_json(const struct api_ctx *ctx, uint32_t number);
// Callbacks of the table, for api_ctx.
void flow_actions_freed(void *ctx, const struct flow_action *action);
void flow_actions_describe(void *ctx, uint32_t number, uint8_t record[FLOW_RECORD_BYTES]);
void flow_vrf_describe(void *ctx, uint16_t vrf, uint8_t record[FLOW_RECORD_BYTES]);
// Whether a record is that of a VRF: then its number and name. `name`: IF_NAMESIZE bytes.
bool flow_vrf_from_record(const uint8_t record[FLOW_RECORD_BYTES], uint16_t *vrf, char *name);
// The words of actions: "route", "via", "drop", "punt".
const char *flow_effect_word(unsigned effect);

// flow_names.c
// -1: no such interface. NULL with `error` set: no memory.
struct flow_names *flow_names_make(const struct api_ctx *ctx, struct error *error);
int flow_names_find(const struct flow_names *names, const char *name);
void flow_names_free(struct flow_names *names);

// flow_keys.c
// Values of a key as JSON: checked by flow_key_read.
struct flow_key_params {
	const char *src, *dst, *vrf;
	const json_t *protocol;
	long src_port, dst_port;
};
// The first six rows of the parameters of methods; `rows` has space for them.
enum { FLOW_KEY_ROWS = 6 };
void flow_key_rows(struct flow_key_params *params, struct rpc_param rows[FLOW_KEY_ROWS]);
int flow_key_read(const struct api_ctx *ctx, const struct flow_key_params *params,
	struct flow_key *out, struct error *error);
// A flow: key, action, life and counters.
json_t *flow_info_json(const struct api_ctx *ctx, const struct flow_info *info);
// Sets src, dst, protocol, src_port, dst_port and vrf (of this name).
void flow_set_key(json_t *json, const struct flow_key *key, const char *vrf);
// "tcp", "udp"...; NULL: the protocol has a number only.
const char *flow_protocol_word(uint8_t protocol);
// Why a change was refused, by flow_change()'s result.
const char *flow_refusal_text(int result);

// flow_jobs.c
// Starts loading the file of the configuration, if there is one. / A slice of the job that runs, of
// about a millisecond; returns whether there is more to do now. / Ends it.
void flow_job_load_at_start(struct api_ctx *ctx);
bool flow_job_has_loaded_at_start(const struct api_ctx *ctx);
bool flow_job_step(struct api_ctx *ctx);
void flow_job_close(struct api_ctx *ctx);
// Whether both paths lead to one file, or are equal.
bool flow_is_same_file(const char *path, const char *other);

// flow_resolve.c: what actions and VRFs of a file that was checked mean here. -errno with `error`
// set: the file is invalid. / Some actions; to be called until n_resolved is n_actions. / Sets
// `refusal`, once the first flow was refused.
int flow_resolve_begin(const struct api_ctx *ctx, struct flow_job *job, struct error *error);
int flow_resolve_step(struct api_ctx *ctx, struct flow_job *job, struct error *error);
void flow_resolve_explain(struct api_ctx *ctx, struct flow_job *job);

// flow_ended.c: ended flows. NULL with `error` set. `path`: of the file, "" for none.
struct flow_ended *flow_ended_open(const char *path, struct error *error);
void flow_ended_close(struct flow_ended *ended);
// Opens the file `path`, for a reload, / uses it from now on; a negative descriptor: none.
int flow_ended_open_file(const char *path, int *fd, struct error *error);
void flow_ended_set_file(struct flow_ended *ended, int fd);
// Callback of the table, for api_ctx.
void flow_ended_add(void *ctx, const struct flow_info *info);
// Hands what was added to the thread that writes the file. / Whether it has space for all flows
// that may be told at once: otherwise none should be ended.
void flow_ended_publish(struct flow_ended *ended);
bool flow_ended_has_space(struct flow_ended *ended);
json_t *flow_ended_usage_json(struct flow_ended *ended);

// flow_learning.c: flows that are learnt from packets without a flow. NULL with `error` set.
struct flow_learning;
struct flow_learning *flow_learning_open(const struct flow_settings *settings, struct error *error);
void flow_learning_close(struct flow_learning *learning);
// How many bytes learning takes beside the table, if it is on.
uint64_t flow_learning_bytes(const struct flow_settings *settings,
	const struct config_flow *config);
// Through which workers tell of packets.
const struct flow_learn *flow_learning_rings(const struct flow_learning *learning);
// Starts or stops learning, with these limits; flows that were learnt stay. It starts when the file
// of the configuration has been loaded, whose flows come first.
void flow_learning_set(struct api_ctx *ctx, const struct config_flow *config);
// Learns flows for at most some ms; returns whether there are more to be learnt now.
bool flow_learning_step(struct api_ctx *ctx);
// Whether so many were told since the turn before that the next one should come soon.
bool flow_learning_is_fast(const struct api_ctx *ctx);
// Ends flows whose next hop was learnt and cannot be used any more, so that their packets give
// others; some in each turn: returns whether there are more.
bool flow_learning_end_gone(struct api_ctx *ctx);
// A flow has ended, or is another one now (callback of the table, for api_ctx): if it was learnt,
// another one may be.
void flow_learning_forget(void *ctx, uint32_t number, const struct flow_key *key);
json_t *flow_learning_json(const struct api_ctx *ctx);

// flows.c
// The rows of methods need a table: NULL with `error` set.
struct flows *flows_of(const struct api_ctx *ctx, struct error *error);
// For a reload: opens what `next` needs, / applies it, which cannot fail; `fd` is the new file of
// ended flows.
int flows_prepare(const struct api_ctx *ctx, const struct config *next, int *fd,
	struct error *error);
void flows_apply(struct api_ctx *ctx, const struct config *next, int fd);
// Interfaces to which actions refer may not give their numbers to others: ports, / any; NULL: none
// refers to it, otherwise its name.
void flows_find_kept(const struct api_ctx *ctx, struct config_numbers *out);
const char *flows_iface_kept(const struct api_ctx *ctx, uint16_t iface);
// Ports were added or removed. / As netlink's iface_named.
void flows_follow_ports(struct api_ctx *ctx);
void flows_iface_named(struct api_ctx *ctx, uint16_t iface, const char *name);
// Ages flows and runs the job; returns whether there is more to do now.
bool flows_poll(struct api_ctx *ctx);
