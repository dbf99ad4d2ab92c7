// Compares a fresh dump of the kernel's tables with what workers read: routes here, neighbours in
// verify_neighbours.c, bridges in verify_macs.c, MPLS labels in verify_labels.c. Control thread;
// blocks while it runs.
//
// The expected result is computed from the dump alone, not from the mirror's state: for each prefix
// the routes of the lowest metric, of these the first that is neither dead nor expired. A route for
// a TOS or a source prefix is used if there is no other: workers leave all its packets to Linux.
#include "netlink/hop_sets.h"
#include "netlink/inside.h"
#include "netlink/mirror_inside.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/vector.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { TRIES = 3, SETTLE_NS = 2000000000 };

static const char MISSING[] = "Linux has a route that workers do not have";

// A kernel route that may be the best of its prefix; its full event is stored separately.
struct wanted {
	struct wire_prefix prefix;
	uint16_t vrf, rank; // rank of its table
	bool is_narrow;     // for one TOS or source prefix only
	uint32_t metric;
	uint32_t order; // position in the dump
	uint32_t said;  // offset of its event in `words`
};

struct look {
	struct netlink *netlink;
	struct netlink_verification *how;
	struct wanted *wanted;
	size_t n, capacity;
	uint8_t *words; // truncated events, packed
	size_t n_words, words_capacity;
	struct nexthops nexthops; // as dumped before the routes
	bool is_out_of_memory;
	bool has_expired; // the kernel still has an expired route
	bool has_asked;   // the mirror was asked to look for expired routes
	uint64_t differences;
};

// Prefixes with built-in fib results, or never looked up by workers.
static bool is_built_in(const struct wire_prefix *prefix)
{
	const uint8_t *b = prefix->addr.bytes;

	if (prefix->addr.family == 4)
		return prefix->len >= 4 &&
		       (b[0] == 127 || b[0] >> 4 == 0xe || (b[0] == 169 && b[1] == 254) ||
			       (prefix->len == 32 && load32(b) + 1 <= 1)); // 0.0.0.0, broadcast
	return prefix->len >= 8 &&
	       (b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80) ||
		       (prefix->len == 128 && !memcmp(b, (uint8_t[15]){0}, 15) && b[15] <= 1));
}

static bool leads_somewhere(const struct look *look, const struct event_route *route)
{
	struct compare_hops hops;

	if (route->type != RTN_UNICAST || !(route->n_hops || route->nh_id))
		return true;
	compare_hops_of(look->netlink, route, &look->nexthops, &hops);
	return hops.n > 0;
}

// The tables of the default rules, in the order in which Linux looks them up.
static uint8_t rank_of(uint32_t table)
{
	return table == RT_TABLE_LOCAL ? 0 : table == RT_TABLE_DEFAULT ? 2 : 1;
}

static void take_wanted(void *arg, const struct event *event)
{
	struct look *look = arg;
	const struct event_route *route = &event->route;
	size_t bytes = offsetof(struct event_route, hop[route->n_hops]);
	uint16_t vrf;

	if (event->kind != EVENT_ROUTE || is_built_in(&route->prefix))
		return;
	look->has_expired |= route->expires < 0;
	if (route->expires < 0 || !leads_somewhere(look, route))
		return;
	vrf = ifaces_vrf_of_table(look->netlink->mirror, route->table);
	if (vrf == IFACES_NO_VRF)
		return;
	bytes = (bytes + 7) & ~(size_t)7;
	if (vector_reserve(&look->wanted, &look->capacity, look->n + 1, sizeof(*look->wanted)) ||
		vector_reserve(&look->words, &look->words_capacity, look->n_words + bytes, 1)) {
		look->is_out_of_memory = true;
		return;
	}
	memcpy(look->words + look->n_words, route,
		offsetof(struct event_route, hop[route->n_hops]));
	look->wanted[look->n] = (struct wanted){route->prefix, vrf, rank_of(route->table),
		route->tos || route->src_len, route->metric, look->n, look->n_words / 8};
	look->n++;
	look->n_words += bytes;
}

static int order_of_prefixes(const struct wanted *a, const struct wanted *b)
{
	int order = a->vrf - b->vrf;

	if (!order)
		order = a->prefix.addr.family - b->prefix.addr.family;
	if (!order)
		order = memcmp(a->prefix.addr.bytes, b->prefix.addr.bytes, 16);
	return order ? order : a->prefix.len - b->prefix.len;
}

static int order_of_wanted(const void *one, const void *other)
{
	const struct wanted *a = one, *b = other;
	int order = order_of_prefixes(a, b);

	if (!order)
		order = a->is_narrow - b->is_narrow;
	if (!order)
		order = a->rank - b->rank;
	if (!order)
		order = (a->metric > b->metric) - (a->metric < b->metric);
	return order ? order : (a->order > b->order) - (a->order < b->order);
}

