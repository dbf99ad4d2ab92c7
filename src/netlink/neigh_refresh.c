// Keeps neighbours used by workers resolved: the kernel does not see their packets and would expire
// the entries. Gateways, of routes and of held hops, and remote ends of VXLAN devices that are
// neighbours themselves are marked managed (NTF_EXT_MANAGED, Linux 5.16: the kernel keeps them
// resolved); hosts and, on older kernels, gateways are probed once they are stale. Those of held
// hops, and remote ends, are resolved on older kernels, too: the kernel may get no packets for
// them. Control thread; works in small steps.
#include "base/vector.h"
#include "netlink/inside.h"
#include "netlink/mirror_inside.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef NTF_EXT_MANAGED
#define NTF_EXT_MANAGED 1
#endif

// Ten ticks per second. OURS is used in NDA_PROTOCOL and is not assigned to any routing protocol.
enum { WRITES_PER_TICK = 16, LOOKS_PER_TICK = 512, TICKS_BETWEEN_ROUNDS = 20, OURS = 0xd3 };

enum phase { PHASE_GATEWAYS, PHASE_NEIGHBOURS, PHASE_REST };

struct gateway {
	int ifindex;
	struct wire_addr addr;
	bool is_held; // of a held hop, or a remote end
};

struct neigh_refresh {
	struct netlink *netlink;
	uint8_t phase; // enum phase
	unsigned rest; // ticks until the next round
	unsigned writes;
	uint32_t hop;            // next hop id to check
	uint32_t vtep;           // cursor
	uint32_t neighbour;      // cursor
	struct gateway *gateway; // of this round, sorted once it is complete
	size_t n_gateways, capacity;
	size_t next_gateway;
	bool cannot_manage; // not supported by this kernel
	uint64_t n_managed, n_counted;
};

int neigh_refresh_open(struct neigh_refresh **out, struct netlink *netlink, struct error *error)
{
	struct neigh_refresh *refresh = calloc(1, sizeof(*refresh));

	if (!refresh)
		return error_set(error, -ENOMEM, "not enough memory for neighbour refresh");
	refresh->netlink = netlink;
	refresh->hop = 1;
	*out = refresh;
	return 0;
}

uint64_t neigh_refresh_n_managed(const struct neigh_refresh *refresh)
{
	return refresh->n_managed;
}

struct request {
	struct nlmsghdr head;
	struct ndmsg neighbour;
	uint8_t attrs[96];
};

static void add_attr(struct request *request, uint16_t type, const void *value, size_t n)
{
	struct nlattr attr = {NLA_HDRLEN + n, type};
	uint8_t *at = (uint8_t *)request + request->head.nlmsg_len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + NLA_HDRLEN, value, n);
	request->head.nlmsg_len += NLA_ALIGN(attr.nla_len);
}

static struct request request_for(uint16_t type, int ifindex, const struct wire_addr *addr)
{
	struct request request = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(request.neighbour)),
					  .nlmsg_type = type,
					  .nlmsg_flags = NLM_F_REQUEST},
		.neighbour = {.ndm_family = addr->family == 4 ? AF_INET : AF_INET6,
			.ndm_ifindex = ifindex}};

	add_attr(&request, NDA_DST, addr->bytes, addr->family == 4 ? 4 : 16);
	return request;
}

static int ask_kernel(struct neigh_refresh *refresh, struct request *request,
	void (*take)(void *arg, const struct event *event), void *arg)
{
	struct listen_request question = {request, request->head.nlmsg_len, take, arg};

	return listen_ask(refresh->netlink->listen, &question);
}

static void take_nothing(void *arg, const struct event *event)
{
}

static void take_neighbour(void *arg, const struct event *event)
{
	if (event->kind == EVENT_NEIGHBOUR)
		*(struct event_neighbour *)arg = event->neighbour;
}

