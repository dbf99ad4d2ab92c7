// Periodic checks while the TAP interfaces are running: carrier, names, the holder, oversized
// frames. Control thread.
#include "tap/netns.h"
#include "tap/table.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const uint64_t look_every_ns = 1000000000, link_comes_within_ns = 10000000000;

static const char *name_of(const struct tap_table *taps, unsigned port)
{
	struct port_info info;

	port_info(taps->ports, port, &info);
	return info.name;
}

static void say_gone(struct tap_table *taps, unsigned port)
{
	struct tap_entry *tap = &taps->taps[port];

	log_warn("port '%s': its TAP interface '%s' in namespace '%s' was deleted or moved to "
		 "another namespace, and its addresses and routes are gone; packets of the port "
		 "are dropped until `dl3 reload` recreates it",
		name_of(taps, port), tap->tap.name, taps->namespace_name);
	taps_blank(taps, port);
	taps_release(taps, port);
}

static void follow_name(struct tap_table *taps, unsigned port)
{
	struct tap_device *tap = &taps->taps[port].tap;
	char now[IFNAMSIZ];
	int err = netdev_name(&taps->sockets, tap->index, now);

	if (err == -ENODEV)
		say_gone(taps, port);
	if (err || strcmp(now, tap->name) == 0)
		return;
	log_warn(
		"port '%s': its TAP interface in namespace '%s' was renamed to '%s'; it remains in "
		"use, but the next start creates a new TAP interface unless it is renamed to '%s'",
		name_of(taps, port), taps->namespace_name, now, name_of(taps, port));
	memcpy(tap->name, now, sizeof(tap->name));
}

// A device that was just started has no link for a while. A TAP interface adopted with carrier
// keeps it until then; otherwise routing sessions would go down at each restart.
static bool awaits_link(const struct tap_table *taps, struct tap_entry *tap, bool carrier)
{
	if (carrier || clock_now_ns() - taps->started_ns > link_comes_within_ns)
		tap->awaits_link = false;
	return tap->awaits_link;
}

static void follow_carrier(struct tap_table *taps, unsigned port)
{
	struct tap_entry *tap = &taps->taps[port];
	bool carrier = port_has_carrier(taps->ports, port);

	if (!awaits_link(taps, tap, carrier) && carrier != tap->tap.has_carrier)
		tap_device_set_carrier(&tap->tap, carrier);
}

// netlink then reports the new address.
static void follow_mac(struct tap_table *taps, unsigned port)
{
	struct tap_entry *tap = &taps->taps[port];
	struct port_info info;

	port_info(taps->ports, port, &info);
	if (info.n_own_macs == tap->n_own_macs)
		return;
	tap->n_own_macs = info.n_own_macs;
	int err = netdev_set_mac(&taps->sockets, tap->tap.name, &info.mac);
	if (err)
		log_warn("port '%s': its device has another MAC address since it was reset, and "
			 "its TAP interface '%s' cannot get it: %s",
			info.name, tap->tap.name, strerror(-err));
}

static void say_too_long(struct tap_table *taps, unsigned port)
{
	struct tap_entry *tap = &taps->taps[port];

	if (tap->said_too_long || !__atomic_load_n(&tap->n_too_long, __ATOMIC_RELAXED))
		return;
	tap->said_too_long = true;
	log_warn("port '%s': Linux sends frames longer than the buffers allocated at start, which "
		 "are dropped; lower the MTU of '%s' in namespace '%s', or raise the port's mtu in "
		 "the configuration file and restart",
		name_of(taps, port), tap->tap.name, taps->namespace_name);
}

static void look_at_namespace(struct tap_table *taps)
{
	bool is_named = netns_is_named(taps->netns, taps->namespace_name);

	if (!is_named && !taps->said_unnamed)
		log_warn("linux: network namespace '%s' was deleted; its TAP interfaces still "
			 "work, but new commands cannot reach them, and the next start will not "
			 "find them: stop dl3d, recreate the namespace if dl3d did not create it, "
			 "and restart",
			taps->namespace_name);
	taps->said_unnamed = !is_named;
}

static int hold_again(void *arg)
{
	struct tap_table *taps = arg;

	for (unsigned p = 0; p < taps->n_taps; p++)
		if (taps->taps[p].tap.index && tap_device_hold_again(&taps->taps[p].tap) != 0)
			return -1;
	return 0;
}

// The holder may have been killed; a new one then takes over its queues.
static void look_at_holder(struct tap_table *taps)
{
	struct error error = {"cannot open the TAP interfaces again"};

	if (!taps->settings->keep || !hold_has_ended(taps->holder))
		return;
	if (taps->holder >= 0)
		close(taps->holder);
	taps->holder = -1;
	int err = netns_inside(taps->netns, hold_again, taps, NULL);
	if (!err)
		err = taps_hold(taps, &error);
	if (!err)
		log_warn("linux: dl3d-hold had exited; started a new one");
	else if (!taps->said_unheld)
		log_error("%s; the TAP interfaces will not survive a crash", error.text);
	taps->said_unheld = err;
}

void tap_poll(struct tap_table *taps)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned p = 0; p < taps->n_taps; p++) {
		if (!taps->taps[p].tap.index)
			continue;
		follow_name(taps, p);
		if (!taps->taps[p].tap.index)
			continue;
		follow_carrier(taps, p);
		follow_mac(taps, p);
		say_too_long(taps, p);
	}
	if (now_ns - taps->looked_ns < look_every_ns)
		return;
	taps->looked_ns = now_ns;
	look_at_namespace(taps);
	look_at_holder(taps);
}
