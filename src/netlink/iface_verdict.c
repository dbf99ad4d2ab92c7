// Derives the fib interface from an interface, its lower and upper devices and settings. Control
// thread.
#include "netlink/bridges_inside.h"

#include "base/bits.h"

#include <net/if.h>
#include <string.h>

enum { MTU_MIN = 68, MTU_MAX = 9600, VLAN_DEPTH = 8 };

#define BIT(reason) (1u << (reason))

const struct iface_reason_row iface_reason[N_IFACE_REASONS] = {
	[REASON_MASTER] = {IFACE_LINUX, "interface in a bridge, bond or similar device",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_UPPER] = {IFACE_LINUX, "interface below one of an unsupported type",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_MANY_MACS] = {IFACE_LINUX, "more than 8 macvlans on an interface",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_ELSEWHERE] = {IFACE_LINUX, "macvlan in a different VRF than the interface below it",
		"all frames of that interface, and all packets routed via it, are punted to Linux"},
	[REASON_XDP] = {IFACE_LINUX, "XDP program on an interface",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_INGRESS] = {IFACE_LINUX, "tc ingress on an interface",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_EGRESS] = {0, "tc egress on an interface",
		"packets routed via it are punted to Linux, which sends them"},
	[REASON_PRIORITIES] = {0, "egress-qos-map on a VLAN interface",
		"packets routed via it are punted to Linux, which sets their priority"},
	[REASON_NO_TABLE] = {IFACE_LINUX, "interface in a VRF beyond the 4095 that workers support",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_VRF_DOWN] = {IFACE_LINUX, "interface in a VRF that is set down",
		"all its frames, and all packets routed via it, are punted to Linux"},
	[REASON_FORWARDING4] = {IFACE_LINUX4, "IPv4 forwarding is off on an interface",
		"IPv4 packets received on it are punted to Linux, which does not forward them"},
	[REASON_FORWARDING6] = {IFACE_LINUX6, "IPv6 forwarding is off",
		"IPv6 packets received on it are punted to Linux, which does not forward them"},
	[REASON_RP_FILTER] = {IFACE_LINUX4, "rp_filter on an interface with macvlans",
		"IPv4 packets received on it are punted to Linux, which checks their source"},
	[REASON_NO_IPV6] = {IFACE_LINUX6, "IPv6 is disabled on an interface",
		"IPv6 packets received on it are punted to Linux, which drops them"},
	[REASON_PROXY_NDP] = {IFACE_DISCOVERY6, "proxy_ndp on an interface",
		"ND packets received on it are punted to Linux, which answers or forwards them"},
	[REASON_MTU] = {0, "MTU that the port does not support",
		"packets longer than the port's MTU are punted to Linux; the port drops the frames "
		"that Linux sends"},
	[REASON_NO_ID] = {0, "VLAN, bridge or tunnel beyond the 65534 interfaces of workers",
		"its frames, and all packets routed via it, are punted to Linux"},
	[REASON_TAGS] = {0, "VLAN interface with more than 2 tags",
		"its frames, and all packets routed via it, are punted to Linux"},
	[REASON_BRIDGE_TAGS] = {0, "VLAN interface on a bridge with other tags",
		"its frames, and all packets routed via it, are punted to Linux: it has two tags, "
		"or not the one by which the bridge filters (vlan_protocol)"},
};

// Linux handles these before the VLAN tag is parsed on input, and after it is added on output.
static const uint32_t inherited =
	BIT(REASON_XDP) | BIT(REASON_INGRESS) | BIT(REASON_EGRESS) | BIT(REASON_PRIORITIES);

// They have a lower device, but only take frames from it that are addressed to us.
static const char *const takes_nothing[] = {"vxlan", "gre", "gretap", "erspan", "ip6gre",
	"ip6gretap", "ip6erspan", "ipip", "sit", "ip6tnl", "veth"};

static bool is_kind(const struct interface *one, const char *kind)
{
	return !strcmp(one->iface.kind, kind);
}

static bool is_tunnel(const struct interface *one)
{
	for (unsigned i = 0; i < ARRAY_LEN(takes_nothing); i++)
		if (is_kind(one, takes_nothing[i]))
			return true;
	return false;
}

