// The generator: opens the rooms from the ground up, serves the window, closes them in reverse.
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/signals.h"
#include "config/config.h"
#include "load/load.h"

#include <rte_cycles.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_OF_STOP, EXIT_OF_FAILURE, EXIT_OF_MISTAKE, STOP_SECONDS = 10 };

// The ports room borrows `settings`: the file's, and those of the command line.
static struct port_room_settings settings;
static struct config *config;

static int serve(struct load_house *h, struct ctl *ctl, int signals, struct complaint *why)
{
	while (!h->stop) {
		ctl_serve(ctl, signals, load_tend_ms(h->load));
		h->stop |= signals_next(signals) != 0;
		if (load_tend(h, why))
			return EXIT_OF_FAILURE;
	}
	return EXIT_OF_STOP;
}

// Devices are open: the lanes, the loop, and all of it back.
static int generate(struct load_house *h, struct ctl *ctl, int signals, struct complaint *why)
{
	int left = EXIT_OF_FAILURE;

	if (load_open(&h->load, h->ports, &settings, config_streams(config), why))
		return left;
	if (port_start(h->ports, why) || load_start(h->load, why))
		goto not_started;
	log_info("ready: ports %u, lanes %u, socket %s", settings.n_ports, port_n_lanes(h->ports),
		config_socket(config));
	left = serve(h, ctl, signals, why);
	deadline_start(STOP_SECONDS, "dl3gen: error: a lane or a device does not end\n");
	load_stop(h->load);
not_started:
	load_close(h->load);
	return left;
}

// The socket comes first: where another dl3gen serves it, no device is touched.
static int run(struct load_house *h, struct complaint *why)
{
	struct ctl_verbs verbs = {.house = h};
	struct ctl *ctl;
	int left = EXIT_OF_FAILURE, signals = signals_open(why);

	if (signals < 0)
		return left;
	verbs.table = load_verbs(&verbs.n);
	if (ctl_open(&ctl, config_socket(config), config_socket_group(config), &verbs, why))
		goto no_socket;
	if (port_open(&h->ports, &settings, why))
		goto no_ports;
	left = generate(h, ctl, signals, why);
	port_close(h->ports);
no_ports:
	ctl_close(ctl);
no_socket:
	close(signals);
	return left;
}

static int check(const struct load_house *h)
{
	printf("%s: no mistake found: ports %u, streams %zu\n", h->file, settings.n_ports,
		json_array_size(config_streams(config)));
	return EXIT_OF_STOP;
}

static int act(const struct config_options *options, struct complaint *why)
{
	struct load_house house = {.settings = &settings,
		.started_ns = clock_now_ns(),
		.born = clock_pair_take(rte_rdtsc)};

	if (config_load_generator(&config, options->file, why))
		return EXIT_OF_MISTAKE;
	house.file = config_path(config);
	settings = *config_ports(config);
	if (config_add_options(&settings, options, why) ||
		ctl_check(config_socket(config), config_socket_group(config), why) ||
		port_check(&settings, why))
		return EXIT_OF_MISTAKE;
	if (load_check(&settings, config_streams(config), why)) {
		config_place_stream(config, why);
		return EXIT_OF_MISTAKE;
	}
	return options->action == CONFIG_CHECK ? check(&house) : run(&house, why);
}

int main(int argc, char **argv)
{
	struct config_options options = {.program = "dl3gen"};
	struct complaint why = {""};
	int left = EXIT_OF_MISTAKE;

	log_start(options.program);
	if (!config_read_options(&options, argc, argv, &why))
		left = config_answer(&options, stdout) ? EXIT_OF_STOP : act(&options, &why);
	if (left != EXIT_OF_STOP)
		log_error("%s", why.text);
	config_free(config);
	return left;
}
