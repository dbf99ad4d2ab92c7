// From an interface, what is below, above and around it, to the link that lanes see. Control
// thread.
#include "sync/judge.h"

#include "base/bits.h"

#include <net/if.h>
#include <string.h>

enum { MTU_MIN = 68, MTU_MAX = 9600, VLAN_DEPTH = 8 };

#define BIT(reason) (1u << (reason))

const struct link_reason_row link_reason[N_LINK_REASONS] = {
	[REASON_MASTER] = {FIB_LINK_LINUX, "interface in a bridge, bond or the like",
		"all its frames go to Linux, routes over it too"},
	[REASON_UPPER] = {FIB_LINK_LINUX, "interface under one of a kind that lanes do not know",
		"all its frames go to Linux, routes over it too"},
	[REASON_MANY_MACS] = {FIB_LINK_LINUX, "more than 8 macvlans on an interface",
		"all its frames go to Linux, routes over it too"},
	[REASON_ELSEWHERE] = {FIB_LINK_LINUX, "macvlan in another VRF than the interface under it",
		"all frames of that interface go to Linux, routes over it too"},
	[REASON_XDP] = {FIB_LINK_LINUX, "XDP program on an interface",
		"all its frames go to Linux, routes over it too"},
	[REASON_INGRESS] = {FIB_LINK_LINUX, "tc ingress on an interface",
		"all its frames go to Linux, routes over it too"},
	[REASON_EGRESS] = {0, "tc egress on an interface",
		"packets routed over it go to Linux, which sends them"},
	[REASON_PRIORITIES] = {0, "egress-qos-map on a VLAN interface",
		"packets routed over it go to Linux, which sets their priority"},
	[REASON_NO_TABLE] = {FIB_LINK_LINUX, "interface in a VRF beyond the 63 that lanes hold",
		"all its frames go to Linux, routes over it too"},
	[REASON_VRF_DOWN] = {FIB_LINK_LINUX, "interface in a VRF that is set down",
		"all its frames go to Linux, routes over it too"},
	[REASON_FORWARDING4] = {FIB_LINK_LINUX4, "IPv4 forwarding is off on an interface",
		"IPv4 packets that come in go to Linux, which does not forward them"},
	[REASON_FORWARDING6] = {FIB_LINK_LINUX6, "IPv6 forwarding is off",
		"IPv6 packets that come in go to Linux, which does not forward them"},
	[REASON_RP_FILTER] = {FIB_LINK_LINUX4, "rp_filter on an interface",
		"IPv4 packets that come in go to Linux, which checks their source"},
	[REASON_NO_IPV6] = {FIB_LINK_LINUX6, "IPv6 is disabled on an interface",
		"IPv6 packets that come in go to Linux, which drops them"},
	[REASON_PROXY_NDP] = {FIB_LINK_DISCOVERY6, "proxy_ndp on an interface",
		"neighbour discovery that comes in goes to Linux, which answers or forwards it"},
	[REASON_MTU] = {0, "MTU that the port refuses",
		"longer packets than the port takes go to Linux, whose frames the port drops"},
	[REASON_NO_ID] = {0, "VLAN interface beyond the links that lanes hold",
		"its frames go to Linux, routes over it too"},
	[REASON_TAGS] = {0, "VLAN interface with more than 2 tags",
		"its frames go to Linux, routes over it too"},
};

// Linux sees these before it looks at the VLAN tag, and after it has put it on.
static const uint32_t inherited =
	BIT(REASON_XDP) | BIT(REASON_INGRESS) | BIT(REASON_EGRESS) | BIT(REASON_PRIORITIES);

// They have an interface under them, but take no frames from it that are not for an address of
// ours.
static const char *const takes_nothing[] = {"vxlan", "gre", "gretap", "erspan", "ip6gre",
	"ip6gretap", "ip6erspan", "ipip", "sit", "ip6tnl", "veth"};

static bool is_kind(const struct interface *one, const char *kind)
{
	return !strcmp(one->link.kind, kind);
}

static bool is_tunnel(const struct interface *one)
{
	for (unsigned i = 0; i < ARRAY_LEN(takes_nothing); i++)
		if (is_kind(one, takes_nothing[i]))
			return true;
	return false;
}

