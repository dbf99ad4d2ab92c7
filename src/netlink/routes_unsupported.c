// The list for people: routes that workers leave to Linux, summed up by reason and interface.
// Control thread.
#include "base/bits.h"
#include "netlink/routes_inside.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SUMS = 64 };

static const char *const what_of[N_HOP_SET_REASONS] = {
	[HOP_SET_UNKNOWN_LINK] = "route via an interface that Linux has not told of yet",
	[HOP_SET_UNKNOWN_NEXTHOP] = "route via a next-hop object not told of yet",
	[HOP_SET_FOREIGN_LINK] = "route via an interface that is no port",
	[HOP_SET_ENCAP] = "route with an encapsulation",
	[HOP_SET_SOURCE] = "route for one source prefix",
	[HOP_SET_TYPE] = "route of a type that workers do not know",
	[HOP_SET_MTU] = "route with an MTU below its interface's",
	[HOP_SET_MANY] = "route with more than 64 next hops",
	[HOP_SET_MIXED] = "multipath route with a next hop on link",
	[HOP_SET_FULL] = "route without room in the tables of next hops",
	[HOP_SET_TOS] = "route for one TOS",
	[HOP_SET_UNDER_LOCAL] = "route under a shorter local one",
	[HOP_SET_LAST_TABLE] = "route in the table \"default\"",
	[HOP_SET_SAME_METRIC] = "several IPv6 routes of one metric",
	[HOP_SET_LEAKED] = "on-link route into another VRF",
};

// One line of the list.
struct sum {
	uint8_t reason;
	int ifindex;
	uint64_t n;
	uint32_t place; // the first one
};

static void add(struct sum *sums, unsigned *n_sums, const struct sum *one)
{
	for (unsigned i = 0; i < *n_sums; i++)
		if (sums[i].reason == one->reason && sums[i].ifindex == one->ifindex) {
			sums[i].n++;
			return;
		}
	if (*n_sums < MOST_SUMS)
		sums[(*n_sums)++] = *one;
	else
		sums[MOST_SUMS - 1].n++;
}

static unsigned sum_up(struct routes *routes, struct sum *sums)
{
	struct routes_choice choice;
	unsigned n_sums = 0;

	for (uint32_t i = 1; i < routes->store.top_place; i++) {
		if (!routes->store.place[i].is_linux)
			continue;
		routes_choose(routes, i, &choice);
		if (choice.is_nothing || choice.reason == HOP_SET_OK)
			continue; // changed since the last flush
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, choice.hop_set);
		add(sums, &n_sums,
			&(struct sum){.reason = choice.reason,
				.ifindex = choice.reason < HOP_SET_TOS ? hop_set->blame : 0,
				.n = 1,
				.place = i});
	}
	return n_sums;
}

static void print(struct routes *routes, const struct sum *sum, struct netlink_unsupported *out)
{
	struct wire_prefix prefix = store_prefix(&routes->store.place[sum->place]);
	char text[WIRE_PREFIX_TEXT];

	*out = (struct netlink_unsupported){.n = sum->n};
	snprintf(out->what, sizeof(out->what), "%s", what_of[sum->reason]);
	wire_prefix_print(&prefix, text);
	if (sum->ifindex)
		snprintf(out->where, sizeof(out->where), "%.43s dev %.15s", text,
			ifaces_name(routes->mirror, sum->ifindex));
	else
		snprintf(out->where, sizeof(out->where), "%s", text);
	snprintf(out->effect, sizeof(out->effect),
		"Linux forwards packets to it, up to the rate of class linux");
}

static void print_lost(const struct routes *routes, struct netlink_unsupported *out)
{
	*out = (struct netlink_unsupported){.n = routes->n_refused + routes->n_lost};
	snprintf(out->what, sizeof(out->what), "route that found no room");
	snprintf(out->where, sizeof(out->where), "more than %u routes, or no memory",
		STORE_MAX - 1);
	snprintf(out->effect, sizeof(out->effect),
		"workers do not know it and take the next shorter prefix");
}

void routes_unsupported(struct routes *routes,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct sum sums[MOST_SUMS];
	struct netlink_unsupported one;
	unsigned n = sum_up(routes, sums);

	for (unsigned i = 0; i < n; i++) {
		print(routes, &sums[i], &one);
		if (!tell(arg, &one))
			return;
	}
	if (routes->n_refused + routes->n_lost) {
		print_lost(routes, &one);
		tell(arg, &one);
	}
}
