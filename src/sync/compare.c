// A route as Linux has it against what lanes do. Control thread.
#include "sync/compare.h"

#include "sync/links.h"

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

// The device that stands for a VRF's table in lookups; 0: the main one.
static int device_of_vrf(struct sync *sync, uint8_t vrf)
{
	const char *name = vrf ? links_vrf_name(sync->mirror, vrf) : NULL;

	return name ? tap_inside(sync->house.twins, index_here, (void *)name) : 0;
}

int compare_ask(struct sync *sync, uint8_t vrf, const struct wire_addr *addr,
	struct event_route *out)
{
	size_t bytes = addr->family == 4 ? 4 : 16;
	struct question question = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(question.route)),
					    .nlmsg_type = RTM_GETROUTE,
					    .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = addr->family == 4 ? AF_INET : AF_INET6,
			.rtm_dst_len = bytes * 8,
			.rtm_flags = RTM_F_FIB_MATCH}};
	int device = device_of_vrf(sync, vrf), err;
	struct answer answer = {out, false};
	struct listen_request request = {&question, 0, take_route, &answer};

	// IPv4 names the route's table only when asked, IPv6 always, and refuses to be asked.
	if (addr->family == 4)
		question.route.rtm_flags |= RTM_F_LOOKUP_TABLE;
	add_attr(&question, RTA_DST, addr->bytes, bytes);
	if (device > 0)
		add_attr(&question, RTA_OIF, &device, sizeof(device));
	request.bytes = question.head.nlmsg_len;
	err = listen_ask(sync->listen, &request);
	return err ? err : answer.is_there ? 0 : -ENETUNREACH;
}

bool compare_is_alive(struct sync *sync, const struct event_hop *hop, uint8_t family)
{
	struct links_state state = links_state(sync->mirror, hop->ifindex);

	if (hop->flags & RTNH_F_DEAD)
		return false;
	if (!(hop->flags & RTNH_F_LINKDOWN))
		return true;
	return !(family == 4 ? state.ignores_linkdown4 : state.ignores_linkdown6);
}

// One way out, as Linux and lanes both can say it, and its share.
struct way {
	int ifindex;
	struct wire_addr via;
	unsigned weight;
};

struct ways {
	unsigned n, sum;
	struct way way[EVENT_MAX_HOPS];
};

static void add_way(struct ways *ways, const struct way *way)
{
	ways->sum += way->weight;
	for (unsigned i = 0; i < ways->n; i++)
		if (ways->way[i].ifindex == way->ifindex &&
			wire_addr_equal(&ways->way[i].via, &way->via)) {
			ways->way[i].weight += way->weight;
			return;
		}
	if (ways->n < EVENT_MAX_HOPS)
		ways->way[ways->n++] = *way;
}

// A gateway that is the destination itself: the way is the same as without one.
static struct wire_addr via_beyond(const struct wire_addr *via, const struct wire_addr *addr)
{
	return addr && wire_addr_equal(via, addr) ? (struct wire_addr){.family = 0} : *via;
}

static void ways_of_linux(struct sync *sync, const struct comparison *comparison, struct ways *out)
{
	const struct event_route *route = comparison->kernel;

	*out = (struct ways){.n = 0};
	for (unsigned i = 0; i < route->n_hops; i++) {
		const struct event_hop *hop = &route->hop[i];

		if (compare_is_alive(sync, hop, route->prefix.addr.family))
			add_way(out, &(struct way){hop->ifindex,
					     via_beyond(&hop->via, comparison->addr), hop->weight});
	}
}

static struct way way_of_hop(struct sync *sync, const struct fib_hop *hop, unsigned weight,
	const struct wire_addr *addr)
{
	struct way way = {links_ifindex(sync->mirror, hop->link), via_beyond(&hop->via, addr),
		weight};

	// A neighbour that a CONNECTED route was resolved to: Linux has no gateway there.
	if (hop->kind == FIB_CONNECTED)
		way.via = (struct wire_addr){.family = 0};
	return way;
}

