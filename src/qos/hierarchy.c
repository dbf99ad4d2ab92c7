// Which profiles a subscriber may have in which direction, and who may be below whom. Control
// thread.
#include "qos/inside.h"

#include <errno.h>

const char *const direction_words[QOS_DIRECTIONS] = {"up", "down"};
const char *const parent_words[QOS_DIRECTIONS] = {"up_parent", "parent"};

static const struct profile *profile_of(const struct qos *qos, uint32_t id)
{
	return id == NO_PROFILE ? NULL : qos->profile[id];
}

static int refuse(const struct subscriber *one, const char *key, const struct profile *profile,
	const char *what, struct error *error)
{
	return error_set(error, -EINVAL, "subscriber '%s': %s: profile '%s' %s", one->name, key,
		profile->name, what);
}

static int check_rate(const struct subscriber *one, unsigned d, const struct profile *profile,
	const struct profile *parent, struct error *error)
{
	char rate[32], above[32];

	if (profile->rate <= parent->rate || parent->may_exceed)
		return 0;
	return error_set(error, -EINVAL,
		"subscriber '%s': %s: profile '%s' shapes to %s, which is above %s of the parent "
		"'%s'; lower it, or add \"oversubscribe yes\" to the parent",
		one->name, direction_words[d], profile->name, words_print_rate(profile->rate, rate),
		words_print_rate(parent->rate, above), parent->name);
}

static int check_direction(const struct qos *qos, const struct subscriber *one, unsigned d,
	struct error *error)
{
	const struct profile *profile = profile_of(qos, one->profile[d]),
			     *parent = profile_of(qos, one->parent[d]);

	if (profile && profile->kind == PROFILE_JOINS)
		return refuse(one, direction_words[d], profile,
			"is an aggregate; name it as the parent", error);
	if (!parent)
		return 0;
	if (parent->kind != PROFILE_JOINS)
		return refuse(one, parent_words[d], parent, "is no aggregate; name one", error);
	if (!profile || profile->kind != PROFILE_SHAPES)
		return error_set(error, -EINVAL,
			"subscriber '%s': %s: it needs a profile with shape; add \"%s PROFILE\", "
			"or remove the parent",
			one->name, parent_words[d], direction_words[d]);
	return check_rate(one, d, profile, parent, error);
}

int hierarchy_check(const struct qos *qos, const struct subscriber *one, struct error *error)
{
	const int err = check_direction(qos, one, QOS_UP, error);

	return err ? err : check_direction(qos, one, QOS_DOWN, error);
}

static int check_aggregate(const struct qos *qos, const struct profile *one, struct error *error)
{
	const struct profile *parent = profile_of(qos, one->parent);
	char rate[32], above[32];

	if (!parent)
		return 0;
	if (parent->kind != PROFILE_JOINS || parent->parent)
		return error_set(error, -EINVAL,
			"profile '%s': parent: profile '%s' is no aggregate without a parent; name "
			"one",
			one->name, parent->name);
	if (one->rate <= parent->rate || parent->may_exceed)
		return 0;
	return error_set(error, -EINVAL,
		"profile '%s': %s is above %s of the parent '%s'; lower it, or add \"oversubscribe "
		"yes\" to the parent",
		one->name, words_print_rate(one->rate, rate), words_print_rate(parent->rate, above),
		parent->name);
}

// Whether profiles changed that are or were not for policing: otherwise all still fits.
static bool concerns_hierarchy(const struct qos *qos)
{
	for (size_t i = 0; i < qos->n_profile_changes; i++) {
		const struct profile_change *change = &qos->profile_change[i];

		if ((change->old && change->old->kind != PROFILE_POLICES) ||
			(change->new && change->new->kind != PROFILE_POLICES))
			return true;
	}
	return false;
}

int hierarchy_check_aggregates(struct qos *qos, size_t i, struct error *error)
{
	int err = 0;

	(void)i;
	if (!concerns_hierarchy(qos))
		return 0;
	for (uint32_t id = 1; id < SHAPER_AGGREGATES && !err; id++)
		if (qos->profile[id] && qos->profile[id]->kind == PROFILE_JOINS)
			err = check_aggregate(qos, qos->profile[id], error);
	return err;
}

size_t hierarchy_n_subscribers(const struct qos *qos)
{
	if (!concerns_hierarchy(qos))
		return 0;
	for (size_t i = 0; i < qos->n_profile_changes; i++) {
		const struct profile_change *change = &qos->profile_change[i];

		// Who uses a new one is checked when it is staged; nobody uses one that goes.
		if (change->old && change->new)
			return qos->end;
	}
	return 0;
}

int hierarchy_check_subscriber(struct qos *qos, size_t index, struct error *error)
{
	return qos->at[index] ? hierarchy_check(qos, qos->at[index], error) : 0;
}

int hierarchy_link(const struct qos *qos, struct profile *one, const struct profile *old,
	struct error *error)
{
	bool is_used[QOS_LINKS] = {true};

	one->link = 0;
	if (one->kind != PROFILE_JOINS || one->parent)
		return 0;
	if (old && old->link) {
		one->link = old->link;
		return 0;
	}
	for (uint32_t id = 1; id < SHAPER_AGGREGATES; id++)
		if (qos->profile[id])
			is_used[qos->profile[id]->link] = true;
	for (size_t i = 0; i < qos->n_profile_changes; i++)
		if (qos->profile_change[i].old) // the batch may be aborted
			is_used[qos->profile_change[i].old->link] = true;
	for (unsigned link = 1; link < QOS_LINKS && !one->link; link++)
		one->link = is_used[link] ? 0 : (uint8_t)link;
	return one->link ? 0
	                 : error_set(error, -ENOSPC,
				   "profile '%s': there are %d aggregates without a parent "
				   "already; give it a parent",
				   one->name, QOS_LINKS - 1);
}

unsigned hierarchy_shaper(const struct qos *qos, const struct profile *aggregate)
{
	const struct profile *top = profile_of(qos, aggregate->parent);
	const struct qos_shapers *all = qos->live.shapers;

	return all ? shapers_of_link(all, top ? top->link : aggregate->link, 0) : 0;
}

void hierarchy_number(const struct qos *qos, struct profile *one, const struct profile *old)
{
	if (!old || old->kind != PROFILE_JOINS)
		one->number = one->id;
	else if (hierarchy_shaper(qos, one) == hierarchy_shaper(qos, old))
		one->number = old->number;
	else
		one->number = old->number ^ SHAPER_OTHER_NUMBER;
}
