// Tunnel devices of Linux: which of them workers serve, and what Linux tells of them only when it
// is asked. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/bits.h"
#include "fib/fib_fast.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const what_of[N_TUNNEL_TROUBLES] = {
	[TUNNEL_KIND] = "tunnel of ERSPAN or VTI",
	[TUNNEL_BAREUDP] = "tunnel that routes with labels do not reach (bareudp)",
	[TUNNEL_EXTERNAL] = "tunnel without ends of its own (external)",
	[TUNNEL_ENDS] = "tunnel without a local and a remote address",
	[TUNNEL_SEQUENCE] = "tunnel with sequence numbers (seq)",
	[TUNNEL_ENCAP] = "tunnel in GUE, with encap-remcsum, or of GRE in UDP",
	[TUNNEL_FLAGS] = "tunnel with a flow label, dscp inherit or isatap",
	[TUNNEL_MARK] = "tunnel with fwmark",
	[TUNNEL_IGNORES_DF] = "tunnel with ignore-df",
	[TUNNEL_MODE] = "tunnel of another protocol (mode)",
	[TUNNEL_VXLAN_SOURCE] = "VXLAN device without a local address (local)",
	[TUNNEL_VXLAN_HEADER] = "VXLAN with gbp, gpe, remote checksums or reserved bits",
	[TUNNEL_VXLAN_ANSWERS] = "VXLAN device with proxy, rsc or l2miss",
	[TUNNEL_VXLAN_OPTION] = "VXLAN device with an option that is not known",
	[TUNNEL_ELSEWHERE] = "tunnel that sends in another network namespace",
	[TUNNEL_LOCAL] = "tunnel whose local address the router does not have",
	[TUNNEL_LINK] = "tunnel bound to an interface that is not a port",
	[TUNNEL_TWIN] = "several tunnels with the same ends",
	[TUNNEL_VXLAN_TWIN] = "several VXLAN devices of one VNI and port",
	[TUNNEL_NO_NUMBER] = "more than 4096 VXLAN devices",
	[TUNNEL_VXLAN_PORT] = "VXLAN on more than 16 UDP ports (dstport)",
};

// The interface by which a tunnel is bound to send; NULL: it is not bound, or to a VRF device.
static const struct interface *bound_to(const struct ifaces *ifaces, const struct interface *one)
{
	const int link = one->iface.tunnel.link;
	const struct interface *found = link ? interfaces_find(&ifaces->all, link) : NULL;

	return found && strcmp(found->iface.kind, "vrf") != 0 ? found : NULL;
}

// Where it sends its packets; IFACES_NO_VRF: workers cannot send there.
static uint16_t vrf_of(const struct ifaces *ifaces, const struct interface *one)
{
	const int link = one->iface.tunnel.link;
	const struct interface *found = link ? interfaces_find(&ifaces->all, link) : NULL;
	const struct interface *port = bound_to(ifaces, one);
	struct iface_verdict verdict;

	if (!link)
		return 0;
	if (!found || !found->is_known || found->iface.tunnel.is_tunnel)
		return IFACES_NO_VRF;
	if (port && one->iface.tunnel.settings.kind == IFACE_GRETAP)
		return IFACES_NO_VRF;
	if (port && !tunnels_carry_frames(one)) { // of VXLAN, only entries of its table are bound
		decide(ifaces, port, &verdict);
		if (!verdict.is_ours)
			return IFACES_NO_VRF;
	}
	return vrfs_of_interface(ifaces, found);
}

static enum tunnel_trouble find_trouble(const struct ifaces *ifaces, const struct interface *one)
{
	const struct event_tunnel *tunnel = &one->iface.tunnel;

	if (tunnel->trouble != TUNNEL_FINE)
		return tunnel->trouble;
	if (!addresses_have(&ifaces->addresses, &tunnel->settings.local))
		return TUNNEL_LOCAL;
	return vrf_of(ifaces, one) == IFACES_NO_VRF ? TUNNEL_LINK : TUNNEL_FINE;
}

// What a received packet says of its tunnel.
struct ends {
	struct wire_addr local, remote;
	uint32_t key;
	uint16_t vrf;
	uint8_t has_key, kind;
	struct interface *one; // from here on not compared
	uint16_t families;
};

