// Jobs: loading subscribers from a file and exporting them to one, in turns beside the other work
// of the control loop. One at a time. Control thread.
#include "api/export_file.h"
#include "api/subscribers.h"

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

enum { SLICE_NS = 1000000, AT_ONCE = 32 };

enum job_state { JOB_NONE, JOB_RUNNING, JOB_DONE, JOB_FAILED };
struct subscribers_job {
	enum job_state state;
	bool is_waiting;
	char path[CONFIG_PATH_MAX];
	struct qos_load *load; // NULL: it is an export, or has ended
	struct qos_export *export;
	struct export_file *file;
	bool is_export, is_printed;
	enum qos_load_phase phase;
	uint64_t n_done, n_of; // lines, 0: unknown; or subscribers
	uint64_t started_ns, ended_ns;
	struct error reason; // why it failed
};

static struct subscribers_job *job_of(const struct api_ctx *ctx)
{
	return ctx->subscribers_job;
}

int subscribers_open_job(struct api_ctx *ctx, struct error *error)
{
	ctx->subscribers_job = calloc(1, sizeof(*ctx->subscribers_job));
	return ctx->subscribers_job
	               ? 0
	               : error_set(error, -ENOMEM, "not enough memory for subscribers");
}

static void end_export(struct subscribers_job *job)
{
	qos_export_close(job->export);
	export_file_close(job->file);
	job->file = NULL;
	job->export = NULL;
}

void subscribers_close_job(struct api_ctx *ctx)
{
	struct subscribers_job *job = job_of(ctx);

	if (job) {
		qos_load_close(job->load);
		end_export(job);
	}
	free(job);
	ctx->subscribers_job = NULL;
}

int subscribers_check_job(const struct api_ctx *ctx, struct error *error)
{
	const struct subscribers_job *job = job_of(ctx);

	if (!job || !job->load)
		return 0;
	return error_set(error, -EBUSY, "loading %s is not finished; try again later", job->path);
}

bool subscribers_job_waits(const struct api_ctx *ctx)
{
	return job_of(ctx) && job_of(ctx)->is_waiting;
}

// 0, -errno with `reason` set, or another number: there is more to do.
static int export_some(struct subscribers_job *job)
{
	const int result = export_file_result(job->file, &job->reason);

	if (result <= 0)
		return result;
	if (job->is_printed || !export_file_pass(job->file))
		return QOS_LOAD_WAITS;
	job->is_printed = !qos_export_some(job->export, AT_ONCE);
	job->n_done = qos_export_n(job->export);
	if (job->is_printed)
		export_file_finish(job->file);
	return QOS_LOAD_MORE;
}

static int load_some(struct subscribers_job *job)
{
	const int result = qos_load_some(job->load, AT_ONCE, rte_rdtsc(), &job->reason);

	job->phase = qos_load_phase(job->load, &job->n_done);
	return result;
}

static void end(struct subscribers_job *job, int err)
{
	qos_load_close(job->load);
	job->load = NULL;
	end_export(job);
	job->state = err ? JOB_FAILED : JOB_DONE;
	job->ended_ns = clock_now_ns();
	if (err)
		log_error("subscribers: %s", job->reason.text);
	else
		log_info("subscribers: %s %s", job->is_export ? "exported to" : "loaded",
			job->path);
}

bool subscribers_poll(struct api_ctx *ctx)
{
	struct subscribers_job *job = job_of(ctx);
	const uint64_t began_ns = clock_now_ns();
	int result = QOS_LOAD_MORE;

	if (!job || job->state != JOB_RUNNING)
		return false;
	do {
		result = job->is_export ? export_some(job) : load_some(job);
	} while (result == QOS_LOAD_MORE && clock_now_ns() - began_ns < SLICE_NS);
	job->is_waiting = result == QOS_LOAD_WAITS;
	if (result > 0)
		return !job->is_waiting;
	end(job, result);
	return false;
}

static int check_path(const char *path, struct error *error)
{
	if (path[0] == '/' && strlen(path) < CONFIG_PATH_MAX)
		return 0;
	return error_set(error, -EINVAL,
		"parameter \"path\": expected an absolute path of at most %d characters",
		CONFIG_PATH_MAX - 1);
}

static int check_idle(const struct api_ctx *ctx, struct error *error)
{
	const struct subscribers_job *job = job_of(ctx);

	if (job->state != JOB_RUNNING)
		return 0;
	return error_set(error, -EBUSY, "%s %s is not finished; try again later",
		job->is_export ? "exporting to" : "loading", job->path);
}

static void begin(struct subscribers_job *job, const char *path)
{
	*job = (struct subscribers_job){.state = JOB_RUNNING, .started_ns = clock_now_ns()};
	strcpy(job->path, path);
}