// What Linux does to IP packets that come in by it.
static uint32_t judge_conf(const struct links *links, const struct interface *one)
{
	const struct interface_conf *all = links->conf_all, *own = one->conf;
	uint32_t reasons = 0;

	if (!own[0].is_known || own[0].forwarding <= 0)
		reasons |= BIT(REASON_FORWARDING4);
	if (MAX_OF(own[0].rp_filter, all[0].rp_filter) > 0)
		reasons |= BIT(REASON_RP_FILTER);
	if (all[1].forwarding <= 0) // the interface's own value concerns router advertisements
		reasons |= BIT(REASON_FORWARDING6);
	else if (!own[1].is_known || !(one->sysctls & SYSCTL_IPV6))
		reasons |= BIT(REASON_NO_IPV6);
	if (MAX_OF(own[1].proxy_neigh, all[1].proxy_neigh) > 0)
		reasons |= BIT(REASON_PROXY_NDP);
	return reasons;
}

// By the master; *vrf is told.
static uint32_t judge_master(const struct links *links, const struct interface *one, uint8_t *vrf)
{
	const struct interface *master = vrfs_master(links, one);

	*vrf = 0;
	if (!one->link.master)
		return 0;
	if (!master)
		return BIT(REASON_MASTER);
	uint8_t found = vrfs_of_interface(links, one);
	if (found == LINKS_NO_VRF)
		return BIT(REASON_NO_TABLE);
	*vrf = found;
	return master->link.flags & IFF_UP ? 0 : BIT(REASON_VRF_DOWN);
}

static void add_macvlan(const struct links *links, struct interface *lower,
	const struct interface *one)
{
	struct interface_above *above = &lower->above;
	uint32_t own = judge_conf(links, one);

	// A passthru takes all that comes, and has the same address.
	if (wire_mac_equal(&one->link.mac, &lower->link.mac))
		above->reasons |= BIT(REASON_UPPER);
	if (!(one->link.flags & IFF_UP))
		return;
	if (one->link.master != lower->link.master)
		above->reasons |= BIT(REASON_ELSEWHERE);
	if (one->link.has_xdp || one->tc)
		own |= BIT(REASON_UPPER);
	above->reasons |= own;
	if (above->n_macs < FIB_LINK_MACS)
		above->macs[above->n_macs] = one->link.mac;
	above->n_macs++;
}

// A device for two cables to the same place (HSR, PRP) takes all frames of both.
static void add_ring(const struct links *links, const struct interface *ring)
{
	for (unsigned i = 0; i < ARRAY_LEN(ring->link.ring); i++) {
		int ifindex = ring->link.ring[i];
		struct interface *one = ifindex ? interfaces_find(&links->all, ifindex) : NULL;

		if (one)
			one->above.reasons |= BIT(REASON_UPPER);
	}
}

void judge_above(struct links *links)
{
	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));)
		one->above = (struct interface_above){0};
	for (struct interface *one = NULL; (one = interfaces_next(&links->all, one));) {
		struct interface *lower = one->is_known && one->link.lower
		                                  ? interfaces_find(&links->all, one->link.lower)
		                                  : NULL;

		if (one->is_known)
			add_ring(links, one);
		// Linux gives it what has a priority and no VLAN, which lanes take for the lower's.
		bool takes_untagged = is_kind(one, "vlan") && one->link.vlan_id == 0;

		if (!lower || (is_kind(one, "vlan") && !takes_untagged) || is_tunnel(one))
			continue;
		if (is_kind(one, "macvlan"))
			add_macvlan(links, lower, one);
		else
			lower->above.reasons |= BIT(REASON_UPPER);
	}
}

static uint32_t judge_own(const struct interface *one)
{
	uint32_t reasons = one->above.reasons;

	if (one->above.n_macs > FIB_LINK_MACS)
		reasons |= BIT(REASON_MANY_MACS);
	if (one->link.has_xdp)
		reasons |= BIT(REASON_XDP);
	if (one->tc & EVENT_INGRESS)
		reasons |= BIT(REASON_INGRESS);
	if (one->tc & EVENT_EGRESS)
		reasons |= BIT(REASON_EGRESS);
	if (one->link.sets_priorities)
		reasons |= BIT(REASON_PRIORITIES);
	return reasons;
}

