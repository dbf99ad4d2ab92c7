// Subscribers of dl3d: opened at start, changed by a reload and by RPC. Control thread.
#pragma once

#include "api/inside.h"

// Stages those of a configuration; nothing changes for workers. -errno with `error` set. / Applies
// them; the ports are those of `next`, which may not be the current configuration yet. / Gives up.
// All do nothing without the key `qos`.
int subscribers_prepare(struct api_ctx *ctx, const struct config *next, struct error *error);
void subscribers_commit(struct api_ctx *ctx, struct config *next);
void subscribers_drop(struct api_ctx *ctx);
// The ports are those of `next`.
void subscribers_follow_ports(struct api_ctx *ctx, struct config *next);
// A port was removed; before another one gets its index.
void subscribers_port_gone(struct api_ctx *ctx, unsigned port);
// An interface gets a name, before workers know it. NULL: it is gone.
void subscribers_iface_named(struct api_ctx *ctx, uint16_t iface, const char *name);
// subscribers_jobs.c: what the jobs need; -ENOMEM with `error` set. / Ends the one that runs: a
// load that has not begun to be applied is taken back. / -EBUSY with `error` set: a load runs,
// until whose end nothing else may be changed. / A slice of the job, of about a millisecond;
// returns whether there is more to do now. / Whether it waits for workers.
int subscribers_open_job(struct api_ctx *ctx, struct error *error);
void subscribers_close_job(struct api_ctx *ctx);
int subscribers_check_job(const struct api_ctx *ctx, struct error *error);
bool subscribers_poll(struct api_ctx *ctx);
bool subscribers_job_waits(const struct api_ctx *ctx);
// shapers.c: whether workers have queues for Linux's qdiscs. / For netlink: see netlink_ctx.
bool shapers_are_on(const struct api_ctx *ctx);
int shapers_change(void *ctx, const char *name, const char *profile, struct error *error);
void shapers_bind(void *ctx, uint16_t iface, const char *name);
// NULL with `error` set: the configuration has no key `qos`.
struct qos *subscribers_of(const struct api_ctx *ctx, struct error *error);
