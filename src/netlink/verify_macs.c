// Compares fresh dumps of Linux's bridges with what workers have of those that they serve: whether
// and how they filter by VLAN, the VLANs of their ports, their MAC addresses. Control thread;
// blocks while it runs.
#include "netlink/bridges_inside.h"
#include "netlink/inside.h"

#include "base/vector.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MACS = 256 };

// Where an address is. Ordered as bytes without the port; no padding.
struct place {
	uint16_t domain, vlan;
	struct wire_mac mac;
	uint16_t port;
};
static_assert(sizeof(struct place) == 12, "compared as bytes");

struct places {
	struct place *place;
	size_t n, capacity;
};

struct inspection {
	struct netlink *netlink;
	const struct netlink_verification *how; // NULL: differences are only counted
	struct places linuxs, workers;
	struct mac_vlans *vlans; // of Linux: by port, then of the bridges that workers serve
	bool is_out_of_memory;
	int n; // differences
};

static const struct bridges *bridges_in(const struct inspection *look)
{
	return look->netlink->mirror->bridges;
}

static struct mac_table *macs_of(const struct inspection *look)
{
	return look->netlink->mirror->settings.macs;
}

static void add(struct inspection *look, struct places *to, const struct place *place)
{
	if (vector_reserve(&to->place, &to->capacity, to->n + 1, sizeof(*to->place)))
		look->is_out_of_memory = true;
	else
		to->place[to->n++] = *place;
}

// The member behind which workers should have the address; -1: none.
static int member_of(const struct inspection *look, const struct served *served, int ifindex,
	const struct wire_mac *mac)
{
	const struct bridges *bridges = bridges_in(look);
	const int port = taps_port(look->netlink->mirror->ifaces, ifindex);
	const struct event_remote *remote;
	uint16_t member;

	if (port >= 0)
		return bridges->now.of_port[port] == served - bridges->now.bridge + 1 ? port : -1;
	member = bridges_tunnel_member(bridges, served, ifindex);
	remote = member ? remotes_find(bridges, ifindex, mac) : NULL;
	return remote && remotes_can_hold(bridges, remote) ? member : -1;
}

static void take_place(struct inspection *look, const struct event_fdb *fdb)
{
	const struct bridges *bridges = bridges_in(look);
	const struct served *served = served_find(&bridges->now, fdb->bridge);
	const int member = served ? member_of(look, served, fdb->ifindex, &fdb->mac) : -1;

	if (member >= 0 && !served->is.vlan_tag == !fdb->vlan)
		add(look, &look->linuxs,
			&(struct place){bridges->domain[served - bridges->now.bridge], fdb->vlan,
				fdb->mac, (uint16_t)member});
}

// Addresses behind ports that workers serve, and VXLAN devices.
static void take_mac(void *arg, const struct event *event)
{
	static const struct wire_mac all;
	const struct event_remote *remote = &event->remote;

	if (event->kind == EVENT_FDB && event->fdb.is_plain)
		take_place(arg, &event->fdb);
	else if (event->kind == EVENT_REMOTE && !wire_mac_equal(&remote->mac, &all) &&
		 !(remote->mac.bytes[0] & 1))
		take_place(arg, &(struct event_fdb){.ifindex = remote->ifindex,
					.bridge = remote->ifindex,
					.mac = remote->mac});
}

// NULL: it is neither a port nor a bridge of workers.
static struct mac_vlans *vlans_of(const struct inspection *look, int ifindex)
{
	const struct served_set *now = &bridges_in(look)->now;
	const int port = taps_port(look->netlink->mirror->ifaces, ifindex);
	const struct served *served = served_find(now, ifindex);

	if (port >= 0)
		return &look->vlans[port];
	return served ? &look->vlans[PORT_MAX + (served - now->bridge)] : NULL;
}

static void take_vlans(void *arg, const struct event *event)
{
	const struct event_vlans *told = &event->vlans;
	struct mac_vlans *to = event->kind == EVENT_VLANS ? vlans_of(arg, told->ifindex) : NULL;

	if (!to)
		return;
	for (unsigned i = 0; i < MAC_VIDS / 64; i++) {
		to->has[i] |= told->has[i] & ~told->odd[i];
		to->untagged[i] |= told->untagged[i] & ~told->odd[i];
	}
	if (told->pvid)
		to->pvid = told->pvid;
}

