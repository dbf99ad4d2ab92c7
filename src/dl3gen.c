// The generator: opens the modules bottom-up, serves rpc requests, closes them in reverse order.
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/signals.h"
#include "config/config.h"
#include "gen/gen.h"

#include <rte_cycles.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_OF_STOP, EXIT_OF_FAILURE, EXIT_OF_MISTAKE, STOP_SECONDS = 10 };

// `settings` is borrowed by the port module: settings of the file and the command line.
static struct port_table_settings settings;
static struct config *config;

static int serve(struct gen_ctx *h, struct rpc *rpc, int signals, struct error *error)
{
	while (!h->stop) {
		rpc_serve(rpc, signals, gen_poll_ms(h->gen));
		h->stop |= signals_next(signals) != 0;
		if (gen_poll(h, error))
			return EXIT_OF_FAILURE;
	}
	return EXIT_OF_STOP;
}

// Runs with open devices: workers, control loop, and cleanup.
static int generate(struct gen_ctx *h, struct rpc *rpc, int signals, struct error *error)
{
	int left = EXIT_OF_FAILURE;

	if (gen_open(&h->gen, h->ports, &settings, config_streams(config), error))
		return left;
	if (port_start(h->ports, error) || gen_start(h->gen, error))
		goto not_started;
	log_info("ready: ports %u, workers %u, socket %s", settings.n_ports,
		port_n_workers(h->ports), config_socket(config));
	left = serve(h, rpc, signals, error);
	deadline_start(STOP_SECONDS, "dl3gen: error: a worker or device did not stop in time\n");
	gen_stop(h->gen);
not_started:
	gen_close(h->gen);
	return left;
}

// The socket is opened first: if another dl3gen serves it, no device is touched.
static int run(struct gen_ctx *h, struct error *error)
{
	struct rpc_methods methods = {.ctx = h};
	struct rpc *rpc;
	int left = EXIT_OF_FAILURE, signals = signals_open(error);

	if (signals < 0)
		return left;
	methods.table = gen_methods(&methods.n);
	if (rpc_open(&rpc, config_socket(config), config_socket_group(config), &methods, error))
		goto no_socket;
	if (port_open(&h->ports, &settings, error))
		goto no_ports;
	left = generate(h, rpc, signals, error);
	port_close(h->ports);
no_ports:
	rpc_close(rpc);
no_socket:
	close(signals);
	return left;
}

static int check(const struct gen_ctx *h)
{
	printf("%s: configuration OK: ports %u, streams %zu\n", h->file, settings.n_ports,
		json_array_size(config_streams(config)));
	return EXIT_OF_STOP;
}

static int act(const struct config_options *options, struct error *error)
{
	struct gen_ctx ctx = {.settings = &settings,
		.started_ns = clock_now_ns(),
		.started_ms = clock_wall_ms(),
		.born = clock_pair_take(rte_rdtsc)};

	if (config_load_generator(&config, options->file, error))
		return EXIT_OF_MISTAKE;
	ctx.file = config_path(config);
	port_settings_copy(&settings, config_ports(config));
	if (config_add_options(&settings, options, error) ||
		rpc_check(config_socket(config), config_socket_group(config), error) ||
		port_check(&settings, error))
		return EXIT_OF_MISTAKE;
	if (gen_check(&settings, config_streams(config), error)) {
		config_place_stream(config, error);
		return EXIT_OF_MISTAKE;
	}
	return options->action == CONFIG_CHECK ? check(&ctx) : run(&ctx, error);
}

int main(int argc, char **argv)
{
	struct config_options options = {.program = "dl3gen"};
	struct error error = {""};
	int left = EXIT_OF_MISTAKE;

	log_start(options.program);
	if (!config_read_options(&options, argc, argv, &error))
		left = config_answer(&options, stdout) ? EXIT_OF_STOP : act(&options, &error);
	if (left != EXIT_OF_STOP)
		log_error("%s", error.text);
	config_free(config);
	return left;
}
