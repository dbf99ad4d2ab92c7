// Changes of a batch. The control thread's own tables have a change as soon as it is staged;
// workers see it, and it is shown, when the batch is committed. Control thread.
#include "qos/inside.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_PROFILES = QOS_PROFILES / 2 - 1 }; // each may have two slots for a while

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "not enough memory for these changes");
}

// The change of a subscriber, with `old` as it was before the batch. NULL: no memory.
static struct change *note(struct qos *qos, struct subscriber *old)
{
	if (vector_reserve(&qos->change, &qos->changes_capacity, qos->n_changes + 1,
		    sizeof(*qos->change)))
		return NULL;
	qos->change[qos->n_changes] = (struct change){old, NULL};
	return &qos->change[qos->n_changes++];
}

static bool is_staged(const struct qos *qos, const struct subscriber *one)
{
	return one->batch == qos->batch;
}

void subscriber_free_index(struct qos *qos, uint32_t index)
{
	qos->taken[index / 64] &= ~(1ull << index % 64);
	qos->next_free = MIN_OF(qos->next_free, index / 64);
}

static bool is_taken(const struct qos *qos, uint32_t index)
{
	return qos->taken[index / 64] >> index % 64 & 1;
}

// The subscriber is there no more, but its index is its own until the batch ends.
static int take_out(struct qos *qos, struct subscriber *one, struct error *error)
{
	if (is_staged(qos, one)) {
		struct change *change = &qos->change[one->change];

		registry_remove(qos, one);
		change->new = NULL;
		if (change->old)
			hash_table_insert(&qos->gone, &change->old->node,
				name_hash(change->old->name));
		else
			subscriber_free_index(qos, one->index);
		subscriber_free(one);
		return 0;
	}
	if (!note(qos, one))
		return no_memory(error);
	registry_remove(qos, one);
	one->batch = qos->batch;
	one->change = qos->n_changes - 1;
	hash_table_insert(&qos->gone, &one->node, name_hash(one->name));
	return 0;
}

struct subscriber *subscriber_gone(const struct qos *qos, const char *name)
{
	struct subscriber *one = hash_table_find(&qos->gone, name_hash(name));

	while (one && strcmp(one->name, name))
		one = hash_table_find_next(&one->node);
	return one;
}

// One that was removed by this batch goes on with its buckets and counters, unless it is to have
// another number.
static int put_in(struct qos *qos, struct subscriber *one, struct error *error)
{
	struct subscriber *old = subscriber_gone(qos, one->name);
	struct change *change;

	if (old && one->index != QOS_NONE && one->index != old->index)
		old = NULL;
	if (old)
		one->index = old->index;
	else if (one->index != QOS_NONE && !qos->at[one->index] && is_taken(qos, one->index))
		return error_set(error, -EBUSY,
			"subscriber '%s': number %u is that of one whom these changes remove; "
			"expected another one, or none",
			one->name, one->index + 1);
	int err = registry_add(qos, one, error);

	if (err)
		return err;
	change = old ? &qos->change[old->change] : note(qos, NULL);
	if (!change) {
		registry_remove(qos, one);
		return no_memory(error);
	}
	if (old)
		hash_table_remove(&qos->gone, &old->node);
	change->new = one;
	one->batch = qos->batch;
	one->change = change - qos->change;
	return 0;
}

static int replace(struct qos *qos, struct subscriber *old, struct subscriber *one,
	struct error *error)
{
	const uint32_t index = old ? old->index : QOS_NONE;
	int err = 0;

	if (one->index == QOS_NONE)
		one->index = index;
	if (old)
		err = take_out(qos, old, error);
	return err ? err : put_in(qos, one, error);
}

enum op { ADD, PUT, SET, REMOVE };

static int stage_subscriber(struct qos *qos, enum op op, char **rest, bool is_of_file,
	struct error *error)
{
	const char *name = strtok_r(NULL, " \t", rest);
	int err = name_check(name, "subscriber", error);

	if (!err)
		err = tc_check_name(qos, name, "subscriber", error);
	struct subscriber *old = err ? NULL : subscriber_named(qos, name), *one;

	if (err)
		return err;
	if (file_means_more(name))
		return error_set(error, -EINVAL,
			"subscriber '%s': begins another kind of line in a file; expected another "
			"name",
			name);
	if (op == ADD && old)
		return error_set(error, -EEXIST,
			"subscriber '%s': exists already; use \"set\" to change it", name);
	if (op >= SET && !old)
		return error_set(error, -ENOENT, "there is no subscriber '%s'", name);
	if (op == REMOVE)
		return strtok_r(NULL, " \t", rest)
		               ? error_set(error, -EINVAL,
					 "remove: expected nothing after the name '%s'", name)
		               : take_out(qos, old, error);
	err = subscriber_read(qos, &one, name, rest, op == SET ? old : NULL, error);
	if (err)
		return err;
	one->is_of_file = op == SET ? old->is_of_file : is_of_file;
	err = hierarchy_check(qos, one, error);
	if (!err)
		err = replace(qos, old, one, error);
	if (err)
		subscriber_free(one);
	return err;
}

void profile_enter(struct qos *qos, struct profile *one)
{
	hash_table_insert(&qos->profiles, &one->node, name_hash(one->name));
	qos->profile[one->id] = one;
	qos->n_users[one->parent]++;
	qos->n_profiles++;
}

