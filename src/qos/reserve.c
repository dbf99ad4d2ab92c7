// Memory for a batch before it is applied, also larger tables, and what is free again after it.
// Control thread.
#include "qos/inside.h"

#include "base/pages.h"
#include "base/vector.h"
#include "rcu/rcu.h"

#include <errno.h>

enum { PART_BYTES = 2 << 20 }; // a huge page

// Waits until workers have passed `token`; in turns, only looks.
static int pass(struct qos *qos, uint64_t token)
{
	struct rcu *rcu = qos->settings.rcu;

	if (!rcu)
		return 0;
	if (!qos->in_turns)
		rcu_wait(rcu, token);
	else if (!rcu_has_passed(rcu, token))
		return work_wait(qos);
	return 0;
}

// --- A larger table: `growth.n` is how many entries it should have space for, 0: none is needed.

static int create_larger(struct qos *qos, size_t i, struct error *error)
{
	if (!qos->growth.n)
		return 0;
	qos->growth.to = index_create(qos->growth.n);
	return qos->growth.to ? 0
	                      : error_set(error, -ENOMEM, "not enough memory for more subscribers");
}

static size_t n_parts(const struct qos *qos)
{
	return qos->growth.to ? (qos->growth.to->n_bytes + PART_BYTES - 1) / PART_BYTES : 0;
}

// The kernel clears a huge page when it is touched: one at a time, as entries come to all places.
static int touch_part(struct qos *qos, size_t i, struct error *error)
{
	volatile uint8_t *byte = (uint8_t *)qos->growth.to + i * PART_BYTES;

	*byte = *byte;
	qos->is_pausing = true;
	return 0;
}

static size_t n_lines(const struct qos *qos)
{
	return qos->growth.to ? qos->growth.of->mask + 1 : 0;
}

static int copy_line(struct qos *qos, size_t at, struct error *error)
{
	index_copy_line(qos->growth.to, qos->growth.of, at);
	return 0;
}

// The old one is to be freed.
static void use_larger(struct growth *growth)
{
	growth->old = growth->of;
	growth->n_old_bytes = growth->of->n_bytes;
	growth->to = growth->of = NULL;
	growth->n = 0;
}

static int use_larger_registry(struct qos *qos, size_t i, struct error *error)
{
	qos->registry = qos->growth.to;
	use_larger(&qos->growth);
	return 0;
}

static int use_larger_index(struct qos *qos, size_t i, struct error *error)
{
	struct qos_index *other = qos->growth.to;

	if (!other)
		return 0;
	qos->index = other;
	__atomic_store_n(&qos->live.view.index, other, __ATOMIC_RELEASE); // partner: qos_find
	use_larger(&qos->growth);
	if (qos->settings.rcu)
		qos->token = rcu_start_grace(qos->settings.rcu);
	return 0;
}

static int pass_old(struct qos *qos, size_t i, struct error *error)
{
	return qos->growth.old ? pass(qos, qos->token) : 0;
}

static int free_old(struct qos *qos, size_t i, struct error *error)
{
	struct growth *growth = &qos->growth;

	if (!growth->old)
		return 0;
	growth->n_old_bytes = pages_free_some(growth->old, growth->n_old_bytes, PART_BYTES);
	if (growth->n_old_bytes)
		return work_pause(qos);
	growth->old = NULL;
	return 0;
}

void growth_close(struct qos *qos)
{
	struct growth *growth = &qos->growth;

	if (growth->old && qos->settings.rcu)
		rcu_wait(qos->settings.rcu, rcu_start_grace(qos->settings.rcu));
	if (growth->old)
		pages_free(growth->old, growth->n_old_bytes);
	index_free(growth->to);
	*growth = (struct growth){0};
}

void registry_begin_growth(struct qos *qos)
{
	qos->growth = (struct growth){.n = qos->deferred.n, .of = qos->registry};
}