// rp_filter as Linux applies it: the higher value counts, and an interface without an IPv4 address
// is never loose (__fib_validate_source in net/ipv4/fib_frontend.c).
static enum iface_rpf rpf4_of(const struct ifaces *ifaces, const struct interface *one)
{
	const int value = MAX_OF(one->conf[0].rp_filter, ifaces->conf_all[0].rp_filter);

	if (value <= 0)
		return IFACE_RPF_OFF;
	return value == 1 || !one->n_addresses4 ? IFACE_RPF_STRICT : IFACE_RPF_LOOSE;
}

// What Linux does with IP packets received on it.
static uint32_t check_conf(const struct ifaces *ifaces, const struct interface *one)
{
	const struct interface_conf *all = ifaces->conf_all, *own = one->conf;
	uint32_t reasons = 0;

	if (!own[0].is_known || own[0].forwarding <= 0)
		reasons |= BIT(REASON_FORWARDING4);
	if (all[1].forwarding <= 0) // the per-interface value only concerns router advertisements
		reasons |= BIT(REASON_FORWARDING6);
	else if (!own[1].is_known || !(one->sysctls & SYSCTL_IPV6))
		reasons |= BIT(REASON_NO_IPV6);
	if (MAX_OF(own[1].proxy_neigh, all[1].proxy_neigh) > 0)
		reasons |= BIT(REASON_PROXY_NDP);
	return reasons;
}

// Reasons due to the master; sets *vrf.
static uint32_t check_master(const struct ifaces *ifaces, const struct interface *one,
	uint16_t *vrf)
{
	const struct interface *master = vrfs_master(ifaces, one);

	*vrf = 0;
	if (!one->iface.master)
		return 0;
	if (!master)
		return BIT(REASON_MASTER);
	uint16_t found = vrfs_of_interface(ifaces, one);
	if (found == IFACES_NO_VRF)
		return BIT(REASON_NO_TABLE);
	*vrf = found;
	return master->iface.flags & IFF_UP ? 0 : BIT(REASON_VRF_DOWN);
}

static bool has_filters(const struct interface *one)
{
	return one->side[ACL_IN].n || one->side[ACL_OUT].n;
}

static void add_macvlan(const struct ifaces *ifaces, struct interface *lower,
	const struct interface *one)
{
	struct interface_above *above = &lower->above;
	uint32_t own = check_conf(ifaces, one);

	// A passthru macvlan takes all frames and has the same address.
	if (wire_mac_equal(&one->iface.mac, &lower->iface.mac))
		above->reasons |= BIT(REASON_UPPER);
	if (!(one->iface.flags & IFF_UP))
		return;
	if (one->iface.master != lower->iface.master)
		above->reasons |= BIT(REASON_ELSEWHERE);
	if (one->iface.has_xdp || one->tc || has_filters(one))
		own |= BIT(REASON_UPPER);
	if (rpf4_of(ifaces, one) || rpf4_of(ifaces, lower))
		own |= BIT(REASON_RP_FILTER);
	above->reasons |= own;
	if (above->n_macs < IFACE_MACS)
		above->macs[above->n_macs] = one->iface.mac;
	above->n_macs++;
}

// An HSR or PRP device takes all frames of its two ports.
static void add_ring(const struct ifaces *ifaces, const struct interface *ring)
{
	for (unsigned i = 0; i < ARRAY_LEN(ring->iface.ring); i++) {
		int ifindex = ring->iface.ring[i];
		struct interface *one = ifindex ? interfaces_find(&ifaces->all, ifindex) : NULL;

		if (one)
			one->above.reasons |= BIT(REASON_UPPER);
	}
}

