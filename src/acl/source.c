// Lists as configured: copies, comparison, checks. Any thread.
#include "acl/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int source_copy(struct acl_source *to, const struct acl_source *from)
{
	*to = *from;
	to->rule = malloc((from->n + 1) * sizeof(*to->rule));
	if (!to->rule)
		return -ENOMEM;
	if (from->n)
		memcpy(to->rule, from->rule, from->n * sizeof(*to->rule));
	return 0;
}

// Rules are made by acl_rule_start, so that all bytes of a name after its end are 0.
bool source_equal(const struct acl_source *a, const struct acl_source *b)
{
	return !strcmp(a->name, b->name) && a->n == b->n && a->denies_rest == b->denies_rest &&
	       (!a->n || !memcmp(a->rule, b->rule, a->n * sizeof(*a->rule)));
}

const char *rule_name(const struct acl_source *source, size_t i, char *text)
{
	if (source->rule[i].name[0])
		snprintf(text, ACL_NAME_MAX, "%s", source->rule[i].name);
	else
		snprintf(text, ACL_NAME_MAX, "%zu", i + 1);
	return text;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

// Two rules of one name would share a counter.
static int check_rule_names(const struct acl_source *source, struct error *error)
{
	char(*name)[ACL_NAME_MAX] = malloc((source->n + 1) * sizeof(*name));
	int err = 0;

	if (!name)
		return error_set(error, -ENOMEM, "not enough memory for the rules of list '%s'",
			source->name);
	for (size_t i = 0; i < source->n; i++)
		rule_name(source, i, name[i]);
	qsort(name, source->n, sizeof(*name), compare_names);
	for (size_t i = 1; i < source->n && !err; i++)
		if (!strcmp(name[i - 1], name[i]))
			err = error_set(error, -EINVAL,
				"list '%s': two rules have the name '%s' (a rule without a name "
				"has its number)",
				source->name, name[i]);
	free(name);
	return err;
}

static int check_list(const struct acl_source *source, struct error *error)
{
	if (!source->name[0])
		return error_set(error, -EINVAL, "a list without a name");
	if (source->n > ACL_MAX_RULES)
		return error_set(error, -EINVAL, "list '%s': %zu rules, expected at most %d",
			source->name, source->n, ACL_MAX_RULES);
	return check_rule_names(source, error);
}

static const struct acl_source *find_list(const struct acl_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_lists; i++)
		if (!strcmp(set->list[i].name, name))
			return &set->list[i];
	return NULL;
}

static int compare_uses(const void *a_, const void *b_)
{
	const struct acl_use *const *a = a_, *const *b = b_;
	const int names = strcmp((*a)->iface, (*b)->iface);

	return names ? names : (*a)->direction - (*b)->direction;
}

// The uses of a set, sorted by interface and direction. NULL: no memory. Owner: caller, free.
static const struct acl_use **sort_uses(const struct acl_set *set)
{
	const struct acl_use **use = malloc((set->n_uses + 1) * sizeof(*use));

	for (size_t i = 0; use && i < set->n_uses; i++)
		use[i] = &set->use[i];
	if (use)
		qsort(use, set->n_uses, sizeof(*use), compare_uses);
	return use;
}

static int compare_lists(const void *a_, const void *b_)
{
	const struct acl_source *const *a = a_, *const *b = b_;

	return strcmp((*a)->name, (*b)->name);
}

const struct acl_source **lists_sort(const struct acl_set *set)
{
	const struct acl_source **list = malloc((set->n_lists + 1) * sizeof(*list));

	for (size_t i = 0; list && i < set->n_lists; i++)
		list[i] = &set->list[i];
	if (list)
		qsort(list, set->n_lists, sizeof(*list), compare_lists);
	return list;
}

static int compare_name(const void *name, const void *list_)
{
	const struct acl_source *const *list = list_;

	return strcmp(name, (*list)->name);
}

const struct acl_source *lists_find(const struct acl_source *const sorted[], size_t n,
	const char *name)
{
	const struct acl_source *const *found =
		bsearch(name, sorted, n, sizeof(*sorted), compare_name);

	return found ? *found : NULL;
}

