// Compares what Linux would do with a packet with what workers do. Control thread.
#include "netlink/inside.h"

#include "netlink/hop_sets.h"
#include "netlink/mirror_inside.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	uint8_t attrs[64];
};

static void add_attr(struct question *question, uint16_t type, const void *value, size_t n)
{
	struct rtattr attr = {RTA_LENGTH(n), type};
	uint8_t *at = (uint8_t *)question + question->head.nlmsg_len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + RTA_LENGTH(0), value, n);
	question->head.nlmsg_len += RTA_ALIGN(attr.rta_len);
}

struct answer {
	struct event_route *route;
	bool is_there;
};

static void take_route(void *arg, const struct event *event)
{
	struct answer *answer = arg;

	if (event->kind != EVENT_ROUTE)
		return;
	*answer->route = event->route;
	answer->is_there = true;
}

static int index_here(void *name)
{
	return if_nametoindex(name);
}

// The interface that selects a VRF's table in route lookups; 0: the main VRF.
static int device_of_vrf(struct netlink *netlink, uint16_t vrf)
{
	const char *name = vrf ? ifaces_vrf_name(netlink->mirror, vrf) : NULL;

	return name ? tap_run_in_netns(netlink->ctx.taps, index_here, (void *)name, NULL) : 0;
}

int compare_ask(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct event_route *out)
{
	size_t bytes = addr->family == 4 ? 4 : 16;
	struct question question = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(question.route)),
					    .nlmsg_type = RTM_GETROUTE,
					    .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = addr->family == 4 ? AF_INET : AF_INET6,
			.rtm_dst_len = bytes * 8,
			.rtm_flags = RTM_F_FIB_MATCH}};
	int device = device_of_vrf(netlink, vrf), err;
	struct answer answer = {out, false};
	struct listen_request request = {&question, 0, take_route, &answer};

	// IPv4 returns the table only on request; IPv6 always does and rejects the flag.
	if (addr->family == 4)
		question.route.rtm_flags |= RTM_F_LOOKUP_TABLE;
	add_attr(&question, RTA_DST, addr->bytes, bytes);
	if (device > 0)
		add_attr(&question, RTA_OIF, &device, sizeof(device));
	request.bytes = question.head.nlmsg_len;
	err = listen_ask(netlink->listen, &request);
	return err ? err : answer.is_there ? 0 : -ENETUNREACH;
}

// One next hop in a form common to the kernel and workers, and its share.
struct next_hop {
	int ifindex;
	struct wire_addr via;
	unsigned weight;
};

struct next_hops {
	unsigned n, sum;
	struct next_hop hop[EVENT_MAX_HOPS];
};

static void add_next_hop(struct next_hops *hops, const struct next_hop *one)
{
	hops->sum += one->weight;
	for (unsigned i = 0; i < hops->n; i++)
		if (hops->hop[i].ifindex == one->ifindex &&
			wire_addr_equal(&hops->hop[i].via, &one->via)) {
			hops->hop[i].weight += one->weight;
			return;
		}
	if (hops->n < EVENT_MAX_HOPS)
		hops->hop[hops->n++] = *one;
}

// If the gateway equals the destination, the hop is the same as without a gateway.
static struct wire_addr via_beyond(const struct wire_addr *via, const struct wire_addr *addr)
{
	return addr && wire_addr_equal(via, addr) ? (struct wire_addr){.family = 0} : *via;
}

// What is sent into a tunnel goes to its other end, whatever the gateway.
static bool leads_into_tunnel(const struct netlink *netlink, int ifindex)
{
	const struct ifaces_state state = ifaces_state(netlink->mirror, ifindex);
	const struct iface *iface =
		state.iface == IFACE_NONE ? NULL : fib_iface(netlink->ctx.fib, state.iface);

	return iface && iface_is_tunnel(iface);
}

static void next_hops_of_linux(struct netlink *netlink, const struct comparison *comparison,
	struct next_hops *out)
{
	struct compare_hops hops;

	*out = (struct next_hops){.n = 0};
	compare_hops_of(netlink, comparison->kernel, comparison->nexthops, &hops);
	for (unsigned i = 0; i < hops.n; i++) {
		struct next_hop one = {hops.hop[i].ifindex,
			via_beyond(&hops.hop[i].via, comparison->addr), hops.hop[i].weight};

		if (leads_into_tunnel(netlink, one.ifindex))
			one.via = (struct wire_addr){.family = 0};
		add_next_hop(out, &one);
	}
}

static struct next_hop next_hop_of(struct netlink *netlink, const struct fib_hop *hop,
	unsigned weight, const struct wire_addr *addr)
{
	struct next_hop one = {ifaces_ifindex(netlink->mirror, hop->iface),
		via_beyond(&hop->via, addr), weight};

	// The neighbour to which a CONNECTED route was resolved: the kernel has no gateway there.
	if (hop->kind == FIB_CONNECTED)
		one.via = (struct wire_addr){.family = 0};
	return one;
}