// Reads the current kernel entry, since the mirror may lag behind. Returns false if there is none.
static bool look_up(struct neigh_refresh *refresh, const struct gateway *at,
	struct event_neighbour *out)
{
	struct request request = request_for(RTM_GETNEIGH, at->ifindex, &at->addr);

	*out = (struct event_neighbour){0};
	return !ask_kernel(refresh, &request, take_neighbour, out) && out->ifindex;
}

static bool is_the_operators(uint16_t state)
{
	return state & (NUD_PERMANENT | NUD_NOARP);
}

// Rewrites an entry with its MAC address and the given state.
static void write_neighbour(struct neigh_refresh *refresh, const struct event_neighbour *now,
	uint16_t state, uint32_t ext_flags)
{
	struct request request = request_for(RTM_NEWNEIGH, now->ifindex, &now->addr);
	uint8_t protocol = OURS;

	request.head.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
	request.neighbour.ndm_state = state;
	request.neighbour.ndm_flags = now->flags & (NTF_ROUTER | NTF_EXT_LEARNED);
	if (now->has_mac && state != NUD_NONE)
		add_attr(&request, NDA_LLADDR, now->mac.bytes, sizeof(now->mac.bytes));
	if (ext_flags) {
		add_attr(&request, NDA_FLAGS_EXT, &ext_flags, sizeof(ext_flags));
		add_attr(&request, NDA_PROTOCOL, &protocol, sizeof(protocol));
	}
	refresh->writes++;
	ask_kernel(refresh, &request, take_nothing, NULL);
}

static bool is_usable(const struct event_neighbour *now)
{
	return now->has_mac && now->state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE);
}

// Makes the kernel resolve an unknown gateway and keep it resolved. Kernels without the flag probe
// a known gateway and ignore the rest.
static void manage(struct neigh_refresh *refresh, const struct gateway *gateway)
{
	struct event_neighbour now;

	if (!look_up(refresh, gateway, &now))
		now = (struct event_neighbour){.ifindex = gateway->ifindex, .addr = gateway->addr};
	if (is_the_operators(now.state) || now.ext_flags & NTF_EXT_MANAGED)
		return;
	write_neighbour(refresh, &now, is_usable(&now) ? NUD_PROBE : NUD_NONE, NTF_EXT_MANAGED);
	if (look_up(refresh, gateway, &now) && !(now.ext_flags & NTF_EXT_MANAGED))
		refresh->cannot_manage = true;
}

// Turns it into an ordinary entry that is revalidated when Linux uses it next.
static void give_back(struct neigh_refresh *refresh, const struct neighbour *neighbour)
{
	struct gateway at = {.ifindex = neighbour->ifindex, .addr = neighbour->addr};
	struct request request = request_for(RTM_DELNEIGH, at.ifindex, &at.addr);
	struct event_neighbour now;

	if (!look_up(refresh, &at, &now) || !(now.ext_flags & NTF_EXT_MANAGED) ||
		now.protocol != OURS)
		return;
	if (is_usable(&now)) {
		write_neighbour(refresh, &now, NUD_STALE, 0);
		return;
	}
	refresh->writes++;
	ask_kernel(refresh, &request, take_nothing, NULL);
}

static void probe(struct neigh_refresh *refresh, const struct neighbour *neighbour)
{
	struct gateway at = {.ifindex = neighbour->ifindex, .addr = neighbour->addr};
	struct event_neighbour now;

	if (look_up(refresh, &at, &now) && now.state == NUD_STALE && now.has_mac)
		write_neighbour(refresh, &now, NUD_PROBE, now.ext_flags);
}

// Has the kernel resolve it now, as a packet would.
static void resolve(struct neigh_refresh *refresh, const struct gateway *gateway)
{
	struct request request = request_for(RTM_NEWNEIGH, gateway->ifindex, &gateway->addr);

	request.head.nlmsg_flags |= NLM_F_CREATE;
	request.neighbour.ndm_flags = NTF_USE;
	refresh->writes++;
	ask_kernel(refresh, &request, take_nothing, NULL);
}

