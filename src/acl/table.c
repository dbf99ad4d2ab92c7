// All lists and where they are used. A change builds what is new, publishes a view, and frees the
// old one after a grace period. Control thread.
#include "acl/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct acl_table {
	struct acl_live live;
	struct acl_settings settings;
	struct counters counters;
	struct acl_set set;
	struct built **built;         // by index in set.list
	struct acl_view *view;        // NULL: no list is in use
	const struct acl_list **list; // of the view
};

// A view and its memory.
struct draft {
	struct acl_view *view;
	const struct acl_list **list;
};

int acl_open(struct acl_table **out, const struct acl_settings *settings, struct error *error)
{
	struct acl_table *table = calloc(1, sizeof(*table));
	int err = table ? counters_open(&table->counters, settings->n_workers) : -ENOMEM;

	if (err) {
		free(table);
		return error_set(error, err, "not enough memory for access lists");
	}
	table->settings = *settings;
	for (unsigned w = 0; w < settings->n_workers; w++)
		table->live.count[w] = table->counters.count[w];
	*out = table;
	return 0;
}

static void draft_free(struct draft *draft)
{
	free(draft->view);
	free(draft->list);
}

static void free_built(struct acl_table *table, struct built **built, size_t n)
{
	for (size_t i = 0; built && i < n; i++)
		if (built[i] && !--built[i]->n_users)
			built_free(built[i], &table->counters);
	free(built);
}

void acl_close(struct acl_table *table)
{
	if (!table)
		return;
	free_built(table, table->built, table->set.n_lists);
	draft_free(&(struct draft){table->view, table->list});
	acl_set_free(&table->set);
	counters_close(&table->counters);
	free(table);
}

const struct acl_live *acl_live(const struct acl_table *table)
{
	return &table->live;
}

const struct acl_set *acl_current(const struct acl_table *table)
{
	return &table->set;
}

static int find_list(const struct acl_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_lists; i++)
		if (!strcmp(set->list[i].name, name))
			return i;
	return -ENOENT;
}

static int find_iface(const struct acl_table *table, const char *name)
{
	const int iface = table->settings.iface(table->settings.ctx, name);

	return iface >= 0 && iface < ACL_MAX_IFACES ? iface : -1;
}

// The view of a set. Uses of interfaces that do not exist take effect when they do.
static int draft_make(const struct acl_table *table, const struct acl_set *set,
	struct built *const built[], struct draft *draft)
{
	struct acl_view *view = calloc(1, sizeof(*view));
	const struct acl_list **list = calloc(set->n_lists + 1, sizeof(*list));

	*draft = (struct draft){view, list};
	if (!view || !list) {
		draft_free(draft);
		return -ENOMEM;
	}
	view->list = list;
	for (size_t i = 0; i < set->n_lists; i++)
		list[i + 1] = &built[i]->list;
	for (size_t i = 0; i < set->n_uses; i++) {
		const struct acl_use *use = &set->use[i];
		const int iface = find_iface(table, use->iface);

		if (iface < 0)
			continue;
		view->of_iface[use->direction][iface] = 1 + find_list(set, use->list);
		view->has[use->direction] = true;
	}
	return 0;
}

// Workers use the view from now on; none uses the old one when this returns.
static void publish(struct acl_table *table, const struct draft *draft)
{
	const struct draft old = {table->view, table->list};
	const bool is_used = draft->view->has[ACL_IN] || draft->view->has[ACL_OUT];

	table->view = draft->view;
	table->list = draft->list;
	__atomic_store_n(&table->live.view, is_used ? draft->view : NULL,
		__ATOMIC_RELEASE); // partner: acl_live_view
	if (table->settings.rcu && old.view)
		rcu_wait(table->settings.rcu, rcu_start_grace(table->settings.rcu));
	draft_free(&(struct draft){old.view, old.list});
}

