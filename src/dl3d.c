// The forwarder: opens the modules bottom-up, serves rpc requests, closes them in reverse order.
#include "api/api.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/priority.h"
#include "base/signals.h"
#include "base/wake.h"
#include "config/config.h"
#include "netlink/netlink.h"

#include <rte_cycles.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_OF_STOP, EXIT_OF_FAILURE, EXIT_OF_MISTAKE, STOP_SECONDS = 10 };

// Borrowed by the port and tap modules: settings of the file and the command line.
static struct port_table_settings settings;
static struct tap_settings taps;

// Logged once the tables are complete, not when workers start.
static void announce(const struct api_ctx *h)
{
	log_info("forwarding: ports %u, workers %u, socket %s", settings.n_ports,
		port_n_workers(h->ports), config_socket(h->config));
}

static int serve(struct api_ctx *h, struct rpc *rpc, int signals, struct error *error)
{
	priority_raise(); // the workers run already and keep theirs
	while (!h->stop) {
		if (api_has_become_ready(h)) {
			announce(h);
			notify_ready();
		}
		const uint64_t woke_ns = rpc_serve(rpc, h->wake, api_wait_ms(h));
		api_handle_signals(h, signals);
		if (api_poll(h, error))
			return EXIT_OF_FAILURE;
		api_note_turn(h, woke_ns);
	}
	return EXIT_OF_STOP;
}

// Runs with open devices: table, workers, control loop, and cleanup.
static int forward(struct api_ctx *h, struct rpc *rpc, int signals, struct error *error)
{
	struct datapath_tables tables = {.live = &h->live};
	int left = EXIT_OF_FAILURE;

	if (api_build(h->config, port_states(h->ports), &h->fib, error))
		return EXIT_OF_MISTAKE;
	config_forget_routes(h->config);
	h->rcu = rcu_create(port_n_workers(h->ports), error);
	if (!h->rcu)
		goto no_rcu;
	h->live = (struct fib_live){.rcu = h->rcu};
	if (api_open_flows(h, rte_get_tsc_hz(), error))
		goto no_flows;
	api_set_flow_tables(h, &tables);
	if (api_open_acls(h, error))
		goto no_acls;
	tables.acls = acl_live(h->acls);
	tables.filters = h->filters ? acl_live(h->filters) : NULL;
	const struct capture_program captures = {port_n_workers(h->ports), h->rcu,
		rte_get_tsc_hz()};

	if (capture_open(&h->capture, &captures, error))
		goto no_capture;
	tables.captures = capture_live(h->capture);
	if (api_open_bridges(h, rte_get_tsc_hz(), error))
		goto no_bridges;
	tables.macs = api_mac_live(h);
	if (api_open_subscribers(h, rte_get_tsc_hz(), error))
		goto no_subscribers;
	tables.qos = api_qos_live(h);
	if (datapath_open(&h->path, h->ports, &tables, h->taps, error))
		goto no_path;
	api_swap(h, h->fib);
	if (port_start(h->ports, error) || datapath_start(h->path, error))
		goto not_started;
	if (!api_follow(h, error))
		left = serve(h, rpc, signals, error);
	notify_stopping();
	deadline_start(STOP_SECONDS, "dl3d: error: a worker or device did not stop in time\n");
	api_unfollow(h);
	datapath_stop(h->path);
	if (h->taps)
		tap_stop(h->taps);
	api_log_account(h);
not_started:
	datapath_close(h->path);
no_path:
	api_close_subscribers(h);
no_subscribers:
	api_close_bridges(h);
no_bridges:
	capture_close(h->capture);
	h->capture = NULL;
no_capture:
	api_close_acls(h);
no_acls:
	api_close_flows(h);
no_flows:
	fib_live_swap(&h->live, NULL);
	rcu_destroy(h->rcu);
no_rcu:
	fib_destroy(h->fib);
	return left;
}

// The socket is opened first: if another dl3d serves it, no device is touched.
static int open_modules(struct api_ctx *h, int signals, struct error *error)
{
	struct rpc_methods methods = {.ctx = h,
		.takes_over = api_takes_over,
		.take_over = api_take_over};
	struct rpc *rpc;
	int left = EXIT_OF_FAILURE;

	methods.table = api_table(&methods.n);
	if (rpc_open(&rpc, config_socket(h->config), config_socket_group(h->config), &methods,
		    error))
		return left;
	if (port_open(&h->ports, &settings, error))
		goto no_ports;
	if (taps.is_on && tap_open(&h->taps, &taps, h->ports, error))
		goto no_taps;
	left = forward(h, rpc, signals, error);
	if (h->taps)
		tap_close(h->taps);
no_taps:
	port_close(h->ports);
no_ports:
	rpc_close(rpc);
	return left;
}

static int run(struct api_ctx *h, struct error *error)
{
	int left = EXIT_OF_FAILURE, signals = signals_open(error);

	h->wake = signals < 0 ? -1 : wake_open(error);
	if (h->wake >= 0 && !wake_add(h->wake, signals, error))
		left = open_modules(h, signals, error);
	close(h->wake);
	close(signals);
	return left;
}

static int check(struct api_ctx *h, struct error *error)
{
	if (api_build(h->config, NULL, &h->fib, error))
		return EXIT_OF_MISTAKE;
	if (api_check_flows(h->config, MAX_OF(settings.n_workers, 1), error)) {
		fib_destroy(h->fib);
		return EXIT_OF_MISTAKE;
	}
	if (api_check_subscribers(h->config, error)) {
		fib_destroy(h->fib);
		return EXIT_OF_MISTAKE;
	}
	port_warn_of_drivers(&settings);
	if (!taps.is_on)
		api_warn_of_hops(h);
	api_warn_of_acls(h);
	fib_destroy(h->fib);
	printf("%s: configuration OK: ports %u, routes %zu\n", config_path(h->config),
		settings.n_ports, config_n_routes(h->config));
	return EXIT_OF_STOP;
}

static int act(const struct config_options *options, struct api_ctx *h, struct error *error)
{
	signals_block(SIGHUP); // a SIGHUP received during the read triggers a reload afterwards
	if (config_load(&h->config, options->file, error))
		return EXIT_OF_MISTAKE;
	port_settings_copy(&settings, config_ports(h->config));
	taps = *config_taps(h->config);
	settings.n_lent_mbufs = taps.is_on ? tap_n_mbufs(&taps) : 0;
	settings.may_grow = true;
	if (config_add_options(&settings, options, error) ||
		rpc_check(config_socket(h->config), config_socket_group(h->config), error) ||
		port_check(&settings, error) ||
		(taps.is_on && (tap_check(&taps, &settings, error) || netlink_check(error))))
		return EXIT_OF_MISTAKE;
	return options->action == CONFIG_CHECK ? check(h, error) : run(h, error);
}

int main(int argc, char **argv)
{
	struct api_ctx ctx = {.started_ns = clock_now_ns(),
		.started_ms = clock_wall_ms(),
		.born = clock_pair_take(rte_rdtsc),
		.silent_worker = -1};
	struct config_options options = {.program = "dl3d"};
	struct error error = {""};
	int left = EXIT_OF_MISTAKE;

	log_start("dl3d");
	notify_open();
	bool is_sound = !config_read_options(&options, argc, argv, &error);
	if (is_sound && options.action == CONFIG_HOLD)
		return tap_hold_main(options.file);
	if (is_sound)
		left = config_answer(&options, stdout) ? EXIT_OF_STOP : act(&options, &ctx, &error);
	if (left != EXIT_OF_STOP)
		log_error("%s", error.text);
	config_free(ctx.config);
	return left;
}
