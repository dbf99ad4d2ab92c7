// The forwarder: opens the rooms from the ground up, serves the window, closes them in reverse.
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/wake.h"
#include "config/config.h"
#include "sync/sync.h"
#include "verbs/verbs.h"

#include <rte_cycles.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_OF_STOP, EXIT_OF_FAILURE, EXIT_OF_MISTAKE, TEND_EVERY_MS = 50, STOP_SECONDS = 10 };

// The rooms of ports and twins borrow these: the file's, and those of the command line.
static struct port_room_settings settings;
static struct tap_settings twins;

static int serve(struct verbs_house *h, struct ctl *ctl, int signals, struct complaint *why)
{
	while (!h->stop) {
		ctl_serve(ctl, h->wake, h->is_busy ? 0 : TEND_EVERY_MS);
		verbs_heed(h, signals);
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
	if (path_open(&h->path, h->ports, h->door, h->twins, why))
		goto no_path;
	verbs_swap(h, h->fib);
	if (port_start(h->ports, why) || path_start(h->path, why))
		goto not_started;
	if (!verbs_follow(h, why)) {
		log_info("forwarding: ports %u, lanes %u, socket %s", settings.n_ports,
			port_n_lanes(h->ports), config_socket(h->config));
		left = serve(h, ctl, signals, why);
	}
	deadline_start(STOP_SECONDS, "dl3d: error: a lane or a device does not end\n");
	verbs_unfollow(h);
	path_stop(h->path);
	if (h->twins)
		tap_stop(h->twins);
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
static int open_rooms(struct verbs_house *h, int signals, struct complaint *why)
{
	struct ctl_verbs verbs = {.house = h};
	struct ctl *ctl;
	int left = EXIT_OF_FAILURE;

	verbs.table = verbs_table(&verbs.n);
	if (ctl_open(&ctl, config_socket(h->config), config_socket_group(h->config), &verbs, why))
		return left;
	if (port_open(&h->ports, &settings, why))
		goto no_ports;
	if (twins.is_on && tap_open(&h->twins, &twins, h->ports, why))
		goto no_twins;
	left = forward(h, ctl, signals, why);
	if (h->twins)
		tap_close(h->twins);
no_twins:
	port_close(h->ports);
no_ports:
	ctl_close(ctl);
	return left;
}

static int run(struct verbs_house *h, struct complaint *why)
{
	int left = EXIT_OF_FAILURE, signals = signals_open(why);

	h->wake = signals < 0 ? -1 : wake_open(why);
	if (h->wake >= 0 && !wake_add(h->wake, signals, why))
		left = open_rooms(h, signals, why);
	close(h->wake);
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
	twins = *config_twins(h->config);
	settings.n_lent_mbufs = twins.is_on ? tap_n_mbufs(&twins) : 0;
	if (config_add_options(&settings, options, why) ||
		ctl_check(config_socket(h->config), config_socket_group(h->config), why) ||
		port_check(&settings, why) ||
		(twins.is_on && (tap_check(&twins, &settings, why) || sync_check(why))))
		return EXIT_OF_MISTAKE;
	return options->action == CONFIG_CHECK ? check(h, why) : run(h, why);
}

int main(int argc, char **argv)
{
	struct verbs_house house = {.started_ns = clock_now_ns(),
		.born = clock_pair_take(rte_rdtsc),
		.silent_lane = -1};
	struct config_options options = {.program = "dl3d"};
	struct complaint why = {""};
	int left = EXIT_OF_MISTAKE;

	log_start("dl3d");
	bool is_sound = !config_read_options(&options, argc, argv, &why);
	if (is_sound && options.action == CONFIG_HOLD)
		return tap_hold_main(options.file);
	if (is_sound)
		left = config_answer(&options, stdout) ? EXIT_OF_STOP : act(&options, &house, &why);
	if (left != EXIT_OF_STOP)
		log_error("%s", why.text);
	config_free(house.config);
	return left;
}