static void ways_of_lanes(struct sync *sync, const struct comparison *comparison, struct ways *out)
{
	struct fib_member member[EVENT_MAX_HOPS] = {{.hop = *comparison->hop, .weight = 1}};
	unsigned n = 1;

	*out = (struct ways){.n = 0};
	if (comparison->hop->kind == FIB_GROUP)
		n = fib_group_members(sync->house.fib, comparison->hop, member, EVENT_MAX_HOPS);
	for (unsigned i = 0; i < n && i < EVENT_MAX_HOPS; i++) {
		struct way way =
			way_of_hop(sync, &member[i].hop, member[i].weight, comparison->addr);

		add_way(out, &way);
	}
}

// Shares may be rounded: lanes know of 255 parts.
static bool shares_differ(const struct ways *a, unsigned i, const struct ways *b, unsigned j)
{
	double one = (double)a->way[i].weight / a->sum, other = (double)b->way[j].weight / b->sum;

	return one - other > 0.02 || other - one > 0.02;
}

static bool same_ways(const struct ways *a, const struct ways *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		unsigned j = 0;

		while (j < b->n && (a->way[i].ifindex != b->way[j].ifindex ||
					   !wire_addr_equal(&a->way[i].via, &b->way[j].via)))
			j++;
		if (j == b->n || shares_differ(a, i, b, j))
			return false;
	}
	return true;
}

static void print_ways(struct sync *sync, const struct ways *ways, char *text, size_t room)
{
	char via[WIRE_ADDR_TEXT];
	const struct way *way = &ways->way[0];

	if (ways->n != 1)
		snprintf(text, room, "%u ways", ways->n);
	else
		snprintf(text, room, "%s%sdev %s",
			way->via.family ? wire_addr_print(&way->via, via) : "",
			way->via.family ? " " : "", links_name(sync->mirror, way->ifindex));
}

static const char *type_name(unsigned type)
{
	const char *name = sync_type_name(type);

	return name ? name : "other";
}

static bool compare_type(struct comparison *comparison, unsigned type)
{
	if (comparison->kernel->type == type)
		return true;
	snprintf(comparison->differs, COMPARE_TEXT, "Linux has a route of type %s, lanes %s",
		type_name(comparison->kernel->type), type_name(type));
	return false;
}

static bool compare_ways(struct sync *sync, struct comparison *comparison)
{
	char text[2][40];
	struct ways kernel, lanes;

	ways_of_linux(sync, comparison, &kernel);
	ways_of_lanes(sync, comparison, &lanes);
	if (same_ways(&kernel, &lanes))
		return true;
	// nexthop_compat_mode 0: Linux names the next-hop object, not what it holds.
	if (comparison->kernel->nh_id && !comparison->kernel->n_hops)
		return true;
	print_ways(sync, &kernel, text[0], sizeof(text[0]));
	print_ways(sync, &lanes, text[1], sizeof(text[1]));
	snprintf(comparison->differs, COMPARE_TEXT, "Linux sends by %s, lanes by %s%s", text[0],
		text[1], kernel.n > 1 && kernel.n == lanes.n ? " (other ones)" : "");
	return false;
}

bool compare_hop(struct sync *sync, struct comparison *comparison)
{
	switch (comparison->hop->kind) {
	case FIB_VIA:
	case FIB_CONNECTED:
	case FIB_PEER:
	case FIB_GROUP:
		return compare_type(comparison, RTN_UNICAST) && compare_ways(sync, comparison);
	case FIB_BLACKHOLE:
		return compare_type(comparison, RTN_BLACKHOLE);
	case FIB_UNREACHABLE:
		return compare_type(comparison, RTN_UNREACHABLE);
	case FIB_PROHIBIT:
		return compare_type(comparison, RTN_PROHIBIT);
	}
	return true;
}
