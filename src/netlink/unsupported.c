// Lists foreign objects for display. Control thread.
#include "netlink/bridges_inside.h"

#include "base/bits.h"

#include <net/if.h>
#include <stdio.h>

enum { TABLE_LOCAL = 255 };

static bool has_vrf(const struct ifaces *ifaces)
{
	for (uint16_t vrf = 1; vrf < FIB_MAX_VRFS; vrf++)
		if (ifaces_table_of_vrf(ifaces->mirror, vrf))
			return true;
	return false;
}

// The priority of the first of these rules.
static uint32_t priority_of(const struct foreign *foreign, uint8_t family, bool is_l3mdev)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < foreign->n; i++) {
		const struct event_rule *rule = &foreign->thing[i].rule;

		if (foreign->thing[i].kind == EVENT_RULE && rule->family == family &&
			rule->is_l3mdev == is_l3mdev && (is_l3mdev || rule->table == TABLE_LOCAL))
			first = MIN_OF(first, rule->priority);
	}
	return first;
}

// What the order of rules means for VRFs.
static bool tell_vrf_rules(const struct ifaces *ifaces, uint8_t family,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported one = {.n = 1};
	uint32_t local = priority_of(&ifaces->foreign, family, false);
	uint32_t vrfs = priority_of(&ifaces->foreign, family, true);

	if (!has_vrf(ifaces) || local > vrfs)
		return true;
	snprintf(one.where, sizeof(one.where), "IPv%u", family);
	if (vrfs == UINT32_MAX) {
		snprintf(one.what, sizeof(one.what), "rule for VRFs (l3mdev) is missing");
		snprintf(one.effect, sizeof(one.effect),
			"IPv%u packets in VRFs are punted to Linux, which does not use the VRFs' "
			"tables",
			family);
	} else {
		snprintf(one.what, sizeof(one.what),
			"rule for table local before the rule for VRFs");
		snprintf(one.effect, sizeof(one.effect),
			"in a VRF, Linux accepts packets to its addresses outside that VRF, "
			"workers forward them; give the rule for table local a priority above %u",
			vrfs);
	}
	return cb(arg, &one);
}

static bool tell_missing(const struct foreign *foreign, uint8_t family,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	unsigned rules = foreign_usual_rules(foreign, family);
	struct netlink_unsupported one = {.what = "rule for table local or main is missing",
		.n = 1};

	if (rules & RULE_LOCAL && rules & RULE_MAIN)
		return true;
	snprintf(one.where, sizeof(one.where), "IPv%u", family);
	snprintf(one.effect, sizeof(one.effect), "all IPv%u packets are punted to Linux", family);
	return cb(arg, &one);
}

static void describe(const struct foreign_thing *thing, struct netlink_unsupported *one)
{
	static const char *const what[N_EVENT_KINDS] = {[EVENT_RULE] = "policy rule",
		[EVENT_CHAIN] = "nftables hook",
		[EVENT_POLICY] = "xfrm policy",
		[EVENT_POLICY_DEFAULT] = "xfrm policy"};
	uint8_t flags = foreign_flags(thing);

	*one = (struct netlink_unsupported){.n = thing->n};
	snprintf(one->what, sizeof(one->what), "%s", what[thing->kind]);
	if (thing->kind == EVENT_RULE)
		snprintf(one->where, sizeof(one->where), "IPv%u, priority %u, table %u",
			thing->what.family, thing->rule.priority, thing->rule.table);
	else
		snprintf(one->where, sizeof(one->where), "%.63s", thing->what.name);
	snprintf(one->effect, sizeof(one->effect),
		"all %s packets are punted to Linux, which applies it",
		flags == IFACE_LINUX4   ? "IPv4"
		: flags == IFACE_LINUX6 ? "IPv6"
					: "IP");
}

// Kinds that no dump has returned yet.
static bool tell_lacking(const struct foreign *foreign,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	static const struct {
		enum event_kind kind;
		const char *name;
	} rows[] = {{EVENT_RULE, "policy rules"}, {EVENT_QDISC, "tc qdiscs"},
		{EVENT_CHAIN, "nftables hooks"}, {EVENT_POLICY, "xfrm policies"},
		{EVENT_POLICY_DEFAULT, "default xfrm policy"}};
	struct netlink_unsupported one = {.what = "failed query",
		.effect = "all IP packets are punted to Linux until the query succeeds",
		.n = 1};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (!event_kinds_have(foreign->lacking, rows[i].kind))
			continue;
		snprintf(one.where, sizeof(one.where), "%s", rows[i].name);
		if (!cb(arg, &one))
			return false;
	}
	return true;
}