// Interfaces get other numbers. Workers read one field, so they see the old or the new one.
static void set_mirrors(struct acl_table *table, struct built *built)
{
	const char *latest = "";
	int iface = -1;

	for (size_t i = 0; i < built->source.n; i++) {
		const char *name = built->source.rule[i].mirror;

		if (strcmp(name, latest)) // mostly it is the same
			iface = name[0] ? find_iface(table, name) : -1;
		latest = name;
		const uint16_t mirror = iface < 0 ? ACL_NO_MIRROR : iface;

		__atomic_store_n(&built->action[i + 1].mirror, mirror, __ATOMIC_RELAXED);
	}
}

// The list as it is now, if it does not change, or a new one.
static int make_list(struct acl_table *table, const struct acl_source *source, struct built **out,
	struct error *error)
{
	const int now = find_list(&table->set, source->name);

	if (now >= 0 && source_equal(&table->set.list[now], source)) {
		*out = table->built[now];
		return 0;
	}
	int err = built_make(out, source, &table->counters, error);

	if (!err)
		set_mirrors(table, *out);
	return err;
}

static int make_lists(struct acl_table *table, const struct acl_set *set, struct built **built,
	struct error *error)
{
	for (size_t i = 0; i < set->n_lists; i++) {
		int err = make_list(table, &set->list[i], &built[i], error);

		if (err)
			return err;
		built[i]->n_users++;
	}
	return 0;
}

static void replace(struct acl_table *table, const struct acl_set *set, struct built **built)
{
	struct built **old = table->built;
	const size_t n_old = table->set.n_lists;

	acl_set_free(&table->set);
	table->set = *set;
	table->built = built;
	free_built(table, old, n_old);
}

int acl_apply(struct acl_table *table, const struct acl_set *set, struct error *error)
{
	const struct acl_set none = {.n_lists = 0};
	struct acl_set copy;
	struct draft draft;
	int err = acl_set_check(set, error);

	if (!err)
		err = acl_set_merge(&copy, set, &none, error);
	if (err)
		return err;
	struct built **built = calloc(copy.n_lists + 1, sizeof(struct built *));

	err = built ? make_lists(table, &copy, built, error)
	            : error_set(error, -ENOMEM, "not enough memory for the lists");
	if (!err && draft_make(table, &copy, built, &draft))
		err = error_set(error, -ENOMEM, "not enough memory for the uses of lists");
	if (err) {
		free_built(table, built, copy.n_lists);
		acl_set_free(&copy);
		return err;
	}
	publish(table, &draft);
	replace(table, &copy, built);
	return 0;
}

void acl_refresh(struct acl_table *table)
{
	struct draft draft;

	for (size_t i = 0; i < table->set.n_lists; i++)
		set_mirrors(table, table->built[i]);
	if (!table->set.n_uses || draft_make(table, &table->set, table->built, &draft))
		return; // without memory: again next time
	if (!memcmp(draft.view->of_iface, table->view->of_iface, sizeof(draft.view->of_iface)))
		draft_free(&draft);
	else
		publish(table, &draft);
}

bool acl_use_is_bound(const struct acl_table *table, const struct acl_use *use)
{
	return find_iface(table, use->iface) >= 0;
}

struct acl_count acl_rule_count(const struct acl_table *table, const char *list, size_t rule)
{
	struct acl_count sum = {0, 0};
	const int i = find_list(&table->set, list);

	if (i < 0 || rule > table->set.list[i].n)
		return sum;
	const uint32_t index = table->built[i]->counter[rule]->index;

	for (unsigned w = 0; w < table->counters.n_workers; w++) {
		const struct acl_count *count = &table->counters.count[w][index];

		sum.packets += __atomic_load_n(&count->packets, __ATOMIC_RELAXED);
		sum.bytes += __atomic_load_n(&count->bytes, __ATOMIC_RELAXED);
	}
	return sum;
}

double acl_list_seconds(const struct acl_table *table, const char *list)
{
	const int i = find_list(&table->set, list);

	return i < 0 ? 0 : table->built[i]->seconds;
}

int acl_find(const struct acl_table *table, const char *list, const struct acl_packet *packet)
{
	const int i = find_list(&table->set, list);

	return i < 0 ? i : (int)built_find(table->built[i], packet);
}
