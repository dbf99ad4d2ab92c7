// What is looked after while the twins run: carrier, names, the holder, frames too long. Control
// thread.
#include "tap/netns.h"
#include "tap/room.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const uint64_t look_every_ns = 1000000000, link_comes_within_ns = 10000000000;

static const char *name_of(const struct tap_room *room, unsigned port)
{
	struct port_info info;

	port_info(room->ports, port, &info);
	return info.name;
}

static void say_gone(struct tap_room *room, unsigned port)
{
	struct room_twin *twin = &room->twins[port];

	log_warn("port '%s': its twin '%s' in namespace '%s' has been deleted or moved away, and "
		 "with it all that Linux had on it; the port's packets are dropped until `dl3 "
		 "reload` makes a new one",
		name_of(room, port), twin->twin.name, room->namespace_name);
	twins_blank(room, port);
	twins_release(room, port);
}

static void follow_name(struct tap_room *room, unsigned port)
{
	struct twin *twin = &room->twins[port].twin;
	char now[IFNAMSIZ];
	int err = iface_name(&room->sockets, twin->index, now);

	if (err == -ENODEV)
		say_gone(room, port);
	if (err || strcmp(now, twin->name) == 0)
		return;
	log_warn("port '%s': its twin in namespace '%s' is now called '%s'; it goes on under that "
		 "name, but the next start makes a new twin unless it is called '%s' again",
		name_of(room, port), room->namespace_name, now, name_of(room, port));
	memcpy(twin->name, now, sizeof(twin->name));
}

// A device that has just been started is without link for a while; a twin that was adopted with
// carrier keeps it until then, or routing sessions would go down with each restart.
static bool awaits_link(const struct tap_room *room, struct room_twin *twin, bool carrier)
{
	if (carrier || clock_now_ns() - room->started_ns > link_comes_within_ns)
		twin->awaits_link = false;
	return twin->awaits_link;
}

static void follow_carrier(struct tap_room *room, unsigned port)
{
	struct room_twin *twin = &room->twins[port];
	bool carrier = port_has_carrier(room->ports, port);

	if (!awaits_link(room, twin, carrier) && carrier != twin->twin.has_carrier)
		twin_set_carrier(&twin->twin, carrier);
}

static void say_too_long(struct tap_room *room, unsigned port)
{
	struct room_twin *twin = &room->twins[port];

	if (twin->said_too_long || !__atomic_load_n(&twin->n_too_long, __ATOMIC_RELAXED))
		return;
	twin->said_too_long = true;
	log_warn("port '%s': Linux sends frames longer than the buffers made at start, which are "
		 "dropped; lower the MTU of '%s' in namespace '%s', or give the port a larger mtu "
		 "in the file and start again",
		name_of(room, port), twin->twin.name, room->namespace_name);
}

static void look_at_namespace(struct tap_room *room)
{
	bool is_named = netns_is_named(room->netns, room->namespace_name);

	if (!is_named && !room->said_unnamed)
		log_warn("linux: the network namespace '%s' has been deleted; its twins work on, "
			 "but no new command reaches them, and the next start finds none: stop, "
			 "make it again if it is not dl3d's own, and start",
			room->namespace_name);
	room->said_unnamed = !is_named;
}

static int hold_again(void *arg)
{
	struct tap_room *room = arg;

	for (unsigned p = 0; p < room->n_twins; p++)
		if (room->twins[p].twin.index && twin_hold_again(&room->twins[p].twin) != 0)
			return -1;
	return 0;
}

// It may have been killed; what it held is held again by a new one.
static void look_at_holder(struct tap_room *room)
{
	struct complaint why = {"the twins cannot be opened a second time"};

	if (!room->settings->keep || !hold_has_ended(room->holder))
		return;
	if (room->holder >= 0)
		close(room->holder);
	room->holder = -1;
	int err = netns_inside(room->netns, hold_again, room);
	if (!err)
		err = twins_hold(room, &why);
	if (!err)
		log_warn("linux: the process that holds the twins had ended; a new one does");
	else if (!room->said_unheld)
		log_error("%s; the twins do not outlast a crash", why.text);
	room->said_unheld = err;
}

void tap_tend(struct tap_room *room)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned p = 0; p < room->n_twins; p++) {
		if (!room->twins[p].twin.index)
			continue;
		follow_name(room, p);
		if (!room->twins[p].twin.index)
			continue;
		follow_carrier(room, p);
		say_too_long(room, p);
	}
	if (now_ns - room->looked_ns < look_every_ns)
		return;
	room->looked_ns = now_ns;
	look_at_namespace(room);
	look_at_holder(room);
}