static void next_hops_of_workers(struct netlink *netlink, const struct comparison *comparison,
	struct next_hops *out)
{
	struct fib_member member[EVENT_MAX_HOPS] = {{.hop = *comparison->hop, .weight = 1}};
	unsigned n = 1;

	*out = (struct next_hops){.n = 0};
	if (comparison->hop->kind == FIB_GROUP)
		n = fib_group_members(netlink->ctx.fib, comparison->hop, member, EVENT_MAX_HOPS);
	for (unsigned i = 0; i < n && i < EVENT_MAX_HOPS; i++) {
		struct next_hop one =
			next_hop_of(netlink, &member[i].hop, member[i].weight, comparison->addr);

		add_next_hop(out, &one);
	}
}

// Shares may differ by rounding: workers have a resolution of 1/255.
static bool shares_differ(const struct next_hops *a, unsigned i, const struct next_hops *b,
	unsigned j)
{
	double one = (double)a->hop[i].weight / a->sum, other = (double)b->hop[j].weight / b->sum;

	return one - other > 0.02 || other - one > 0.02;
}

static bool same_next_hops(const struct next_hops *a, const struct next_hops *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		unsigned j = 0;

		while (j < b->n && (a->hop[i].ifindex != b->hop[j].ifindex ||
					   !wire_addr_equal(&a->hop[i].via, &b->hop[j].via)))
			j++;
		if (j == b->n || shares_differ(a, i, b, j))
			return false;
	}
	return true;
}

static bool share_next_hop(const struct next_hops *a, const struct next_hops *b)
{
	for (unsigned i = 0; i < a->n * b->n; i++) {
		const struct next_hop *one = &a->hop[i / b->n], *other = &b->hop[i % b->n];

		if (one->ifindex == other->ifindex && wire_addr_equal(&one->via, &other->via))
			return true;
	}
	return false;
}

static void print_next_hops(struct netlink *netlink, const struct next_hops *hops, char *text,
	size_t room)
{
	char via[WIRE_ADDR_TEXT];
	const struct next_hop *one = &hops->hop[0];

	if (hops->n != 1)
		snprintf(text, room, "%u next hops", hops->n);
	else
		snprintf(text, room, "%s%sdev %s",
			one->via.family ? wire_addr_print(&one->via, via) : "",
			one->via.family ? " " : "", ifaces_name(netlink->mirror, one->ifindex));
}

static const char *type_name(unsigned type)
{
	const char *name = netlink_type_name(type);

	return name ? name : "other";
}

static bool compare_type(struct comparison *comparison, unsigned type)
{
	if (comparison->kernel->type == type)
		return true;
	snprintf(comparison->differs, COMPARE_TEXT, "Linux has a route of type %s, workers %s",
		type_name(comparison->kernel->type), type_name(type));
	return false;
}

static bool compare_next_hops(struct netlink *netlink, struct comparison *comparison)
{
	char text[2][40];
	struct next_hops kernel, workers;

	next_hops_of_linux(netlink, comparison, &kernel);
	next_hops_of_workers(netlink, comparison, &workers);
	if (comparison->is_cached ? share_next_hop(&kernel, &workers)
				  : same_next_hops(&kernel, &workers))
		return true;
	print_next_hops(netlink, &kernel, text[0], sizeof(text[0]));
	print_next_hops(netlink, &workers, text[1], sizeof(text[1]));
	snprintf(comparison->differs, COMPARE_TEXT, "Linux sends via %s, workers via %s%s", text[0],
		text[1], kernel.n > 1 && kernel.n == workers.n ? " (others)" : "");
	return false;
}

static bool is_to_router(unsigned type)
{
	return type == RTN_LOCAL || type == RTN_BROADCAST || type == RTN_ANYCAST;
}

bool compare_hop(struct netlink *netlink, struct comparison *comparison)
{
	switch (comparison->hop->kind) {
	case FIB_VIA:
	case FIB_CONNECTED:
	case FIB_PEER:
	case FIB_GROUP:
		return compare_type(comparison, RTN_UNICAST) &&
		       compare_next_hops(netlink, comparison);
	case FIB_LOCAL:
		return is_to_router(comparison->kernel->type) ||
		       compare_type(comparison, RTN_LOCAL);
	case FIB_BLACKHOLE:
		return compare_type(comparison, RTN_BLACKHOLE);
	case FIB_UNREACHABLE:
		return compare_type(comparison, RTN_UNREACHABLE);
	case FIB_PROHIBIT:
		return compare_type(comparison, RTN_PROHIBIT);
	}
	return true;
}

// The comparison for one address, for display.

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

// See LOOKUP_NEXT_HOP.
static bool is_cached(const struct event_route *route)
{
	return route->prefix.addr.family == 6 && route->nh_id;
}

static void fill(struct netlink *netlink, const struct comparison *comparison,
	struct netlink_route_check *out)
{
	const struct event_route *route = comparison->kernel;
	struct compare_hops hops;

