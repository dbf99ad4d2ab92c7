// Makes lists of tc filters and gives them to workers, where all filters of a side are understood.
// Control thread.
#include "netlink/ifaces_inside.h"

#include "base/log.h"
#include "base/vector.h"

#include <linux/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Lists are built when nothing has changed for a while, or at the latest after LONGEST_NS.
enum { QUIET_NS = 100000000, LONGEST_NS = 1000000000 };
// Filters of a priority that are compared with each other, and comparisons on a side.
enum { MOST_COMPARED = 256, MOST_COMPARISONS = 1 << 18 };
enum { TABLE_SHIFT = 20 };

static bool ranges_meet(const struct acl_range *a, const struct acl_range *b)
{
	return !a->is_set || !b->is_set || (a->least <= b->most && b->least <= a->most);
}

static bool prefixes_meet(const struct wire_prefix *a, const struct wire_prefix *b)
{
	const struct wire_prefix *wide = a->len < b->len ? a : b, *narrow = wide == a ? b : a;
	struct wire_prefix cut = *narrow;

	if (!a->addr.family || !b->addr.family)
		return true;
	if (a->addr.family != b->addr.family)
		return false;
	cut.len = wide->len;
	wire_prefix_mask(&cut);
	return wire_addr_equal(&cut.addr, &wide->addr);
}

static bool protocols_meet(const struct acl_rule *a, const struct acl_rule *b)
{
	return a->protocol == b->protocol || a->protocol == ACL_ANY_PROTOCOL ||
	       b->protocol == ACL_ANY_PROTOCOL;
}

// Whether a packet may match both.
static bool rules_meet(const struct acl_rule *a, const struct acl_rule *b)
{
	return (!a->family || !b->family || a->family == b->family) && protocols_meet(a, b) &&
	       prefixes_meet(&a->from, &b->from) && prefixes_meet(&a->to, &b->to) &&
	       ranges_meet(&a->from_port, &b->from_port) && ranges_meet(&a->to_port, &b->to_port) &&
	       ranges_meet(&a->icmp_type, &b->icmp_type) &&
	       ranges_meet(&a->icmp_code, &b->icmp_code) && ranges_meet(&a->dscp, &b->dscp) &&
	       !((a->tcp_flags ^ b->tcp_flags) & a->tcp_mask & b->tcp_mask) &&
	       a->fragments & b->fragments;
}

static bool does_same(const struct event_filter *a, const struct event_filter *b)
{
	return !a->n_rules || !b->n_rules ||
	       (a->rule[0].effect == b->rule[0].effect && a->rule[0].mark == b->rule[0].mark &&
		       !memcmp(&a->rule[0].police, &b->rule[0].police, sizeof(a->rule[0].police)));
}

static bool filters_meet(const struct event_filter *a, const struct event_filter *b)
{
	for (unsigned i = 0; i < a->n_rules; i++)
		for (unsigned k = 0; k < b->n_rules; k++)
			if (rules_meet(&a->rule[i], &b->rule[k]))
				return true;
	return false;
}

static void compare_each(struct filter *const first[], uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (!does_same(&first[k]->what, &first[i]->what) &&
				filters_meet(&first[k]->what, &first[i]->what))
				first[i]->trouble = "another of its priority may match the same "
						    "packets, and Linux does not tell which is "
						    "first";
}

// Those of one priority, `n` of them from `first` on. *left: comparisons that the side may take.
static void judge_flower(struct filter *const first[], uint32_t n, uint32_t *left)
{
	bool all_same = true;

	for (uint32_t i = 1; i < n; i++)
		all_same &= does_same(&first[0]->what, &first[i]->what);
	if (all_same)
		return;
	if (n <= MOST_COMPARED && n * (n - 1) / 2 <= *left) {
		*left -= n * (n - 1) / 2;
		compare_each(first, n);
		return;
	}
	for (uint32_t i = 1; i < n; i++)
		first[i]->trouble = n > MOST_COMPARED
		                            ? "its priority has more than 256 filters with "
		                              "different actions"
		                            : "too many priorities before it have filters with "
		                              "different actions";
}

// Nobody knows which of several tables is the first.
static void judge_u32(struct filter *const first[], uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (first[i]->what.handle >> TABLE_SHIFT != first[0]->what.handle >> TABLE_SHIFT)
			first[i]->trouble = "its priority has several tables";
}

