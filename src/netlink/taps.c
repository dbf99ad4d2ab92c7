// Applies TAP interface settings to the port, each value once: a refused value is not requested
// again. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/log.h"

#include <net/if.h>
#include <string.h>

void taps_open(struct ifaces *ifaces)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	memcpy(ifaces->taps.has, settings->port, sizeof(settings->port));
	memcpy(ifaces->taps.asked, settings->port, sizeof(settings->port));
}

struct interface *taps_find(const struct ifaces *ifaces, unsigned port)
{
	int ifindex = ifaces->mirror->settings.tap[port];
	struct interface *one = ifindex ? interfaces_find(&ifaces->all, ifindex) : NULL;

	return one && one->is_known ? one : NULL;
}

int taps_port(const struct ifaces *ifaces, int ifindex)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	for (unsigned port = 0; port < settings->n_ports; port++)
		if (settings->tap[port] == ifindex)
			return (int)port;
	return -1;
}

static void follow_admin(struct ifaces *ifaces, unsigned port, const struct interface *tap)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	bool up = tap->iface.flags & IFF_UP;

	if (ifaces->taps.asked[port].up == up)
		return;
	ifaces->taps.asked[port].up = up;
	if (ops->port_set_admin && ops->port_set_admin(ops->ops, port, up))
		log_warn("cannot set port %s %s to match its TAP interface; workers apply this "
			 "state anyway",
			tap->iface.name, up ? "up" : "down");
	else
		ifaces->taps.has[port].up = up;
}

// Otherwise Linux would send, and announce to its peers, what the port cannot carry.
static void refuse_mtu(struct ifaces *ifaces, unsigned port, const struct interface *tap,
	const struct error *error)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	struct taps *taps = &ifaces->taps;
	uint16_t mtu = taps->has[port].mtu;
	int err = ops->tap_restore_mtu ? ops->tap_restore_mtu(ops->ops, port, tap->iface.mtu, mtu)
	                               : 0;

	if (!err) {
		taps->asked[port].mtu = mtu;
		log_warn("port %s does not support the MTU %u of its TAP interface, which is set "
			 "back to %u: %s",
			tap->iface.name, tap->iface.mtu, mtu, error->text);
		return;
	}
	log_warn("port %s does not support the MTU %u of its TAP interface and keeps %u: %s; "
		 "cannot set the TAP interface back: %s; set a supported MTU (ip link set %s mtu "
		 "N)",
		tap->iface.name, tap->iface.mtu, mtu, error->text, strerror(-err), tap->iface.name);
}

static void follow_mtu(struct ifaces *ifaces, unsigned port, const struct interface *tap)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	uint16_t mtu = tap->iface.mtu > UINT16_MAX ? UINT16_MAX : (uint16_t)tap->iface.mtu;
	struct taps *taps = &ifaces->taps;
	struct error error = {""};

	if (taps->asked[port].mtu == mtu)
		return;
	taps->asked[port].mtu = mtu;
	if (ops->port_set_mtu && ops->port_set_mtu(ops->ops, port, mtu, &error))
		refuse_mtu(ifaces, port, tap, &error);
	else
		taps->has[port].mtu = mtu;
}

static void follow_mac(struct ifaces *ifaces, unsigned port, const struct interface *tap)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	const struct wire_mac *mac = &tap->iface.mac;
	char text[WIRE_MAC_TEXT];

	if (wire_mac_equal(&ifaces->taps.asked[port].mac, mac))
		return;
	ifaces->taps.asked[port].mac = *mac;
	if (ops->port_set_mac && ops->port_set_mac(ops->ops, port, mac))
		log_warn("port %s rejected the MAC address %s of its TAP interface; frames to it "
			 "may not arrive: set the TAP interface to the port's MAC address",
			tap->iface.name, wire_mac_print(mac, text));
	else
		ifaces->taps.has[port].mac = *mac;
}

void taps_follow(struct ifaces *ifaces)
{
	for (unsigned port = 0; port < ifaces->mirror->settings.n_ports; port++) {
		const struct interface *tap = taps_find(ifaces, port);

		if (!tap)
			continue;
		follow_admin(ifaces, port, tap);
		follow_mtu(ifaces, port, tap);
		follow_mac(ifaces, port, tap);
	}
}

// Needed for macvlans and VLANs with their own MAC addresses, and for bridges and similar devices.
static bool wants_all_frames(const struct ifaces *ifaces, const struct interface *one,
	const struct iface *iface)
{
	static const uint32_t shown =
		1u << REASON_MASTER | 1u << REASON_UPPER | 1u << REASON_MANY_MACS;

	return iface->n_macs || one->reasons & shown ||
	       !wire_mac_equal(&iface->mac, &ifaces->taps.has[iface->port].mac);
}

static void follow_filter(struct ifaces *ifaces, unsigned port, bool promiscuous)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	const struct interface *tap = taps_find(ifaces, port);

	if (ifaces->taps.asked[port].promiscuous == promiscuous)
		return;
	ifaces->taps.asked[port].promiscuous = promiscuous;
	if (ops->port_set_promiscuous && ops->port_set_promiscuous(ops->ops, port, promiscuous))
		log_warn("cannot set port %s %s; frames to MAC addresses other than its own, such "
			 "as those of macvlans and bridges on its TAP interface, %s",
			tap ? tap->iface.name : "?",
			promiscuous ? "promiscuous" : "non-promiscuous",
			promiscuous ? "may not arrive" : "still arrive");
	else
		ifaces->taps.has[port].promiscuous = promiscuous;
}

void taps_follow_filters(struct ifaces *ifaces)
{
	const struct fib *fib = ifaces->mirror->settings.fib;
	bool wanted[PORT_MAX] = {false};

	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		const struct iface *iface = one->id == IFACE_NONE ? NULL : fib_iface(fib, one->id);

		if (iface && !iface->is_bridge && !iface_is_tunnel(iface) &&
			wants_all_frames(ifaces, one, iface))
			wanted[iface->port] = true;
	}
	for (unsigned port = 0; port < ifaces->mirror->settings.n_ports; port++)
		follow_filter(ifaces, port, wanted[port]);
}
