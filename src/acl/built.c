// A list with its classifiers, actions and counters. Control thread.
#include "acl/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// The rules' actions and counters; number 0 is the end of the list.
static int take_counters(struct built *built, struct counters *counters)
{
	const struct acl_source *source = &built->source;
	char name[ACL_NAME_MAX] = "";

	for (size_t i = 0; i <= source->n; i++) {
		const struct acl_rule *rule = i ? &source->rule[i - 1] : NULL;

		built->counter[i] = counters_get(counters, source->name,
			rule ? rule_name(source, i - 1, name) : "");
		if (!built->counter[i])
			return -ENOMEM;
		built->action[i] = (struct acl_action){
			.counter = built->counter[i]->index,
			.mirror = ACL_NO_MIRROR,
			.effect = rule                  ? rule->effect
		                  : source->denies_rest ? ACL_DENY
		                                        : ACL_PERMIT,
			.dscp = rule ? rule->mark : ACL_KEEP_DSCP,
		};
		built->list.has_local |= rule && rule->is_local;
		built->has_mirrors |= rule && rule->mirror[0];
	}
	return 0;
}

static size_t count_policers(const struct acl_source *source)
{
	size_t n = 0;

	for (size_t i = 0; i < source->n; i++)
		n += source->rule[i].police.rate != 0;
	return n;
}

static int take_policer(struct built *built, size_t number, struct balances *balances)
{
	const struct acl_source *source = &built->source;
	const struct acl_police *police = &source->rule[number - 1].police;
	char name[ACL_NAME_MAX], red[ACL_NAME_MAX + 8];

	snprintf(red, sizeof(red), "%s red", rule_name(source, number - 1, name));
	built->red[number] = counters_get(&balances->counters, source->name, red);
	built->bucket[number] = buckets_get(&balances->buckets, source, number - 1);
	if (!built->red[number] || !built->bucket[number])
		return -ENOMEM;
	built->policer[number] = (struct acl_policer){
		.police = &built->bucket[number]->police,
		.measure = {police->mtu, police->overhead, police->packets},
		.red = built->red[number]->index,
	};
	return 0;
}

static int take_policers(struct built *built, struct balances *balances)
{
	const struct acl_source *source = &built->source;
	int err = 0;

	if (!count_policers(source))
		return 0;
	built->policer = calloc(source->n + 1, sizeof(*built->policer));
	built->red = calloc(source->n + 1, sizeof(struct counter *));
	built->bucket = calloc(source->n + 1, sizeof(struct bucket *));
	if (!built->policer || !built->red || !built->bucket)
		return -ENOMEM;
	for (size_t i = 1; i <= source->n && !err; i++)
		if (source->rule[i - 1].police.rate)
			err = take_policer(built, i, balances);
	built->list.policer = built->policer;
	return err;
}

void built_set_rates(struct built *built, struct balances *balances)
{
	for (size_t i = 1; built->is_new && built->bucket && i <= built->source.n; i++)
		if (built->bucket[i])
			buckets_set(&balances->buckets, built->bucket[i],
				&built->source.rule[i - 1].police);
	built->is_new = false;
}

static int make_classifiers(struct built *built, struct error *error)
{
	const uint64_t started_ns = clock_now_ns();

	for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++) {
		void *classifier;
		int err = classifier_make(&classifier, &built->source, is_ip6, error);

		if (err)
			return err;
		built->list.classifier[is_ip6] = classifier;
	}
	built->seconds = (clock_now_ns() - started_ns) / 1e9;
	return 0;
}

int built_make(struct built **out, const struct acl_source *source, struct balances *balances,
	struct error *error)
{
	struct built *built = calloc(1, sizeof(*built));

	if (!built)
		return error_set(error, -ENOMEM, "not enough memory for list '%s'", source->name);
	int err = source_copy(&built->source, source);

	built->action = calloc(source->n + 1, sizeof(*built->action));
	built->counter = calloc(source->n + 1, sizeof(struct counter *));
	if (err || !built->action || !built->counter)
		err = -ENOMEM;
	else
		err = take_counters(built, &balances->counters);
	if (!err)
		err = take_policers(built, balances);
	if (err)
		error_set(error, err,
			"not enough memory, or counters, for the %zu rules of list '%s'", source->n,
			source->name);
	else
		err = make_classifiers(built, error);
	if (err) {
		built_free(built, balances);
		return err;
	}
	built->is_new = true;
	built->list.action = built->action;
	*out = built;
	return 0;
}

static void free_policers(struct built *built, struct balances *balances)
{
	for (size_t i = 1; built->red && built->bucket && i <= built->source.n; i++) {
		counters_put(&balances->counters, built->red[i]);
		buckets_put(&balances->buckets, built->bucket[i]);
	}
	free(built->policer);
	free(built->red);
	free(built->bucket);
}

void built_free(struct built *built, struct balances *balances)
{
	free_policers(built, balances);
	for (size_t i = 0; built->counter && i <= built->source.n; i++)
		counters_put(&balances->counters, built->counter[i]);
	for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++)
		classifier_free((void *)built->list.classifier[is_ip6]);
	free(built->counter);
	free(built->action);
	free(built->source.rule);
	free(built);
}
