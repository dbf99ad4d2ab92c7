// A list: in a system that leaves routing to workers it is short. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/vector.h"

#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_DEFAULT = 253, TABLE_MAIN = 254, TABLE_LOCAL = 255 };
enum { PRIORITY_L3MDEV = 1000, PRIORITY_MAIN = 32766, PRIORITY_DEFAULT = 32767, HOOK_EGRESS = 6 };

void foreign_close(struct foreign *foreign)
{
	free(foreign->thing);
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u; // FNV-1a

	while (*name)
		hash = (hash ^ (uint8_t)*name++) * 16777619u;
	return hash;
}

static struct foreign_thing thing_of(const struct event *event)
{
	struct foreign_thing thing = {.kind = event->kind};

	if (event->kind == EVENT_RULE) {
		thing.rule = event->rule;
		thing.what.family = event->rule.family;
	} else {
		thing.what = event->foreign;
		thing.name = hash_name(thing.what.name);
	}
	return thing;
}

static bool same_rule(const struct event_rule *a, const struct event_rule *b)
{
	return a->family == b->family && a->priority == b->priority && a->table == b->table &&
	       a->action == b->action && a->is_l3mdev == b->is_l3mdev &&
	       a->has_selector == b->has_selector;
}

static bool same(const struct foreign_thing *a, const struct foreign_thing *b)
{
	return a->kind == b->kind && a->what.ifindex == b->what.ifindex && a->name == b->name &&
	       !strcmp(a->what.name, b->what.name) && same_rule(&a->rule, &b->rule);
}

static struct foreign_thing *find(struct foreign *foreign, const struct foreign_thing *wanted)
{
	for (uint32_t i = 0; i < foreign->n; i++)
		if (same(&foreign->thing[i], wanted))
			return &foreign->thing[i];
	return NULL;
}

static void remove_thing(struct foreign *foreign, struct foreign_thing *thing)
{
	*thing = foreign->thing[--foreign->n];
}

// Kinds of objects that prevent workers from forwarding as soon as one exists.
static bool keeps_from_forwarding(enum event_kind kind)
{
	return kind == EVENT_RULE || kind == EVENT_QDISC || kind == EVENT_CHAIN ||
	       kind == EVENT_POLICY || kind == EVENT_POLICY_DEFAULT;
}

// Without memory for it, all is left to Linux until a dump has contained its whole kind.
static void add(struct ifaces *ifaces, const struct foreign_thing *thing)
{
	struct foreign *foreign = &ifaces->foreign;

	if (!vector_reserve(&foreign->thing, &foreign->capacity, foreign->n + 1, sizeof(*thing))) {
		foreign->thing[foreign->n++] = *thing;
		return;
	}
	foreign->reported &= ~(1u << thing->kind);
	foreign_lacks(ifaces, thing->kind);
	ifaces_lost(ifaces, thing->kind);
}

// The kernel deletes all policies at once.
static void remove_kind(struct foreign *foreign, uint8_t kind)
{
	for (uint32_t i = foreign->n; i-- > 0;)
		if (foreign->thing[i].kind == kind)
			remove_thing(foreign, &foreign->thing[i]);
}

// One that may have been below another; those that hold filters are not.
static bool has_qdisc(const struct foreign *foreign, int ifindex)
{
	for (uint32_t i = 0; i < foreign->n; i++)
		if (foreign->thing[i].kind == EVENT_QDISC &&
			foreign->thing[i].what.ifindex == ifindex &&
			!(foreign->thing[i].what.sides & EVENT_INGRESS))
			return true;
	return false;
}

// Whether the remaining kernel state is unknown: a chain that loses a device may have others, and
// everything below a deleted qdisc is removed without a notification.
static bool is_unclear(const struct foreign *foreign, const struct foreign_thing *reported)
{
	if (reported->kind == EVENT_CHAIN)
		return reported->what.is_part && reported->what.hook >= NF_INET_INGRESS;
	return reported->kind == EVENT_QDISC && !(reported->what.sides & EVENT_INGRESS) &&
	       has_qdisc(foreign, reported->what.ifindex);
}