static void judge_priority(struct filter *const first[], uint32_t n, uint32_t *left)
{
	for (uint32_t i = 0; i < n; i++)
		first[i]->trouble = first[i]->what.chain ? "it is not in chain 0" : NULL;
	if (!strcmp(first[0]->what.kind, "flower"))
		judge_flower(first, n, left);
	else if (!strcmp(first[0]->what.kind, "u32"))
		judge_u32(first, n);
}

static bool is_strange(const struct filter *filter)
{
	return filter->trouble || filter->what.what == FILTER_UNKNOWN;
}

static bool may_see_tags(const struct event_filter *what)
{
	return what->n_rules && (what->protocol == ETH_P_ALL || what->protocol == ETH_P_8021Q ||
					what->protocol == ETH_P_8021AD);
}

static void count_rules(struct filter_side *side)
{
	side->n_rules = 0;
	side->sees_tags = false;
	for (uint32_t i = 0; i < side->n; i++) {
		side->n_rules += side->filter[i]->what.n_rules;
		side->sees_tags |= may_see_tags(&side->filter[i]->what);
	}
}

static void judge_priorities(struct filter_side *side)
{
	uint32_t left = MOST_COMPARISONS;

	for (uint32_t i = 0, end; i < side->n; i = end) {
		const struct event_filter *what = &side->filter[i]->what;

		for (end = i + 1; end < side->n; end++)
			if (side->filter[end]->what.priority != what->priority ||
				side->filter[end]->what.chain != what->chain)
				break;
		judge_priority(&side->filter[i], end - i, &left);
	}
}

// Counts what is not understood, if something has changed. Of too many rules there is no list
// anyway.
static void judge(struct filter_side *side)
{
	if (side->judged == side->version)
		return;
	count_rules(side);
	if (side->n_rules <= FILTERS_MOST_RULES)
		judge_priorities(side);
	side->n_strange = 0;
	for (uint32_t i = 0; i < side->n; i++)
		side->n_strange += is_strange(side->filter[i]);
	side->judged = side->version;
}

static bool is_understood(const struct filter_side *side)
{
	return side->is_whole && !side->n_strange && side->n_rules <= FILTERS_MOST_RULES;
}

// Whether workers should have a list of it.
static bool wants_list(const struct filter_side *side)
{
	return side->is_active && is_understood(side) && side->n_rules;
}

// Whether workers have what they should.
static bool is_current(const struct interface *one, const struct filter_side *side)
{
	if (!wants_list(side))
		return !side->has_list;
	return side->has_list && side->applied == side->version &&
	       !strcmp(side->named, one->iface.name);
}

static bool is_left(const struct interface *one, const struct filter_side *side)
{
	return (side->is_active && !is_understood(side)) || !is_current(one, side);
}

uint8_t filters_left(struct interface *one)
{
	for (unsigned way = 0; way < ACL_DIRECTIONS; way++)
		judge(&one->side[way]);
	return (is_left(one, &one->side[ACL_IN]) ? EVENT_INGRESS : 0) |
	       (is_left(one, &one->side[ACL_OUT]) ? EVENT_EGRESS : 0);
}

uint8_t filters_left_above(const struct interface *one)
{
	return (one->side[ACL_IN].sees_tags ? EVENT_INGRESS : 0) |
	       (one->side[ACL_OUT].sees_tags ? EVENT_EGRESS : 0);
}

// Lists to be changed, and the sides that they are of.
struct draft {
	struct acl_set set;
	struct filter_side **side;
	struct interface **iface;
	size_t list_capacity, use_capacity, side_capacity, iface_capacity;
	size_t n_rules;
};

static void draft_free(struct draft *draft)
{
	acl_set_free(&draft->set);
	free(draft->side);
	free(draft->iface);
}

static void name_list(char *out, const char *iface, unsigned way)
{
	snprintf(out, ACL_NAME_MAX, "tc:%s:%s", iface, way == ACL_IN ? "in" : "out");
}

// One more list and its use; without rules both go.
static struct acl_source *add_list(struct draft *draft, const char *iface, unsigned way, bool goes)
{
	struct acl_set *set = &draft->set;