static int order(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct ends, one));
}

static void set_ends(const struct ifaces *ifaces, struct interface *one, struct ends *out)
{
	const struct iface_tunnel *tunnel = &one->iface.tunnel.settings;

	memset(out, 0, sizeof(*out)); // compared as bytes
	out->local = tunnel->local;
	out->remote = tunnel->remote;
	out->has_key = (tunnel->flags & IFACE_TUNNEL_WANTS_KEY) != 0;
	out->key = tunnel->wanted_key;
	out->vrf = vrf_of(ifaces, one);
	out->kind = tunnel->kind;
	out->one = one;
	if (tunnel->kind == IFACE_VXLAN) { // what comes to any address, by port and VNI
		out->local = (struct wire_addr){.family = tunnel->local.family};
		out->key = tunnel->key;
		memcpy(out->remote.bytes, &tunnel->dest_port, sizeof(tunnel->dest_port));
		out->families = IFACE_TUNNEL_IP4;
		return;
	}
	out->families =
		tunnel->kind == IFACE_GRETAP
			? IFACE_TUNNEL_IP4
			: tunnel->flags & (IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_MPLS);
}

// Linux tells devices that are bound to different interfaces apart by these, and others by their
// order.
static void find_twins(struct ends ends[], size_t n)
{
	qsort(ends, n, sizeof(ends[0]), order);
	for (size_t first = 0, end; first < n; first = end) {
		uint16_t seen = 0, twice = 0;

		for (end = first; end < n && !order(&ends[first], &ends[end]); end++) {
			twice |= seen & ends[end].families;
			seen |= ends[end].families;
		}
		for (size_t i = first; i < end; i++)
			if (ends[i].families & twice)
				ends[i].one->trouble = ends[i].kind == IFACE_VXLAN
				                               ? TUNNEL_VXLAN_TWIN
				                               : TUNNEL_TWIN;
	}
}

void tunnels_check(struct ifaces *ifaces)
{
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;
	struct interface *one;
	size_t n = 0, n_fine = 0;

	tunnels->n_devices = tunnels->n_served = tunnels->n_vxlans = 0;
	for (one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		if (!one->is_known || !one->iface.tunnel.is_tunnel)
			continue;
		one->trouble = find_trouble(ifaces, one);
		tunnels->n_devices++;
		n_fine += one->trouble == TUNNEL_FINE;
		tunnels->n_vxlans += tunnels_carry_frames(one);
		tunnels->n_served += one->trouble == TUNNEL_FINE && !tunnels_carry_frames(one);
	}
	struct ends *ends = n_fine > 1 ? calloc(n_fine, sizeof(*ends)) : NULL;
	if (n_fine > 1 && !ends)
		ifaces_lost(ifaces, EVENT_LINK);
	for (one = NULL; ends && (one = interfaces_next(&ifaces->all, one));)
		if (one->is_known && one->iface.tunnel.is_tunnel && one->trouble == TUNNEL_FINE)
			set_ends(ifaces, one, &ends[n++]);
	if (ends)
		find_twins(ends, n);
	free(ends);
	vxlans_check(ifaces);
	tunnels->n_of_frames = 0;
	for (one = NULL; tunnels->n_vxlans && (one = interfaces_next(&ifaces->all, one));)
		tunnels->n_of_frames +=
			one->is_known && tunnels_carry_frames(one) && one->trouble == TUNNEL_FINE;
}

bool tunnels_decide(const struct ifaces *ifaces, const struct interface *one,
	struct iface_tunnel *out)
{
	const struct interface *port = bound_to(ifaces, one);

	if (one->trouble != TUNNEL_FINE || one->iface.tunnel.trouble != TUNNEL_FINE)
		return false;
	memcpy(out, &one->iface.tunnel.settings, sizeof(*out));
	out->vrf = vrf_of(ifaces, one);
	if (out->vrf == IFACES_NO_VRF)
		return false;
	out->path_mtu = one->path_mtu;
	if (tunnels_carry_frames(one)) {
		out->vxlan = one->vxlan - 1;
		return one->vxlan;
	}
	if (port) {
		out->flags |= IFACE_TUNNEL_BOUND;
		out->link = port->id;
	}
	return true;
}

