// The forwarder: opens the rooms from the ground up, serves the window, closes them in reverse.
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/signals.h"
#include "config/config.h"
#include "verbs/verbs.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_OF_STOP, EXIT_OF_FAILURE, EXIT_OF_MISTAKE, TEND_EVERY_MS = 50, STOP_SECONDS = 10 };

// The ports room borrows `settings`: the file's, and those of the command line.
static struct port_room_settings settings;

static void heed(int signals, struct verbs_house *h)
{
	struct complaint why;

	for (int number = signals_next(signals); number; number = signals_next(signals)) {
		if (number != SIGHUP)
			h->stop = true;
		else if (verbs_reload(h, &why))
			log_error("reload: %s", why.text);
		else
			log_info("reload: done");
	}
}

static int serve(struct verbs_house *h, struct ctl *ctl, int signals, struct complaint *why)
{
	while (!h->stop) {
		ctl_serve(ctl, signals, TEND_EVERY_MS);
		heed(signals, h);
		if (verbs_tend(h, why))
			return EXIT_OF_FAILURE;
	}
	return EXIT_OF_STOP;
}

// Devices are open: the table, the lanes, the loop, and all of it back.
static int forward(struct verbs_house *h, struct ctl *ctl, int signals, struct complaint *why)
{
	int left = EXIT_OF_FAILURE;

	if (verbs_build(h->config, port_faces(h->ports), &h->fib, why))
		return EXIT_OF_MISTAKE;
	config_forget_routes(h->config);
	h->door = fib_door_create(port_n_lanes(h->ports), why);
	if (!h->door)
		goto no_door;
	if (path_open(&h->path, h->ports, h->door, NULL, why))
		goto no_path;
	verbs_swap(h, h->fib);
	if (port_start(h->ports, why) || path_start(h->path, why))
		goto not_started;
	log_info("forwarding: ports %u, lanes %u, socket %s", settings.n_ports,
		port_n_lanes(h->ports), config_socket(h->config));
	left = serve(h, ctl, signals, why);
	deadline_start(STOP_SECONDS, "dl3d: error: a lane or a device does not end\n");
	path_stop(h->path);
	verbs_log_account(h);
not_started:
	path_close(h->path);
no_path:
	fib_door_swap(h->door, NULL);
	fib_door_destroy(h->door);
no_door:
	fib_destroy(h->fib);
	return left;
}

// The socket comes first: where another dl3d serves it, no device is touched.
static int run(struct verbs_house *h, struct complaint *why)
{
	struct ctl_verbs verbs = {.house = h};
	struct ctl *ctl;
	int left = EXIT_OF_FAILURE, signals = signals_open(why);

	if (signals < 0)
		return left;
	verbs.table = verbs_table(&verbs.n);
	if (ctl_open(&ctl, config_socket(h->config), config_socket_group(h->config), &verbs, why))
		goto no_socket;
	if (port_open(&h->ports, &settings, why))
		goto no_ports;
	left = forward(h, ctl, signals, why);
	port_close(h->ports);
no_ports:
	ctl_close(ctl);
no_socket:
	close(signals);
	return left;
}

static int check(struct verbs_house *h, struct complaint *why)
{
	if (verbs_build(h->config, NULL, &h->fib, why))
		return EXIT_OF_MISTAKE;
	fib_destroy(h->fib);
	printf("%s: no mistake found: ports %u, routes %zu\n", config_path(h->config),
		settings.n_ports, config_n_routes(h->config));
	return EXIT_OF_STOP;
}

static int act(const struct config_options *options, struct verbs_house *h, struct complaint *why)
{
	signals_block(SIGHUP); // one that comes while the file is read has it read again
	if (config_load(&h->config, options->file, why))
		return EXIT_OF_MISTAKE;
	settings = *config_ports(h->config);
	if (config_add_options(&settings, options, why) || port_check(&settings, why))
		return EXIT_OF_MISTAKE;
	return options->action == CONFIG_CHECK ? check(h, why) : run(h, why);
}

int main(int argc, char **argv)
{
	struct verbs_house house = {.started_ns = clock_now_ns(), .silent_lane = -1};
	struct config_options options = {.program = "dl3d"};
	struct complaint why = {""};
	int left = EXIT_OF_MISTAKE;

	log_start("dl3d");
	if (!config_read_options(&options, argc, argv, &why))
		left = config_answer(&options, stdout) ? EXIT_OF_STOP : act(&options, &house, &why);
	if (left != EXIT_OF_STOP)
		log_error("%s", why.text);
	config_free(house.config);
	return left;
}