const struct work_row growth_rows[GROWTH_ROWS] = {
	{NULL, create_larger},
	{n_parts, touch_part},
	{n_lines, copy_line},
	{NULL, use_larger_registry},
	{NULL, free_old},
};

// --- What a batch needs.

// Prefixes of `one` that `other` has not.
static uint64_t n_more(const struct subscriber *one, const struct subscriber *other)
{
	uint64_t n = 0;

	for (unsigned i = 0; one && i < one->n_prefixes; i++)
		n += !subscriber_has_prefix(other, &one->prefix[i]);
	return n;
}

static size_t n_changes(const struct qos *qos)
{
	return qos->n_changes;
}

static int begin_needs(struct qos *qos, size_t i, struct error *error)
{
	qos->needs = (struct needs){0};
	return 0;
}

static int add_needs(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];

	qos->needs.more += n_more(change->new, change->old);
	qos->needs.less += n_more(change->old, change->new);
	qos->needs.left += change->old && !change->new;
	return 0;
}

static int reserve_lists(struct qos *qos, size_t i, struct error *error)
{
	const struct needs *needs = &qos->needs;

	if (vector_reserve(&qos->place, &qos->places_capacity, needs->less + 1,
		    sizeof(*qos->place)) ||
		vector_reserve(&qos->left, &qos->left_capacity, needs->left + 1,
			sizeof(*qos->left)) ||
		vector_reserve(&qos->left_slot, &qos->left_slots_capacity,
			qos->n_profile_changes + 1, sizeof(*qos->left_slot)))
		return error_set(error, -ENOMEM, "not enough memory for these changes");
	const uint64_t n = qos->n_indexed + needs->more;

	qos->growth = (struct growth){.of = qos->index};
	if (!index_has_space(qos->index, n))
		qos->growth.n = 2 * n;
	return 0;
}

const struct work_row prepare_rows[PREPARE_ROWS] = {
	{NULL, hierarchy_check_aggregates},
	{hierarchy_n_subscribers, hierarchy_check_subscriber},
	{NULL, begin_needs},
	{n_changes, add_needs},
	{NULL, reserve_lists},
	{NULL, create_larger},
	{n_parts, touch_part},
	{n_lines, copy_line},
	{NULL, use_larger_index},
	{NULL, pass_old},
	{NULL, free_old},
};

// --- What the last batch left: workers may use it until a grace period has passed.

static int pass_last(struct qos *qos, size_t i, struct error *error)
{
	return qos->is_pending ? pass(qos, qos->token) : 0;
}

static int pass_shaper(struct qos *qos, size_t i, struct error *error)
{
	const struct qos_shapers *all = qos->live.shapers;

	if (!qos->is_pending || !all)
		return 0;
	if (!qos->in_turns)
		shapers_wait(all);
	else if (shapers_are_behind(all))
		return work_wait(qos);
	return 0;
}

static size_t n_places(const struct qos *qos)
{
	return qos->is_pending ? qos->n_places : 0;
}

static int reuse_place(struct qos *qos, size_t i, struct error *error)
{
	index_reuse(qos->index, qos->place[i]);
	return 0;
}

static size_t n_left(const struct qos *qos)
{
	return qos->is_pending ? qos->n_left : 0;
}

static int reuse_index(struct qos *qos, size_t i, struct error *error)
{
	subscriber_free_index(qos, qos->left[i]);
	return 0;
}

static int end_reuse(struct qos *qos, size_t i, struct error *error)
{
	if (!qos->is_pending)
		return 0;
	for (i = 0; i < qos->n_left_slots; i++)
		qos->slot_in_use[qos->left_slot[i]] = false;
	qos->n_indexed -= qos->n_places;
	qos->n_places = qos->n_left = qos->n_left_slots = 0;
	qos->is_pending = false;
	return 0;
}

const struct work_row reuse_rows[REUSE_ROWS] = {
	{NULL, pass_last},
	{NULL, pass_shaper},
	{n_places, reuse_place},
	{n_left, reuse_index},
	{NULL, end_reuse},
};
