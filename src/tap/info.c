// State of the TAP interfaces for other modules. Control thread.
#include "tap/table.h"

int tap_namespace(const struct tap_table *taps)
{
	return taps->netns;
}

bool tap_namespace_is_own(const struct tap_table *taps)
{
	return taps->namespace_is_own;
}

int tap_ifindex(const struct tap_table *taps, unsigned port)
{
	return port < taps->n_taps ? taps->taps[port].tap.index : 0;
}

struct tap_worker *tap_worker(struct tap_table *taps, unsigned worker)
{
	return &taps->workers[worker];
}

const struct stats_tap *tap_stats(const struct tap_table *taps)
{
	return &taps->stats;
}

struct tap_class_settings tap_class(const struct tap_table *taps, enum punt_class class)
{
	return taps->class[class];
}

void tap_info(const struct tap_table *taps, unsigned port, struct tap_info *out)
{
	const struct tap_entry *tap = &taps->taps[port];

	*out = (struct tap_info){
		.namespace_name = taps->namespace_name,
		.namespace_is_own = taps->namespace_is_own,
		.keep = taps->settings->keep,
		.held = tap->is_held,
		.ifindex = tap->tap.index,
		.adopted = tap->tap.adopted,
		.carrier = tap->tap.has_carrier,
	};
	memcpy(out->name, tap->tap.name, sizeof(out->name));
}
