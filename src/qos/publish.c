// What workers use of what has been staged: first new entries, so that a prefix that moves always
// has a subscriber, then old ones go. Control thread.
#include "qos/inside.h"

#include "rcu/rcu.h"

#include <stdlib.h>

static void grace(const struct qos *qos)
{
	if (qos->settings.rcu)
		rcu_wait(qos->settings.rcu, rcu_start_grace(qos->settings.rcu));
}

bool subscriber_has_prefix(const struct subscriber *one, const struct prefix *prefix)
{
	for (unsigned i = 0; one && i < one->n_prefixes; i++)
		if (one->prefix[i].key == prefix->key && one->prefix[i].family == prefix->family &&
			one->prefix[i].length == prefix->length)
			return true;
	return false;
}

// Lengths whose place workers know as that of another one, or of none, come into use.
static void set_lengths(struct qos *qos)
{
	struct qos_view *view = &qos->live.view;
	bool is_other = false;

	for (unsigned f = 0; f < QOS_FAMILIES; f++)
		for (unsigned k = 0; k < QOS_LENGTHS; k++) {
			if (view->length[f][k] == qos->length[f][k])
				continue;
			is_other |= view->length[f][k] != FREE_LENGTH;
			__atomic_store_n(&view->length[f][k], FREE_LENGTH, __ATOMIC_RELAXED);
		}
	if (is_other)
		grace(qos);
}

static void publish_lengths(struct qos *qos)
{
	struct qos_view *view = &qos->live.view;

	for (unsigned f = 0; f < QOS_FAMILIES; f++) {
		uint8_t n = 0;

		for (unsigned k = 0; k < QOS_LENGTHS; k++) {
			const uint8_t length =
				qos->n_prefixes[f][k] ? qos->length[f][k] : FREE_LENGTH;

			__atomic_store_n(&view->length[f][k], length, __ATOMIC_RELAXED);
			n = length ? k + 1 : n;
		}
		__atomic_store_n(&view->n_lengths[f], n, __ATOMIC_RELEASE); // partner: qos_find
	}
	memcpy(qos->n_published, qos->n_prefixes, sizeof(qos->n_published));
}

static struct police_rate commit_rate(const struct qos *qos, const struct profile *profile)
{
	return (struct police_rate){profile->rate, profile->burst, qos->settings.hz};
}

// RFC 2697: it gets what has no room in the other one.
static struct police_rate excess_rate(const struct qos *qos, const struct profile *profile)
{
	return (struct police_rate){profile->excess_rate, profile->excess_burst, qos->settings.hz};
}

// Full buckets: no worker uses them.
static void start_buckets(struct qos *qos, uint32_t index, unsigned d, uint64_t now)
{
	const struct profile *profile = qos->profile[qos->at[index]->profile[d]];
	const struct qos_buckets *buckets = &qos->live.view.buckets[d];

	if (!profile || profile->kind != PROFILE_POLICES) {
		buckets->commit[index].owners = profile ? profile->slot : 0;
		return;
	}
	const struct police_rate commit = commit_rate(qos, profile);
	const struct police_rate excess = excess_rate(qos, profile);

	police_start(&buckets->commit[index], &commit, now);
	if (excess.burst || buckets->excess[index].terms[0].depth ||
		buckets->excess[index].terms[1].depth)
		police_start(&buckets->excess[index], &excess, now);
	buckets->commit[index].owners = profile->slot;
}

// Another rate from now on, with the tokens that are left; no worker uses an older one any more.
static void change_buckets(struct qos *qos, uint32_t index, unsigned d, uint64_t now)
{
	const struct profile *profile = qos->profile[qos->at[index]->profile[d]];
	const struct qos_buckets *buckets = &qos->live.view.buckets[d];

	if (profile && profile->kind == PROFILE_POLICES) {
		const struct police_rate commit = commit_rate(qos, profile);
		const struct police_rate excess = excess_rate(qos, profile);

		police_change(&buckets->commit[index], &commit, now);
		police_change(&buckets->excess[index], &excess, now);
	}
	// Partner: qos_police.
	__atomic_store_n(&buckets->commit[index].owners, profile ? profile->slot : 0,
		__ATOMIC_RELEASE);
}

