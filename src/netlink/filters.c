// The tc filters of interfaces as the kernel reports them, in the order in which it tries them.
// What is in doubt is dumped again, one side of an interface at a time. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/clock.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_NS = 1000000000 }; // after a dump that failed

static enum acl_direction way_of(uint8_t side)
{
	return side == EVENT_INGRESS ? ACL_IN : ACL_OUT;
}

static void note_change(struct ifaces *ifaces, struct filter_side *side)
{
	side->version++;
	ifaces->is_dirty = true;
	ifaces->filters.is_changed = true;
	ifaces->filters.changed_ns = clock_now_ns();
}

static void doubt(struct ifaces *ifaces, struct filter_side *side)
{
	side->is_whole = false;
	side->wants_dump = true;
	ifaces->filters.wants_dump = true;
	ifaces->is_dirty = true;
}

static void clear(struct ifaces *ifaces, struct filter_side *side)
{
	if (side->n)
		note_change(ifaces, side);
	for (uint32_t i = 0; i < side->n; i++)
		free(side->filter[i]);
	side->n = 0;
	side->is_whole = false;
}

static int compare(const struct event_filter *a, const struct event_filter *b)
{
	if (a->chain != b->chain)
		return a->chain < b->chain ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	return a->handle < b->handle ? -1 : a->handle > b->handle;
}

// The first filter that is not before this one.
static uint32_t find(const struct filter_side *side, const struct event_filter *what)
{
	uint32_t low = 0, high = side->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (compare(&side->filter[middle]->what, what) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct filter_side *side, uint32_t i, const struct event_filter *what)
{
	return i < side->n && !compare(&side->filter[i]->what, what);
}

static void remove_at(struct filter_side *side, uint32_t i)
{
	free(side->filter[i]);
	side->n--;
	memmove(&side->filter[i], &side->filter[i + 1], (side->n - i) * sizeof(struct filter *));
}

static void add_at(struct ifaces *ifaces, struct filter_side *side, uint32_t i,
	const struct event_filter *what)
{
	struct filter *filter = malloc(sizeof(*filter));

	if (!filter || vector_reserve(&side->filter, &side->capacity, side->n + 1,
			       sizeof(struct filter *))) {
		free(filter);
		side->is_whole = false; // until a later dump
		ifaces_lost(ifaces, EVENT_FILTER);
		return;
	}
	memmove(&side->filter[i + 1], &side->filter[i], (side->n - i) * sizeof(struct filter *));
	side->filter[i] = filter;
	side->n++;
	*filter = (struct filter){.seen = side->dump, .what = *what};
}

// Whether a filter says the same; event.h: decode clears what it does not fill in.
static bool is_same(const struct event_filter *a, const struct event_filter *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void put(struct ifaces *ifaces, struct filter_side *side, const struct event_filter *what)
{
	const uint32_t i = find(side, what);

	if (what->what == FILTER_TABLE && !what->handle)
		return; // a priority, which is no filter
	if (!is_at(side, i, what)) {
		add_at(ifaces, side, i, what);
		note_change(ifaces, side);
		return;
	}
	side->filter[i]->seen = side->dump;
	if (is_same(&side->filter[i]->what, what))
		return;
	side->filter[i]->what = *what;
	note_change(ifaces, side);
}

// Whether a priority has entries, none of which is a filter: its tables go with its last filter.
static bool has_tables_only(const struct filter_side *side, const struct event_filter *what)
{
	const struct event_filter first = {.chain = what->chain, .priority = what->priority};
	const uint32_t begin = find(side, &first);

	for (uint32_t i = begin; i < side->n; i++) {
		const struct event_filter *other = &side->filter[i]->what;

		if (other->chain != what->chain || other->priority != what->priority)
			return i > begin;
		if (other->what != FILTER_TABLE)
			return false;
	}
	return begin < side->n;
}

// A whole priority or side goes with one message, and with the last filter what its classifier has
// besides filters: a dump tells.
static void take_away(struct ifaces *ifaces, struct filter_side *side,
	const struct event_filter *what)
{
	const uint32_t i = find(side, what);
	const struct event_filter first = {.chain = what->chain, .priority = what->priority};
	const bool was_first = is_at(side, find(side, &first), &first);

	if (!what->handle || was_first || !is_at(side, i, what)) {
		doubt(ifaces, side);
		return;
	}
	remove_at(side, i);
	note_change(ifaces, side);
	if (has_tables_only(side, what))
		doubt(ifaces, side);
}

static void doubt_all(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++)
			if (one->side[way].n)
				doubt(ifaces, &one->side[way]);
}

// A table that somebody makes is not the first one of its priority, which was not reported.
static bool hides_table(const struct event *event)
{
	return !event->is_dump && event->filter.what == FILTER_TABLE;
}

void filters_event(struct ifaces *ifaces, const struct event *event)
{
	const struct event_filter *what = &event->filter;
	struct interface *one;

	if (event->kind == EVENT_ACTION) {
		doubt_all(ifaces);
		return;
	}
	one = what->ifindex > 0 ? interfaces_find(&ifaces->all, what->ifindex) : NULL;
	if (!one || (what->side != EVENT_INGRESS && what->side != EVENT_EGRESS))
		return;
	struct filter_side *side = &one->side[way_of(what->side)];

	if (event->is_delete) {
		take_away(ifaces, side, what);
		return;
	}
	put(ifaces, side, what);
	if (hides_table(event))
		doubt(ifaces, side);
}

// Filters go with their qdisc without a message, and others may be there after it.
void filters_qdisc(struct ifaces *ifaces, const struct event *event)
{
	const struct event_foreign *qdisc = &event->foreign;
	struct interface *one = interfaces_find(&ifaces->all, qdisc->ifindex);

	if (!one || !(qdisc->sides & EVENT_INGRESS) || event->is_dump)
		return;
	for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
		if (event->is_delete)
			clear(ifaces, &one->side[way]);
		else if (qdisc->sides & filters_side(way))
			doubt(ifaces, &one->side[way]);
	}
}

