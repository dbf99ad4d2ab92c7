// The qdiscs of Linux's interfaces as subscribers, which netlink changes. Control thread.
#include "api/subscribers.h"

#include <rte_cycles.h>

bool shapers_are_on(const struct api_ctx *ctx)
{
	return ctx->qos && config_held_packets(ctx->config);
}

int shapers_change(void *ctx_, const char *name, const char *profile, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	int err = subscribers_check_job(ctx, error);

	if (err)
		return err;
	qos_begin(ctx->qos);
	err = qos_stage_tc(ctx->qos, name, profile, error);
	if (!err)
		err = qos_prepare(ctx->qos, error);
	if (err)
		qos_abort(ctx->qos);
	else
		qos_commit(ctx->qos, rte_rdtsc());
	return err;
}

void shapers_bind(void *ctx_, uint16_t iface, const char *name)
{
	const struct api_ctx *ctx = ctx_;

	qos_bind_tc(ctx->qos, iface, name);
}