void profile_leave(struct qos *qos, struct profile *one)
{
	hash_table_remove(&qos->profiles, &one->node);
	qos->profile[one->id] = NULL;
	qos->n_users[one->parent]--;
	qos->n_profiles--;
}

// If there is one, an id that is not shown as that of a profile which this batch removes.
static int find_id(const struct qos *qos, struct error *error)
{
	int found = 0;

	for (int id = 1; id <= MOST_PROFILES; id++) {
		if (qos->profile[id])
			continue;
		if (!qos->shown.profile[id])
			return id;
		found = id;
	}
	if (found)
		return found;
	return error_set(error, -ENOSPC, "there are %d profiles already; remove some",
		MOST_PROFILES);
}

// `one`: NULL: the profile is removed. What was staged before in this batch is forgotten.
static int replace_profile(struct qos *qos, struct profile *old, struct profile *one,
	struct error *error)
{
	const bool is_staged = old && old->batch == qos->batch;

	if (!is_staged && vector_reserve(&qos->profile_change, &qos->profile_changes_capacity,
				  qos->n_profile_changes + 1, sizeof(*qos->profile_change)))
		return no_memory(error);
	const uint32_t i = is_staged ? old->change : qos->n_profile_changes++;

	if (!is_staged)
		qos->profile_change[i].old = old;
	if (old)
		profile_leave(qos, old);
	if (is_staged)
		free(old);
	qos->profile_change[i].new = one;
	if (!one)
		return 0;
	one->batch = qos->batch;
	one->change = i;
	profile_enter(qos, one);
	return 0;
}

static int stage_profile(struct qos *qos, char **rest, bool is_of_file, struct error *error)
{
	const char *name = strtok_r(NULL, " \t", rest);
	int err = name_check(name, "profile", error), id;

	if (!err)
		err = tc_check_name(qos, name, "profile", error);
	if (!err && !strcmp(name, "none"))
		err = error_set(error, -EINVAL,
			"profile 'none': means no profile; expected another "
			"name");
	if (err)
		return err;
	struct profile *old = profile_named(qos, name), *one = calloc(1, sizeof(*one));

	if (!one)
		return no_memory(error);
	strcpy(one->name, name);
	err = profile_read(qos, one, rest, error);
	if (!err)
		err = hierarchy_link(qos, one, old, error);
	id = err ? err : old ? (int)old->id : find_id(qos, error);
	if (id > 0) {
		one->id = id;
		one->is_of_file = is_of_file;
		hierarchy_number(qos, one, old);
		err = replace_profile(qos, old, one, error);
	}
	if (id < 0 || err)
		free(one);
	return id < 0 ? id : err;
}

static int remove_profile(struct qos *qos, struct profile *one, struct error *error)
{
	if (qos->n_users[one->id])
		return error_set(error, -EBUSY,
			"profile '%s': subscribers have it (%u times); give them another one first",
			one->name, qos->n_users[one->id]);
	return replace_profile(qos, one, NULL, error);
}

static int unstage_profile(struct qos *qos, char **rest, struct error *error)
{
	const char *name = strtok_r(NULL, " \t", rest);
	int err = name_check(name, "profile", error);

	if (!err)
		err = tc_check_name(qos, name, "profile", error);
	if (err)
		return err;
	struct profile *one = profile_named(qos, name);

	return one ? remove_profile(qos, one, error)
	           : error_set(error, -ENOENT, "there is no profile '%s'", name);
}

static int check_text(const char *text, struct error *error)
{
	if (strlen(text) >= QOS_LINE_MAX)
		return error_set(error, -EINVAL, "a change of %zu bytes; expected at most %d",
			strlen(text), QOS_LINE_MAX - 1);
	return 0;
}

int qos_stage(struct qos *qos, const char *text, bool is_of_file, struct error *error)
{
	static const char *const ops[] = {"add", "put", "set", "remove"};
	char copy[QOS_LINE_MAX], *rest;
	int err = check_text(text, error);

	if (err)
		return err;
	strcpy(copy, text);
	const char *op = strtok_r(copy, " \t", &rest);

	if (op && !strcmp(op, "profile"))
		return stage_profile(qos, &rest, is_of_file, error);
	if (op && !strcmp(op, "no-profile"))
		return unstage_profile(qos, &rest, error);
	for (unsigned i = 0; op && i < ARRAY_LEN(ops); i++)
		if (!strcmp(op, ops[i]))
			return stage_subscriber(qos, i, &rest, is_of_file, error);
	return error_set(error, -EINVAL,
		"\"%.40s\": expected profile, no-profile, add, put, set or remove", op ? op : "");
}

int qos_stage_file_begin(struct qos *qos, struct error *error)
{
	int err = 0;

	for (uint32_t i = 0; i < qos->end && !err; i++)
		if (qos->at[i] && qos->at[i]->is_of_file)
			err = take_out(qos, qos->at[i], error);
	return err;
}

int qos_stage_file_end(struct qos *qos, struct error *error)
{
	int err = 0;

	// Children before their parents.
	for (uint32_t i = 1; i < 2 * (MOST_PROFILES + 1) && !err; i++) {
		const uint32_t id = i % (MOST_PROFILES + 1);
		struct profile *one = qos->profile[id];
		const bool is_first = i <= MOST_PROFILES;

		if (one && one->is_of_file && one->batch != qos->batch &&
			(one->parent || !is_first))
			err = remove_profile(qos, one, error);
	}
	return err;
}
