// Access lists of dl3d: opened at start, changed by a reload and by RPC. Control thread.
#pragma once

#include "api/inside.h"

// Builds the lists of a configuration; nothing changes. -errno with `error` set. / Applies them,
// and the numbers of the ports of `next`, which may not be the current configuration yet. / Gives
// up.
int acls_prepare(struct api_ctx *ctx, const struct config *next, struct acl_pending **out,
	struct error *error);
void acls_commit(struct api_ctx *ctx, struct config *next, struct acl_pending *pending);
void acls_drop(struct api_ctx *ctx, struct acl_pending *pending);
// The ports are those of `next`: call it before workers poll a new one, and after one was closed.
void acls_follow_ports(struct api_ctx *ctx, struct config *next);
// An interface that is no port gets a name, before workers know it. NULL: it is gone.
void acls_iface_named(struct api_ctx *ctx, uint16_t iface, const char *name);
// Forgets the names of interfaces that are gone. Cheap, call it often.
void acls_poll(struct api_ctx *ctx);

// acl_filters.c: lists of tc filters, by the names that interfaces have in Linux. Opens an empty
// table, sets ctx->filters. -errno with `error` set. / Closes it. / An interface, also that of a
// port, gets a name. / As in netlink_ctx.
int acls_open_filters(struct api_ctx *ctx, struct error *error);
void acls_close_filters(struct api_ctx *ctx);
void acls_filters_named(struct api_ctx *ctx, uint16_t iface, const char *name);
int acls_change_filters(void *ctx, const struct acl_set *change, struct error *error);
// The table with the list of this name: that of `acl:`, unless only tc filters have one. / The set
// of tc filters, which may be empty.
const struct acl_table *acls_table_of(const struct api_ctx *ctx, const char *list);
const struct acl_set *acls_filters(const struct api_ctx *ctx);
