// Whether somebody asks hosts of a bridge that snoops which groups they want: else it floods, as
// they do not say. Linux does not tell, so its bridges are asked once a second. After a querier has
// come, Linux floods until hosts have had time to answer. This time is known for queries of the
// bridge itself only; of others, the longest is waited for, in which frames to groups are Linux's,
// as they are before a querier may be forgotten. Control thread.
#include "netlink/bridges_inside.h"

enum { OWN = 1, OTHER = 2 };
// In s. IGMPv2 and MLD have answers after at most 25.5 and 65.5 s. A querier that Linux is about to
// forget may be gone before it is asked again.
enum { LONGEST4_S = 27, LONGEST6_S = 67, LEAST_CS = 300 };
static const uint64_t SECOND_NS = 1000000000, POLL_NS = 1000000000;

struct querier *queriers_find(struct bridges *bridges, int ifindex)
{
	struct querier *free_one = NULL;

	for (unsigned i = 0; i < MAC_BRIDGES; i++) {
		struct querier *one = &bridges->querier[i];

		if (one->ifindex == ifindex)
			return one;
		if (!one->ifindex && !free_one)
			free_one = one;
	}
	if (free_one)
		*free_one = (struct querier){.ifindex = ifindex};
	return free_one;
}

static bool has_address6(const struct interface *bridge)
{
	return bridge->n_addresses > bridge->n_addresses4;
}

// Who asks. IPv6 needs an address to ask from, and Linux looks for one when it asks.
static uint8_t askers(const struct interface *bridge, unsigned family)
{
	const struct event_snooping *is = &bridge->iface.bridge.snooping;
	const bool can_ask = family == 0 || (is->has_address6 && has_address6(bridge));

	return (is->is_querier && can_ask ? OWN : 0) | (is->other_cs[family] ? OTHER : 0);
}

static bool is_unclear(const struct interface *bridge, unsigned family, uint8_t who)
{
	const struct event_snooping *is = &bridge->iface.bridge.snooping;

	if (who == OTHER && is->other_cs[family] < LEAST_CS)
		return true;
	return !who && family == 1 && is->is_querier && is->has_address6 != has_address6(bridge);
}

static uint64_t wait_ns(const struct interface *bridge, unsigned family, uint8_t who)
{
	const struct event_snooping *is = &bridge->iface.bridge.snooping;
	uint64_t wait_cs = is->response_cs;

	if (who & OTHER)
		wait_cs = MAX_OF(wait_cs, (family ? LONGEST6_S : LONGEST4_S) * 100ull);
	if (family == 1 && who & OWN)
		wait_cs = MAX_OF(wait_cs, MAX_OF(is->query_cs, is->startup_cs));
	return MIN_OF(wait_cs, 1000000ull) * (SECOND_NS / 100) + SECOND_NS;
}

static enum snooped look(struct querier *querier, const struct interface *bridge, unsigned family,
	uint64_t now_ns)
{
	const uint8_t who = askers(bridge, family), new = who & ~querier->who[family];

	querier->who[family] = who;
	if (new) {
		querier->wait_ns[family] = wait_ns(bridge, family, new);
		querier->since_ns[family] = now_ns;
		querier->is_settled[family] = false;
	}
	if (is_unclear(bridge, family, who))
		return SNOOPED_UNCLEAR;
	if (!who)
		return SNOOPED_NONE;
	querier->is_settled[family] |=
		(int64_t)(now_ns - querier->since_ns[family]) >= (int64_t)querier->wait_ns[family];
	return querier->is_settled[family] ? SNOOPED_BY_TABLE : SNOOPED_UNCLEAR;
}

void queriers_look(struct bridges *bridges, const struct interface *bridge, uint64_t now_ns)
{
	struct querier *querier = queriers_find(bridges, bridge->ifindex);

	for (unsigned family = 0; querier && family < 2; family++)
		querier->is[family] = look(querier, bridge, family, now_ns);
}

static void take_link(void *arg, const struct event *event)
{
	struct interface *bridge = arg;

	if (event->kind != EVENT_LINK || event->iface.ifindex != bridge->ifindex)
		return;
	bridge->iface.bridge.snoops = event->iface.bridge.snoops;
	bridge->iface.bridge.snooping = event->iface.bridge.snooping;
}

// Linux ends to snoop without a word when a bridge has too many groups.
static bool poll_bridge(struct bridges *bridges, struct interface *bridge, uint64_t now_ns)
{
	const struct mirror_ops *ops = &bridges->mirror->settings.ops;
	const bool snooped = bridge->iface.bridge.snoops;
	const struct querier *querier = queriers_find(bridges, bridge->ifindex);
	const struct querier was = querier ? *querier : (struct querier){0};

	if (ops->ask_link)
		ops->ask_link(ops->ops, bridge->ifindex, take_link, bridge);
	queriers_look(bridges, bridge, now_ns);
	return snooped != bridge->iface.bridge.snoops ||
	       (querier && (was.is[0] != querier->is[0] || was.is[1] != querier->is[1]));
}

static void forget_others(struct bridges *bridges)
{
	for (unsigned i = 0; i < MAC_BRIDGES; i++) {
		const struct served *served =
			served_find(&bridges->now, bridges->querier[i].ifindex);
		const struct interface *bridge =
			served ? interfaces_find(&bridges->mirror->ifaces->all, served->ifindex)
			       : NULL;

		if (!bridge || !bridge->iface.bridge.snoops)
			bridges->querier[i].ifindex = 0;
	}
}

bool queriers_poll(struct bridges *bridges, uint64_t now_ns)
{
	const struct ifaces *ifaces = bridges->mirror->ifaces;
	const bool is_due = !bridges->asked_ns || now_ns - bridges->asked_ns >= POLL_NS;
	bool some_snoop = false;

	if (is_due) {
		bridges->asked_ns = now_ns;
		forget_others(bridges);
	}
	for (unsigned i = 0; i < bridges->now.n; i++) {
		struct interface *bridge =
			interfaces_find(&ifaces->all, bridges->now.bridge[i].ifindex);

		if (!bridge || !bridge->iface.bridge.snoops)
			continue;
		some_snoop = true;
		if (is_due)
			bridges->is_stale |= poll_bridge(bridges, bridge, now_ns);
	}
	return some_snoop;
}