static void report(struct inspection *look, const char *where, const char *what)
{
	char text[192];

	look->n++;
	if (!look->how)
		return;
	snprintf(text, sizeof(text), "%s: %s", where, what);
	look->how->cb(look->how->arg, text);
}

// Whether it still is what workers take it for.
static void take_link(void *arg, const struct event *event)
{
	struct inspection *look = arg;
	const struct bridges *bridges = bridges_in(look);
	const struct event_link *link = &event->iface;
	const struct served *served;
	int port;

	if (event->kind != EVENT_LINK)
		return;
	served = served_find(&bridges->now, link->ifindex);
	if (served && served->is.vlan_tag != bridges_vlan_tag(&link->bridge))
		report(look, link->name, "workers and Linux filter by VLAN in different ways");
	port = taps_port(look->netlink->mirror->ifaces, link->ifindex);
	if (port < 0 || !bridges->now.of_port[port])
		return;
	if (bridges->now.bridge[bridges->now.of_port[port] - 1].ifindex != link->master)
		report(look, link->name, "workers have it in a bridge in which it is not in Linux");
	else if (link->port.state != BR_STATE_FORWARDING)
		report(look, link->name, "workers forward by it, which Linux does not");
}

// `family` begins the headers of these requests, of at most 32 bytes.
static int dump(struct inspection *look, uint16_t type, uint8_t family, uint32_t bytes,
	void (*take)(void *arg, const struct event *event))
{
	struct {
		struct nlmsghdr head;
		uint8_t rest[32];
	} message = {.head = {.nlmsg_len = NLMSG_LENGTH(bytes),
			     .nlmsg_type = type,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.rest = {family}};
	struct listen_request request = {&message, message.head.nlmsg_len, take, look};

	return listen_ask(look->netlink->listen, &request);
}

static int dump_all(struct inspection *look)
{
	int err = dump(look, RTM_GETLINK, AF_UNSPEC, sizeof(struct ifinfomsg), take_link);

	if (!err)
		err = dump(look, RTM_GETVLAN, AF_BRIDGE, sizeof(struct br_vlan_msg), take_vlans);
	if (!err || err == -EOPNOTSUPP) // without VLAN filtering
		err = dump(look, RTM_GETNEIGH, AF_BRIDGE, sizeof(struct ndmsg), take_mac);
	return err;
}

static void take_workers(struct inspection *look)
{
	static const struct mac_choice all = {0, MAC_PORTS};
	struct mac_info info[PAGE_MACS];
	uint32_t place = 0;

	do {
		const unsigned n =
			mac_page(macs_of(look), &all, rte_rdtsc(), &place, info, PAGE_MACS);

		for (unsigned i = 0; i < n; i++)
			add(look, &look->workers,
				&(struct place){info[i].domain, info[i].vlan, info[i].mac,
					info[i].port});
	} while (place);
}

static int order(const void *one, const void *other)
{
	return memcmp(one, other, offsetof(struct place, port));
}

static void sort(struct places *places)
{
	if (places->n)
		qsort(places->place, places->n, sizeof(*places->place), order);
}

static void report_place(struct inspection *look, const struct place *at, const char *what)
{
	char where[96], mac[WIRE_MAC_TEXT], vlan[16] = "";
	struct mac_usage usage = {.name = "?"};

	mac_usage(macs_of(look), at->domain, &usage);
	if (at->vlan)
		snprintf(vlan, sizeof(vlan), " VLAN %u", at->vlan);
	snprintf(where, sizeof(where), "MAC address %s in %s%s", wire_mac_print(&at->mac, mac),
		usage.name, vlan);
	report(look, where, what);
}

// Workers need not know an address for which there was no space.
static bool is_short(const struct inspection *look, const struct place *at)
{
	const struct bridges *bridges = bridges_in(look);
	struct mac_usage usage;

	for (unsigned i = 0; i < bridges->now.n; i++)
		if (bridges->domain[i] == at->domain &&
			fdb_is_over(&bridges->fdb, bridges->now.bridge[i].ifindex))
			return true;
	return bridges->is_short ||
	       (mac_usage(macs_of(look), at->domain, &usage) && usage.n_learnt == usage.max);
}

static const char *name_of(const struct mirror *mirror, uint16_t member)
{
	const struct interface *one = bridges_member(mirror, member);

	return one && one->is_known ? one->iface.name : "?";
}

static void compare_ports(struct inspection *look, const struct place *linuxs,
	const struct place *workers)
{
	const struct mirror *mirror = look->netlink->mirror;
	char what[96];

	if (linuxs->port == workers->port)
		return;
	snprintf(what, sizeof(what), "Linux has it behind %s, workers behind %s",
		name_of(mirror, linuxs->port), name_of(mirror, workers->port));
	report_place(look, linuxs, what);
}

static void compare_macs(struct inspection *look)
{
	const struct places *linuxs = &look->linuxs, *workers = &look->workers;
	size_t i = 0, j = 0;

	while (i < linuxs->n || j < workers->n) {
		const int way = i == linuxs->n    ? 1
		                : j == workers->n ? -1
		                                  : order(&linuxs->place[i], &workers->place[j]);

		if (way > 0)
			report_place(look, &workers->place[j], "Linux does not have it");
		else if (way == 0)
			compare_ports(look, &linuxs->place[i], &workers->place[j]);
		else if (!is_short(look, &linuxs->place[i]))
			report_place(look, &linuxs->place[i], "workers do not have it");
		i += way <= 0;
		j += way >= 0;
	}
}

static void compare_vlans(struct inspection *look, const char *name, const struct mac_vlans *linuxs,
	const struct mac_vlans *workers)
{
	char where[64];

	if (workers->pvid != linuxs->pvid)
		report(look, name, "Linux and workers have different PVIDs");
	for (unsigned i = 0; i < MAC_VIDS / 64; i++) {
		const uint64_t different = (workers->has[i] ^ linuxs->has[i]) |
		                           (workers->untagged[i] ^ linuxs->untagged[i]);

		for (uint64_t rest = different; rest; rest &= rest - 1) {
			const unsigned bit = __builtin_ctzll(rest);

			snprintf(where, sizeof(where), "VLAN %u of %s", i * 64 + bit, name);
			report(look, where,
				(workers->has[i] ^ linuxs->has[i]) >> bit & 1
					? "either Linux or workers have it"
					: "Linux and workers send it with different tags");
		}
	}
}

static void compare_vlans_of_port(struct inspection *look, unsigned port)
{
	const struct mirror *mirror = look->netlink->mirror;
	struct mac_member member;
	uint16_t domain;
	uint32_t n;

	if (mac_member(macs_of(look), (uint16_t)port, &member, &domain, &n) && member.vlans)
		compare_vlans(look, ifaces_name(mirror, mirror->settings.tap[port]),
			&look->vlans[port], member.vlans);
}

static void compare_own_vlans(struct inspection *look, unsigned i)
{
	const struct bridges *bridges = bridges_in(look);
	const struct mac_vlans *own = mac_own_vlans(macs_of(look), bridges->domain[i]);

	if (own)
		compare_vlans(look, bridges->now.bridge[i].is.name, &look->vlans[PORT_MAX + i],
			own);
}

static void compare(struct inspection *look)
{
	const struct served_set *now = &bridges_in(look)->now;

	sort(&look->linuxs);
	sort(&look->workers);
	compare_macs(look);
	for (unsigned port = 0; port < PORT_MAX; port++)
		if (now->of_port[port])
			compare_vlans_of_port(look, port);
	for (unsigned i = 0; i < now->n; i++)
		compare_own_vlans(look, i);
}

int verify_macs(struct netlink *netlink, const struct netlink_verification *how)
{
	struct inspection look = {.netlink = netlink, .how = how};
	int err;

	if (!netlink->mirror->settings.macs || !netlink->mirror->bridges->now.n)
		return 0;
	look.vlans = calloc(PORT_MAX + MAC_BRIDGES, sizeof(*look.vlans));
	err = look.vlans ? dump_all(&look) : -ENOMEM;
	take_workers(&look);
	if (look.is_out_of_memory)
		err = -ENOMEM;
	if (!err)
		compare(&look);
	free(look.vlans);
	free(look.linuxs.place);
	free(look.workers.place);
	return err ? err : look.n;
}
