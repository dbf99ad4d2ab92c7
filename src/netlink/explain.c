// Compares what Linux would do with a packet to what workers do. Control thread.
#include "netlink/compare.h"
#include "netlink/ifaces.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

// For routes of these types the kernel only returns an error.
static unsigned type_of_error(int err)
{
	switch (err) {
	case -EHOSTUNREACH:
		return RTN_UNREACHABLE;
	case -EACCES:
		return RTN_PROHIBIT;
	case -EINVAL:
		return RTN_BLACKHOLE;
	}
	return RTN_UNSPEC;
}

static void fill(struct netlink *netlink, const struct event_route *route,
	struct netlink_route_check *out)
{
	out->answered = true;
	out->prefix = route->prefix;
	out->table = route->table;
	out->metric = route->metric;
	out->type = route->type;
	if (!route->n_hops)
		return;
	out->via = route->hop[0].via;
	out->ifindex = route->hop[0].ifindex;
	snprintf(out->interface, sizeof(out->interface), "%s",
		ifaces_name(netlink->mirror, out->ifindex));
}

// If workers do not forward but have a punt class for the packet, they leave it to Linux, whatever
// Linux does.
static bool leaves_it_to_linux(const struct fib_answer *answer)
{
	return answer->verdict != VERDICT_FORWARD && verdict_class(answer->verdict) != CLASS_NONE;
}

int netlink_explain(struct netlink *netlink, uint8_t vrf, const struct wire_addr *addr,
	struct netlink_route_check *out, struct error *error)
{
	struct event_route route = {.prefix = {*addr, 0}};
	struct fib_answer answer;
	struct comparison comparison = {&route, &answer.hop, addr, ""};
	int err = compare_ask(netlink, vrf, addr, &route);

	*out = (struct netlink_route_check){.error = err};
	if (err == -ETIMEDOUT || err == -ENOBUFS)
		return error_set(error, err, "cannot query the route lookup of Linux: %s",
			strerror(-err));
	if (!err)
		fill(netlink, &route, out);
	else
		route.type = type_of_error(err);
	rib_lookup(netlink->ctx.fib, vrf, addr, &answer);
	if (leaves_it_to_linux(&answer) || (err && !answer.found)) {
		out->agrees = true;
		return 0;
	}
	if (err && route.type == RTN_UNSPEC)
		snprintf(out->differs, sizeof(out->differs),
			"Linux returns %s, workers have a route", strerror(-err));
	else
		out->agrees = compare_hop(netlink, &comparison);
	if (comparison.differs[0])
		snprintf(out->differs, sizeof(out->differs), "%s", comparison.differs);
	return 0;
}
