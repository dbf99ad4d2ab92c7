// What others may know of the room. Control thread.
#include "tap/room.h"

int tap_namespace(const struct tap_room *room)
{
	return room->netns;
}

bool tap_namespace_is_own(const struct tap_room *room)
{
	return room->namespace_is_own;
}

int tap_twin(const struct tap_room *room, unsigned port)
{
	return port < room->n_twins ? room->twins[port].twin.index : 0;
}

struct tap_lane *tap_lane(struct tap_room *room, unsigned lane)
{
	return &room->lanes[lane];
}

const struct stat_tap *tap_stats(const struct tap_room *room)
{
	return &room->stats;
}

struct tap_class_settings tap_class(const struct tap_room *room, enum punt_class class)
{
	return room->class[class];
}

void tap_info(const struct tap_room *room, unsigned port, struct tap_info *out)
{
	const struct room_twin *twin = &room->twins[port];

	*out = (struct tap_info){
		.namespace_name = room->namespace_name,
		.namespace_is_own = room->namespace_is_own,
		.keep = room->settings->keep,
		.held = twin->is_held,
		.ifindex = twin->twin.index,
		.adopted = twin->twin.adopted,
		.carrier = twin->twin.has_carrier,
	};
	memcpy(out->name, twin->twin.name, sizeof(out->name));
}
