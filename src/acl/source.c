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

static const struct acl_use *find_use(const struct acl_set *set, const struct acl_use *like)
{
	for (size_t i = 0; i < set->n_uses; i++)
		if (!strcmp(set->use[i].iface, like->iface) &&
			set->use[i].direction == like->direction)
			return &set->use[i];
	return NULL;
}

int acl_set_check(const struct acl_set *set, struct error *error)
{
	int err = 0;

	if (set->n_lists > ACL_MAX_LISTS)
		return error_set(error, -EINVAL, "%zu lists, expected at most %d", set->n_lists,
			ACL_MAX_LISTS);
	for (size_t i = 0; i < set->n_lists && !err; i++) {
		err = check_list(&set->list[i], error);
		if (!err && find_list(set, set->list[i].name) != &set->list[i])
			err = error_set(error, -EINVAL, "two lists have the name '%s'",
				set->list[i].name);
	}
	for (size_t i = 0; i < set->n_uses && !err; i++) {
		const struct acl_use *use = &set->use[i];

		if (!find_list(set, use->list))
			err = error_set(error, -EINVAL,
				"interface '%s' uses list '%s', which does "
				"not exist",
				use->iface, use->list);
		else if (find_use(set, use) != use)
			err = error_set(error, -EINVAL,
				"interface '%s' has two lists in direction %s", use->iface,
				use->direction == ACL_IN ? "in" : "out");
	}
	return err;
}

static int add_list(struct acl_set *out, const struct acl_source *list)
{
	if (!list->rule && !list->n)
		return 0;
	int err = source_copy(&out->list[out->n_lists], list);

	out->n_lists += !err;
	return err;
}

int acl_set_merge(struct acl_set *out, const struct acl_set *set, const struct acl_set *change,
	struct error *error)
{
	const size_t n_lists = set->n_lists + change->n_lists + 1;
	const size_t n_uses = set->n_uses + change->n_uses + 1;
	int err = 0;

	*out = (struct acl_set){
		.list = calloc(n_lists, sizeof(*out->list)),
		.use = calloc(n_uses, sizeof(*out->use)),
	};
	if (!out->list || !out->use)
		err = -ENOMEM;
	for (size_t i = 0; i < set->n_lists && !err; i++)
		if (!find_list(change, set->list[i].name))
			err = add_list(out, &set->list[i]);
	for (size_t i = 0; i < change->n_lists && !err; i++)
		err = add_list(out, &change->list[i]);
	if (err) {
		acl_set_free(out);
		return error_set(error, err, "not enough memory for the lists");
	}
	for (size_t i = 0; i < set->n_uses; i++)
		if (!find_use(change, &set->use[i]))
			out->use[out->n_uses++] = set->use[i];
	for (size_t i = 0; i < change->n_uses; i++)
		if (change->use[i].list[0])
			out->use[out->n_uses++] = change->use[i];
	return 0;
}

void acl_set_free(struct acl_set *set)
{
	for (size_t i = 0; i < set->n_lists; i++)
		free(set->list[i].rule);
	free(set->list);
	free(set->use);
	*set = (struct acl_set){.list = NULL};
}