// Keeps the best route of each prefix and records whether a table that is looked up no later has
// others for a TOS or a source only: then workers have to leave all packets to Linux.
static void choose(struct look *look)
{
	size_t n = 0;

	if (look->n)
		qsort(look->wanted, look->n, sizeof(*look->wanted), order_of_wanted);
	for (size_t i = 0; i < look->n; i++)
		if (!i || order_of_prefixes(&look->wanted[i], &look->wanted[n - 1]))
			look->wanted[n++] = look->wanted[i];
		else
			look->wanted[n - 1].is_narrow |=
				look->wanted[i].is_narrow &&
				look->wanted[i].rank <= look->wanted[n - 1].rank;
	look->n = n;
}

static int dump(struct look *look, uint8_t family)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
	} message = {.head = {.nlmsg_len = sizeof(message),
			     .nlmsg_type = RTM_GETROUTE,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.route = {.rtm_family = family}};
	struct listen_request request = {&message, sizeof(message), take_wanted, look};
	int err = listen_ask(look->netlink->listen, &request);

	return look->is_out_of_memory ? -ENOMEM : err;
}

static void report(struct look *look, const struct wanted *at, const char *what)
{
	char text[256], prefix[WIRE_PREFIX_TEXT];
	const char *vrf = at->vrf ? ifaces_vrf_name(look->netlink->mirror, at->vrf) : NULL;

	look->differences++;
	snprintf(text, sizeof(text), "%s%s%s: %s", wire_prefix_print(&at->prefix, prefix),
		vrf ? " in " : "", vrf ? vrf : "", what);
	look->how->cb(look->how->arg, text);
}

// Whether workers read what the fib's control tables contain: looks up the prefix's first address,
// unless a longer prefix covers it.
static bool workers_read_it(struct look *look, const struct wanted *wanted)
{
	const struct fib *fib = look->netlink->ctx.fib;
	struct fib_answer answer;

	rib_lookup(fib, wanted->vrf, &wanted->prefix.addr, &answer);
	if (!answer.found || answer.route.prefix.len != wanted->prefix.len)
		return true;
	return fib_lookup(fib, wanted->vrf, &wanted->prefix.addr) == answer.hop_id;
}

static void compare_one(struct look *look, const struct wanted *wanted, const struct fib_hop *hop)
{
	struct event_route *route = (void *)(look->words + (size_t)wanted->said * 8);
	struct comparison comparison = {.kernel = route, .nexthops = &look->nexthops, .hop = hop};

	look->how->compared++;
	if (wanted->is_narrow && hop->kind != FIB_LINUX)
		report(look, wanted,
			"Linux has it for one TOS or source only, workers for all packets");
	else if (!compare_hop(look->netlink, &comparison))
		report(look, wanted, comparison.differs);
	else if (!workers_read_it(look, wanted))
		report(look, wanted,
			"the workers' lookup returns a different next hop than the table");
}

// Iterates over the fib's routes of one family and VRF in parallel with the kernel's, in the same
// order.
struct side {
	struct fib_walk walk;
	struct fib_route route;
	struct wire_prefix after;
	bool has;
};

static void next_route(const struct fib *fib, struct side *side)
{
	do {
		side->has = fib_next(fib, &side->walk, &side->route);
		side->after = side->route.prefix;
		side->walk.after = &side->after;
	} while (side->has && is_built_in(&side->route.prefix));
}

static void compare_side(struct look *look, struct side *side, size_t *at)
{
	const struct fib *fib = look->netlink->ctx.fib;

	next_route(fib, side);
	while (*at < look->n || side->has) {
		struct wanted *linux_has = *at < look->n ? &look->wanted[*at] : NULL;
		struct wanted workers_have = {.prefix = side->route.prefix, .vrf = side->walk.vrf};
		int order = -1;

		if (linux_has && (linux_has->vrf != side->walk.vrf ||
					 linux_has->prefix.addr.family != side->walk.family))
			linux_has = NULL;
		if (!linux_has && !side->has)
			return;
		if (side->has)
			order = linux_has ? order_of_prefixes(linux_has, &workers_have) : 1;
		if (order < 0)
			report(look, linux_has, MISSING);
		else if (order > 0)
			report(look, &workers_have,
				"workers have a route that Linux does not have");
		else
			compare_one(look, linux_has, &side->route.hop);
		*at += order <= 0;
		if (order >= 0)
			next_route(fib, side);
	}
}

static void compare_all(struct look *look)
{
	size_t at = 0;

	for (unsigned vrf = 0; vrf < FIB_MAX_VRFS; vrf++)
		for (unsigned family = 4; family <= 6; family += 2) {
			struct side side = {.walk = {NULL, family, vrf}};

			if (fib_vrf_is_open(look->netlink->ctx.fib, vrf))
				compare_side(look, &side, &at);
		}
}