static bool tell_old_tables(const struct foreign *foreign, uint8_t family,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported one = {.what = "iptables-legacy", .n = 1};

	if (!(foreign->old_tables & (family == 4 ? IFACE_LINUX4 : IFACE_LINUX6)))
		return true;
	snprintf(one.where, sizeof(one.where), "IPv%u", family);
	snprintf(one.effect, sizeof(one.effect),
		"all IPv%u packets are punted to Linux, which applies its rules", family);
	return cb(arg, &one);
}

static bool tell_mroutes(const struct foreign *foreign, uint8_t family,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported one = {.what = "multicast routes",
		.effect = "multicast packets are punted to Linux, which forwards them"};

	for (uint32_t i = 0; i < foreign->n; i++)
		one.n += foreign->thing[i].kind == EVENT_MROUTE &&
		         foreign->thing[i].what.family == family;
	snprintf(one.where, sizeof(one.where), "IPv%u", family);
	return !one.n || cb(arg, &one);
}

bool foreign_unsupported(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	const struct foreign *foreign = &ifaces->foreign;
	struct netlink_unsupported one;

	for (uint32_t i = 0; i < foreign->n; i++) {
		if (!foreign_flags(&foreign->thing[i]))
			continue;
		describe(&foreign->thing[i], &one);
		if (!cb(arg, &one))
			return false;
	}
	if (!tell_lacking(foreign, cb, arg))
		return false;
	for (uint8_t family = 4; family <= 6; family += 2)
		if (!tell_missing(foreign, family, cb, arg) ||
			!tell_old_tables(foreign, family, cb, arg) ||
			!tell_vrf_rules(ifaces, family, cb, arg) ||
			!tell_mroutes(foreign, family, cb, arg))
			return false;
	return true;
}

// What workers leave to Linux, by interface.

// The filters because of which tc is left to Linux, the attributes because of which a bridge is.
// False: `cb` stopped the iteration.
static bool tell_part(const struct ifaces *ifaces, const struct interface *one, unsigned reason,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told)
{
	*told = false;
	if (reason == REASON_MASTER)
		return bridges_tell(ifaces, one, cb, arg, told);
	if (reason != REASON_INGRESS && reason != REASON_EGRESS)
		return true;
	if (!filters_tell(ifaces, one, reason == REASON_INGRESS ? EVENT_INGRESS : EVENT_EGRESS, cb,
		    arg, told))
		return false;
	return reason == REASON_INGRESS || *told || queues_tell(ifaces, one, cb, arg, told);
}

static bool tell_reasons(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	for (unsigned i = 0; i < N_IFACE_REASONS; i++) {
		struct netlink_unsupported reported = {.n = 1};
		bool told;

		if (!(one->reasons & 1u << i))
			continue;
		if (!tell_part(ifaces, one, i, cb, arg, &told))
			return false;
		if (told)
			continue;
		snprintf(reported.what, sizeof(reported.what), "%s", iface_reason[i].what);
		snprintf(reported.where, sizeof(reported.where), "%s", one->iface.name);
		snprintf(reported.effect, sizeof(reported.effect), "%s", iface_reason[i].effect);
		if (!cb(arg, &reported))
			return false;
	}
	return true;
}

// Linux treats them as local all the same, but has no local route from which workers could learn
// it.
static bool tell_hidden_addresses(const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported reported = {.n = one->n_addresses4,
		.what = "IPv4 address on an interface that is set down",
		.effect = "workers forward packets with this source address; Linux drops them"};

	if (!one->is_known || !one->n_addresses4 || one->iface.flags & IFF_UP)
		return true;
	snprintf(reported.where, sizeof(reported.where), "%s", one->iface.name);
	return cb(arg, &reported);
}

void ifaces_unsupported(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	if (!foreign_unsupported(ifaces, cb, arg) || !floods_tell(ifaces, cb, arg) ||
		!tunnels_tell_ports(ifaces, cb, arg))
		return;
	for (const struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (!tell_reasons(ifaces, one, cb, arg) || !tell_hidden_addresses(one, cb, arg) ||
			!tunnels_tell(one, cb, arg) || !bridges_tell_tunnel(ifaces, one, cb, arg))
			return;
}