void check_above(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		one->above = (struct interface_above){0};
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		struct interface *lower = one->is_known && one->iface.lower
		                                  ? interfaces_find(&ifaces->all, one->iface.lower)
		                                  : NULL;

		if (one->is_known)
			add_ring(ifaces, one);
		if (lower && is_kind(one, "vlan"))
			lower->above.has_vlans = true;
		// Linux delivers priority-tagged frames (VLAN 0) to it; workers deliver them to the
		// lower interface.
		bool takes_untagged = is_kind(one, "vlan") && one->iface.vlan_id == 0;

		if (!lower || (is_kind(one, "vlan") && !takes_untagged) || is_tunnel(one))
			continue;
		if (is_kind(one, "macvlan"))
			add_macvlan(ifaces, lower, one);
		else
			lower->above.reasons |= BIT(REASON_UPPER);
	}
}

static uint32_t check_own(const struct interface *one)
{
	uint32_t reasons = one->above.reasons;

	if (one->above.n_macs > IFACE_MACS)
		reasons |= BIT(REASON_MANY_MACS);
	if (one->iface.has_xdp)
		reasons |= BIT(REASON_XDP);
	if (one->tc & EVENT_INGRESS)
		reasons |= BIT(REASON_INGRESS);
	if (one->tc & EVENT_EGRESS)
		reasons |= BIT(REASON_EGRESS);
	if (one->iface.sets_priorities)
		reasons |= BIT(REASON_PRIORITIES);
	return reasons;
}

// Adds a VLAN on the path to the TAP interface: its tag is the outermost so far.
static void add_tag(struct iface_verdict *out, const struct event_link *vlan)
{
	struct iface *iface = &out->iface;

	if (iface->n_tags == IFACE_MAX_TAGS) {
		out->reasons |= BIT(REASON_TAGS);
		return;
	}
	for (unsigned i = iface->n_tags++; i > 0; i--)
		iface->tag[i] = iface->tag[i - 1];
	iface->tag[0] = (struct iface_tag){vlan->vlan_protocol, vlan->vlan_id};
}

// Filters of the interface below see tagged frames, too, where they say so.
static uint32_t check_filters_above(const struct interface *below)
{
	return (below->tc_above & EVENT_INGRESS ? BIT(REASON_INGRESS) : 0) |
	       (below->tc_above & EVENT_EGRESS ? BIT(REASON_EGRESS) : 0);
}

// TAP interfaces, or VXLAN devices that workers serve.
static bool has_ports(const struct ifaces *ifaces, const struct interface *bridge)
{
	for (unsigned i = 0; i < ifaces->tunnels.end_vxlan; i++) {
		const struct interface *one = bridges_member(ifaces->mirror, MAC_FIRST_TUNNEL + i);

		if (one && one->iface.master == bridge->ifindex)
			return true;
	}
	for (unsigned port = 0; port < ifaces->mirror->settings.n_ports; port++) {
		const struct interface *tap = taps_find(ifaces, port);

		if (tap && tap->iface.master == bridge->ifindex)
			return true;
	}
	return false;
}

// A VLAN on a bridge, of which it has the tags. Returns false if that has no port.
static bool check_bridge_below(const struct ifaces *ifaces, const struct interface *bridge,
	struct iface_verdict *out)
{
	const uint16_t filtered = bridges_vlan_tag(&bridge->iface.bridge);

	out->iface.is_bridge = true;
	out->iface.port = bridge->id; // IFACE_NONE: it has none yet
	if (out->iface.n_tags > 1 || (filtered && out->iface.tag[0].tpid != filtered))
		out->reasons |= BIT(REASON_BRIDGE_TAGS);
	return has_ports(ifaces, bridge);
}

// Follows the lower devices to the TAP interface, or to a bridge: port, tags, and the reasons
// inherited from the interfaces below. A bridge is below none, but has ports; a tunnel has none.
// Returns false if there is no TAP interface.
static bool check_below(const struct ifaces *ifaces, const struct interface *one,
	struct iface_verdict *out)
{
	const struct interface *at = one;

