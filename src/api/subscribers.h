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
// NULL with `error` set: the configuration has no key `qos`.
struct qos *subscribers_of(const struct api_ctx *ctx, struct error *error);