// The route itself is the first one after the prefix that sorts just before it.
static bool find_exactly(const struct fib *fib, const struct wanted *wanted, struct fib_route *out)
{
	struct wire_prefix before = {wanted->prefix.addr, wanted->prefix.len - 1};
	struct fib_walk walk = {wanted->prefix.len ? &before : NULL, before.addr.family,
		wanted->vrf};

	return fib_next(fib, &walk, out) && out->prefix.len == wanted->prefix.len &&
	       wire_addr_equal(&out->prefix.addr, &wanted->prefix.addr);
}

// Compares random kernel prefixes.
static void compare_sample(struct look *look)
{
	uint64_t random = clock_now_ns() | 1;

	for (uint32_t i = 0; i < look->how->sample && look->n; i++) {
		const struct wanted *wanted = &look->wanted[(random >> 16) % look->n];
		struct fib_route route;

		random = random * 6364136223846793005u + 1442695040888963407u;
		if (find_exactly(look->netlink->ctx.fib, wanted, &route))
			compare_one(look, wanted, &route.hop);
		else
			report(look, wanted, MISSING);
	}
}

// Processes all pending messages and waits for the end of a dump. Returns false if state keeps
// changing.
static bool settle(struct netlink *netlink)
{
	uint64_t until = clock_now_ns() + SETTLE_NS;
	bool more;

	do {
		more = listen_poll(netlink->listen, SETTLE_NS / 100);
		more |= mirror_flush(netlink->mirror);
	} while ((more || listen_is_dumping(netlink->listen)) && clock_now_ns() < until);
	return !more && !listen_is_dumping(netlink->listen);
}

// 1: the kernel's tables changed meanwhile; 0, or -errno.
static int look_once(struct look *look)
{
	struct netlink *netlink = look->netlink;
	uint64_t changes = netlink->n_changes;
	int err = compare_dump_nexthops(netlink, &look->nexthops);

	if (!err)
		err = dump(look, AF_INET);
	if (!err)
		err = dump(look, AF_INET6);
	if (err && err != -EINTR)
		return err;
	listen_poll(netlink->listen, SETTLE_NS / 100);
	if (err || changes != netlink->n_changes)
		return 1;
	if (look->has_expired && !look->has_asked) {
		// Workers may use it for another second: there is no notification when a lifetime
		// ends.
		look->has_asked = true;
		listen_dump_again(netlink->listen);
		return 1;
	}
	choose(look);
	if (look->how->sample && look->how->sample < look->n)
		compare_sample(look);
	else
		compare_all(look);
	return 0;
}

static int look_afresh(struct look *look)
{
	int err;

	look->n = look->n_words = 0;
	if (nexthops_open(&look->nexthops))
		return -ENOMEM;
	err = look_once(look);
	nexthops_close(&look->nexthops);
	return err;
}

// Transient differences do not count.
static int look_at(struct look *look,
	int (*verify)(struct netlink *netlink, const struct netlink_verification *how))
{
	int found = verify(look->netlink, NULL);

	for (unsigned i = 1; i < TRIES && (found > 0 || found == -EINTR); i++) {
		settle(look->netlink);
		found = verify(look->netlink, NULL);
	}
	if (found > 0)
		found = verify(look->netlink, look->how);
	if (found > 0)
		look->differences += (uint64_t)found;
	return found == -EINTR ? 1 : found < 0 ? found : 0;
}

static uint64_t count_macs(const struct mac_table *macs)
{
	struct mac_usage usage;
	uint64_t n = 0;

	for (uint16_t domain = 1; macs && domain <= MAC_BRIDGES; domain++)
		if (mac_usage(macs, domain, &usage))
			n += usage.n_learnt;
	return n;
}

int netlink_verify(struct netlink *netlink, struct netlink_verification *how, struct error *error)
{
	struct look look = {.netlink = netlink, .how = how};
	int err = 1;

	how->compared = 0;
	how->macs = count_macs(netlink->mirror->settings.macs);
	for (unsigned i = 0; i < TRIES && err == 1; i++)
		err = settle(netlink) ? look_afresh(&look) : 1;
	if (!err)
		err = look_at(&look, verify_neighbours);
	if (!err)
		err = look_at(&look, verify_macs);
	if (!err)
		err = look_at(&look, verify_labels);
	free(look.wanted);
	free(look.words);
	if (err == 1)
		return error_set(error, -EBUSY,
			"Linux's tables keep changing or are being dumped; verify again later");
	if (err)
		return error_set(error, err, "cannot dump Linux's tables: %s", strerror(-err));
	return look.differences > INT32_MAX ? INT32_MAX : (int)look.differences;
}