static void delete_event(struct foreign *foreign, const struct foreign_thing *reported)
{
	struct foreign_thing *known = find(foreign, reported);

	if (reported->kind == EVENT_CHAIN && is_unclear(foreign, reported))
		return; // kept until a dump does not contain it
	if (reported->kind != EVENT_RULE && !reported->what.name[0])
		remove_kind(foreign, reported->kind);
	else if (known && --known->n == 0)
		remove_thing(foreign, known);
}

// Rules that we cannot tell apart are counted: the entry is removed with the last one. A dump
// counts from zero. All other objects have a unique name and may be reported again when they
// change.
void foreign_event(struct ifaces *ifaces, const struct event *event)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	struct foreign *foreign = &ifaces->foreign;
	struct foreign_thing reported = thing_of(event), *known;

	ifaces->is_dirty = true;
	if (event->kind == EVENT_QDISC)
		filters_qdisc(ifaces, event);
	if (event->kind == EVENT_QDISC && event->foreign.sides == EVENT_EGRESS)
		queues_event(ifaces, event);
	if (event->is_delete) {
		delete_event(foreign, &reported);
		if (is_unclear(foreign, &reported))
			ops->dump_again(ops->ops);
		return;
	}
	reported.seen = ifaces->dump;
	reported.n = 1;
	known = find(foreign, &reported);
	if (known && reported.kind == EVENT_RULE &&
		(!event->is_dump || known->seen == ifaces->dump))
		reported.n = known->n + 1;
	if (known)
		*known = reported;
	else if (reported.kind == EVENT_MROUTE || !reported.what.is_harmless)
		add(ifaces, &reported);
}

void foreign_iface_gone(struct ifaces *ifaces, int ifindex)
{
	struct foreign *foreign = &ifaces->foreign;

	for (uint32_t i = foreign->n; i-- > 0;)
		if (foreign->thing[i].what.ifindex == ifindex)
			remove_thing(foreign, &foreign->thing[i]);
}

static uint8_t flags_of_family(uint8_t family)
{
	static const uint8_t both = IFACE_LINUX4 | IFACE_LINUX6;

	return family == 4 ? IFACE_LINUX4 : family == 6 ? IFACE_LINUX6 : both;
}

void foreign_lacks(struct ifaces *ifaces, enum event_kind kind)
{
	if (!keeps_from_forwarding(kind) || event_kinds_have(ifaces->foreign.reported, kind))
		return;
	ifaces->foreign.lacking |= 1u << kind;
	ifaces->is_dirty = true;
}

void foreign_poll(struct ifaces *ifaces)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	uint8_t found = 0;

	for (uint8_t family = 4; ops->has_old_tables && family <= 6; family += 2)
		if (ops->has_old_tables(ops->ops, family))
			found |= flags_of_family(family);
	const uint8_t filters = ops->bridge_filters ? ops->bridge_filters(ops->ops) : 0;

	ifaces->is_dirty |=
		found != ifaces->foreign.old_tables || filters != ifaces->foreign.bridge_filters;
	ifaces->foreign.old_tables = found;
	ifaces->foreign.bridge_filters = filters;
}

void foreign_sweep(struct ifaces *ifaces, uint32_t partial)
{
	struct foreign *foreign = &ifaces->foreign;

	foreign->reported |= ~partial;
	foreign->lacking &= ~foreign->reported;
	for (uint32_t i = foreign->n; i-- > 0;) {
		struct foreign_thing *thing = &foreign->thing[i];

		if (thing->seen != ifaces->dump && !event_kinds_have(partial, thing->kind))
			remove_thing(foreign, thing);
	}
	ifaces->is_dirty = true;
}

// The default rules of every namespace, and the VRF rule.
static bool is_usual_rule(const struct event_rule *rule)
{
	if (rule->has_selector)
		return false;
	// For packets that matched no route in their VRF's table.
	if (rule->action != FR_ACT_TO_TBL)
		return rule->is_l3mdev && rule->priority > PRIORITY_L3MDEV;
	return rule->is_l3mdev || (rule->table == TABLE_LOCAL && rule->priority < PRIORITY_MAIN) ||
	       (rule->table == TABLE_MAIN && rule->priority == PRIORITY_MAIN) ||
	       (rule->table == TABLE_DEFAULT && rule->priority == PRIORITY_DEFAULT);
}

static bool sees_forwarded(uint8_t hook)
{
	return hook == NF_INET_PRE_ROUTING || hook == NF_INET_FORWARD ||
	       hook == NF_INET_POST_ROUTING || hook == NF_INET_INGRESS || hook == HOOK_EGRESS;
}

