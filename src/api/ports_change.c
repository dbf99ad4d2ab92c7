// Ports that come and go at run time, by a method or by a reload. Control thread.
#include "api/acl.h"
#include "api/flows.h"
#include "api/subscribers.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

// Ports that `next` has and `now` has not.
static unsigned next_added(const struct port_table_settings *now,
	const struct port_table_settings *next, unsigned from)
{
	unsigned port = port_next(next, from);

	while (port < next->n_ports && port_is_configured(now, port))
		port = port_next(next, port + 1);
	return port;
}

static void remove_one(struct api_ctx *ctx, unsigned port)
{
	port_remove(ctx->ports, port);
	datapath_drain(ctx->path);
	subscribers_port_gone(ctx, port);
	if (ctx->taps)
		tap_remove(ctx->taps, port);
}

static int add_one(struct api_ctx *ctx, unsigned port, const struct port_settings *settings,
	struct error *error)
{
	int err = port_add(ctx->ports, port, settings, error);

	if (err || !ctx->taps)
		return err;
	err = tap_add(ctx->taps, port, error);
	if (err)
		port_remove(ctx->ports, port);
	return err;
}

static void take_back(struct api_ctx *ctx, const struct port_table_settings *now,
	const struct port_table_settings *next, unsigned end)
{
	for (unsigned i = next_added(now, next, 0); i < end; i = next_added(now, next, i + 1))
		remove_one(ctx, i);
}

int ports_open_added(struct api_ctx *ctx, const struct config *next_config, struct error *error)
{
	const struct port_table_settings *now = config_ports(ctx->config),
					 *next = config_ports(next_config);

	for (unsigned i = next_added(now, next, 0); i < next->n_ports;
		i = next_added(now, next, i + 1)) {
		int err = add_one(ctx, i, &next->ports[i], error);

		if (!err)
			continue;
		take_back(ctx, now, next, i);
		return err;
	}
	return 0;
}

void ports_take_back_added(struct api_ctx *ctx, const struct config *next)
{
	take_back(ctx, config_ports(ctx->config), config_ports(next), config_ports(next)->n_ports);
}

// What was counted for an earlier port with the same number, or in the same place of a worker.
static void note_baseline(struct api_ctx *ctx, unsigned port)
{
	struct api_baseline *baseline = &ctx->baseline;
	unsigned n;
	struct stats_worker *const *stats = datapath_stats(ctx->path, &n);

	stats_sum_port(&baseline->port[port], stats, n, port);
	if (ctx->taps)
		baseline->punted[port] = stats_read(&tap_stats(ctx->taps)->punted_by_port[port]);
	for (unsigned i = 0; i < n; i++) {
		const struct port_worker *worker = port_worker(ctx->ports, i);

		for (unsigned q = 0; q < port_n_queues(worker); q++)
			if (worker->queues[q].port == port)
				baseline->queue[i][q].rx_packets =
					stats_read(&stats[i]->queue[q].rx_packets);
	}
}

void ports_begin_added(struct api_ctx *ctx, const struct config *next_config)
{
	const struct port_table_settings *now = config_ports(ctx->config),
					 *next = config_ports(next_config);

	for (unsigned i = next_added(now, next, 0); i < next->n_ports;
		i = next_added(now, next, i + 1)) {
		note_baseline(ctx, i);
		if (ctx->netlink)
			netlink_port_added(ctx->netlink, i);
		port_begin(ctx->ports, i);
		log_info("port %s: added with device %s", next->ports[i].name,
			next->ports[i].device);
	}
}

void ports_close_removed(struct api_ctx *ctx, const struct config *next_config)
{
	const struct port_table_settings *now = config_ports(ctx->config),
					 *next = config_ports(next_config);

	for (unsigned i = next_added(next, now, 0); i < now->n_ports;
		i = next_added(next, now, i + 1)) {
		remove_one(ctx, i);
		if (ctx->netlink)
			netlink_port_removed(ctx->netlink, i);
		log_info("port %s: removed", now->ports[i].name);
	}
}

static bool has_no_port(const struct iface *iface)
{
	return iface->is_bridge || iface_is_tunnel(iface);
}

// The port of a next hop, also if its interface was deleted; PORT_MAX: none, or those of a bridge
// or of a tunnel.
static unsigned port_of_hop(const struct api_ctx *ctx, const struct fib_hop *hop)
{
	const struct iface *iface = hop->iface < IFACE_MAX ? fib_iface(ctx->fib, hop->iface) : NULL;

	if (iface)
		return has_no_port(iface) ? (unsigned)PORT_MAX : iface->port;
	return hop->iface < PORT_MAX ? hop->iface : (unsigned)PORT_MAX;
}