	if (vector_reserve(&set->list, &draft->list_capacity, set->n_lists + 1,
		    sizeof(*set->list)) ||
		vector_reserve(&set->use, &draft->use_capacity, set->n_uses + 1, sizeof(*set->use)))
		return NULL;
	struct acl_source *list = &set->list[set->n_lists++];
	struct acl_use *use = &set->use[set->n_uses++];

	*list = (struct acl_source){.n = 0};
	*use = (struct acl_use){.direction = way};
	name_list(list->name, iface, way);
	snprintf(use->iface, sizeof(use->iface), "%s", iface);
	if (!goes)
		memcpy(use->list, list->name, sizeof(use->list));
	return list;
}

// "PRIORITY-HANDLE": by this name a rule keeps its counter.
static void add_rules(struct acl_source *list, const struct event_filter *what)
{
	for (unsigned i = 0; i < what->n_rules; i++) {
		struct acl_rule *rule = &list->rule[list->n++];

		*rule = what->rule[i];
		memset(rule->name, 0, sizeof(rule->name));
		snprintf(rule->name, sizeof(rule->name), "%u-0x%x%s", what->priority, what->handle,
			i ? "-2" : "");
	}
}

static bool add_side(struct draft *draft, struct interface *one, unsigned way)
{
	struct filter_side *side = &one->side[way];
	struct acl_source *list = add_list(draft, one->iface.name, way, false);

	if (!list ||
		vector_reserve(&draft->side, &draft->side_capacity, draft->set.n_lists,
			sizeof(struct filter_side *)) ||
		vector_reserve(&draft->iface, &draft->iface_capacity, draft->set.n_lists,
			sizeof(struct interface *)))
		return false;
	list->rule = malloc((side->n_rules + 1) * sizeof(*list->rule));
	if (!list->rule)
		return false;
	for (uint32_t i = 0; i < side->n; i++)
		add_rules(list, &side->filter[i]->what);
	draft->n_rules += list->n;
	draft->side[draft->set.n_lists - 1] = side;
	draft->iface[draft->set.n_lists - 1] = one;
	return true;
}

static int give(struct ifaces *ifaces, const struct draft *draft)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	if (!draft->set.n_lists)
		return 0;
	ifaces->is_dirty = true;
	return settings->filters(settings->arg, &draft->set, &ifaces->filters.error);
}

static void warn(struct ifaces *ifaces)
{
	log_warn("cannot build lists of tc filters, which Linux applies: %s",
		ifaces->filters.error.text);
}

void filters_bury(struct ifaces *ifaces)
{
	struct filters *filters = &ifaces->filters;
	struct draft draft = {.n_rules = 0};
	bool all = true;

	for (size_t i = 0; i < filters->n_graves && all; i++)
		all = add_list(&draft, filters->grave[i].named, filters->grave[i].direction, true);
	if (!all || give(ifaces, &draft))
		ifaces_lost(ifaces, EVENT_FILTER);
	else
		filters->n_graves = 0;
	draft_free(&draft);
}

// Lists that have to go, also those that go under their old name.
static bool is_obsolete(const struct interface *one, const struct filter_side *side)
{
	return side->has_list && (!wants_list(side) || strcmp(side->named, one->iface.name) != 0);
}

// Whether no packet misses the list: Linux has no filter there, or an earlier flush has left it the
// frames.
static bool may_go(const struct interface *one, unsigned way)
{
	const struct filter_side *side = &one->side[way];

	return !side->is_active || (is_understood(side) && !side->n_rules) ||
	       one->tc & filters_side(way);
}

static bool goes(const struct interface *one, unsigned way)
{
	return is_obsolete(one, &one->side[way]) && may_go(one, way);
}

// Returns whether some have to wait for a flush.
static bool take_back(struct ifaces *ifaces)
{
	struct draft draft = {.n_rules = 0};
	bool all = true, waits = false;

	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
			if (goes(one, way))
				all &= add_list(&draft, one->side[way].named, way, true) != NULL;
			else
				waits |= is_obsolete(one, &one->side[way]);
		}
	if (!all || give(ifaces, &draft)) {
		ifaces_lost(ifaces, EVENT_FILTER);
		draft_free(&draft);
		return waits;
	}
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++)
			one->side[way].has_list &= !goes(one, way);
	draft_free(&draft);
	return waits;
}

