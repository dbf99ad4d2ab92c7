// From the twin to its port, each value once: a port that refuses is not asked again for the same.
// Control thread.
#include "sync/twins.h"

#include "base/log.h"
#include "sync/judge.h"
#include "sync/links_inside.h"

#include <net/if.h>
#include <string.h>

enum { MTU_MAX = 9600 };

void twins_open(struct links *links)
{
	const struct mirror_settings *settings = &links->mirror->settings;

	memcpy(links->twins.has, settings->port, sizeof(settings->port));
	memcpy(links->twins.asked, settings->port, sizeof(settings->port));
}

struct interface *twins_find(const struct links *links, unsigned port)
{
	int ifindex = links->mirror->settings.twin[port];
	struct interface *one = ifindex ? interfaces_find(&links->all, ifindex) : NULL;

	return one && one->is_known ? one : NULL;
}

int twins_port(const struct links *links, int ifindex)
{
	const struct mirror_settings *settings = &links->mirror->settings;

	for (unsigned port = 0; port < settings->n_ports; port++)
		if (settings->twin[port] == ifindex)
			return (int)port;
	return -1;
}

static void follow_admin(struct links *links, unsigned port, const struct interface *twin)
{
	const struct mirror_hands *hands = &links->mirror->settings.hands;
	bool up = twin->link.flags & IFF_UP;

	if (links->twins.asked[port].up == up)
		return;
	links->twins.asked[port].up = up;
	if (hands->port_set_admin && hands->port_set_admin(hands->hands, port, up))
		log_warn("port %s cannot be set %s as its twin is; lanes treat it so all the same",
			twin->link.name, up ? "up" : "down");
	else
		links->twins.has[port].up = up;
}

static void follow_mtu(struct links *links, unsigned port, const struct interface *twin)
{
	const struct mirror_hands *hands = &links->mirror->settings.hands;
	uint16_t mtu = twin->link.mtu > UINT16_MAX ? UINT16_MAX : (uint16_t)twin->link.mtu;
	struct twins *twins = &links->twins;

	if (twins->asked[port].mtu == mtu)
		return;
	twins->asked[port].mtu = mtu;
	if (mtu > MTU_MAX || (hands->port_set_mtu && hands->port_set_mtu(hands->hands, port, mtu)))
		log_warn("port %s refuses the MTU %u of its twin and keeps %u; give the twin one "
			 "that it takes (ip link set %s mtu N)",
			twin->link.name, twin->link.mtu, twins->has[port].mtu, twin->link.name);
	else
		twins->has[port].mtu = mtu;
}

static void follow_mac(struct links *links, unsigned port, const struct interface *twin)
{
	const struct mirror_hands *hands = &links->mirror->settings.hands;
	const struct wire_mac *mac = &twin->link.mac;
	char text[WIRE_MAC_TEXT];

	if (wire_mac_equal(&links->twins.asked[port].mac, mac))
		return;
	links->twins.asked[port].mac = *mac;
	if (hands->port_set_mac && hands->port_set_mac(hands->hands, port, mac))
		log_warn("port %s refuses the MAC address %s of its twin; frames to it may not "
			 "arrive, give the twin the port's",
			twin->link.name, wire_mac_print(mac, text));
	else
		links->twins.has[port].mac = *mac;
}

void twins_follow(struct links *links)
{
	for (unsigned port = 0; port < links->mirror->settings.n_ports; port++) {
		const struct interface *twin = twins_find(links, port);

		if (!twin)
			continue;
		follow_admin(links, port, twin);
		follow_mtu(links, port, twin);
		follow_mac(links, port, twin);
	}
}

// Macvlans and VLANs with MAC addresses of their own; all that a bridge and its like are to see.
static bool wants_all_frames(const struct links *links, const struct interface *one,
	const struct fib_link *link)
{
	static const uint32_t shown =
		1u << REASON_MASTER | 1u << REASON_UPPER | 1u << REASON_MANY_MACS;

	return link->n_macs || one->reasons & shown ||
	       !wire_mac_equal(&link->mac, &links->twins.has[link->port].mac);
}

static void follow_filter(struct links *links, unsigned port, bool promiscuous)
{
	const struct mirror_hands *hands = &links->mirror->settings.hands;
	const struct interface *twin = twins_find(links, port);

	if (links->twins.asked[port].promiscuous == promiscuous)
		return;
	links->twins.asked[port].promiscuous = promiscuous;
	if (hands->port_set_promiscuous &&
		hands->port_set_promiscuous(hands->hands, port, promiscuous))
		log_warn("port %s does not become %s; frames to MAC addresses other than its own, "
			 "as of macvlans and bridges on its twin, %s",
			twin ? twin->link.name : "?", promiscuous ? "promiscuous" : "selective",
			promiscuous ? "may not arrive" : "still arrive");
	else
		links->twins.has[port].promiscuous = promiscuous;
}

void twins_follow_filters(struct links *links)
{
	const struct fib *fib = links->mirror->settings.fib;
	bool wanted[PORT_MAX] = {false};

	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));) {
		const struct fib_link *link =
			one->id == FIB_NO_LINK ? NULL : fib_link(fib, one->id);

		if (link && wants_all_frames(links, one, link))
			wanted[link->port] = true;
	}
	for (unsigned port = 0; port < links->mirror->settings.n_ports; port++)
		follow_filter(links, port, wanted[port]);
}