json_t *method_subscribers_load(void *ctx, const json_t *params, struct error *error)
{
	const char *path;
	const struct rpc_param rows[] = {{"path", RPC_TEXT, true, 0, 0, &path}};

	if (rpc_params_read(params, rows, 1, error))
		return NULL;
	struct qos *qos = subscribers_of(ctx, error);

	if (!qos || check_path(path, error) || check_idle(ctx, error))
		return NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); // or a FIFO waits

	if (fd < 0) {
		error_set(error, -errno, "cannot read %.200s: %s", path, strerror(errno));
		return NULL;
	}
	struct qos_load *load = qos_load_open(qos, fd, path, error);

	if (!load)
		return NULL;
	begin(job_of(ctx), path);
	job_of(ctx)->load = load;
	return json_pack("{s:o}", "path", rpc_text_json(path));
}

static bool is_export(int fd)
{
	char head[sizeof(QOS_EXPORT_HEAD)];
	const ssize_t n = read(fd, head, sizeof(head));

	return !n || (n == sizeof(head) && !memcmp(head, QOS_EXPORT_HEAD "\n", sizeof(head)));
}

// A device, a link or a socket is not meant, and another file is not replaced by mistake.
static int check_target(const char *path, bool overwrites, struct error *error)
{
	struct stat status;

	if (lstat(path, &status))
		return 0;
	if (!S_ISREG(status.st_mode))
		return error_set(error, -EEXIST,
			"cannot write %.200s: it exists and is not a regular file; name another "
			"one",
			path);
	const int fd = overwrites ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const bool may = overwrites || (fd >= 0 && is_export(fd));

	if (fd >= 0)
		close(fd);
	return may ? 0
	           : error_set(error, -EEXIST,
			     "%.200s exists and is not an export of subscribers; expected another "
			     "\"path\", or \"overwrite\": true",
			     path);
}

json_t *method_subscribers_export(void *ctx, const json_t *params, struct error *error)
{
	const char *path;
	bool overwrites = false;
	const struct rpc_param rows[] = {{"path", RPC_TEXT, true, 0, 0, &path},
		{"overwrite", RPC_FLAG, false, 0, 0, &overwrites}};
	struct qos_usage usage;
	FILE *out;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	struct qos *qos = subscribers_of(ctx, error);

	if (!qos || check_path(path, error) || check_idle(ctx, error) ||
		check_target(path, overwrites, error))
		return NULL;
	struct subscribers_job *job = job_of(ctx), before = *job;

	begin(job, path);
	job->is_export = true;
	job->file = export_file_open(path, &out, error);
	if (job->file)
		job->export = qos_export_open(qos, out, error);
	if (!job->export) {
		end_export(job);
		*job = before;
		return NULL;
	}
	qos_usage(qos, &usage);
	job->n_of = usage.n_subscribers;
	return json_pack("{s:o}", "path", rpc_text_json(path));
}

static const char *phase_of(const struct subscribers_job *job)
{
	static const char *const words[] = {[QOS_LOAD_BEGINS] = "waiting",
		[QOS_LOAD_READS] = "reading",
		[QOS_LOAD_CHECKS] = "checking",
		[QOS_LOAD_APPLIES] = "applying",
		[QOS_LOAD_ENDS] = "ending",
		[QOS_LOAD_TAKES_BACK] = "taking back",
		[QOS_LOAD_DONE] = "ending"};

	if (job->state != JOB_RUNNING)
		return NULL;
	return job->is_export ? "exporting" : words[job->phase];
}

json_t *method_subscribers_job(void *ctx, const json_t *params, struct error *error)
{
	static const char *const states[] = {"none", "running", "done", "failed"};
	struct qos_usage usage;

	if (rpc_params_none(params, error))
		return NULL;
	const struct qos *qos = subscribers_of(ctx, error);

	if (!qos)
		return NULL;
	const struct subscribers_job *job = job_of(ctx);
	const uint64_t end_ns = job->state == JOB_RUNNING ? clock_now_ns() : job->ended_ns;

	qos_usage(qos, &usage);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:f}", "state",
		states[job->state], "what",
		job->state == JOB_NONE ? json_null()
				       : json_string(job->is_export ? "export" : "load"),
		"path", rpc_text_json(job->path[0] ? job->path : NULL), "phase",
		rpc_text_json(phase_of(job)), "done", number_json(job->n_done), "of",
		job->n_of ? number_json(job->n_of) : json_null(), "reason",
		rpc_text_json(job->state == JOB_FAILED ? job->reason.text : NULL), "subscribers",
		(json_int_t)usage.n_subscribers, "seconds", (end_ns - job->started_ns) / 1e9);
}
