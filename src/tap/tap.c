// Opens and closes the room. Control thread.
#include "tap/tap.h"

#include <errno.h>

struct tap_room {
	struct stat_tap stats;
	struct tap_lane lanes[1];
};

int tap_check(const struct tap_settings *settings, const struct port_room_settings *ports,
	struct complaint *why)
{
	return 0;
}

int tap_open(struct tap_room **out, const struct tap_settings *settings, struct port_room *ports,
	struct complaint *why)
{
	return complain(why, -ENOSYS, "linux: no twins yet");
}

int tap_start(struct tap_room *room, struct complaint *why)
{
	return 0;
}

void tap_stop(struct tap_room *room)
{
}

void tap_close(struct tap_room *room)
{
}

void tap_change(struct tap_room *room, const struct tap_settings *settings)
{
}

void tap_tend(struct tap_room *room)
{
}

int tap_restore(struct tap_room *room, struct complaint *why)
{
	return 0;
}

int tap_namespace(const struct tap_room *room)
{
	return -1;
}

bool tap_namespace_is_own(const struct tap_room *room)
{
	return false;
}

int tap_inside(const struct tap_room *room, int (*call)(void *arg), void *arg)
{
	return -ENOSYS;
}

int tap_twin(const struct tap_room *room, unsigned port)
{
	return 0;
}

struct tap_lane *tap_lane(struct tap_room *room, unsigned lane)
{
	return &room->lanes[lane];
}

const struct stat_tap *tap_stats(const struct tap_room *room)
{
	return &room->stats;
}

void tap_info(const struct tap_room *room, unsigned port, struct tap_info *out)
{
}

struct tap_class_settings tap_class(const struct tap_room *room, enum punt_class class)
{
	return (struct tap_class_settings){0};
}

int tap_hold_main(const char *socket_path)
{
	return 1;
}
