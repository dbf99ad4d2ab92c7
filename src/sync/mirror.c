// Each event goes to the part of the mirror that knows its kind; links come first in every flush,
// because neighbours and routes stand on them. Control thread.
#include "sync/mirror.h"

#include "sync/links.h"
#include "sync/neighbours.h"
#include "sync/routes.h"

#include <errno.h>
#include <stdlib.h>

static int open_parts(struct mirror *mirror, struct complaint *why)
{
	int err = links_create(&mirror->links, mirror, why);

	if (!err)
		err = neighbours_open(&mirror->neighbours, mirror, why);
	if (!err)
		err = routes_open(&mirror->routes, mirror, why);
	return err;
}

int mirror_open(struct mirror **out, const struct mirror_settings *settings, struct complaint *why)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		return complain(why, -ENOMEM, "no memory for the mirror of Linux's tables");
	mirror->settings = *settings;
	int err = open_parts(mirror, why);
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
	if (mirror->routes)
		routes_close(mirror->routes);
	if (mirror->neighbours)
		neighbours_close(mirror->neighbours);
	if (mirror->links)
		links_destroy(mirror->links);
	free(mirror);
}

void mirror_twin_changed(struct mirror *mirror, unsigned port, int ifindex)
{
	links_twin_changed(mirror->links, port, ifindex);
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
	case EVENT_DONE:
	case EVENT_ERROR:
		break; // the listener's business
	default:
		links_event(mirror->links, event);
	}
}

void mirror_dump_begins(struct mirror *mirror)
{
	links_dump_begins(mirror->links);
	neighbours_dump_begins(mirror->neighbours);
	routes_dump_begins(mirror->routes);
}

void mirror_dump_lacks(struct mirror *mirror, enum event_kind kind)
{
	links_dump_lacks(mirror->links, kind);
}

void mirror_dump_ends(struct mirror *mirror, uint32_t partial)
{
	links_dump_ends(mirror->links, partial);
	if (!event_kinds_have(partial, EVENT_NEIGHBOUR))
		neighbours_dump_ends(mirror->neighbours);
	routes_dump_ends(mirror->routes, partial);
}

bool mirror_flush(struct mirror *mirror)
{
	links_flush(mirror->links);
	neighbours_flush(mirror->neighbours);
	return routes_flush(mirror->routes) || links_settled(mirror->links);
}

void mirror_tend(struct mirror *mirror)
{
	links_tend(mirror->links);
	routes_tend(mirror->routes);
}

struct teller {
	bool (*tell)(void *arg, const struct sync_unsupported *one);
	void *arg;
	bool is_enough;
};

static bool tell_on(void *arg, const struct sync_unsupported *one)
{
	struct teller *teller = arg;

	teller->is_enough = !teller->tell(teller->arg, one);
	return !teller->is_enough;
}

void mirror_unsupported(const struct mirror *mirror,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg)
{
	struct teller teller = {.tell = tell, .arg = arg};

	links_unsupported(mirror->links, tell_on, &teller);
	if (!teller.is_enough)
		neighbours_unsupported(mirror->neighbours, tell_on, &teller);
	if (!teller.is_enough)
		routes_unsupported(mirror->routes, tell_on, &teller);
}

void mirror_info(const struct mirror *mirror, struct sync_info *out)
{
	links_info(mirror->links, out);
	neighbours_info(mirror->neighbours, out);
	routes_info(mirror->routes, out);
}
