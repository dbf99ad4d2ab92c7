// Reloads the file at run time. Control thread.
#include "api/acl.h"
#include "api/bridges.h"
#include "api/flows.h"
#include "api/subscribers.h"

#include "base/log.h"
#include "base/notify.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int api_build(const struct config *config, const struct port_state states[], struct fib **out,
	struct error *error)
{
	struct wire_mac macs[PORT_MAX] = {0};

	for (unsigned i = 0; states && i < config_ports(config)->n_ports; i++) // removed ones, too
		memcpy(macs[i].bytes, states[i].mac, sizeof(macs[i].bytes));
	struct fib *fib = fib_create(error);
	if (!fib)
		return -ENOMEM;
	if (config_taps(config)->is_on)
		fib_follow_linux(fib);
	fib_set_synced(fib, !config_taps(config)->is_on); // netlink will fill it
	int err = config_fill(config, macs, fib, error);
	if (err)
		fib_destroy(fib);
	else
		*out = fib;
	return err;
}

struct fib *api_swap(struct api_ctx *ctx, struct fib *fib)
{
	fib_set_counter_baseline(fib, &(struct fib_count){hop_counted, ctx});
	return fib_live_swap(&ctx->live, fib);
}

// The desired settings of a port. If it has a TAP interface, its MTU is set by Linux.
static struct port_settings as_wanted(const struct api_ctx *ctx, unsigned port,
	const struct port_settings *settings)
{
	struct port_settings wanted = *settings;
	struct port_info info;

	if (!ctx->taps)
		return wanted;
	port_info(ctx->ports, port, &info);
	wanted.mtu = info.mtu;
	return wanted;
}

static int change_port(const struct api_ctx *ctx, unsigned port,
	const struct port_settings *settings, struct error *error)
{
	struct port_settings wanted = as_wanted(ctx, port, settings);

	return port_change(ctx->ports, port, &wanted, error);
}

static bool differs(const struct port_settings *a, const struct port_settings *b)
{
	return a->mtu != b->mtu || a->pass_martians != b->pass_martians || a->rpf6 != b->rpf6 ||
	       a->has_peer != b->has_peer || !wire_mac_equal(&a->peer, &b->peer);
}

static bool is_changed(const struct port_table_settings *now,
	const struct port_table_settings *next, unsigned port)
{
	return port_is_configured(now, port) && port_is_configured(next, port) &&
	       differs(&now->ports[port], &next->ports[port]);
}

static void take_back(const struct api_ctx *ctx, const struct port_table_settings *now,
	const struct port_table_settings *next, unsigned n)
{
	struct error error;

	for (unsigned i = 0; i < n; i++)
		if (is_changed(now, next, i) && change_port(ctx, i, &now->ports[i], &error))
			log_error("cannot restore the previous settings of port %s: %s",
				now->ports[i].name, error.text);
}

// Applies the changes to all ports, or to none.
static int change_ports(const struct api_ctx *ctx, const struct port_table_settings *now,
	const struct port_table_settings *next, struct error *error)
{
	for (unsigned i = 0; i < next->n_ports; i++) {
		int err =
			is_changed(now, next, i) ? change_port(ctx, i, &next->ports[i], error) : 0;

		if (err) {
			take_back(ctx, now, next, i);
			return err;
		}
	}
	return 0;
}

// Builds a new table while the old one is in use, then swaps them.
static int apply_static(struct api_ctx *ctx, struct config *next, struct error *error)
{
	struct fib *fib;
	int err = api_build(next, port_states(ctx->ports), &fib, error);

	if (err)
		return err;
	err = fib_copy_held(fib, ctx->fib, error); // actions of flows refer to their numbers
	if (!err)
		err = fib_copy_vteps(fib, ctx->fib, error); // and bridges to those
	if (!err)
		err = change_ports(ctx, config_ports(ctx->config), config_ports(next), error);
	if (err) {
		fib_destroy(fib);
		return err;
	}
	fib_destroy(api_swap(ctx, fib));
	ctx->fib = fib;
	return 0;
}

