// Linux's routes and next hops: what is heard goes into the store, what is best of each prefix into
// the fib. Control thread.
#include "sync/routes.h"

#include <errno.h>
#include <stdlib.h>

struct routes {
	struct mirror *mirror;
};

int routes_open(struct routes **out, struct mirror *mirror, struct complaint *why)
{
	struct routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return complain(why, -ENOMEM, "no memory for Linux's routes; free some");
	routes->mirror = mirror;
	*out = routes;
	return 0;
}

void routes_close(struct routes *routes)
{
	free(routes);
}

void routes_event(struct routes *routes, const struct event *event)
{
}

void routes_nexthop_event(struct routes *routes, const struct event *event)
{
}

void routes_dump_begins(struct routes *routes)
{
}

void routes_dump_ends(struct routes *routes)
{
}

bool routes_flush(struct routes *routes)
{
	return false;
}

void routes_link_changed(struct routes *routes, int ifindex)
{
}

void routes_link_gone(struct routes *routes, int ifindex)
{
}

void routes_last_address_gone(struct routes *routes, int ifindex)
{
}

void routes_address_gone(struct routes *routes, uint8_t vrf, const struct wire_addr *local)
{
}

void routes_vrf_changed(struct routes *routes, uint32_t table)
{
}

void routes_unsupported(struct routes *routes,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg)
{
}

void routes_info(const struct routes *routes, struct sync_info *out)
{
}