static void clear_counts(struct qos *qos, uint32_t index)
{
	static const struct qos_count none;

	for (unsigned w = 0; w < qos->settings.n_workers; w++)
		for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
			struct qos_count *count = &qos->live.count[w][d][index];

			if (memcmp(count, &none, sizeof(none))) // untouched memory stays so
				*count = none;
		}
}

// What a shaper is to do with the packets of a subscriber in one direction. 0: nothing.
static uint64_t word_of(const struct qos *qos, const struct subscriber *one, unsigned d)
{
	const struct profile *profile = qos->profile[one->profile[d]],
			     *parent = qos->profile[one->parent[d]];
	const uint32_t shaped = qos_shaped(d, one->index);
	const uint64_t shaper = parent ? hierarchy_shaper(qos, parent)
	                               : shapers_of_link(qos->live.shapers, 0, shaped);

	if (!profile || profile->kind != PROFILE_SHAPES)
		return 0;
	return profile->slot | (uint64_t)(parent ? parent->number : 0) << SHAPER_PARENT_SHIFT |
	       shaper << SHAPER_OWNER_SHIFT;
}

// Before packets are given to it. What shapers neither know nor are to know is not told.
static void set_word(struct qos *qos, uint32_t shaped, uint64_t word)
{
	if (word || qos->live.shapers->word[shaped])
		shapers_set(qos->live.shapers, shaped, word);
}

static void set_shaping(struct qos *qos, const struct subscriber *one, unsigned d, bool is_new)
{
	if (!qos->live.shapers)
		return;
	const uint64_t word = word_of(qos, one, d);

	set_word(qos, qos_shaped(d, one->index), word | (word && is_new ? SHAPER_IS_NEW : 0));
}

static int set_buckets(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];

	if (!change->new)
		return 0;
	if (!change->old)
		clear_counts(qos, change->new->index);
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		set_shaping(qos, change->new, d, !change->old);
		if (!change->old)
			start_buckets(qos, change->new->index, d, qos->now);
		else
			change_buckets(qos, change->new->index, d, qos->now);
	}
	return 0;
}

static bool joins(const struct profile *profile)
{
	return profile && profile->kind == PROFILE_JOINS;
}

static bool is_of_batch(const struct qos *qos, const struct profile *profile)
{
	return profile && profile->batch == qos->batch;
}

// Whether an aggregate goes to another shaper.
static bool moves(const struct qos *qos, const struct profile *aggregate)
{
	if (!is_of_batch(qos, aggregate))
		return false;
	const struct profile *old = qos->profile_change[aggregate->change].old;

	return joins(old) && old->number != aggregate->number;
}

// A free slot: there are as many as profiles, and one for each that workers may still use.
static void set_slot(struct qos *qos, const struct profile_change *change)
{
	const struct profile *parent = change->new ? qos->profile[change->new->parent] : NULL;
	uint32_t slot = 1;

	if (change->old)
		qos->left_slot[qos->n_left_slots++] = change->old->slot;
	if (!change->new)
		return;
	while (qos->slot_in_use[slot])
		slot++;
	qos->slot_in_use[slot] = true;
	qos->terms[slot] = change->new->terms;
	change->new->slot = slot;
	if (qos->live.shapers && change->new->kind != PROFILE_POLICES)
		qos->live.shapers->slot[slot] = (struct shaper_slot){change->new->shape_terms,
			change->new->queues, parent ? parent->number : 0, change->new->link,
			moves(qos, change->new)};
}

