// Passes each event to the part of the mirror responsible for its kind. Interfaces are flushed
// first, because neighbours and routes depend on them. Control thread.
#include "netlink/mirror.h"

#include "base/clock.h"
#include "netlink/mirror_inside.h"

#include <errno.h>
#include <stdlib.h>

static int open_parts(struct mirror *mirror, struct error *error)
{
	int err = ifaces_create(&mirror->ifaces, mirror, error);

	if (!err)
		err = neighbours_open(&mirror->neighbours, mirror, error);
	if (!err)
		err = routes_open(&mirror->routes, mirror, error);
	if (!err)
		err = bridges_open(&mirror->bridges, mirror, error);
	if (!err)
		err = mpls_open(&mirror->mpls, mirror, error);
	return err;
}

int mirror_open(struct mirror **out, const struct mirror_settings *settings, struct error *error)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		return error_set(error, -ENOMEM, "not enough memory for the mirror");
	mirror->settings = *settings;
	int err = open_parts(mirror, error);
	if (err) {
		mirror_close(mirror);
		return err;
	}
	*out = mirror;
	return 0;
}

void mirror_close(struct mirror *mirror)
{
	if (!mirror)
		return;
	if (mirror->mpls)
		mpls_close(mirror->mpls);
	bridges_close(mirror->bridges);
	if (mirror->routes)
		routes_close(mirror->routes);
	if (mirror->neighbours)
		neighbours_close(mirror->neighbours);
	if (mirror->ifaces)
		ifaces_destroy(mirror->ifaces);
	free(mirror);
}

void mirror_tap_changed(struct mirror *mirror, unsigned port, int ifindex)
{
	ifaces_tap_changed(mirror->ifaces, port, ifindex);
}

void mirror_port_added(struct mirror *mirror, unsigned port, int ifindex,
	const struct mirror_port *added)
{
	for (unsigned between = mirror->settings.n_ports; between < port; between++)
		mirror->settings.is_removed[between] = true;
	mirror->settings.n_ports = MAX_OF(mirror->settings.n_ports, port + 1);
	mirror->settings.is_removed[port] = false;
	ifaces_port_added(mirror->ifaces, port, added);
	ifaces_tap_changed(mirror->ifaces, port, ifindex);
}

void mirror_port_removed(struct mirror *mirror, unsigned port)
{
	mirror->settings.is_removed[port] = true;
	bridges_port_removed(mirror->bridges, port);
	ifaces_tap_changed(mirror->ifaces, port, 0);
	ifaces_port_removed(mirror->ifaces, port);
}

void mirror_event(struct mirror *mirror, const struct event *event)
{
	switch (event->kind) {
	case EVENT_NEIGHBOUR:
		neighbours_event(mirror->neighbours, event);
		break;
	case EVENT_ROUTE:
		routes_event(mirror->routes, event);
		break;
	case EVENT_NEXTHOP:
		routes_nexthop_event(mirror->routes, event);
		break;
	case EVENT_FDB:
	case EVENT_REMOTE:
	case EVENT_GROUPS:
		bridges_event(mirror->bridges, event);
		break;
	case EVENT_LINK:
		bridges_event(mirror->bridges, event);
		ifaces_event(mirror->ifaces, event);
		break;
	case EVENT_LABEL:
		mpls_event(mirror->mpls, event);
		break;
	case EVENT_DONE:
	case EVENT_ERROR:
		break; // handled by the listener
	default:
		ifaces_event(mirror->ifaces, event);
	}
}

void mirror_dump_begins(struct mirror *mirror)
{
	ifaces_dump_begins(mirror->ifaces);
	neighbours_dump_begins(mirror->neighbours);
	routes_dump_begins(mirror->routes);
	bridges_dump_begins(mirror->bridges);
	mpls_dump_begins(mirror->mpls);
}

void mirror_dump_lacks(struct mirror *mirror, enum event_kind kind)
{
	ifaces_dump_lacks(mirror->ifaces, kind);
}

void mirror_dump_ends(struct mirror *mirror, uint32_t partial)
{
	ifaces_dump_ends(mirror->ifaces, partial);
	if (!event_kinds_have(partial, EVENT_NEIGHBOUR))
		neighbours_dump_ends(mirror->neighbours);
	routes_dump_ends(mirror->routes, partial);
	bridges_dump_ends(mirror->bridges, partial);
	if (!event_kinds_have(partial, EVENT_LABEL))
		mpls_dump_ends(mirror->mpls);
	mirror->has_all_routes |= !event_kinds_have(partial, EVENT_ROUTE) &&
	                          !event_kinds_have(partial, EVENT_NEXTHOP);
}

bool mirror_flush(struct mirror *mirror)
{
	ifaces_flush(mirror->ifaces);
	bool has_more = bridges_flush(mirror->bridges);
	neighbours_flush(mirror->neighbours);
	// Numbers of interfaces and VRFs that rest are free when neither labels nor routes nor
	// remote ends of VXLAN devices have them.
	const bool has_labels = mpls_flush(mirror->mpls), has_routes = routes_flush(mirror->routes);
	has_more = has_more || has_labels || has_routes || ifaces_settled(mirror->ifaces);
	if (mirror->has_all_routes && !has_more && !fib_is_synced(mirror->settings.fib))
		fib_set_synced(mirror->settings.fib, true);
	return has_more;
}

void mirror_apply_filters(struct mirror *mirror, uint64_t now_ns)
{
	filters_apply(mirror->ifaces, now_ns);
	queues_apply(mirror->ifaces, now_ns);
}

bool mirror_dump_filters(struct mirror *mirror)
{
	return queues_dump(mirror->ifaces) || filters_dump(mirror->ifaces);
}

void mirror_filters_dumped(struct mirror *mirror, bool whole)
{
	filters_dumped(mirror->ifaces, whole);
}

void mirror_poll(struct mirror *mirror)
{
	ifaces_poll(mirror->ifaces);
	routes_poll(mirror->routes);
	mpls_poll(mirror->mpls);
	bridges_look_again(mirror->bridges);
	fib_groups_poll(mirror->settings.fib, clock_now_ns());
}

struct teller {
	bool (*cb)(void *arg, const struct netlink_unsupported *one);
	void *arg;
	bool is_enough;
};

static bool tell_on(void *arg, const struct netlink_unsupported *one)
{
	struct teller *teller = arg;

	teller->is_enough = !teller->cb(teller->arg, one);
	return !teller->is_enough;
}

void mirror_unsupported(const struct mirror *mirror,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct teller teller = {.cb = cb, .arg = arg};

	ifaces_unsupported(mirror->ifaces, tell_on, &teller);
	if (!teller.is_enough)
		neighbours_unsupported(mirror->neighbours, tell_on, &teller);
	if (!teller.is_enough)
		routes_unsupported(mirror->routes, tell_on, &teller);
	if (!teller.is_enough)
		mpls_unsupported(mirror->mpls, tell_on, &teller);
}

void mirror_info(const struct mirror *mirror, struct netlink_info *out)
{
	ifaces_info(mirror->ifaces, out);
	neighbours_info(mirror->neighbours, out);
	routes_info(mirror->routes, out);
	bridges_info(mirror->bridges, out);
	out->is_synced = fib_is_synced(mirror->settings.fib);
}
