// Arbitrary bytes as a netlink datagram of any of the three families, or an answer about tunnels:
// either valid events with bounded counts and terminated strings, or none.
#include "fib/fib.h"
#include "netlink/listen_inside.h"
#include "netlink/tunnel_facts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool ends(const char *text, size_t room)
{
	return strnlen(text, room) < room;
}

static bool filter_is_sane(const struct event_filter *filter)
{
	struct error error;

	if (!ends(filter->kind, FILTER_KIND_MAX) || !ends(filter->reason, FILTER_REASON_MAX) ||
		(filter->what == FILTER_UNKNOWN) != (filter->reason[0] != 0) ||
		filter->n_rules > (filter->what == FILTER_RULES ? FILTER_MAX_RULES : 0))
		return false;
	for (unsigned i = 0; i < filter->n_rules; i++) {
		struct acl_rule rule = filter->rule[i];

		if (acl_rule_end(&rule, &error) || memcmp(&rule, &filter->rule[i], sizeof(rule)))
			return false;
	}
	return true;
}

static bool queue_is_sane(const struct event *event)
{
	const struct event_queue *queue = &event->queue;

	if (!ends(queue->kind, QUEUE_KIND_MAX) || !ends(queue->reason, QUEUE_REASON_MAX) ||
		queue->what >= N_QUEUE_WHATS)
		return false;
	if ((queue->what == QUEUE_OTHER && !queue->reason[0]) ||
		(event->kind == EVENT_CLASS) !=
			(queue->what == QUEUE_CLASS || queue->what == QUEUE_FILTER))
		return false;
	return event->is_delete || queue->reason[0] || queue->rate ||
	       (queue->what != QUEUE_TBF && queue->what != QUEUE_CLASS);
}

static bool vlans_are_sane(const struct event_vlans *vlans)
{
	uint64_t others = 0;

	for (unsigned i = 0; i < EVENT_VIDS / 64; i++)
		others |= (vlans->untagged[i] | vlans->odd[i]) & ~vlans->has[i];
	return !others && !(vlans->has[0] & 1) && !(vlans->has[63] >> 63) &&
	       vlans->pvid < EVENT_VIDS &&
	       (!vlans->pvid || vlans->has[vlans->pvid / 64] >> vlans->pvid % 64 & 1);
}

static bool tunnel_is_sane(const struct event_tunnel *tunnel)
{
	const struct iface_tunnel *settings = &tunnel->settings;

	if (!tunnel->is_tunnel || tunnel->trouble)
		return tunnel->trouble < TUNNEL_LOCAL && !settings->kind;
	if (settings->kind == IFACE_VXLAN)
		return settings->local.family && !settings->remote.family && settings->dest_port &&
		       settings->key <= IFACE_MAX_VNI &&
		       settings->last_source_port >= settings->source_port;
	if (!settings->local.family || settings->local.family != settings->remote.family ||
		wire_addr_equal(&settings->local, &settings->remote))
		return false;
	if (settings->kind == IFACE_GRETAP)
		return !(settings->flags & IFACE_TUNNEL_UDP) && !settings->dest_port;
	return (settings->kind == IFACE_IPIP || settings->kind == IFACE_GRE) &&
	       settings->flags & (IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_MPLS) &&
	       !(settings->flags & IFACE_TUNNEL_UDP) == !settings->dest_port &&
	       !(settings->flags & IFACE_TUNNEL_UDP && settings->kind == IFACE_GRE);
}

static bool labels_are_sane(const struct event_hop hop[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (hop[i].n_labels > EVENT_MAX_LABELS)
			return false;
		for (unsigned k = 0; k < hop[i].n_labels; k++)
			if (hop[i].label[k] > FIB_MAX_LABEL)
				return false;
	}
	return true;
}

