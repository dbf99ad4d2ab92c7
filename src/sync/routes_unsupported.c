// The list for people: routes that lanes leave to Linux, summed up by reason and interface. Control
// thread.
#include "base/bits.h"
#include "sync/routes_inside.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SUMS = 64 };

static const char *const what_of[N_WAY_REASONS] = {
	[WAY_UNKNOWN_LINK] = "route via an interface that Linux has not told of yet",
	[WAY_UNKNOWN_NEXTHOP] = "route via a next-hop object not told of yet",
	[WAY_FOREIGN_LINK] = "route via an interface that is no port",
	[WAY_ENCAP] = "route with an encapsulation",
	[WAY_SOURCE] = "route for one source prefix",
	[WAY_TYPE] = "route of a type that lanes do not know",
	[WAY_MTU] = "route with an MTU below its interface's",
	[WAY_MANY] = "route with more than 64 next hops",
	[WAY_MIXED] = "multipath route with a next hop on link",
	[WAY_FULL] = "route without room in the tables of next hops",
	[WAY_TOS] = "route for one TOS",
	[WAY_UNDER_LOCAL] = "route under a shorter local one",
	[WAY_LAST_TABLE] = "route in the table \"default\"",
	[WAY_SAME_METRIC] = "several IPv6 routes of one metric",
	[WAY_LEAKED] = "on-link route into another VRF",
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
		if (choice.is_nothing || choice.reason == WAY_OK)
			continue; // changed since the last flush
		const struct way *way = ways_at(&routes->ways, choice.way);
		add(sums, &n_sums,
			&(struct sum){.reason = choice.reason,
				.ifindex = choice.reason < WAY_TOS ? way->blame : 0,
				.n = 1,
				.place = i});
	}
	return n_sums;
}

static void print(struct routes *routes, const struct sum *sum, struct sync_unsupported *out)
{
	struct wire_prefix prefix = store_prefix(&routes->store.place[sum->place]);
	char text[WIRE_PREFIX_TEXT];

	*out = (struct sync_unsupported){.n = sum->n};
	snprintf(out->what, sizeof(out->what), "%s", what_of[sum->reason]);
	wire_prefix_print(&prefix, text);
	if (sum->ifindex)
		snprintf(out->where, sizeof(out->where), "%.43s dev %.15s", text,
			links_name(routes->mirror, sum->ifindex));
	else
		snprintf(out->where, sizeof(out->where), "%s", text);
	snprintf(out->effect, sizeof(out->effect),
		"Linux forwards packets to it, up to the rate of class linux");
}

static void print_lost(const struct routes *routes, struct sync_unsupported *out)
{
	*out = (struct sync_unsupported){.n = routes->n_refused + routes->n_lost};
	snprintf(out->what, sizeof(out->what), "route that found no room");
	snprintf(out->where, sizeof(out->where), "more than %u routes, or no memory",
		STORE_MAX - 1);
	snprintf(out->effect, sizeof(out->effect),
		"lanes do not know it and take the next shorter prefix");
}

void routes_unsupported(struct routes *routes,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg)
{
	struct sum sums[MOST_SUMS];
	struct sync_unsupported one;
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
