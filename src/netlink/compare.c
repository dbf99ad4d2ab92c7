// Compares what Linux would do with a packet with what workers do. Control thread.
#include "netlink/inside.h"

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
static int device_of_vrf(struct netlink *netlink, uint8_t vrf)
{
	const char *name = vrf ? ifaces_vrf_name(netlink->mirror, vrf) : NULL;

	return name ? tap_run_in_netns(netlink->ctx.taps, index_here, (void *)name, NULL) : 0;
}

int compare_ask(struct netlink *netlink, uint8_t vrf, const struct wire_addr *addr,
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

bool compare_is_alive(struct netlink *netlink, const struct event_hop *hop, uint8_t family)
{
	struct ifaces_state state = ifaces_state(netlink->mirror, hop->ifindex);

	if (hop->flags & RTNH_F_DEAD)
		return false;
	if (!(hop->flags & RTNH_F_LINKDOWN))
		return true;
	return !(family == 4 ? state.ignores_linkdown4 : state.ignores_linkdown6);
}

// One next hop in a form common to the kernel and workers, and its share.
struct hop_set {
	int ifindex;
	struct wire_addr via;
	unsigned weight;
};

struct hop_sets {
	unsigned n, sum;
	struct hop_set hop_set[EVENT_MAX_HOPS];
};

static void add_hop_set(struct hop_sets *hop_sets, const struct hop_set *hop_set)
{
	hop_sets->sum += hop_set->weight;
	for (unsigned i = 0; i < hop_sets->n; i++)
		if (hop_sets->hop_set[i].ifindex == hop_set->ifindex &&
			wire_addr_equal(&hop_sets->hop_set[i].via, &hop_set->via)) {
			hop_sets->hop_set[i].weight += hop_set->weight;
			return;
		}
	if (hop_sets->n < EVENT_MAX_HOPS)
		hop_sets->hop_set[hop_sets->n++] = *hop_set;
}

// If the gateway equals the destination, the hop is the same as without a gateway.
static struct wire_addr via_beyond(const struct wire_addr *via, const struct wire_addr *addr)
{
	return addr && wire_addr_equal(via, addr) ? (struct wire_addr){.family = 0} : *via;
}

static void hop_sets_of_linux(struct netlink *netlink, const struct comparison *comparison,
	struct hop_sets *out)
{
	const struct event_route *route = comparison->kernel;

	*out = (struct hop_sets){.n = 0};
	for (unsigned i = 0; i < route->n_hops; i++) {
		const struct event_hop *hop = &route->hop[i];

		if (compare_is_alive(netlink, hop, route->prefix.addr.family))
			add_hop_set(out,
				&(struct hop_set){hop->ifindex,
					via_beyond(&hop->via, comparison->addr), hop->weight});
	}
}

static struct hop_set hop_set_of_hop(struct netlink *netlink, const struct fib_hop *hop,
	unsigned weight, const struct wire_addr *addr)
{
	struct hop_set hop_set = {ifaces_ifindex(netlink->mirror, hop->iface),
		via_beyond(&hop->via, addr), weight};

	// The neighbour to which a CONNECTED route was resolved: the kernel has no gateway there.
	if (hop->kind == FIB_CONNECTED)
		hop_set.via = (struct wire_addr){.family = 0};
	return hop_set;
}

static void hop_sets_of_workers(struct netlink *netlink, const struct comparison *comparison,
	struct hop_sets *out)
{
	struct fib_member member[EVENT_MAX_HOPS] = {{.hop = *comparison->hop, .weight = 1}};
	unsigned n = 1;

	*out = (struct hop_sets){.n = 0};
	if (comparison->hop->kind == FIB_GROUP)
		n = fib_group_members(netlink->ctx.fib, comparison->hop, member, EVENT_MAX_HOPS);
	for (unsigned i = 0; i < n && i < EVENT_MAX_HOPS; i++) {
		struct hop_set hop_set =
			hop_set_of_hop(netlink, &member[i].hop, member[i].weight, comparison->addr);

		add_hop_set(out, &hop_set);
	}
}

// Shares may differ by rounding: workers have a resolution of 1/255.
static bool shares_differ(const struct hop_sets *a, unsigned i, const struct hop_sets *b,
	unsigned j)
{
	double one = (double)a->hop_set[i].weight / a->sum,
	       other = (double)b->hop_set[j].weight / b->sum;

	return one - other > 0.02 || other - one > 0.02;
}

static bool same_hop_sets(const struct hop_sets *a, const struct hop_sets *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		unsigned j = 0;

		while (j < b->n &&
			(a->hop_set[i].ifindex != b->hop_set[j].ifindex ||
				!wire_addr_equal(&a->hop_set[i].via, &b->hop_set[j].via)))
			j++;
		if (j == b->n || shares_differ(a, i, b, j))
			return false;
	}
	return true;
}

static void print_hop_sets(struct netlink *netlink, const struct hop_sets *hop_sets, char *text,
	size_t room)
{
	char via[WIRE_ADDR_TEXT];
	const struct hop_set *hop_set = &hop_sets->hop_set[0];

	if (hop_sets->n != 1)
		snprintf(text, room, "%u ways", hop_sets->n);
	else
		snprintf(text, room, "%s%sdev %s",
			hop_set->via.family ? wire_addr_print(&hop_set->via, via) : "",
			hop_set->via.family ? " " : "",
			ifaces_name(netlink->mirror, hop_set->ifindex));
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

static bool compare_hop_sets(struct netlink *netlink, struct comparison *comparison)
{
	char text[2][40];
	struct hop_sets kernel, workers;

	hop_sets_of_linux(netlink, comparison, &kernel);
	hop_sets_of_workers(netlink, comparison, &workers);
	if (same_hop_sets(&kernel, &workers))
		return true;
	// With nexthop_compat_mode 0 the kernel returns the id of the next-hop object, not its
	// hops.
	if (comparison->kernel->nh_id && !comparison->kernel->n_hops)
		return true;
	print_hop_sets(netlink, &kernel, text[0], sizeof(text[0]));
	print_hop_sets(netlink, &workers, text[1], sizeof(text[1]));
	snprintf(comparison->differs, COMPARE_TEXT, "Linux sends via %s, workers via %s%s", text[0],
		text[1], kernel.n > 1 && kernel.n == workers.n ? " (others)" : "");
	return false;
}

bool compare_hop(struct netlink *netlink, struct comparison *comparison)
{
	switch (comparison->hop->kind) {
	case FIB_VIA:
	case FIB_CONNECTED:
	case FIB_PEER:
	case FIB_GROUP:
		return compare_type(comparison, RTN_UNICAST) &&
		       compare_hop_sets(netlink, comparison);
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