// Aggregates that are new or changed: those without a parent first.
static void set_aggregates(struct qos *qos)
{
	for (size_t i = 0; i < 2 * qos->n_profile_changes; i++) {
		const struct profile *one = qos->profile_change[i % qos->n_profile_changes].new;

		if (joins(one) && (i < qos->n_profile_changes) == !one->parent)
			shapers_set_aggregate(qos->live.shapers, hierarchy_shaper(qos, one),
				one->number, one->slot);
	}
}

// Where an aggregate was before this batch. Links stay with those that have no parent.
static unsigned shaper_before(const struct qos *qos, const struct profile *old)
{
	const struct profile *top = qos->shown.profile[old->parent];

	return shapers_of_link(qos->live.shapers, top ? top->link : old->link, 0);
}

// Those that are no more, after who was below them.
static void remove_aggregates(struct qos *qos)
{
	for (size_t i = 0; i < qos->n_profile_changes; i++) {
		const struct profile_change *change = &qos->profile_change[i];

		if (joins(change->old) &&
			!(joins(change->new) && change->new->number == change->old->number))
			shapers_set_aggregate(qos->live.shapers, shaper_before(qos, change->old),
				change->old->number, 0);
	}
}

// All subscribers, if one of them may have a changed profile.
static size_t n_users(const struct qos *qos)
{
	for (size_t i = 0; i < qos->n_profile_changes; i++)
		if (qos->profile_change[i].old && qos->profile_change[i].new)
			return qos->end;
	return 0;
}

static int change_user(struct qos *qos, size_t index, struct error *error)
{
	const struct subscriber *one = qos->at[index];

	for (unsigned d = 0; one && one->batch != qos->batch && d < QOS_DIRECTIONS; d++) {
		const bool is_changed = is_of_batch(qos, qos->profile[one->profile[d]]);

		if (is_changed || moves(qos, qos->profile[one->parent[d]]))
			set_shaping(qos, one, d, false);
		if (is_changed)
			change_buckets(qos, index, d, qos->now);
	}
	return 0;
}

static int add_entries(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];
	const struct subscriber *one = change->new;

	for (unsigned k = 0; one && k < one->n_prefixes; k++) {
		const struct prefix *prefix = &one->prefix[k];
		const uint32_t kind = entry_kind(prefix->family, registry_place(qos, prefix));

		if (subscriber_has_prefix(change->old, prefix))
			continue;
		if (index_find(qos->index, prefix->key, kind) != QOS_NONE) { // another one had it
			index_set(qos->index, prefix->key, kind, one->index);
			continue;
		}
		index_add(qos->index, prefix->key, kind, one->index);
		qos->n_indexed++;
	}
	return 0;
}

static int withdraw_entries(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];
	const struct subscriber *one = change->old;

	for (unsigned k = 0; one && k < one->n_prefixes; k++) {
		const struct prefix *prefix = &one->prefix[k];
		const uint32_t kind = entry_kind(prefix->family, registry_place(qos, prefix));

		if (subscriber_has_prefix(change->new, prefix) ||
			index_find(qos->index, prefix->key, kind) != one->index)
			continue;
		qos->place[qos->n_places++] = index_withdraw(qos->index, prefix->key, kind);
	}
	for (unsigned d = 0; one && !change->new && qos->live.shapers &&d < QOS_DIRECTIONS; d++)
		set_word(qos, qos_shaped(d, one->index), 0);
	if (one && !change->new)
		qos->left[qos->n_left++] = one->index;
	return 0;
}

static const struct iface_use *use_of(const struct qos *qos, const char *name)
{
	const struct iface_use *use = hash_table_find(&qos->by_iface, name_hash(name));

	while (use && strcmp(use->name, name))
		use = hash_table_find_next(&use->node);
	return use;
}

static bool has_iface(const struct subscriber *one, const char *name)
{
	for (unsigned i = 0; one && i < one->n_ifaces; i++)
		if (!strcmp(one->iface[i].name, name))
			return true;
	return false;
}