	if (one->iface.tunnel.is_tunnel) {
		out->iface.is_bridge = tunnels_carry_frames(one);
		return tunnels_decide(ifaces, one, &out->iface.tunnel);
	}
	out->iface.is_bridge = is_kind(one, "bridge");
	if (out->iface.is_bridge)
		return has_ports(ifaces, one);
	for (unsigned depth = 0; is_kind(at, "vlan") && depth < VLAN_DEPTH; depth++) {
		add_tag(out, &at->iface);
		at = interfaces_find(&ifaces->all, at->iface.lower);
		if (!at || !at->is_known)
			return false;
		out->reasons |= (check_own(at) | check_filters_above(at)) & inherited;
		if (!(at->iface.flags & IFF_UP))
			out->iface.flags |= IFACE_DOWN;
	}
	if (is_kind(at, "bridge"))
		return check_bridge_below(ifaces, at, out);
	int port = taps_port(ifaces, at->ifindex);
	out->iface.port = (uint8_t)MAX_OF(port, 0);
	return port >= 0;
}

static uint16_t check_mtu(const struct ifaces *ifaces, const struct interface *one,
	struct iface_verdict *out)
{
	const struct mirror_port *has = &ifaces->taps.has[out->iface.port];
	const struct mirror_port *asked = &ifaces->taps.asked[out->iface.port];
	uint32_t mtu = MIN_OF(one->iface.mtu, MTU_MAX);

	if (out->iface.is_bridge || iface_is_tunnel(&out->iface)) // ports have their own
		return (uint16_t)MAX_OF(mtu, MTU_MIN);
	if (has->mtu && asked->mtu != has->mtu && mtu > has->mtu)
		out->reasons |= BIT(REASON_MTU);
	if (has->mtu)
		mtu = MIN_OF(mtu, has->mtu);
	return (uint16_t)MAX_OF(mtu, MTU_MIN);
}

// A value set to the interface's own MTU or more has no effect.
static uint16_t check_mtu6(const struct interface *one, uint16_t mtu)
{
	return one->mtu6 >= MTU_MIN && one->mtu6 < mtu ? (uint16_t)one->mtu6 : 0;
}

bool check_lets_out(uint32_t reasons)
{
	for (unsigned i = 0; i < N_IFACE_REASONS; i++)
		if (reasons & BIT(i) && iface_reason[i].flags & IFACE_LINUX)
			return false;
	return !(reasons & (BIT(REASON_EGRESS) | BIT(REASON_PRIORITIES)));
}

void decide(const struct ifaces *ifaces, const struct interface *one, struct iface_verdict *out)
{
	*out = (struct iface_verdict){0};
	if (!one->is_known)
		return;
	if (!check_below(ifaces, one, out)) {
		out->reasons = 0;
		return;
	}
	out->is_ours = !(out->reasons & (BIT(REASON_TAGS) | BIT(REASON_BRIDGE_TAGS)));
	out->reasons |= check_own(one) | check_conf(ifaces, one) |
	                check_master(ifaces, one, &out->iface.vrf);
	if (iface_carries_frames(&out->iface) && bridges_of(ifaces, one))
		out->reasons &= ~BIT(REASON_MASTER); // bridges.c says what becomes of it
	out->iface.rpf4 = rpf4_of(ifaces, one);
	out->iface.mac = one->iface.mac;
	out->iface.has_peer = iface_is_tunnel(&out->iface);
	out->iface.mtu = check_mtu(ifaces, one, out);
	out->iface.mtu6 = check_mtu6(one, out->iface.mtu);
	out->iface.n_macs = (uint8_t)MIN_OF(one->above.n_macs, IFACE_MACS);
	memcpy(out->iface.macs, one->above.macs, out->iface.n_macs * sizeof(struct wire_mac));
	out->iface.flags |= one->iface.flags & IFF_UP ? 0 : IFACE_DOWN;
	out->iface.flags |= one->takes_labels ? IFACE_MPLS : 0;
	out->iface.flags |= ifaces->foreign.iface_flags | (one->sysctls & SYSCTL_REDIRECTS);
	if (out->iface.vrf)
		out->iface.flags |= ifaces->foreign.vrf_flags;
	for (unsigned i = 0; i < N_IFACE_REASONS; i++)
		if (out->reasons & BIT(i))
			out->iface.flags |= iface_reason[i].flags;
	if (!check_lets_out(out->reasons))
		out->iface.flags |= IFACE_OUT_LINUX;
}
