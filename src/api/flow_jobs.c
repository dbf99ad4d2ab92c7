// Jobs: loading flows from a file and saving them to one, in slices beside the other work of the
// control loop. One at a time. Control thread.
#include "api/flows.h"

#include "api/flow_ended_file.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ACTIONS_AT_ONCE = 256 };

static struct flow_job *job_of(const struct api_ctx *ctx)
{
	return &ctx->flows->job;
}

static void begin(struct flow_job *job, const char *path)
{
	*job = (struct flow_job){.started_ns = clock_now_ns(), .state = FLOW_JOB_RUNNING};
	strcpy(job->path, path);
}

// Failed before it began: what was before stays visible.
static int start_load(struct api_ctx *ctx, const struct flow_job *wanted, const char *path,
	struct error *error)
{
	struct flow_job *job = job_of(ctx);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	struct flow_load *load = flow_load_open(fd, path, error);
	if (!load)
		return -EINVAL;
	begin(job, path);
	job->load = load;
	job->deletes = wanted->deletes;
	job->is_at_start = wanted->is_at_start;
	job->keeps_counters = wanted->keeps_counters;
	return 0;
}

static int apply(struct api_ctx *ctx, struct flow_job *job, struct error *error)
{
	const struct flow_load_options options = {.action = job->action,
		.vrf = job->vrf,
		.deletes = job->deletes,
		.wall_ms = wall_now_ms(),
		.keeps_counters = job->keeps_counters};

	if (!flow_ended_has_space(ctx->flows->ended)) {
		job->is_waiting = true;
		return 1;
	}
	int more = flow_load_apply(job->load, ctx->flows->table, &options, rte_rdtsc(), error);
	job->loaded = flow_load_result(job->load);
	flow_resolve_explain(ctx, job);
	return more;
}

// 1: there is more to do.
static int step_load(struct api_ctx *ctx, struct flow_job *job, struct error *error)
{
	if (!job->vrf) {
		int more = flow_load_check(job->load, error);
		job->loaded = flow_load_result(job->load);
		if (!more)
			more = flow_resolve_begin(ctx, job, error);
		return more < 0 ? more : 1;
	}
	if (!job->deletes && job->n_resolved < job->n_actions) {
		int err = flow_resolve_step(ctx, job, error);
		return err ? err : 1;
	}
	job->is_applying = true;
	return apply(ctx, job, error);
}

static int step_save(struct flow_job *job, struct error *error)
{
	int more = flow_save_step(job->save, rte_rdtsc(), wall_now_ms(), error);

	job->n_saved = flow_save_n(job->save);
	job->is_waiting = more > 0 && flow_save_is_waiting(job->save);
	return more;
}

static void tell(const struct flow_job *job)
{
	const struct flow_loaded *loaded = &job->loaded;

	if (job->state == FLOW_JOB_FAILED)
		log_error("flows: %s", job->reason.text);
	else if (job->is_save)
		log_info("flows: saved %llu to %s", (unsigned long long)job->n_saved, job->path);
	else
		log_info("flows: %s %llu of %s", job->deletes ? "deleted" : "loaded",
			(unsigned long long)loaded->n_applied, job->path);
	if (loaded->n_refused)
		log_warn("flows: refused %llu of %s; the first one is flow %llu: %s",
			(unsigned long long)loaded->n_refused, job->path,
			(unsigned long long)loaded->first_refused, job->refusal.text);
}

bool flow_is_same_file(const char *path, const char *other)
{
	struct stat one, two;

	return !strcmp(path, other) ||
	       (!stat(path, &one) && !stat(other, &two) && one.st_dev == two.st_dev &&
		       one.st_ino == two.st_ino);
}

// Whether the file of the configuration still has flows that the table lacks.
static void note_unloaded(struct flows *flows, const struct flow_job *job)
{
	const bool is_whole = job->state == FLOW_JOB_DONE && !job->loaded.n_refused;

	if (job->is_at_start && !is_whole)
		strcpy(flows->unloaded, job->path);
	else if (is_whole && !job->deletes && flows->unloaded[0] &&
		 flow_is_same_file(job->path, flows->unloaded))
		flows->unloaded[0] = '\0';
}

// Flows that have the actions use them now. True: there are more to be given back.
static bool give_back(struct flow_table *table, struct flow_job *job)
{
	for (unsigned i = 0; i < ACTIONS_AT_ONCE && job->n_resolved; i++)
		if (job->action[--job->n_resolved])
			flow_action_unuse(table, job->action[job->n_resolved]);
	return job->n_resolved;
}

