// What Linux says of an IPv4 route: those of one prefix, TOS and metric stand in a list of which
// the first counts. Control thread.
#include "netlink/hear.h"

#include <linux/netlink.h>

// A dump lists routes in the kernel's order: each one goes behind those that were listed before.
static void move_to_end(struct routes *routes, uint32_t number, const struct peers *peers)
{
	uint32_t *iface = peers_first(routes, peers);

	if (!peers_has(routes, peers_at(routes, number)->next, peers))
		return;
	while (*iface != number)
		iface = &peers_at(routes, *iface)->next;
	*iface = peers_at(routes, number)->next;
	iface = peers_end(routes, iface, peers);
	peers_at(routes, number)->next = *iface;
	*iface = number;
	store_touch(&routes->store, peers->place);
}

void hear_add4(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event)
{
	uint32_t *first = peers_first(routes, peers);
	uint32_t same = peers_find_hop_set(routes, *first, peers, hop_set);

	if (same) {
		peers_seen(routes, same);
		if (event->is_dump)
			move_to_end(routes, same, peers);
	} else if (event->nl_flags & NLM_F_REPLACE && peers_has(routes, *first, peers)) {
		peers_seen(routes, *first);
		routes_lead(routes, *first, hop_set);
	} else if (event->nl_flags & NLM_F_APPEND || event->is_dump) {
		peers_put(routes, peers, hop_set, peers_end(routes, first, peers));
	} else {
		peers_put(routes, peers, hop_set, first);
	}
}

void hear_delete4(struct routes *routes, const struct peers *peers)
{
	uint32_t hop_set = hop_sets_find(&routes->hop_sets, &routes->request);
	uint32_t old =
		hop_set ? peers_find_hop_set(routes, *peers_first(routes, peers), peers, hop_set)
			: 0;

	if (old)
		routes_drop(routes, old);
	else
		peers_missed(routes, peers);
}
