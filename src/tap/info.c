// State of the TAP interfaces for other modules. Control thread.
#include "tap/table.h"

int tap_namespace(const struct tap_table *room)
{
	return room->netns;
}

bool tap_namespace_is_own(const struct tap_table *room)
{
	return room->namespace_is_own;
}

int tap_tap(const struct tap_table *room, unsigned port)
{
	return port < room->n_taps ? room->taps[port].tap.index : 0;
}

struct tap_worker *tap_worker(struct tap_table *room, unsigned worker)
{
	return &room->workers[worker];
}

const struct stats_tap *tap_stats(const struct tap_table *room)
{
	return &room->stats;
}

struct tap_class_settings tap_class(const struct tap_table *room, enum punt_class class)
{
	return room->class[class];
}

void tap_info(const struct tap_table *room, unsigned port, struct tap_info *out)
{
	const struct tap_entry *tap = &room->taps[port];

	*out = (struct tap_info){
		.namespace_name = room->namespace_name,
		.namespace_is_own = room->namespace_is_own,
		.keep = room->settings->keep,
		.held = tap->is_held,
		.ifindex = tap->tap.index,
		.adopted = tap->tap.adopted,
		.carrier = tap->tap.has_carrier,
	};
	memcpy(out->name, tap->tap.name, sizeof(out->name));
}
