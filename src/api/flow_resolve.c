// What a file of flows means here: its actions, VRFs and timeouts. Control thread.
#include "api/flows.h"

#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>

enum { ACTIONS_AT_ONCE = 256, UNNAMED_VRF = FLOW_NO_VRF - 1 };

// Records of VRFs are the last ones. A VRF that does not exist here is no error of the file.
static int resolve_vrfs(const struct api_ctx *ctx, struct flow_job *job, struct error *error)
{
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(job->load, &job->n_actions);
	const uint32_t n_records = job->n_actions;
	struct error inner;
	char name[IF_NAMESIZE];
	uint16_t vrf;

	for (; job->n_actions && flow_vrf_from_record(record[job->n_actions - 1], &vrf, name);
		job->n_actions--) {
		if (n_records - job->n_actions == FIB_MAX_VRFS - 1)
			return error_set(error, -EINVAL, "%s has more than %u records of VRFs",
				job->path, FIB_MAX_VRFS - 1);
		job->vrf[vrf] = 0;
		if (flow_load_has_vrf(job->load, vrf) &&
			vrf_find(ctx, name, &job->vrf[vrf], &inner))
			job->vrf[vrf] = FLOW_NO_VRF;
	}
	for (unsigned i = 1; i < FIB_MAX_VRFS; i++)
		if (flow_load_has_vrf(job->load, i) && job->vrf[i] == UNNAMED_VRF)
			return error_set(error, -EINVAL,
				"%s: flows have VRF %u, but there is no record with its name",
				job->path, i);
	return 0;
}

static int check_timeouts(const struct api_ctx *ctx, const struct flow_job *job,
	struct error *error)
{
	const struct config_flow *config = config_flow(ctx->config);
	const unsigned max = job->loaded.max_timeout;

	if (!max || config->timeout_s[max - 1] || job->deletes)
		return 0;
	return error_set(error, -EINVAL,
		"%s: flows have idle timeout %u, but the configuration file has fewer (flow: "
		"timeouts)",
		job->path, max);
}

static int memory_error(const struct flow_job *job, struct error *error)
{
	return error_set(error, -ENOMEM, "not enough memory to load flows from %s", job->path);
}

int flow_resolve_begin(const struct api_ctx *ctx, struct flow_job *job, struct error *error)
{
	job->loaded = flow_load_result(job->load);
	job->n_of = job->loaded.n4 + job->loaded.n6;
	job->vrf = calloc(FIB_MAX_VRFS, sizeof(*job->vrf));
	if (!job->vrf)
		return memory_error(job, error);
	for (unsigned i = 1; i < FIB_MAX_VRFS; i++)
		job->vrf[i] = UNNAMED_VRF;
	int err = resolve_vrfs(ctx, job, error);
	if (!err && job->n_of && job->loaded.max_action >= job->n_actions)
		err = error_set(error, -EINVAL, "%s: flows have action %u, which is none",
			job->path, job->loaded.max_action);
	if (!err)
		err = check_timeouts(ctx, job, error);
	if (err || job->deletes)
		return err;
	job->action = calloc(job->n_actions + 1, sizeof(*job->action));
	return job->action ? 0 : memory_error(job, error);
}

// 0, with the number of the action; or -errno with `error` set: flows cannot have it here.
static int resolve_action(struct api_ctx *ctx, struct flow_job *job, uint32_t i, uint32_t *number,
	struct error *error)
{
	uint32_t n;
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(job->load, &n);
	struct flow_spec spec;
	int err = flow_spec_from_record(ctx, record[i], &job->names, &spec, error);

	return err ? err : flow_spec_use(ctx, &spec, number, error);
}

// Names that have changed since an earlier slice are read again.
static void renew_names(const struct api_ctx *ctx, struct flow_job *job)
{
	if (job->n_renamed == ctx->flows->n_renamed)
		return;
	flow_names_free(job->names);
	job->names = NULL;
	job->n_renamed = ctx->flows->n_renamed;
}

int flow_resolve_step(struct api_ctx *ctx, struct flow_job *job, struct error *error)
{
	const uint32_t end = MIN_OF(job->n_resolved + ACTIONS_AT_ONCE, job->n_actions);
	uint32_t n;
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(job->load, &n);
	struct error inner;

	renew_names(ctx, job);
	for (; job->n_resolved < end; job->n_resolved++) {
		const uint32_t i = job->n_resolved;

		if (flow_record_check(record[i], &inner))
			return error_set(error, -EINVAL, "%s: action %u: %s", job->path, i,
				inner.text);
		if (resolve_action(ctx, job, i, &job->action[i], &inner))
			job->action[i] = 0;
	}
	return 0;
}

// Found out again, because there may be millions of actions that flows cannot have.
static void explain_action(struct api_ctx *ctx, struct flow_job *job)
{
	const uint32_t i = job->loaded.refused_action;
	struct error inner;
	uint32_t number;

	renew_names(ctx, job);
	if (resolve_action(ctx, job, i, &number, &inner)) {
		error_set(&job->refusal, -ENODEV, "action %u: %s", i, inner.text);
		return;
	}
	flow_action_unuse(ctx->flows->table, number);
	error_set(&job->refusal, -ENODEV, "action %u: its interface did not exist until now", i);
}

static void explain_vrf(const struct api_ctx *ctx, struct flow_job *job)
{
	uint32_t n;
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(job->load, &n);
	char name[IF_NAMESIZE] = "";
	uint16_t vrf, found;

	while (n && flow_vrf_from_record(record[n - 1], &vrf, name) &&
		vrf != job->loaded.refused_vrf)
		n--;
	if (!vrf_find(ctx, name, &found, &job->refusal))
		error_set(&job->refusal, -ENXIO, "VRF \"%s\" did not exist until now", name);
}

void flow_resolve_explain(struct api_ctx *ctx, struct flow_job *job)
{
	if (!job->loaded.n_refused || job->refusal.text[0])
		return;
	switch (job->loaded.first_error) {
	case -ENODEV:
		explain_action(ctx, job);
		break;
	case -ENXIO:
		explain_vrf(ctx, job);
		break;
	default:
		error_set(&job->refusal, job->loaded.first_error, "%s",
			flow_refusal_text(job->loaded.first_error));
	}
}
