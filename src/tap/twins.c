// All twins of the room: made, held, made again, closed. Control thread.
#include "tap/room.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void wish_for(const struct tap_room *room, unsigned port, struct twin_wish *wish)
{
	struct port_info info;

	port_info(room->ports, port, &info);
	*wish = (struct twin_wish){
		.name = info.name,
		.namespace_name = room->namespace_name,
		.mac = info.mac,
		.mtu = info.mtu,
		.keep = room->settings->keep,
	};
}

int twins_make(struct tap_room *room, struct complaint *why)
{
	unsigned n = port_n_ports(room->ports);
	struct twin_wish wish;
	int err = 0;

	// All are looked at before the first is made.
	for (unsigned p = 0; p < n && !err; p++) {
		wish_for(room, p, &wish);
		err = twin_check(&wish, &room->sockets, why);
	}
	for (unsigned p = 0; p < n && !err; p++) {
		wish_for(room, p, &wish);
		struct twin *twin = &room->twins[p].twin;

		err = twin_make(twin, &wish, &room->sockets, why);
		room->n_twins += !err;
		room->twins[p].awaits_link = !err && twin->adopted && twin->has_carrier;
	}
	if (err)
		twins_close(room, true);
	return err;
}

static void key_of(const struct tap_room *room, unsigned port, char key[HOLD_KEY_MAX])
{
	struct port_info info;

	port_info(room->ports, port, &info);
	snprintf(key, HOLD_KEY_MAX, "%s/%s", room->namespace_name, info.name);
}

static int hold_one(struct tap_room *room, unsigned port, struct complaint *why)
{
	struct room_twin *twin = &room->twins[port];
	char key[HOLD_KEY_MAX];

	if (twin->twin.held < 0)
		return 0;
	key_of(room, port, key);
	int err = hold_give(room->holder, key, twin->twin.held);
	if (err)
		return complain(why, err,
			"linux: the process that holds the twins does not take %s: %s; end it "
			"(dl3d --hold %s) and try again",
			key, strerror(-err), room->settings->hold_socket);
	close(twin->twin.held);
	twin->twin.held = -1;
	twin->is_held = true;
	return 0;
}

void twins_release(struct tap_room *room, unsigned port)
{
	char key[HOLD_KEY_MAX];

	if (room->holder < 0)
		return;
	key_of(room, port, key);
	hold_release(room->holder, key);
	room->twins[port].is_held = false;
}

int twins_hold(struct tap_room *room, struct complaint *why)
{
	const char *path = room->settings->hold_socket;
	int err = 0;

	if (room->holder < 0)
		room->holder = room->settings->keep ? hold_start(path, why) : hold_connect(path);
	if (room->settings->keep && room->holder < 0)
		return room->holder;
	for (unsigned p = 0; p < room->n_twins && !err; p++) {
		if (room->settings->keep) {
			err = hold_one(room, p, why);
			continue;
		}
		twin_forget(&room->twins[p].twin);
		twins_release(room, p);
	}
	return err;
}

void twins_blank(struct tap_room *room, unsigned port)
{
	struct room_twin *twin = &room->twins[port];

	dup3(room->blank, twin->twin.fd, O_CLOEXEC);
	if (twin->twin.held >= 0)
		close(twin->twin.held); // no holder has taken it
	twin->twin.held = -1;
	twin->twin.index = 0;
	twin->twin.has_carrier = false;
	__atomic_store_n(&twin->n_files, twin->n_files + 1, __ATOMIC_RELAXED);
}

static int restore_one(struct tap_room *room, unsigned port, struct complaint *why)
{
	struct room_twin *twin = &room->twins[port];
	struct twin_wish wish;
	struct twin made;

	wish_for(room, port, &wish);
	int err = twin_make(&made, &wish, &room->sockets, why);
	if (err)
		return err;
	if (dup3(made.fd, twin->twin.fd, O_CLOEXEC) < 0) {
		err = -errno;
		twin_close(&made, true);
		return complain(why, err, "port '%s': no file for its twin: %s", wish.name,
			strerror(-err));
	}
	close(made.fd);
	// All but the file's number, which the thread reads at any time and which is the same.
	twin->twin.held = made.held;
	twin->twin.index = made.index;
	memcpy(twin->twin.name, made.name, sizeof(made.name));
	twin->twin.adopted = made.adopted;
	twin->twin.has_carrier = made.has_carrier;
	__atomic_store_n(&twin->n_files, twin->n_files + 1, __ATOMIC_RELAXED);
	log_info("port '%s': its twin is back in namespace '%s'", wish.name, wish.namespace_name);
	return 0;
}

int twins_restore(struct tap_room *room, struct complaint *why)
{
	int err = 0;

	for (unsigned p = 0; p < room->n_twins && !err; p++)
		if (!room->twins[p].twin.index)
			err = restore_one(room, p, why);
	return err;
}

void twins_close(struct tap_room *room, bool undo)
{
	for (unsigned p = 0; p < room->n_twins; p++) {
		if (undo && !room->twins[p].twin.adopted)
			twins_release(room, p);
		twin_close(&room->twins[p].twin, undo);
	}
	room->n_twins = 0;
}