	out->answered = true;
	if (!is_cached(route)) {
		out->prefix = route->prefix;
		out->table = route->table;
		out->metric = route->metric;
	}
	out->type = route->type;
	compare_hops_of(netlink, route, comparison->nexthops, &hops);
	if (!hops.n)
		return;
	out->via = hops.hop[0].via;
	out->ifindex = hops.hop[0].ifindex;
	snprintf(out->interface, sizeof(out->interface), "%s",
		ifaces_name(netlink->mirror, out->ifindex));
}

// What Linux's answer to a lookup by destination alone says: nothing for destinations with built-in
// results, and with rules for some packets only.
static enum lookup_worth worth_of(struct netlink *netlink, const struct fib_answer *answer)
{
	const struct fib_route *route = &answer->route;

	if (!answer->found ||
		ifaces_has_own_rules(netlink->mirror, route->prefix.addr.family, route->vrf))
		return LOOKUP_NOTHING;
	switch (route->hop.kind) {
	case FIB_MARTIAN:
	case FIB_LINK_LOCAL:
	case FIB_MULTICAST:
		return LOOKUP_NOTHING;
	}
	return routes_lookup_worth(netlink->mirror->routes, route->vrf, &route->prefix);
}

// Both have found a route: of the same prefix, in the same VRF, as far as Linux says.
static bool compare_prefix(struct netlink *netlink, const struct fib_route *workers,
	struct comparison *comparison)
{
	const struct event_route *kernel = comparison->kernel;
	char text[WIRE_PREFIX_TEXT];

	if (comparison->is_cached)
		return true;
	if (ifaces_vrf_of_table(netlink->mirror, kernel->table) == workers->vrf &&
		kernel->prefix.len == workers->prefix.len &&
		wire_addr_equal(&kernel->prefix.addr, &workers->prefix.addr))
		return true;
	snprintf(comparison->differs, COMPARE_TEXT,
		"workers have a route to %s that Linux does not have",
		wire_prefix_print(&workers->prefix, text));
	return false;
}

// Linux has found none, or one that rejects the packet, of which it only returns the error.
static bool compare_error(struct netlink *netlink, int err, struct comparison *comparison)
{
	if (comparison->kernel->type != RTN_UNSPEC && comparison->hop->kind != FIB_LINUX)
		return compare_hop(netlink, comparison);
	snprintf(comparison->differs, COMPARE_TEXT, "Linux returns %s, workers have a route",
		strerror(-err));
	return false;
}

static bool compare(struct netlink *netlink, const struct fib_answer *workers, int err,
	struct comparison *comparison)
{
	enum lookup_worth worth = worth_of(netlink, workers);

	if (worth == LOOKUP_NOTHING || (worth == LOOKUP_NEXT_HOP && err == -ENETUNREACH))
		return true;
	if (err)
		return compare_error(netlink, err, comparison);
	return compare_prefix(netlink, &workers->route, comparison) &&
	       (worth == LOOKUP_PREFIX || compare_hop(netlink, comparison));
}

// The kernel's route, with its next-hop objects. Returns 0 or the kernel's error.
static int ask_route(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct event_route *route, struct nexthops *nexthops)
{
	int err = compare_ask(netlink, vrf, addr, route);

	if (err)
		route->type = type_of_error(err);
	else if (route->nh_id)
		err = compare_ask_nexthop(netlink, route->nh_id, nexthops);
	return err == -ENOENT ? 0 : err; // an object was deleted meanwhile: its hops are missing
}

static int explain(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct nexthops *nexthops, struct netlink_route_check *out)
{
	struct event_route route = {.prefix = {*addr, 0}};
	struct fib_answer answer;
	struct comparison comparison = {.kernel = &route,
		.nexthops = nexthops,
		.hop = &answer.hop,
		.addr = addr};
	int err = ask_route(netlink, vrf, addr, &route, nexthops);

	*out = (struct netlink_route_check){.error = err};
	if (err == -ETIMEDOUT || err == -ENOBUFS || err == -ENOMEM)
		return err;
	if (!err)
		fill(netlink, &comparison, out);
	rib_lookup(netlink->ctx.fib, vrf, addr, &answer);
	comparison.is_cached = is_cached(&route);
	out->agrees = compare(netlink, &answer, err, &comparison);
	snprintf(out->differs, sizeof(out->differs), "%s", comparison.differs);
	return 0;
}

int netlink_explain(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct netlink_route_check *out, struct error *error)
{
	struct nexthops nexthops;
	int err;

	if (nexthops_open(&nexthops))
		return error_set(error, -ENOBUFS, "out of memory for a route lookup in Linux");
	err = explain(netlink, vrf, addr, &nexthops, out);
	nexthops_close(&nexthops);
	if (err)
		error_set(error, err, "cannot query the route lookup of Linux: %s", strerror(-err));
	return err;
}