// The table is kept, because netlink owns it. Deleted TAP interfaces are recreated.
static int apply_linux(struct api_ctx *ctx, struct config *next, struct error *error)
{
	const struct port_table_settings *now = config_ports(ctx->config);
	int err = change_ports(ctx, now, config_ports(next), error);

	if (err)
		return err;
	err = tap_restore(ctx->taps, error);
	if (err)
		take_back(ctx, now, config_ports(next), now->n_ports);
	else
		tap_change(ctx->taps, config_taps(next));
	return err;
}

static int apply_ports(struct api_ctx *ctx, struct config *next, struct error *error)
{
	int err = ports_open_added(ctx, next, error);

	if (err)
		return err;
	err = ctx->taps ? apply_linux(ctx, next, error) : apply_static(ctx, next, error);
	if (err)
		ports_take_back_added(ctx, next);
	return err;
}

// What is applied last, which cannot fail.
struct pending {
	struct acl_pending *lists;
	struct mac_pending *bridges;
};

// Builds access lists and bridges first.
static int apply_tables(struct api_ctx *ctx, struct config *next, struct pending *pending,
	struct error *error)
{
	int err = subscribers_prepare(ctx, next, error);

	if (err)
		return err;
	err = acls_prepare(ctx, next, &pending->lists, error);
	if (err) {
		subscribers_drop(ctx);
		return err;
	}
	err = bridges_prepare(ctx, next, &pending->bridges, error);
	if (!err) {
		err = apply_ports(ctx, next, error);
		if (err)
			bridges_drop(ctx, pending->bridges);
	}
	if (err) {
		acls_drop(ctx, pending->lists);
		subscribers_drop(ctx);
	}
	return err;
}

static int apply(struct api_ctx *ctx, struct config *next, struct error *error)
{
	const char *key = config_needs_restart(ctx->config, next);
	struct pending pending;

	if (key)
		return error_set(error, -EBUSY, "needs a restart: %s; nothing was changed", key);
	int fd, err = flows_prepare(ctx, next, &fd, error);
	if (!err)
		err = apply_tables(ctx, next, &pending, error);
	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	flows_apply(ctx, next, fd);
	bridges_commit(ctx, next, pending.bridges);
	ports_close_removed(ctx, next);
	acls_commit(ctx, next, pending.lists); // before workers poll new ports
	subscribers_commit(ctx, next);
	ports_begin_added(ctx, next);
	config_free(ctx->config);
	ctx->config = next;
	ctx->n_reloads++;
	port_restore(ctx->ports);
	return 0;
}

int api_reload(struct api_ctx *ctx, struct error *error)
{
	struct config *next;
	struct fib_usage usage;
	struct config_numbers numbers = {{false}};

	if (ctx->ready_ns)
		notify_reloading();
	if (ctx->taps) // otherwise the table is built from the file
		ports_find_kept(ctx, &numbers);
	flows_find_kept(ctx, &numbers);
	int err = config_load_again(&next, ctx->config, &numbers, error);

	if (!err) {
		err = apply(ctx, next, error);
		if (err)
			config_free(next);
		else
			config_forget_routes(next);
	}
	if (ctx->ready_ns)
		notify_ready();
	if (err) {
		log_error("reload: %s", error->text);
		return err;
	}
	fib_usage(ctx->fib, &usage);
	log_info("reload: done; IPv4 routes %u, IPv6 routes %u, next hops %u", usage.n_routes4,
		usage.n_routes6, usage.n_hops);
	return 0;
}

json_t *method_reload(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	struct fib_usage usage;

	if (rpc_params_none(params, error) || api_reload(ctx, error))
		return NULL;
	fib_usage(ctx->fib, &usage);
	return json_pack("{s:i, s:I, s:I}", "reloads", (int)ctx->n_reloads, "routes4",
		(json_int_t)usage.n_routes4, "routes6", (json_int_t)usage.n_routes6);
}
