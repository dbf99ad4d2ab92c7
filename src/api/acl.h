// Access lists of dl3d: opened at start, changed by a reload and by RPC. Control thread.
#pragma once

#include "api/inside.h"

// Applies the lists of the file. *old becomes what was applied before, for acls_restore or
// acl_set_free. -errno with `error` set, and nothing has changed.
int acls_apply(struct api_ctx *ctx, const struct config *config, struct acl_set *old,
	struct error *error);
// Applies `old` again, and frees it.
void acls_restore(struct api_ctx *ctx, struct acl_set *old);
// Follows interfaces that come and go. Cheap, call it often.
void acls_poll(struct api_ctx *ctx);