static int order_of_gateways(const void *one, const void *other)
{
	const struct gateway *a = one, *b = other;
	int order = (a->ifindex > b->ifindex) - (a->ifindex < b->ifindex);

	if (!order)
		order = a->addr.family - b->addr.family;
	return order ? order : memcmp(a->addr.bytes, b->addr.bytes, sizeof(a->addr.bytes));
}

static void add_gateway(struct neigh_refresh *refresh, const struct fib_hop *hop, bool is_held)
{
	struct gateway gateway = {ifaces_ifindex(refresh->netlink->mirror, hop->iface), hop->via,
		is_held};

	if (hop->kind != FIB_VIA || !gateway.ifindex ||
		vector_reserve(&refresh->gateway, &refresh->capacity, refresh->n_gateways + 1,
			sizeof(gateway)))
		return;
	refresh->gateway[refresh->n_gateways++] = gateway;
}

static void add_hop(struct neigh_refresh *refresh, uint32_t id)
{
	const struct fib *fib = refresh->netlink->ctx.fib;
	struct fib_member member[EVENT_MAX_HOPS];
	struct fib_hop_info info;
	unsigned n;

	if (!fib_hop_info(fib, id, &info) || !(info.n_routes || info.is_held))
		return;
	if (info.hop.kind != FIB_GROUP) {
		add_gateway(refresh, &info.hop, info.is_held);
		return;
	}
	n = fib_group_members(fib, &info.hop, member, EVENT_MAX_HOPS);
	for (unsigned i = 0; i < n && i < EVENT_MAX_HOPS; i++)
		add_gateway(refresh, &member[i].hop, false);
}

// A remote end on the link. Those further away are behind gateways of routes.
static void add_vtep(struct neigh_refresh *refresh, uint16_t vrf, const struct wire_addr *addr)
{
	struct fib_hop hop = {.kind = FIB_VIA, .via = *addr};
	struct fib_answer answer;

	rib_lookup(refresh->netlink->ctx.fib, vrf, addr, &answer);
	if (!answer.found || answer.route.hop.kind != FIB_CONNECTED)
		return;
	hop.iface = answer.route.hop.iface;
	add_gateway(refresh, &hop, true);
}

// All remote ends in the fib. Returns true when complete.
static bool collect_vteps(struct neigh_refresh *refresh)
{
	struct wire_addr addr;
	uint16_t vrf;

	for (unsigned i = 0; i < LOOKS_PER_TICK; i++) {
		if (!fib_vtep_next(refresh->netlink->ctx.fib, &refresh->vtep, &vrf, &addr))
			return true;
		add_vtep(refresh, vrf, &addr);
	}
	return false;
}

// All gateways of all routes and held hops in the fib. Returns true when complete.
static bool collect(struct neigh_refresh *refresh)
{
	struct fib_usage usage;

	fib_usage(refresh->netlink->ctx.fib, &usage);
	for (unsigned i = 0; i < LOOKS_PER_TICK; i++) {
		if (refresh->hop > usage.max_hop_id)
			return true;
		add_hop(refresh, refresh->hop++);
	}
	return false;
}

static bool is_gateway(const struct neigh_refresh *refresh, int ifindex,
	const struct wire_addr *addr)
{
	struct gateway wanted = {.ifindex = ifindex, .addr = *addr};

	return refresh->n_gateways && bsearch(&wanted, refresh->gateway, refresh->n_gateways,
					      sizeof(wanted), order_of_gateways);
}

static void look_at_neighbour(struct neigh_refresh *refresh, const struct neighbour *neighbour)
{
	bool managed = neighbour->ext_flags & NTF_EXT_MANAGED && neighbour->protocol == OURS;

	refresh->n_counted += managed;
	if (managed && !is_gateway(refresh, neighbour->ifindex, &neighbour->addr))
		give_back(refresh, neighbour);
	else if (!managed && neighbour->iface != IFACE_NONE && neighbour->state == NUD_STALE)
		probe(refresh, neighbour);
}

