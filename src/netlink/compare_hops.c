// The next hops of a kernel route, for the checks: those of a route by nh_id are taken from its
// next-hop object, as Linux has it now. The copies that Linux puts into such a route have weights
// of 8 bits, and there are none with nexthop_compat_mode 0. Control thread.
#include "netlink/inside.h"

#include "netlink/hop_sets.h"
#include "netlink/mirror_inside.h"

#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <string.h>

struct nexthop_request {
	struct nlmsghdr head;
	struct nhmsg nexthop;
	struct rtattr attr;
	uint32_t id;
};

static void take_nexthop(void *arg, const struct event *event)
{
	struct nexthops *nexthops = arg;
	struct nexthop *one =
		event->kind == EVENT_NEXTHOP ? nexthops_get(nexthops, event->nexthop.id) : NULL;

	if (one)
		nexthops_set(nexthops, one, &event->nexthop);
}

static int ask_one(struct netlink *netlink, uint32_t id, struct nexthops *out)
{
	struct nexthop_request message = {.head = {.nlmsg_len = sizeof(message),
						  .nlmsg_type = RTM_GETNEXTHOP,
						  .nlmsg_flags = NLM_F_REQUEST},
		.attr = {RTA_LENGTH(sizeof(id)), NHA_ID},
		.id = id};
	struct listen_request request = {&message, sizeof(message), take_nexthop, out};
	int err = listen_ask(netlink->listen, &request);

	return out->is_short ? -ENOMEM : err;
}

int compare_ask_nexthop(struct netlink *netlink, uint32_t id, struct nexthops *out)
{
	int err = ask_one(netlink, id, out);
	const struct nexthop *group = nexthops_find(out, id);

	for (unsigned i = 0; !err && group && i < group->n_members; i++)
		err = ask_one(netlink, group->member[i].id, out);
	return err;
}

int compare_dump_nexthops(struct netlink *netlink, struct nexthops *out)
{
	const struct listen_request request = listen_all_nexthops(take_nexthop, out);
	int err = listen_ask(netlink->listen, &request);

	return out->is_short ? -ENOMEM : err;
}

static bool ignores_linkdown(const struct ifaces_state *state, uint8_t family)
{
	return family == 4 ? state->ignores_linkdown4 : state->ignores_linkdown6;
}

static bool is_alive(const struct netlink *netlink, const struct event_hop *hop, uint8_t family)
{
	const struct ifaces_state state = ifaces_state(netlink->mirror, hop->ifindex);

	if (hop->flags & RTNH_F_DEAD)
		return false;
	return !(hop->flags & RTNH_F_LINKDOWN) || !ignores_linkdown(&state, family);
}

// Linux does not report whether the interface of an object is usable.
static bool is_object_alive(const struct netlink *netlink, int ifindex, uint8_t family)
{
	const struct ifaces_state state = ifaces_state(netlink->mirror, ifindex);

	return !state.is_known ||
	       (state.is_up && (state.has_carrier || !ignores_linkdown(&state, family)));
}

static void add_object(const struct netlink *netlink, const struct nexthop *one, uint32_t weight,
	struct compare_hops *out)
{
	const struct hop_set_hop *hop = &one->hop;

	if (!one->is_known || one->is_blackhole ||
		!is_object_alive(netlink, hop->ifindex, out->family) || out->n == EVENT_MAX_HOPS)
		return;
	out->hop[out->n++] = (struct compare_hop){hop->via, hop->ifindex, weight};
}

static void add_objects(const struct netlink *netlink, const struct nexthops *nexthops,
	const struct nexthop *nexthop, struct compare_hops *out)
{
	if (!nexthop->is_group)
		add_object(netlink, nexthop, 1, out);
	for (unsigned i = 0; i < nexthop->n_members; i++)
		add_object(netlink, nexthops_find(nexthops, nexthop->member[i].id),
			nexthop->member[i].weight, out);
}

static void scale(struct compare_hops *hops)
{
	uint32_t weight[EVENT_MAX_HOPS];

	for (unsigned i = 0; i < hops->n; i++)
		weight[i] = hops->hop[i].weight;
	hop_sets_scale_weights(weight, hops->n);
	for (unsigned i = 0; i < hops->n; i++)
		hops->hop[i].weight = weight[i];
}

void compare_hops_of(const struct netlink *netlink, const struct event_route *route,
	const struct nexthops *nexthops, struct compare_hops *out)
{
	const struct nexthop *nexthop = route->nh_id ? nexthops_find(nexthops, route->nh_id) : NULL;

	*out = (struct compare_hops){.family = route->prefix.addr.family};
	if (nexthop)
		add_objects(netlink, nexthops, nexthop, out);
	for (unsigned i = 0; !route->nh_id && i < route->n_hops; i++) {
		const struct event_hop *hop = &route->hop[i];

		if (is_alive(netlink, hop, out->family))
			out->hop[out->n++] =
				(struct compare_hop){hop->via, hop->ifindex, hop->weight};
	}
	scale(out);
}