void filters_follow(struct ifaces *ifaces, struct interface *one)
{
	for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
		struct filter_side *side = &one->side[way];
		const bool was_active = side->is_active;

		side->is_active = one->holders & filters_side(way);
		if (side->is_active && !was_active) {
			doubt(ifaces, side);
		} else if (!side->is_active && was_active) {
			clear(ifaces, side);
			side->wants_dump = false;
			note_change(ifaces, side);
		}
		ifaces->filters.wants_dump |= side->wants_dump && side->is_active;
	}
}

void filters_doubt(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
			if (!one->side[way].is_active)
				continue;
			one->side[way].wants_dump = ifaces->filters.wants_dump = true;
			one->side[way].refused = 0; // there may be memory now
			ifaces->filters.is_changed = true;
		}
}

// Filters of interfaces that workers do not know say nothing to them.
static bool concerns_workers(const struct ifaces *ifaces, const struct interface *one)
{
	struct iface_verdict found;

	decide(ifaces, one, &found);
	return found.is_ours || !strcmp(one->iface.kind, "macvlan");
}

static bool ask(struct ifaces *ifaces, struct interface *one, unsigned way)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	struct filter_side *side = &one->side[way];

	if (!ops->dump_filters(ops->ops, one->ifindex, filters_side(way)))
		return false;
	side->wants_dump = false;
	side->dump++;
	ifaces->filters.dumped = ifaces->filters.last = one->ifindex;
	ifaces->filters.dumped_way = way;
	return true;
}

static bool is_due(const struct ifaces *ifaces, const struct interface *one,
	const struct filter_side *side, uint64_t now_ns)
{
	return side->wants_dump && side->is_active && now_ns >= side->retry_ns &&
	       concerns_workers(ifaces, one);
}

static struct interface *find_due(struct ifaces *ifaces, struct interface *after, uint64_t now_ns,
	unsigned *way)
{
	for (struct interface *one = after; (one = interfaces_next(&ifaces->all, one));)
		for (*way = 0; *way < ACL_DIRECTIONS; ++*way)
			if (is_due(ifaces, one, &one->side[*way], now_ns))
				return one;
	return NULL;
}

// Whether a dump that failed is to be repeated later.
static bool has_retries(const struct ifaces *ifaces, uint64_t now_ns)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++)
			if (one->side[way].wants_dump && one->side[way].retry_ns > now_ns)
				return true;
	return false;
}

// Interfaces take turns: the search starts behind the one that was dumped last.
bool filters_dump(struct ifaces *ifaces)
{
	struct filters *filters = &ifaces->filters;
	const uint64_t now_ns = clock_now_ns();
	unsigned way;

	if (!filters->wants_dump || filters->dumped || !ifaces->mirror->settings.ops.dump_filters)
		return false;
	struct interface *last = interfaces_find(&ifaces->all, filters->last);
	struct interface *one = last ? find_due(ifaces, last, now_ns, &way) : NULL;

	if (!one)
		one = find_due(ifaces, NULL, now_ns, &way);
	if (one)
		return ask(ifaces, one, way);
	filters->wants_dump = has_retries(ifaces, now_ns);
	return false;
}

static void sweep(struct ifaces *ifaces, struct filter_side *side)
{
	for (uint32_t i = side->n; i-- > 0;)
		if (side->filter[i]->seen != side->dump) {
			remove_at(side, i);
			note_change(ifaces, side);
		}
}

// A side that came into doubt during its dump is dumped again.
void filters_dumped(struct ifaces *ifaces, bool whole)
{
	struct interface *one = interfaces_find(&ifaces->all, ifaces->filters.dumped);

	ifaces->filters.dumped = 0;
	if (!one)
		return;
	struct filter_side *side = &one->side[ifaces->filters.dumped_way];

	ifaces->is_dirty = true;
	if (!whole) {
		side->retry_ns = clock_now_ns() + RETRY_NS;
		doubt(ifaces, side);
		return;
	}
	side->retry_ns = 0;
	sweep(ifaces, side);
	if (!side->wants_dump && side->is_active)
		side->is_whole = true;
	ifaces->filters.is_changed = true;
}

static bool bury(struct ifaces *ifaces, const struct filter_side *side, unsigned way)
{
	struct filters *filters = &ifaces->filters;

	if (vector_reserve(&filters->grave, &filters->grave_capacity, filters->n_graves + 1,
		    sizeof(*filters->grave))) {
		ifaces_lost(ifaces, EVENT_FILTER);
		return false;
	}
	struct filter_grave *grave = &filters->grave[filters->n_graves++];

	memcpy(grave->named, side->named, sizeof(grave->named));
	grave->direction = way;
	return true;
}

void filters_iface_renamed(struct ifaces *ifaces, struct interface *one)
{
	for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
		struct filter_side *side = &one->side[way];

		if (!side->has_list)
			continue;
		side->has_list = !bury(ifaces, side, way);
		ifaces->filters.is_changed = true;
	}
}

void filters_iface_gone(struct ifaces *ifaces, struct interface *one)
{
	for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
		if (one->side[way].has_list)
			bury(ifaces, &one->side[way], way);
		clear(ifaces, &one->side[way]);
		free(one->side[way].filter);
	}
}

void filters_close(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		for (unsigned way = 0; way < ACL_DIRECTIONS; way++) {
			clear(ifaces, &one->side[way]);
			free(one->side[way].filter);
		}
	free(ifaces->filters.grave);
}