// One VLAN more on the way down: its tag is the outermost so far.
static void add_tag(struct judgement *out, const struct event_link *vlan)
{
	struct fib_link *link = &out->link;

	if (link->n_tags == FIB_MAX_TAGS) {
		out->reasons |= BIT(REASON_TAGS);
		return;
	}
	for (unsigned i = link->n_tags++; i > 0; i--)
		link->tag[i] = link->tag[i - 1];
	link->tag[0] = (struct fib_tag){vlan->vlan_protocol, vlan->vlan_id};
}

// Down to the twin: port, tags, and what the interfaces below bring with them. Whether it is there.
static bool judge_below(const struct links *links, const struct interface *one,
	struct judgement *out)
{
	const struct interface *at = one;

	for (unsigned depth = 0; is_kind(at, "vlan") && depth < VLAN_DEPTH; depth++) {
		add_tag(out, &at->link);
		at = interfaces_find(&links->all, at->link.lower);
		if (!at || !at->is_known)
			return false;
		out->reasons |= judge_own(at) & inherited;
		if (!(at->link.flags & IFF_UP))
			out->link.flags |= FIB_LINK_DOWN;
	}
	int port = twins_port(links, at->ifindex);
	out->link.port = (uint8_t)MAX_OF(port, 0);
	return port >= 0;
}

static uint16_t judge_mtu(const struct links *links, const struct interface *one,
	struct judgement *out)
{
	const struct mirror_port *has = &links->twins.has[out->link.port];
	const struct mirror_port *asked = &links->twins.asked[out->link.port];
	uint32_t mtu = MIN_OF(one->link.mtu, MTU_MAX);

	if (has->mtu && asked->mtu != has->mtu && mtu > has->mtu)
		out->reasons |= BIT(REASON_MTU);
	if (has->mtu)
		mtu = MIN_OF(mtu, has->mtu);
	return (uint16_t)MAX_OF(mtu, MTU_MIN);
}

// What Linux has set to the link's own, or more, is of no consequence.
static uint16_t judge_mtu6(const struct interface *one, uint16_t mtu)
{
	return one->mtu6 >= MTU_MIN && one->mtu6 < mtu ? (uint16_t)one->mtu6 : 0;
}

bool judge_lets_out(uint32_t reasons)
{
	for (unsigned i = 0; i < N_LINK_REASONS; i++)
		if (reasons & BIT(i) && link_reason[i].flags & FIB_LINK_LINUX)
			return false;
	return !(reasons & (BIT(REASON_EGRESS) | BIT(REASON_PRIORITIES)));
}

void judge(const struct links *links, const struct interface *one, struct judgement *out)
{
	*out = (struct judgement){0};
	if (!one->is_known)
		return;
	if (!judge_below(links, one, out)) {
		out->reasons = 0;
		return;
	}
	out->is_ours = !(out->reasons & BIT(REASON_TAGS));
	out->reasons |=
		judge_own(one) | judge_conf(links, one) | judge_master(links, one, &out->link.vrf);
	out->link.mac = one->link.mac;
	out->link.mtu = judge_mtu(links, one, out);
	out->link.mtu6 = judge_mtu6(one, out->link.mtu);
	out->link.n_macs = (uint8_t)MIN_OF(one->above.n_macs, FIB_LINK_MACS);
	memcpy(out->link.macs, one->above.macs, out->link.n_macs * sizeof(struct wire_mac));
	out->link.flags |= one->link.flags & IFF_UP ? 0 : FIB_LINK_DOWN;
	out->link.flags |= links->foreign.link_flags | (one->sysctls & SYSCTL_REDIRECTS);
	if (out->link.vrf)
		out->link.flags |= links->foreign.vrf_flags;
	for (unsigned i = 0; i < N_LINK_REASONS; i++)
		if (out->reasons & BIT(i))
			out->link.flags |= link_reason[i].flags;
}
