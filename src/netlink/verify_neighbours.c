// Compares a fresh dump of the kernel's neighbours with the MAC addresses that workers write.
// Control thread; blocks while it runs.
//
// A kernel neighbour unknown to workers is not a difference: packets to it go to Linux.
#include "netlink/inside.h"

#include "base/vector.h"
#include "netlink/mirror_inside.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUD_USABLE = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY };

struct met {
	int ifindex;
	struct wire_addr addr;
	struct wire_mac mac;
};

struct crowd {
	struct met *met;
	size_t n, capacity;
	bool is_out_of_memory;
};

static void take(void *arg, const struct event *event)
{
	const struct event_neighbour *reported = &event->neighbour;
	struct crowd *crowd = arg;

	if (event->kind != EVENT_NEIGHBOUR || !reported->has_mac || !(reported->state & NUD_USABLE))
		return;
	if (vector_reserve(&crowd->met, &crowd->capacity, crowd->n + 1, sizeof(*crowd->met))) {
		crowd->is_out_of_memory = true;
		return;
	}
	crowd->met[crowd->n++] = (struct met){reported->ifindex, reported->addr, reported->mac};
}

static int dump(struct netlink *netlink, struct crowd *crowd)
{
	struct {
		struct nlmsghdr head;
		struct ndmsg neighbour;
	} message = {.head = {.nlmsg_len = sizeof(message),
			     .nlmsg_type = RTM_GETNEIGH,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	struct listen_request request = {&message, sizeof(message), take, crowd};
	int err = listen_ask(netlink->listen, &request);

	return crowd->is_out_of_memory ? -ENOMEM : err;
}

static int order(const void *one, const void *other)
{
	const struct met *a = one, *b = other;

	if (a->ifindex != b->ifindex)
		return a->ifindex < b->ifindex ? -1 : 1;
	if (a->addr.family != b->addr.family)
		return a->addr.family - b->addr.family;
	return memcmp(a->addr.bytes, b->addr.bytes, sizeof(a->addr.bytes));
}

// Whether workers write the MAC address that Linux would; if not, `text` gives the reason.
static bool is_right(const struct crowd *crowd, const struct met *wanted, char text[64])
{
	const struct met *found =
		crowd->n ? bsearch(wanted, crowd->met, crowd->n, sizeof(*wanted), order) : NULL;

	if (found && wire_mac_equal(&found->mac, &wanted->mac))
		return true;
	snprintf(text, 64, "%s",
		found ? "workers and Linux send to different MAC addresses"
		      : "workers have a neighbour that Linux does not have");
	return false;
}

static void report(struct netlink *netlink, const struct netlink_verification *how,
	const struct met *wrong, const char *what)
{
	char text[192], addr[WIRE_ADDR_TEXT];

	snprintf(text, sizeof(text), "neighbour %s dev %s: %s", wire_addr_print(&wrong->addr, addr),
		ifaces_name(netlink->mirror, wrong->ifindex), what);
	how->cb(how->arg, text);
}

// All next hops that workers can send to.
static int compare(struct netlink *netlink, const struct crowd *crowd,
	const struct netlink_verification *how)
{
	const struct fib *fib = netlink->ctx.fib;
	struct fib_usage usage;
	int n = 0;

	fib_usage(fib, &usage);
	for (unsigned id = 1; id <= usage.max_hop_id; id++) {
		struct fib_hop_info info;
		char what[64];

		if (!fib_hop_info(fib, (uint16_t)id, &info) || info.hop.kind != FIB_VIA ||
			info.verdict != VERDICT_FORWARD)
			continue;
		struct met wanted = {ifaces_ifindex(netlink->mirror, info.hop.iface), info.hop.via,
			info.mac};
		if (is_right(crowd, &wanted, what))
			continue;
		n++;
		if (how)
			report(netlink, how, &wanted, what);
	}
	return n;
}

int verify_neighbours(struct netlink *netlink, const struct netlink_verification *how)
{
	struct crowd crowd = {.met = NULL};
	int err = dump(netlink, &crowd);

	if (crowd.n)
		qsort(crowd.met, crowd.n, sizeof(*crowd.met), order);
	if (!err)
		err = compare(netlink, &crowd, how);
	free(crowd.met);
	return err;
}
