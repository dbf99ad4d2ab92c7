// The tc filters of Linux's interfaces as lists of their own, beside those of `acl:`, which netlink
// changes. Control thread.
#include "api/acl.h"

#include <string.h>

// TAP interfaces may have other names than their ports.
static const char *iface_name(void *ctx_, unsigned iface)
{
	const struct api_ctx *ctx = ctx_;

	return ctx->netlink && fib_iface(ctx->fib, iface) ? netlink_iface_name(ctx->netlink, iface)
	                                                  : NULL;
}

int acls_open_filters(struct api_ctx *ctx, struct error *error)
{
	const struct acl_settings settings = {
		.n_workers = port_n_workers(ctx->ports),
		.rcu = ctx->rcu,
		.iface_name = iface_name,
		.n_ifaces = IFACE_MAX,
		.n_ports = PORT_MAX,
		.ctx = ctx,
	};

	return acl_open(&ctx->filters, &settings, error);
}

void acls_close_filters(struct api_ctx *ctx)
{
	acl_close(ctx->filters);
	ctx->filters = NULL;
}

void acls_filters_named(struct api_ctx *ctx, uint16_t iface, const char *name)
{
	if (ctx->filters)
		acl_bind(ctx->filters, iface, name);
}

int acls_change_filters(void *ctx_, const struct acl_set *change, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	struct acl_set next;
	int err = acl_set_merge(&next, acl_current(ctx->filters), change, error);

	if (err)
		return err;
	// A list may go because its interface leaves its frames to Linux: all workers know that
	// first.
	rcu_wait(ctx->rcu, rcu_start_grace(ctx->rcu));
	err = acl_apply(ctx->filters, &next, error);
	acl_set_free(&next);
	return err;
}

const struct acl_set *acls_filters(const struct api_ctx *ctx)
{
	static const struct acl_set none;

	return ctx->filters ? acl_current(ctx->filters) : &none;
}

static bool has_list(const struct acl_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_lists; i++)
		if (!strcmp(set->list[i].name, name))
			return true;
	return false;
}

const struct acl_table *acls_table_of(const struct api_ctx *ctx, const char *list)
{
	const bool is_tc =
		!has_list(acl_current(ctx->acls), list) && has_list(acls_filters(ctx), list);

	return is_tc ? ctx->filters : ctx->acls;
}