static bool groups_are_sane(const struct event_groups *groups)
{
	if (groups->bridge <= 0 || groups->n > EVENT_MAX_GROUPS ||
		groups->n_routers > EVENT_MAX_ROUTERS || !(groups->n + groups->n_routers))
		return false;
	for (unsigned i = 0; i < groups->n; i++) {
		const struct event_group *one = &groups->group[i];

		if (one->ifindex <= 0 || one->vlan >= EVENT_VIDS ||
			(one->family && one->family != 4 && one->family != 6) ||
			(!one->family && one->has_source))
			return false;
	}
	return true;
}

static bool is_sane(const struct event *event)
{
	switch (event->kind) {
	case EVENT_LINK:
		return event->iface.ifindex > 0 && ends(event->iface.name, EVENT_NAME_MAX) &&
		       ends(event->iface.kind, EVENT_KIND_MAX) &&
		       ends(event->iface.slave_kind, EVENT_KIND_MAX) &&
		       tunnel_is_sane(&event->iface.tunnel);
	case EVENT_BRIDGE_PORT:
		return event->port.ifindex > 0 && event->port.port.is_known && !event->is_delete;
	case EVENT_VLANS:
		return event->vlans.ifindex > 0 && vlans_are_sane(&event->vlans);
	case EVENT_FDB:
		return event->fdb.ifindex > 0 && event->fdb.bridge > 0 &&
		       !(event->fdb.is_plain && event->fdb.mac.bytes[0] & 1);
	case EVENT_REMOTE:
		return event->remote.ifindex > 0 && event->remote.vni <= IFACE_MAX_VNI &&
		       (event->remote.addr.family || event->remote.nexthop);
	case EVENT_GROUPS:
		return groups_are_sane(&event->groups);
	case EVENT_ROUTE:
		return event->route.n_hops <= EVENT_MAX_HOPS &&
		       labels_are_sane(event->route.hop, event->route.n_hops) &&
		       event->route.prefix.len <= (event->route.prefix.addr.family == 4 ? 32 : 128);
	case EVENT_NEXTHOP:
		return event->nexthop.id && event->nexthop.n_members <= EVENT_MAX_GROUP &&
		       labels_are_sane(&event->nexthop.hop, 1);
	case EVENT_LABEL:
		return event->label.label <= FIB_MAX_LABEL &&
		       event->label.n_hops <= EVENT_MAX_HOPS &&
		       labels_are_sane(event->label.hop, event->label.n_hops);
	case EVENT_CLASS:
		return queue_is_sane(event);
	case EVENT_QDISC:
		return ends(event->foreign.name, EVENT_FOREIGN_MAX) &&
		       (event->foreign.sides != EVENT_EGRESS || queue_is_sane(event));
	case EVENT_POLICY:
	case EVENT_POLICY_DEFAULT:
	case EVENT_CHAIN:
	case EVENT_MROUTE:
		return ends(event->foreign.name, EVENT_FOREIGN_MAX);
	case EVENT_FILTER:
		return event->is_delete || filter_is_sane(&event->filter);
	}
	return event->kind < N_EVENT_KINDS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static enum decode_result (*const decoders[])(const void *, size_t,
		struct event *) = {decode_route, decode_netfilter, decode_xfrm};
	static uint8_t copy[64 << 10] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct socket_rest rest = {copy + sizeof(copy) - NLMSG_ALIGN(n), n};
	const struct nlmsghdr *message;
	struct mirror_udp_port port;
	struct event event;

	if (n > sizeof(copy))
		return 0;
	// The copy ends at the end of the allocation, so that overreads are detected.
	memcpy((void *)rest.bytes, data, n);
	while ((message = socket_next(&rest))) {
		decode_family(message);
		decode_route_mtu(message);
		if (decode_udp_port(message, &port) && !port.port)
			abort();
		for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
			if (decoders[i](message, message->nlmsg_len, &event) == DECODE_EVENT &&
				!is_sane(&event))
				abort();
	}
	return 0;
}
