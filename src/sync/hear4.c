// What Linux says of an IPv4 route: those of one prefix, TOS and metric stand in a list of which
// the first counts. Control thread.
#include "sync/hear.h"

#include <linux/netlink.h>

// A dump lists routes in the kernel's order: each one goes behind those that were listed before.
static void move_to_end(struct routes *routes, uint32_t number, const struct peers *peers)
{
	uint32_t *link = peers_first(routes, peers);

	if (!peers_has(routes, peers_at(routes, number)->next, peers))
		return;
	while (*link != number)
		link = &peers_at(routes, *link)->next;
	*link = peers_at(routes, number)->next;
	link = peers_end(routes, link, peers);
	peers_at(routes, number)->next = *link;
	*link = number;
	store_touch(&routes->store, peers->place);
}

void hear_add4(struct routes *routes, const struct peers *peers, uint32_t way,
	const struct event *event)
{
	uint32_t *first = peers_first(routes, peers);
	uint32_t same = peers_find_way(routes, *first, peers, way);

	if (same) {
		peers_seen(routes, same);
		if (event->is_dump)
			move_to_end(routes, same, peers);
	} else if (event->nl_flags & NLM_F_REPLACE && peers_has(routes, *first, peers)) {
		peers_seen(routes, *first);
		routes_lead(routes, *first, way);
	} else if (event->nl_flags & NLM_F_APPEND || event->is_dump) {
		peers_put(routes, peers, way, peers_end(routes, first, peers));
	} else {
		peers_put(routes, peers, way, first);
	}
}

void hear_delete4(struct routes *routes, const struct peers *peers)
{
	uint32_t way = ways_find(&routes->ways, &routes->wish);
	uint32_t old = way ? peers_find_way(routes, *peers_first(routes, peers), peers, way) : 0;

	if (old)
		routes_drop(routes, old);
	else
		peers_missed(routes, peers);
}
