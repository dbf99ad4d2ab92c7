// Periodic work of the control loop. Control thread.
#include "api/acl.h"
#include "api/bridges.h"
#include "api/flows.h"
#include "api/subscribers.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/signals.h"
#include "base/wake.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { POLL_EVERY_MS = 50, POLL_EVERY_NS = POLL_EVERY_MS * 1000 * 1000, DISK_MS = 1, LEARN_MS = 5 };
enum { STILL_NS = 1000000000 };

static bool is_vrf_used(void *ctx_, uint16_t vrf)
{
	const struct api_ctx *ctx = ctx_;

	return ctx->flows && flow_vrf_used(ctx->flows->table, vrf);
}

static const char *iface_kept(void *ctx, uint16_t iface)
{
	return flows_iface_kept(ctx, iface);
}

static void iface_named(void *ctx, uint16_t iface, const char *name)
{
	acls_iface_named(ctx, iface, name);
	acls_filters_named(ctx, iface, name);
	flows_iface_named(ctx, iface, name);
	subscribers_iface_named(ctx, iface, name);
}

static void limit_storms(void *ctx, unsigned port, uint32_t pps[MAC_STORMS])
{
	const struct port_table_settings *ports =
		config_ports(((const struct api_ctx *)ctx)->config);

	if (port < ports->n_ports)
		memcpy(pps, ports->ports[port].storm_pps, sizeof(ports->ports[port].storm_pps));
}

int api_follow(struct api_ctx *ctx, struct error *error)
{
	const struct netlink_ctx mirrored = {.fib = ctx->fib,
		.ports = ctx->ports,
		.taps = ctx->taps,
		.n_ports = config_ports(ctx->config)->n_ports,
		.is_vrf_used = is_vrf_used,
		.iface_kept = iface_kept,
		.iface_named = iface_named,
		.filters = acls_change_filters,
		.shape = shapers_are_on(ctx) ? shapers_change : NULL,
		.shape_iface = shapers_bind,
		.macs = ctx->bridges->table,
		.acls = acl_live(ctx->acls),
		.storm = limit_storms,
		.arg = ctx};

	if (!ctx->taps)
		return 0;
	tap_set_captures(ctx->taps, capture_live(ctx->capture));
	int err = tap_start(ctx->taps, error);
	if (!err)
		err = netlink_open(&ctx->netlink, &mirrored, error);
	return err ? err : wake_add(ctx->wake, netlink_fd(ctx->netlink), error);
}

void api_unfollow(struct api_ctx *ctx)
{
	if (ctx->netlink)
		netlink_close(ctx->netlink);
	ctx->netlink = NULL;
	ctx->is_busy = false;
}

// A device may have another MAC address since it was reset; with TAP interfaces, netlink reports
// it.
static void follow_mac(struct api_ctx *ctx, unsigned port)
{
	const struct iface *iface = fib_iface(ctx->fib, port);
	const uint8_t *mac = port_states(ctx->ports)[port].mac;

	if (!iface || !memcmp(iface->mac.bytes, mac, sizeof(iface->mac.bytes)))
		return;
	struct iface changed = *iface;

	memcpy(changed.mac.bytes, mac, sizeof(changed.mac.bytes));
	fib_iface_set(ctx->fib, port, &changed);
}

static void follow_macs(struct api_ctx *ctx)
{
	const struct port_table_settings *ports = config_ports(ctx->config);

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		follow_mac(ctx, i);
}

// Devices and TAP interfaces are polled at intervals, not after each message.
static void poll_ports(struct api_ctx *ctx)
{
	uint64_t now = clock_now_ns();

	if (now - ctx->polled_ns < POLL_EVERY_NS)
		return;
	ctx->polled_ns = now;
	port_poll(ctx->ports);
	if (ctx->taps)
		tap_poll(ctx->taps);
	else
		follow_macs(ctx);
}

bool api_has_become_ready(struct api_ctx *ctx)
{
	if (ctx->ready_ns || !fib_is_synced(ctx->fib))
		return false;
	ctx->ready_ns = clock_now_ns();
	return true;
}

void api_handle_signals(struct api_ctx *ctx, int signals)
{
	struct error error;

	for (int number = signals_next(signals); number; number = signals_next(signals)) {
		if (number != SIGHUP)
			ctx->stop = true;
		else
			api_reload(ctx, &error); // logs its own errors
	}
}

int api_wait_ms(const struct api_ctx *ctx)
{
	if (ctx->is_busy)
		return 0;
	if ((ctx->flows && ctx->flows->job.is_waiting) || subscribers_job_waits(ctx))
		return DISK_MS;
	if (bridges_are_learning(ctx) || (ctx->flows && flow_learning_is_fast(ctx)))
		return LEARN_MS;
	return POLL_EVERY_MS;
}

// A worker that sleeps is not waited for by rcu, but comes round every few milliseconds.
static int still_worker(struct api_ctx *ctx, uint64_t now_ns)
{
	unsigned n_workers;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n_workers);

	for (unsigned i = 0; i < n_workers; i++) {
		struct api_rounds *rounds = &ctx->rounds[i];
		const uint64_t loops = stats_read(&workers[i]->loops);

		if (loops != rounds->loops || !rounds->grew_ns)
			*rounds = (struct api_rounds){loops, now_ns};
		else if (now_ns - rounds->grew_ns >= STILL_NS)
			return (int)i;
	}
	return -1;
}

int api_poll(struct api_ctx *ctx, struct error *error)
{
	poll_ports(ctx);
	if (!port_workers_alive(ctx->ports))
		return error_set(error, -EIO, "a worker terminated unexpectedly; stopping");
	if (ctx->netlink)
		ctx->is_busy = netlink_poll(ctx->netlink);
	else
		ctx->is_busy = false;
	ctx->is_busy |= flows_poll(ctx);
	ctx->is_busy |= subscribers_poll(ctx);
	acls_poll(ctx);
	capture_poll(ctx->capture);
	bridges_poll(ctx);
	fib_tidy(ctx->fib);
	int worker = rcu_poll(ctx->rcu);

	if (worker < 0)
		worker = still_worker(ctx, clock_now_ns());
	if (worker >= 0 && worker != ctx->silent_worker)
		log_error("worker %d has not completed a loop for 1 s; another thread may occupy "
			  "its core",
			worker);
	ctx->silent_worker = worker;
	if (worker < 0)
		notify_alive(clock_now_ns());
	return 0;
}