static bool is_due(const struct interface *one, const struct filter_side *side)
{
	return wants_list(side) && !is_current(one, side) &&
	       !(side->refused && side->refused == side->version);
}

// As many sides as may be built at once. Returns whether there are more.
static bool collect(struct ifaces *ifaces, struct draft *draft)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
			const struct filter_side *side = &one->side[way];

			if (!is_due(one, side))
				continue;
			if (draft->n_rules && draft->n_rules + side->n_rules > FILTERS_MOST_RULES)
				return true;
			if (!add_side(draft, one, way)) {
				ifaces_lost(ifaces, EVENT_FILTER);
				draft_free(draft);
				*draft = (struct draft){.n_rules = 0};
				return false; // again after the dump that this has asked for
			}
		}
	return false;
}

static void note(const struct draft *draft, bool is_built)
{
	for (size_t i = 0; i < draft->set.n_lists; i++) {
		struct filter_side *side = draft->side[i];

		if (!is_built) {
			side->refused = side->version;
			continue;
		}
		side->has_list = true;
		side->applied = side->version;
		memcpy(side->named, draft->iface[i]->iface.name, sizeof(side->named));
	}
}

static bool may_change_soon(const struct filters *filters, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - filters->applied_ns;

	return since_ns < QUIET_NS ||
	       (since_ns < LONGEST_NS && now_ns - filters->changed_ns < QUIET_NS);
}

void filters_apply(struct ifaces *ifaces, uint64_t now_ns)
{
	struct filters *filters = &ifaces->filters;
	struct draft draft = {.n_rules = 0};

	// Until a flush has buried lists, their names may be those of other interfaces.
	if (!filters->is_changed || filters->n_graves || !ifaces->mirror->settings.filters ||
		may_change_soon(filters, now_ns))
		return;
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++)
			judge(&one->side[way]);
	const bool waits = take_back(ifaces);

	filters->is_changed = collect(ifaces, &draft) || waits;
	if (draft.set.n_lists)
		filters->applied_ns = now_ns;
	const bool is_built = !give(ifaces, &draft);

	note(&draft, is_built);
	if (!is_built)
		warn(ifaces);
	draft_free(&draft);
}

static void say(struct netlink_unsupported *one, uint8_t side, const char *reason)
{
	snprintf(one->effect, sizeof(one->effect), "%.150s: %s", reason,
		side == EVENT_INGRESS
			? "all its frames, and all packets routed via it, are punted to Linux"
			: "packets routed via it are punted to Linux, which sends them");
}

static void say_filter(struct netlink_unsupported *one, uint8_t side, const struct filter *filter)
{
	const struct event_filter *what = &filter->what;

	snprintf(one->what, sizeof(one->what), "filter %s pref %u handle 0x%x", what->kind,
		what->priority, what->handle);
	say(one, side, filter->trouble ? filter->trouble : what->reason);
}

// What is not about one filter.
static const char *trouble_of(const struct filters *filters, const struct filter_side *side)
{
	if (!side->is_active && !side->has_list)
		return NULL;
	if (side->is_active && !side->is_whole)
		return "Linux has not listed them yet";
	if (side->n_rules > FILTERS_MOST_RULES)
		return "there are too many to build a list of them (4096 rules)";
	if (side->refused && side->refused == side->version)
		return filters->error.text;
	return "workers do not have the latest ones yet";
}

bool filters_tell(const struct ifaces *ifaces, const struct interface *one, uint8_t side_bit,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told)
{
	const bool is_in = side_bit == EVENT_INGRESS;
	const struct filter_side *side = &one->side[is_in ? ACL_IN : ACL_OUT];
	struct netlink_unsupported found = {.what = "tc filters", .n = 1};

	snprintf(found.where, sizeof(found.where), "dev %s %s", one->iface.name,
		is_in ? "ingress" : "egress");
	*told = false;
	for (uint32_t i = 0; i < side->n; i++) {
		if (!is_strange(side->filter[i]))
			continue;
		*told = true;
		say_filter(&found, side_bit, side->filter[i]);
		if (!cb(arg, &found))
			return false;
	}
	const char *trouble =
		*told || !is_left(one, side) ? NULL : trouble_of(&ifaces->filters, side);

	if (!trouble)
		return true;
	*told = true;
	say(&found, side_bit, trouble);
	return cb(arg, &found);
}