// --- what Linux is asked for

// A port that several listeners have, of which workers cannot serve one, is left to Linux.
static bool is_taken(const struct tunnels_of_linux *tunnels, const struct mirror_udp_port *port)
{
	bool is_plain = true;

	for (unsigned i = 0; i < tunnels->n_ports; i++)
		if (tunnels->port[i].port == port->port && tunnels->port[i].is_ip6 == port->is_ip6)
			is_plain &= tunnels->port[i].is_plain;
	return is_plain;
}

static void publish_ports(const struct ifaces *ifaces)
{
	const struct tunnels_of_linux *tunnels = &ifaces->tunnels;
	struct fib_udp_end end[TUNNELS_PORTS];
	unsigned n = 0;

	for (unsigned i = 0; i < tunnels->n_ports; i++) {
		const struct mirror_udp_port *port = &tunnels->port[i];

		if (is_taken(tunnels, port)) // Linux takes packets without a checksum, too
			end[n++] = (struct fib_udp_end){.port = port->port,
				.protocol = port->protocol,
				.flags = port->is_ip6 ? FIB_UDP_IP6 | FIB_UDP_ZERO : FIB_UDP_IP4};
	}
	fib_udp_ends_set(ifaces->mirror->settings.fib, end, n);
}

static bool same_port(const struct mirror_udp_port *a, const struct mirror_udp_port *b)
{
	return a->port == b->port && a->protocol == b->protocol && a->is_ip6 == b->is_ip6 &&
	       a->is_plain == b->is_plain;
}

void tunnels_poll(struct ifaces *ifaces)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;
	struct mirror_udp_port port[TUNNELS_PORTS];
	bool is_same = true;

	if (!ops->udp_ports || !(tunnels->n_served || tunnels->n_ports))
		return;
	const int found = tunnels->n_served ? ops->udp_ports(ops->ops, port, TUNNELS_PORTS) : 0;
	if (found < 0)
		return;
	const unsigned n = MIN_OF(found, TUNNELS_PORTS);
	for (unsigned i = 0; i < n && i < tunnels->n_ports; i++)
		is_same &= same_port(&port[i], &tunnels->port[i]);
	if (is_same && n == tunnels->n_ports)
		return;
	memcpy(tunnels->port, port, n * sizeof(port[0]));
	tunnels->n_ports = n;
	publish_ports(ifaces);
}

uint16_t tunnels_path_mtu(const struct ifaces *ifaces, const struct interface *one)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	const struct event_tunnel *tunnel = &one->iface.tunnel;

	if (!tunnel->is_tunnel || tunnels_carry_frames(one) || one->trouble != TUNNEL_FINE ||
		!ops->path_mtu)
		return 0;
	return MIN_OF(ops->path_mtu(ops->ops, &tunnel->settings.remote, tunnel->link), UINT16_MAX);
}

// --- what is left to Linux

bool tunnels_tell(const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported reported = {.n = 1,
		.effect = "Linux encapsulates and decapsulates its packets"};

	if (!one->is_known || !one->iface.tunnel.is_tunnel || one->trouble == TUNNEL_FINE ||
		!(one->iface.flags & IFF_UP))
		return true;
	snprintf(reported.what, sizeof(reported.what), "%s", what_of[one->trouble]);
	snprintf(reported.where, sizeof(reported.where), "%s", one->iface.name);
	return cb(arg, &reported);
}

bool tunnels_tell_ports(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	const struct tunnels_of_linux *tunnels = &ifaces->tunnels;
	unsigned n_taken = 0;

	for (unsigned i = 0; i < tunnels->n_ports; i++) {
		struct netlink_unsupported one = {.n = 1,
			.what = "UDP port of tunnels (fou)",
			.effect = "Linux decapsulates what it receives on it"};

		if (is_taken(tunnels, &tunnels->port[i]) && n_taken++ < FIB_MAX_UDP_ENDS)
			continue;
		snprintf(one.where, sizeof(one.where), "port %u of IPv%u", tunnels->port[i].port,
			tunnels->port[i].is_ip6 ? 6 : 4);
		if (!cb(arg, &one))
			return false;
	}
	return true;
}