static void free_parts(struct flow_job *job)
{
	flow_names_free(job->names);
	flow_save_close(job->save);
	flow_load_close(job->load);
	free(job->action);
	free(job->vrf);
	job->names = NULL;
	job->save = NULL;
	job->load = NULL;
	job->action = NULL;
	job->vrf = NULL;
}

// A slice: true if the job has ended, and only actions are left to be given back.
static bool step(struct api_ctx *ctx, struct flow_job *job)
{
	int more = job->is_save ? step_save(job, &job->reason) : step_load(ctx, job, &job->reason);

	if (more > 0)
		return false;
	job->state = more ? FLOW_JOB_FAILED : FLOW_JOB_DONE;
	return true;
}

bool flow_job_step(struct api_ctx *ctx)
{
	struct flow_job *job = job_of(ctx);
	const uint64_t start_ns = clock_now_ns();

	if (!job->started_ns || job->ended_ns)
		return false;
	job->is_waiting = false;
	do {
		if (job->state == FLOW_JOB_RUNNING && !step(ctx, job))
			continue;
		if (give_back(ctx->flows->table, job))
			continue;
		if (job->load && flow_load_free_some(job->load))
			continue;
		free_parts(job);
		job->ended_ns = clock_now_ns();
		note_unloaded(ctx->flows, job);
		tell(job);
		return false;
	} while (!job->is_waiting && clock_now_ns() - start_ns < FLOWS_SLICE_NS);
	return !job->is_waiting;
}

void flow_job_close(struct api_ctx *ctx)
{
	struct flow_job *job = job_of(ctx);

	while (give_back(ctx->flows->table, job))
		continue;
	free_parts(job);
}

void flow_job_load_at_start(struct api_ctx *ctx)
{
	const struct config_flow *config = config_flow(ctx->config);
	const struct flow_job wanted = {.keeps_counters = true, .is_at_start = true};
	struct error error;

	if (!config->file[0] || (access(config->file, F_OK) && errno == ENOENT))
		return;
	if (start_load(ctx, &wanted, config->file, &error)) {
		log_error("flows: %s", error.text);
		strcpy(ctx->flows->unloaded, config->file);
	}
}

bool flow_job_has_loaded_at_start(const struct api_ctx *ctx)
{
	const struct flow_job *job = job_of(ctx);

	return ctx->flows->was_loaded && !(job->is_at_start && !job->ended_ns);
}

// The path of a request, or that of the configuration.
static const char *path_for(const struct api_ctx *ctx, const char *path, struct error *error)
{
	const struct config_flow *config = config_flow(ctx->config);

	if (!path && !config->file[0]) {
		error_set(error, -EINVAL,
			"missing parameter \"path\": the configuration file names no file (flow: "
			"file)");
		return NULL;
	}
	if (path && (path[0] != '/' || strlen(path) >= CONFIG_PATH_MAX)) {
		error_set(error, -EINVAL,
			"parameter \"path\": expected an absolute path of at most %d characters",
			CONFIG_PATH_MAX - 1);
		return NULL;
	}
	return path ? path : config->file;
}

// Whether a job may start. The file at start is loaded first.
static int check_idle(const struct api_ctx *ctx, struct error *error)
{
	const struct flow_job *job = job_of(ctx);

	if (!ctx->flows->was_loaded)
		return error_set(error, -EAGAIN,
			"flows are loaded once the tables are complete; try again later");
	if (!job->started_ns || job->ended_ns)
		return 0;
	return error_set(error, -EBUSY, "%s %s is not finished; try again later",
		job->is_save ? "saving to" : "loading", job->path);
}

json_t *method_flows_load(void *ctx, const json_t *params, struct error *error)
{
	struct flow_job wanted = {.keeps_counters = true};
	const char *path = NULL, *op = "replace";
	const struct rpc_param rows[] = {
		{"path", RPC_TEXT, false, 0, 0, &path},
		{"op", RPC_TEXT, false, 0, 0, &op},
		{"counters", RPC_FLAG, false, 0, 0, &wanted.keeps_counters},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) || !flows_of(ctx, error))
		return NULL;
	path = path_for(ctx, path, error);
	if (!path)
		return NULL;
	wanted.deletes = !strcmp(op, "delete");
	if (!wanted.deletes && strcmp(op, "replace")) {
		error_set(error, -EINVAL, "\"op\" is \"%.60s\"; expected replace or delete", op);
		return NULL;
	}
	if (check_idle(ctx, error) || start_load(ctx, &wanted, path, error))
		return NULL;
	return json_pack("{s:o}", "path", rpc_text_json(path));
}