// A list without rules whose `rule` is NULL is to be removed.
static int check_uses(const struct acl_set *set, const struct acl_source *const sorted[],
	struct error *error)
{
	for (size_t i = 0; i < set->n_uses; i++) {
		const struct acl_use *use = &set->use[i];
		const struct acl_source *list = lists_find(sorted, set->n_lists, use->list);

		if (!list || (!list->rule && !list->n))
			return error_set(error, -EINVAL,
				"interface '%s' uses list '%s', which does not exist", use->iface,
				use->list);
	}
	return 0;
}

static int check_names(const struct acl_set *set, struct error *error)
{
	const struct acl_source **list = lists_sort(set);
	int err = 0;

	if (!list)
		return error_set(error, -ENOMEM, "not enough memory for the lists");
	for (size_t i = 1; i < set->n_lists && !err; i++)
		if (!compare_lists(&list[i - 1], &list[i]))
			err = error_set(error, -EINVAL, "two lists have the name '%s'",
				list[i]->name);
	if (!err)
		err = check_uses(set, list, error);
	free(list);
	return err;
}

static int check_different(const struct acl_set *set, struct error *error)
{
	const struct acl_use **use = sort_uses(set);
	int err = 0;

	if (!use)
		return error_set(error, -ENOMEM, "not enough memory for the uses of lists");
	for (size_t i = 1; i < set->n_uses && !err; i++)
		if (!compare_uses(&use[i - 1], &use[i]))
			err = error_set(error, -EINVAL,
				"interface '%s' has two lists in direction %s", use[i]->iface,
				use[i]->direction == ACL_IN ? "in" : "out");
	free(use);
	return err;
}

int acl_set_check(const struct acl_set *set, struct error *error)
{
	int err = 0;

	if (set->n_lists > ACL_MAX_LISTS)
		return error_set(error, -EINVAL, "%zu lists, expected at most %d", set->n_lists,
			ACL_MAX_LISTS);
	if (set->n_uses > ACL_MAX_USES)
		return error_set(error, -EINVAL, "%zu uses of lists, expected at most %d",
			set->n_uses, ACL_MAX_USES);
	for (size_t i = 0; i < set->n_lists && !err; i++)
		err = check_list(&set->list[i], error);
	if (!err)
		err = check_names(set, error);
	return err ? err : check_different(set, error);
}

static int add_list(struct acl_set *out, const struct acl_source *list)
{
	if (!list->rule && !list->n)
		return 0;
	int err = source_copy(&out->list[out->n_lists], list);

	out->n_lists += !err;
	return err;
}

static int merge_lists(struct acl_set *out, const struct acl_set *set, const struct acl_set *change)
{
	int err = 0;

	for (size_t i = 0; i < set->n_lists && !err; i++)
		if (!find_list(change, set->list[i].name))
			err = add_list(out, &set->list[i]);
	for (size_t i = 0; i < change->n_lists && !err; i++)
		err = add_list(out, &change->list[i]);
	return err;
}

static int merge_uses(struct acl_set *out, const struct acl_set *set, const struct acl_set *change)
{
	const struct acl_use **sorted = sort_uses(change);

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_uses; i++) {
		const struct acl_use *key = &set->use[i];

		if (!bsearch(&key, sorted, change->n_uses, sizeof(*sorted), compare_uses))
			out->use[out->n_uses++] = *key;
	}
	for (size_t i = 0; i < change->n_uses; i++)
		if (change->use[i].list[0])
			out->use[out->n_uses++] = change->use[i];
	free(sorted);
	return 0;
}

int acl_set_merge(struct acl_set *out, const struct acl_set *set, const struct acl_set *change,
	struct error *error)
{
	int err = 0;

	*out = (struct acl_set){
		.list = calloc(set->n_lists + change->n_lists + 1, sizeof(*out->list)),
		.use = calloc(set->n_uses + change->n_uses + 1, sizeof(*out->use)),
	};
	if (!out->list || !out->use)
		err = -ENOMEM;
	if (!err)
		err = merge_lists(out, set, change);
	if (!err)
		err = merge_uses(out, set, change);
	if (!err)
		return 0;
	acl_set_free(out);
	return error_set(error, err, "not enough memory for the lists");
}

void acl_set_free(struct acl_set *set)
{
	for (size_t i = 0; i < set->n_lists; i++)
		free(set->list[i].rule);
	free(set->list);
	free(set->use);
	*set = (struct acl_set){.list = NULL};
}