// Who has an interface as far as workers may know it: until the buckets of a batch are written,
// only who had it before and keeps it.
static uint32_t user_of(const struct qos *qos, const char *name)
{
	const struct iface_use *use = name ? use_of(qos, name) : NULL;
	const struct subscriber *one = use ? qos->at[use->index] : NULL;

	if (!use || !qos->is_open || qos->is_written || one->batch != qos->batch ||
		has_iface(qos->change[one->change].old, name))
		return use ? use->index : QOS_NONE;
	return QOS_NONE;
}

void qos_bind(struct qos *qos, unsigned iface, const char *name)
{
	// The buckets of the subscriber have been written. Partner: qos_of_iface.
	__atomic_store_n((uint32_t *)&qos->live.view.of_iface[iface], user_of(qos, name),
		__ATOMIC_RELEASE);
	if (qos->is_open && !qos->is_written) // all once more when the batch ends
		qos->has_names = qos->was_bound = true;
}

static int bind_iface(struct qos *qos, size_t i, struct error *error)
{
	qos_bind(qos, i, qos->by_iface.n ? qos->settings.iface_name(qos->settings.ctx, i) : NULL);
	return 0;
}

void publish_ifaces(struct qos *qos)
{
	for (unsigned i = 0; i < qos->settings.n_ifaces; i++)
		bind_iface(qos, i, NULL);
	__atomic_store_n(&qos->live.view.has_ifaces, qos->by_iface.n > 0, __ATOMIC_RELAXED);
}

static size_t n_changes(const struct qos *qos)
{
	return qos->n_changes;
}

static size_t n_profile_changes(const struct qos *qos)
{
	return qos->n_profile_changes;
}

static size_t n_ifaces(const struct qos *qos)
{
	return qos->has_names ? qos->settings.n_ifaces : 0;
}

static int begin(struct qos *qos, size_t i, struct error *error)
{
	set_lengths(qos);
	for (i = 0; i < qos->n_profile_changes; i++)
		set_slot(qos, &qos->profile_change[i]);
	if (qos->live.shapers)
		set_aggregates(qos);
	return 0;
}

static int publish_written(struct qos *qos, size_t i, struct error *error)
{
	publish_lengths(qos);
	qos->is_written = true;
	__atomic_store_n(&qos->live.view.has_ifaces, qos->by_iface.n > 0, __ATOMIC_RELAXED);
	return 0;
}

static int end(struct qos *qos, size_t i, struct error *error)
{
	if (qos->live.shapers)
		remove_aggregates(qos);
	__atomic_store_n(&qos->live.view.has_subscribers, qos->n_subscribers > 0, __ATOMIC_RELAXED);
	if (qos->settings.rcu)
		qos->token = rcu_start_grace(qos->settings.rcu);
	qos->is_pending = true;
	return 0;
}

// Who changes is exported with the profiles that it had, before another one gets the id of one.
static int keep(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];

	if (change->old)
		export_keep(qos->export, change->old->index);
	return 0;
}

static size_t n_to_keep(const struct qos *qos)
{
	return qos->export ? qos->n_changes : 0;
}

static int show_profile(struct qos *qos, size_t i, struct error *error)
{
	shown_change_profile(qos, &qos->profile_change[i]);
	return 0;
}

// The one before is free then.
static int show(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];

	shown_change(qos, change);
	if (change->old && !change->new)
		hash_table_remove(&qos->gone, &change->old->node);
	subscriber_free(change->old);
	return 0;
}

static int forget_profile(struct qos *qos, size_t i, struct error *error)
{
	shown_forget_profile(qos, &qos->profile_change[i]);
	free(qos->profile_change[i].old);
	return 0;
}

const struct work_row publish_rows[PUBLISH_ROWS] = {
	{NULL, begin},
	{n_changes, set_buckets},
	{n_users, change_user},
	{n_changes, add_entries},
	{NULL, publish_written},
	{n_ifaces, bind_iface},
	{n_changes, withdraw_entries},
	{NULL, end},
	{n_to_keep, keep},
	{n_profile_changes, show_profile},
	{n_changes, show},
	{n_profile_changes, forget_profile},
};