void ports_find_kept(const struct api_ctx *ctx, struct config_numbers *out)
{
	struct fib_hop_info info;
	struct fib_usage usage;

	*out = (struct config_numbers){{false}};
	fib_usage(ctx->fib, &usage);
	for (unsigned id = 1; id <= usage.max_hop_id; id++) {
		unsigned port = fib_hop_info(ctx->fib, id, &info) ? port_of_hop(ctx, &info.hop)
		                                                  : (unsigned)PORT_MAX;

		if (port < PORT_MAX)
			out->is_kept[port] = true;
	}
	for (unsigned i = 0; i < IFACE_MAX; i++) {
		const struct iface *iface = fib_iface(ctx->fib, i);

		if (iface && !has_no_port(iface) && iface->port < PORT_MAX)
			out->is_kept[iface->port] = true;
	}
	flows_find_kept(ctx, out);
}

// Routes whose next hops all lead over a port, and those of which some do.
struct lost_routes {
	uint64_t all, some;
};

static bool leads_over(const struct api_ctx *ctx, const struct fib_hop *hop, unsigned port)
{
	return (hop->kind == FIB_VIA || hop->kind == FIB_PEER) && port_of_hop(ctx, hop) == port;
}

static void count_group(const struct api_ctx *ctx, const struct fib_hop_info *info, unsigned port,
	struct lost_routes *lost)
{
	enum { MAX_MEMBERS = 64 };
	struct fib_member members[MAX_MEMBERS];
	unsigned n = fib_group_members(ctx->fib, &info->hop, members, MAX_MEMBERS), n_over = 0;

	for (unsigned i = 0; i < n && i < MAX_MEMBERS; i++)
		n_over += leads_over(ctx, &members[i].hop, port);
	if (n_over == n)
		lost->all += info->n_routes;
	else if (n_over)
		lost->some += info->n_routes;
}

static struct lost_routes count_lost(const struct api_ctx *ctx, unsigned port)
{
	struct lost_routes lost = {0};
	struct fib_hop_info info;
	struct fib_usage usage;

	fib_usage(ctx->fib, &usage);
	for (unsigned id = 1; id <= usage.max_hop_id; id++) {
		if (!fib_hop_info(ctx->fib, id, &info))
			continue;
		if (info.hop.kind == FIB_GROUP)
			count_group(ctx, &info, port, &lost);
		else if (leads_over(ctx, &info.hop, port))
			lost.all += info.n_routes;
	}
	return lost;
}

static void use_config(struct api_ctx *ctx, struct config *next)
{
	config_free(ctx->config);
	ctx->config = next;
}

// The number of the only port that the first configuration has and the second has not.
static unsigned find_difference(const struct config *more, const struct config *less)
{
	return next_added(config_ports(less), config_ports(more), 0);
}

static int fill_table(const struct api_ctx *ctx, const struct config *next, unsigned port,
	struct error *error)
{
	struct wire_mac mac;

	if (ctx->taps) // netlink fills it
		return 0;
	memcpy(mac.bytes, port_states(ctx->ports)[port].mac, sizeof(mac.bytes));
	return config_fill_port(next, port, &mac, ctx->fib, error);
}

json_t *method_ports_add(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	struct config_numbers numbers;
	struct config *next;

	ports_find_kept(ctx, &numbers);
	if (config_with_port(&next, ctx->config, params, &numbers, error))
		return NULL;
	unsigned port = find_difference(next, ctx->config);
	int err = config_check_acl_uses(next, acl_current(ctx->acls), error);
	if (!err)
		err = ports_open_added(ctx, next, error);
	if (!err) {
		err = fill_table(ctx, next, port, error);
		if (err)
			ports_take_back_added(ctx, next);
	}
	if (err) {
		config_free(next);
		return NULL;
	}
	acls_follow_ports(ctx, next);
	subscribers_follow_ports(ctx, next);
	flows_follow_ports(ctx);
	ports_begin_added(ctx, next);
	use_config(ctx, next);
	return json_pack("{s:o}", "added", port_json(ctx, port));
}

json_t *method_ports_remove(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	const char *name = NULL;
	const struct rpc_param rows[] = {{"name", RPC_TEXT, true, 0, 0, &name}};
	struct config *next;

	if (rpc_params_read(params, rows, 1, error) ||
		config_without_port(&next, ctx->config, name, error))
		return NULL;
	unsigned port = find_difference(ctx->config, next);
	struct lost_routes lost = count_lost(ctx, port);
	json_t *reply = json_pack("{s:o, s:I, s:I}", "removed", rpc_text_json(name),
		"routes_without_next_hop", (json_int_t)lost.all, "routes_with_fewer_next_hops",
		(json_int_t)lost.some);

	if (!ctx->taps)
		config_clear_port(ctx->config, port, ctx->fib);
	ports_close_removed(ctx, next);
	acls_follow_ports(ctx, next);
	subscribers_follow_ports(ctx, next);
	flows_follow_ports(ctx);
	use_config(ctx, next);
	return reply;
}