static bool look_at_neighbours(struct neigh_refresh *refresh)
{
	struct neighbour neighbour;

	for (unsigned i = 0; i < LOOKS_PER_TICK && refresh->writes < WRITES_PER_TICK; i++) {
		if (!neighbours_next(refresh->netlink->mirror->neighbours, &refresh->neighbour,
			    &neighbour))
			return true;
		look_at_neighbour(refresh, &neighbour);
	}
	return false;
}

static bool is_resolved_or_asked(const struct neighbour *known)
{
	return known->state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_INCOMPLETE);
}

// Whether the kernel has to be told of a gateway.
static bool needs_kernel(const struct neigh_refresh *refresh, const struct gateway *gateway)
{
	struct neighbour known;

	if (refresh->cannot_manage && !gateway->is_held)
		return false;
	if (!neighbours_find(refresh->netlink->mirror->neighbours, gateway->ifindex, &gateway->addr,
		    &known))
		return true;
	if (known.ext_flags & NTF_EXT_MANAGED || is_the_operators(known.state))
		return false;
	return !refresh->cannot_manage || !is_resolved_or_asked(&known);
}

// Marks the gateways that are not managed yet, each once in a round.
static bool manage_gateways(struct neigh_refresh *refresh)
{
	for (; refresh->next_gateway < refresh->n_gateways; refresh->next_gateway++) {
		const struct gateway *gateway = &refresh->gateway[refresh->next_gateway];

		if (!needs_kernel(refresh, gateway))
			continue;
		if (refresh->writes >= WRITES_PER_TICK)
			return false;
		if (!refresh->cannot_manage)
			manage(refresh, gateway);
		else
			resolve(refresh, gateway);
	}
	return true;
}

static void begin_round(struct neigh_refresh *refresh)
{
	refresh->phase = PHASE_GATEWAYS;
	refresh->hop = 1;
	refresh->vtep = refresh->neighbour = 0;
	refresh->n_gateways = refresh->next_gateway = refresh->n_counted = 0;
}

void neigh_refresh_poll(struct neigh_refresh *refresh)
{
	refresh->writes = 0;
	// During a dump, the fib may not contain all gateways.
	if (listen_is_dumping(refresh->netlink->listen)) {
		begin_round(refresh);
		return;
	}
	switch (refresh->phase) {
	case PHASE_GATEWAYS:
		if (!collect(refresh) || !collect_vteps(refresh))
			return;
		if (refresh->n_gateways)
			qsort(refresh->gateway, refresh->n_gateways, sizeof(*refresh->gateway),
				order_of_gateways);
		if (manage_gateways(refresh))
			refresh->phase = PHASE_NEIGHBOURS;
		return;
	case PHASE_NEIGHBOURS:
		if (!look_at_neighbours(refresh))
			return;
		refresh->n_managed = refresh->n_counted;
		refresh->phase = PHASE_REST;
		refresh->rest = TICKS_BETWEEN_ROUNDS;
		return;
	}
	if (!refresh->rest--)
		begin_round(refresh);
}

// All of our entries, including those left by a crash and not visited by a round yet.
static void give_all_back(struct neigh_refresh *refresh)
{
	struct neighbour neighbour;
	uint32_t at = 0;

	while (neighbours_next(refresh->netlink->mirror->neighbours, &at, &neighbour))
		if (neighbour.ext_flags & NTF_EXT_MANAGED && neighbour.protocol == OURS)
			give_back(refresh, &neighbour);
}

void neigh_refresh_close(struct neigh_refresh *refresh)
{
	give_all_back(refresh);
	free(refresh->gateway);
	free(refresh);
}