// Another file is not replaced by mistake.
static int check_target(const char *path, struct error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;

	if (fd < 0)
		return errno == ENOENT ? 0
		                       : error_set(error, -errno, "cannot replace %s: %s", path,
						 strerror(errno));
	const bool may = !fstat(fd, &status) && S_ISREG(status.st_mode) &&
	                 (!status.st_size || flow_file_begins(fd));
	close(fd);
	return may ? 0
	           : error_set(error, -EEXIST,
			     "%s exists and is not a file of flows; remove it first", path);
}

// A save would replace the only copy of flows that could not be loaded.
static int check_unloaded(const struct api_ctx *ctx, const char *path, struct error *error)
{
	const char *unloaded = ctx->flows->unloaded;

	if (!unloaded[0] || !flow_is_same_file(path, unloaded))
		return 0;
	return error_set(error, -EEXIST,
		"not all flows of %s could be loaded at start, and saving would replace them; "
		"expected another \"path\", or \"force\": true",
		path);
}

// A save replaces its file, and the one beside it while it is written.
static int check_ended_file(const struct api_ctx *ctx, const char *path, struct error *error)
{
	const char *ended_file = config_flow(ctx->config)->ended_file;
	char beside[CONFIG_PATH_MAX + sizeof(".new")];

	snprintf(beside, sizeof(beside), "%s.new", path);
	if (!ended_file[0] ||
		(!flow_is_same_file(path, ended_file) && !flow_is_same_file(beside, ended_file)))
		return 0;
	return error_set(error, -EINVAL,
		"saving to %s would replace the file of ended flows (flow: ended_file); expected "
		"another \"path\"",
		path);
}

json_t *method_flows_save(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	const char *path = NULL;
	bool forces = false;
	const struct rpc_param rows[] = {
		{"path", RPC_TEXT, false, 0, 0, &path},
		{"force", RPC_FLAG, false, 0, 0, &forces},
	};
	struct flow_save_settings settings = {.describe = flow_actions_describe,
		.describe_vrf = flow_vrf_describe,
		.ctx = ctx};
	struct flow_usage usage;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) || !flows_of(ctx, error))
		return NULL;
	path = path_for(ctx, path, error);
	if (!path || check_idle(ctx, error) || check_target(path, error) ||
		check_ended_file(ctx, path, error) || (!forces && check_unloaded(ctx, path, error)))
		return NULL;
	struct flow_job *job = job_of(ctx), before = *job;
	begin(job, path);
	settings.path = job->path;
	job->is_save = true;
	job->save = flow_save_open(ctx->flows->table, &settings, error);
	if (!job->save) {
		*job = before;
		return NULL;
	}
	flow_usage(ctx->flows->table, &usage);
	job->n_of = usage.four.n + usage.six.n;
	return json_pack("{s:o}", "path", rpc_text_json(job->path));
}

static const char *reason_of(const struct flow_job *job)
{
	if (job->state == FLOW_JOB_FAILED)
		return job->reason.text;
	return job->loaded.n_refused ? job->refusal.text : NULL;
}

json_t *method_flows_job(void *ctx, const json_t *params, struct error *error)
{
	static const char *const states[] = {"none", "running", "done", "failed"};

	if (rpc_params_none(params, error) || !flows_of(ctx, error))
		return NULL;
	const struct flow_job *job = job_of(ctx);
	const bool is_done = job->state == FLOW_JOB_NONE || job->ended_ns;
	const uint64_t end_ns = is_done ? job->ended_ns : clock_now_ns();
	const uint64_t done =
		job->is_save ? job->n_saved : job->loaded.n_applied + job->loaded.n_refused;
	json_t *json = json_pack("{s:s, s:o, s:o, s:o}", "state",
		states[is_done ? job->state : FLOW_JOB_RUNNING], "what",
		!job->started_ns ? json_null() : json_string(job->is_save ? "save" : "load"), "op",
		!job->started_ns || job->is_save ? json_null()
						 : json_string(job->deletes ? "delete" : "replace"),
		"path", rpc_text_json(job->path[0] ? job->path : NULL));
	json_object_set_new(json, "phase",
		rpc_text_json(is_done            ? NULL
			      : job->is_save     ? "saving"
			      : job->is_applying ? "applying"
						 : "checking"));
	json_object_set_new(json, "done", number_json(done));
	json_object_set_new(json, "of", number_json(job->n_of));
	json_object_set_new(json, "refused", number_json(job->loaded.n_refused));
	json_object_set_new(json, "first_refused",
		job->loaded.first_refused ? number_json(job->loaded.first_refused) : json_null());
	json_object_set_new(json, "reason", rpc_text_json(is_done ? reason_of(job) : NULL));
	json_object_set_new(json, "seconds", json_real((end_ns - job->started_ns) / 1e9));
	return json;
}