uint8_t foreign_flags(const struct foreign_thing *thing)
{
	bool counts = false;

	switch (thing->kind) {
	case EVENT_RULE:
		counts = !is_usual_rule(&thing->rule);
		break;
	case EVENT_CHAIN:
		counts = !thing->what.is_harmless && !thing->what.is_bridge &&
		         sees_forwarded(thing->what.hook);
		break;
	case EVENT_POLICY:
	case EVENT_POLICY_DEFAULT:
		counts = !thing->what.is_harmless;
	}
	return counts ? flags_of_family(thing->what.family) : 0;
}

bool foreign_hooks_bridges(const struct foreign *foreign, bool calls)
{
	for (uint32_t i = 0; i < foreign->n; i++) {
		const struct event_foreign *what = &foreign->thing[i].what;

		if (foreign->thing[i].kind == EVENT_CHAIN && !what->is_harmless &&
			sees_forwarded(what->hook) &&
			(calls || what->is_bridge || what->hook >= NF_INET_INGRESS))
			return true;
	}
	return calls && foreign->old_tables;
}

unsigned foreign_usual_rules(const struct foreign *foreign, uint8_t family)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < foreign->n; i++) {
		const struct foreign_thing *thing = &foreign->thing[i];

		if (thing->kind != EVENT_RULE || thing->what.family != family ||
			!is_usual_rule(&thing->rule))
			continue;
		if (thing->rule.is_l3mdev)
			found |= thing->rule.action == FR_ACT_TO_TBL ? RULE_L3MDEV : 0;
		else if (thing->rule.table == TABLE_LOCAL)
			found |= RULE_LOCAL;
		else if (thing->rule.table == TABLE_MAIN)
			found |= RULE_MAIN;
	}
	return found;
}

bool foreign_has_own_rules(const struct foreign *foreign, uint8_t family, bool in_vrf)
{
	const unsigned needed = RULE_LOCAL | RULE_MAIN | (in_vrf ? RULE_L3MDEV : 0);

	for (uint32_t i = 0; i < foreign->n; i++) {
		const struct foreign_thing *thing = &foreign->thing[i];

		if (thing->kind == EVENT_RULE && thing->what.family == family &&
			!is_usual_rule(&thing->rule))
			return true;
	}
	return (foreign_usual_rules(foreign, family) & needed) != needed;
}

static void check_rules(struct foreign *foreign, uint8_t family)
{
	unsigned rules = foreign_usual_rules(foreign, family);

	if (!(rules & RULE_LOCAL) || !(rules & RULE_MAIN))
		foreign->iface_flags |= flags_of_family(family);
	if (!(rules & RULE_L3MDEV))
		foreign->vrf_flags |= flags_of_family(family);
}

// A qdisc `clsact` or `ingress` only holds filters; of a block that is shared, they are not known.
static void add_qdisc(struct interface *one, const struct event_foreign *qdisc)
{
	if (qdisc->sides & EVENT_INGRESS && !qdisc->has_block)
		one->holders |= qdisc->sides;
	else if (qdisc->sides & EVENT_INGRESS || !one->queues) // else queues_check
		one->tc |= qdisc->sides ? qdisc->sides : EVENT_EGRESS;
}

static void check_filters(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		filters_follow(ifaces, one);
		one->tc |= filters_left(one);
		one->tc_above = filters_left_above(one);
	}
}

void foreign_check(struct ifaces *ifaces)
{
	struct foreign *foreign = &ifaces->foreign;

	foreign->vrf_flags = 0;
	foreign->iface_flags = foreign->old_tables;
	if (foreign->lacking)
		foreign->iface_flags |= flags_of_family(0);
	check_rules(foreign, 4);
	check_rules(foreign, 6);
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		one->tc = one->tcx;
		one->holders = 0;
	}
	for (uint32_t i = 0; i < foreign->n; i++) {
		const struct foreign_thing *thing = &foreign->thing[i];
		struct interface *one = thing->kind == EVENT_QDISC
		                                ? interfaces_find(&ifaces->all, thing->what.ifindex)
		                                : NULL;

		foreign->iface_flags |= foreign_flags(thing);
		if (one)
			add_qdisc(one, &thing->what);
	}
	check_filters(ifaces);
}
