// All lists and where they are used. A change builds what is new, publishes a view, and frees the
// old one after a grace period. Interfaces that come and go change entries of the view in place.
// Control thread.
#include "acl/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A use, in the order of the names of interfaces.
struct place {
	const struct acl_use *use;
	uint16_t list;
	int iface; // to which it was bound last; -1: none
};

// A view and its memory.
struct draft {
	struct acl_view *view;
	const struct acl_list **list;
	struct place *place;
	size_t n_places;
	unsigned n_bound[ACL_DIRECTIONS]; // interfaces that have a list
};

// A set whose lists are built.
struct acl_pending {
	struct acl_set set;
	struct built **built; // by index in set.list
	struct draft draft;
};

struct acl_table {
	struct acl_live live;
	struct acl_settings settings;
	struct balances balances;
	struct acl_pending now; // draft.view NULL: nothing was applied yet
};

int acl_open(struct acl_table **out, const struct acl_settings *settings, struct error *error)
{
	struct acl_table *table = calloc(1, sizeof(*table));
	int err = table ? counters_open(&table->balances.counters, settings->n_workers) : -ENOMEM;

	if (!err) {
		err = buckets_open(&table->balances.buckets, settings->hz);
		if (err)
			counters_close(&table->balances.counters);
	}
	if (err) {
		free(table);
		return error_set(error, err, "not enough memory for access lists");
	}
	table->settings = *settings;
	for (unsigned w = 0; w < settings->n_workers; w++)
		table->live.count[w] = table->balances.counters.count[w];
	*out = table;
	return 0;
}

static void draft_free(struct draft *draft)
{
	free(draft->view);
	free(draft->list);
	free(draft->place);
}

static void pending_free(struct acl_table *table, struct acl_pending *pending)
{
	struct built **built = pending->built;

	for (size_t i = 0; built && i < pending->set.n_lists; i++)
		if (built[i] && !--built[i]->n_users)
			built_free(built[i], &table->balances);
	free(built);
	draft_free(&pending->draft);
	acl_set_free(&pending->set);
}

void acl_close(struct acl_table *table)
{
	if (!table)
		return;
	pending_free(table, &table->now);
	counters_close(&table->balances.counters);
	buckets_close(&table->balances.buckets);
	free(table);
}

const struct acl_live *acl_live(const struct acl_table *table)
{
	return &table->live;
}

const struct acl_set *acl_current(const struct acl_table *table)
{
	return &table->now.set;
}

static int find_list(const struct acl_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_lists; i++)
		if (!strcmp(set->list[i].name, name))
			return i;
	return -ENOENT;
}

static int compare_places(const void *a_, const void *b_)
{
	const struct place *a = a_, *b = b_;
	const int names = strcmp(a->use->iface, b->use->iface);

	return names ? names : a->use->direction - b->use->direction;
}

// The first place of an interface, or where it would be.
static size_t first_place(const struct draft *draft, const char *iface)
{
	size_t low = 0, high = draft->n_places;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (strcmp(draft->place[middle].use->iface, iface) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// The view of a set that was checked. No interface has a list in it yet.
static int draft_make(const struct acl_set *set, struct built *const built[], struct draft *draft)
{
	const struct acl_source **sorted = lists_sort(set);

	*draft = (struct draft){
		.view = calloc(1, sizeof(*draft->view)),
		.list = calloc(set->n_lists + 1, sizeof(*draft->list)),
		.place = calloc(set->n_uses + 1, sizeof(*draft->place)),
		.n_places = set->n_uses,
	};
	if (!draft->view || !draft->list || !draft->place || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	draft->view->list = draft->list;
	for (size_t i = 0; i < set->n_lists; i++)
		draft->list[i + 1] = &built[i]->list;
	for (size_t i = 0; i < set->n_uses; i++)
		draft->place[i] = (struct place){
			.use = &set->use[i],
			.list = 1 +
		                (lists_find(sorted, set->n_lists, set->use[i].list) - set->list),
			.iface = -1,
		};
	free(sorted);
	qsort(draft->place, draft->n_places, sizeof(*draft->place), compare_places);
	return 0;
}

// Workers read one entry, so they see the old or the new list.
static void set_list(struct draft *draft, unsigned direction, unsigned iface, uint16_t list)
{
	uint16_t *entry = &draft->view->of_iface[direction][iface];

	draft->n_bound[direction] += (list != 0) - (*entry != 0);
	__atomic_store_n(entry, list, __ATOMIC_RELAXED);
	__atomic_store_n(&draft->view->has[direction], draft->n_bound[direction] > 0,
		__ATOMIC_RELAXED);
}

// The interface with this number has the lists of this name, and no other.
static void bind(struct draft *draft, unsigned iface, const char *name)
{
	uint16_t list[ACL_DIRECTIONS] = {0};

	for (size_t i = name ? first_place(draft, name) : draft->n_places;
		i < draft->n_places && !strcmp(draft->place[i].use->iface, name); i++) {
		list[draft->place[i].use->direction] = draft->place[i].list;
		draft->place[i].iface = (int)iface;
	}
	for (unsigned direction = 0; direction < ACL_DIRECTIONS; direction++)
		if (draft->view->of_iface[direction][iface] != list[direction])
			set_list(draft, direction, iface, list[direction]);
}

static void bind_all(const struct acl_table *table, struct draft *draft)
{
	const struct acl_settings *settings = &table->settings;

	for (size_t i = 0; i < draft->n_places; i++)
		draft->place[i].iface = -1;
	for (unsigned iface = 0; draft->n_places && iface < settings->n_ifaces; iface++)
		bind(draft, iface, settings->iface_name(settings->ctx, iface));
}

// Workers use the view if any interface has a list in it.
static void show(struct acl_table *table)
{
	const struct draft *draft = &table->now.draft;
	const bool is_used = draft->n_bound[ACL_IN] || draft->n_bound[ACL_OUT];

	__atomic_store_n(&table->live.view, is_used ? draft->view : NULL,
		__ATOMIC_RELEASE); // partner: acl_live_view
}

// A port by its name.
struct target {
	const char *name;
	uint16_t port;
};

static int compare_targets(const void *a_, const void *b_)
{
	const struct target *a = a_, *b = b_;

	return strcmp(a->name, b->name);
}

static size_t find_targets(const struct acl_table *table, struct target *target)
{
	const struct acl_settings *settings = &table->settings;
	size_t n = 0;

	for (unsigned port = 0; port < MIN_OF(settings->n_ports, (unsigned)ACL_MAX_PORTS); port++) {
		const char *name = settings->iface_name(settings->ctx, port);

		if (name)
			target[n++] = (struct target){name, port};
	}
	qsort(target, n, sizeof(*target), compare_targets);
	return n;
}

// Ports get other numbers. Workers read one field, so they see the old or the new one.
static void set_mirrors(struct built *built, const struct target *target, size_t n)
{
	for (size_t i = 0; built->has_mirrors && i < built->source.n; i++) {
		const struct target key = {built->source.rule[i].mirror, 0};
		const struct target *found =
			key.name[0] ? bsearch(&key, target, n, sizeof(key), compare_targets) : NULL;

		__atomic_store_n(&built->action[i + 1].mirror, found ? found->port : ACL_NO_MIRROR,
			__ATOMIC_RELAXED);
	}
}

static void set_all_mirrors(const struct acl_table *table, const struct acl_pending *pending)
{
	struct target target[ACL_MAX_PORTS];
	const size_t n = find_targets(table, target);

	for (size_t i = 0; i < pending->set.n_lists; i++)
		set_mirrors(pending->built[i], target, n);
}

// The list as it is now, if it does not change, or a new one.
static int make_list(struct acl_table *table, const struct acl_source *source, struct built **out,
	struct error *error)
{
	const struct acl_pending *now = &table->now;
	const int i = find_list(&now->set, source->name);

	if (i >= 0 && source_equal(&now->set.list[i], source)) {
		*out = now->built[i];
		return 0;
	}
	return built_make(out, source, &table->balances, error);
}

static int make_lists(struct acl_table *table, struct acl_pending *pending, struct error *error)
{
	const size_t n = pending->set.n_lists;

	pending->built = calloc(n + 1, sizeof(struct built *));
	if (!pending->built)
		return error_set(error, -ENOMEM, "not enough memory for the lists");
	for (size_t i = 0; i < n; i++) {
		int err = make_list(table, &pending->set.list[i], &pending->built[i], error);

		if (err)
			return err;
		pending->built[i]->n_users++;
	}
	if (draft_make(&pending->set, pending->built, &pending->draft))
		return error_set(error, -ENOMEM, "not enough memory for the uses of lists");
	return 0;
}

int acl_prepare(struct acl_table *table, const struct acl_set *set, struct acl_pending **out,
	struct error *error)
{
	const struct acl_set none = {.n_lists = 0};
	struct acl_pending *pending;
	int err = acl_set_check(set, error);

	if (err)
		return err;
	pending = calloc(1, sizeof(*pending));
	if (!pending)
		return error_set(error, -ENOMEM, "not enough memory for the lists");
	err = acl_set_merge(&pending->set, set, &none, error);
	if (!err)
		err = make_lists(table, pending, error);
	if (err)
		acl_drop(table, pending);
	else
		*out = pending;
	return err;
}

void acl_drop(struct acl_table *table, struct acl_pending *pending)
{
	pending_free(table, pending);
	free(pending);
}

// Buckets that old lists have too get their new rates now; the grace period of the commit follows.
static void set_all_rates(struct acl_table *table, const struct acl_pending *pending)
{
	table->balances.buckets.n_commits++;
	for (size_t i = 0; i < pending->set.n_lists; i++)
		built_set_rates(pending->built[i], &table->balances);
}

// No worker uses the old view when this returns.
void acl_commit(struct acl_table *table, struct acl_pending *pending)
{
	struct acl_pending old = table->now;

	bind_all(table, &pending->draft);
	set_all_mirrors(table, pending);
	set_all_rates(table, pending);
	table->now = *pending;
	free(pending);
	show(table);
	if (table->settings.rcu && old.draft.view)
		rcu_wait(table->settings.rcu, rcu_start_grace(table->settings.rcu));
	pending_free(table, &old);
}

int acl_apply(struct acl_table *table, const struct acl_set *set, struct error *error)
{
	struct acl_pending *pending;
	int err = acl_prepare(table, set, &pending, error);

	if (!err)
		acl_commit(table, pending);
	return err;
}

void acl_refresh(struct acl_table *table)
{
	if (!table->now.draft.view)
		return;
	set_all_mirrors(table, &table->now);
	bind_all(table, &table->now.draft);
	show(table);
}

void acl_bind(struct acl_table *table, unsigned iface, const char *name)
{
	struct draft *draft = &table->now.draft;

	if (!draft->n_places || iface >= ACL_MAX_IFACES)
		return;
	bind(draft, iface, name);
	show(table);
}

bool acl_use_is_bound(const struct acl_table *table, const struct acl_use *use)
{
	const struct acl_settings *settings = &table->settings;
	const struct draft *draft = &table->now.draft;
	const size_t i = first_place(draft, use->iface);

	if (i == draft->n_places || draft->place[i].iface < 0)
		return false;
	const char *name = settings->iface_name(settings->ctx, draft->place[i].iface);

	return name && !strcmp(name, use->iface);
}

static struct acl_count sum_of(const struct counters *counters, uint32_t index)
{
	struct acl_count sum = {0, 0};

	for (unsigned w = 0; w < counters->n_workers; w++) {
		const struct acl_count *count = &counters->count[w][index];

		sum.packets += __atomic_load_n(&count->packets, __ATOMIC_RELAXED);
		sum.bytes += __atomic_load_n(&count->bytes, __ATOMIC_RELAXED);
	}
	return sum;
}

struct acl_count acl_rule_count(const struct acl_table *table, const char *list, size_t rule)
{
	const int i = find_list(&table->now.set, list);

	if (i < 0 || rule > table->now.set.list[i].n)
		return (struct acl_count){0, 0};
	return sum_of(&table->balances.counters, table->now.built[i]->counter[rule]->index);
}

struct acl_count acl_rule_red(const struct acl_table *table, const char *list, size_t rule)
{
	const int i = find_list(&table->now.set, list);
	const struct built *built = i < 0 ? NULL : table->now.built[i];

	if (!built || !built->red || rule > built->source.n || !built->red[rule])
		return (struct acl_count){0, 0};
	return sum_of(&table->balances.counters, built->red[rule]->index);
}

double acl_list_seconds(const struct acl_table *table, const char *list)
{
	const int i = find_list(&table->now.set, list);

	return i < 0 ? 0 : table->now.built[i]->seconds;
}

int acl_find(const struct acl_table *table, const char *list, const struct acl_packet *packet)
{
	const int i = find_list(&table->now.set, list);

	return i < 0 ? i : (int)built_find(table->now.built[i], packet);
}

const struct acl_source *acl_source_of(const struct acl_table *table, const struct acl_list *list)
{
	for (size_t i = 0; i < table->now.set.n_lists; i++)
		if (&table->now.built[i]->list == list)
			return &table->now.built[i]->source;
	return NULL;
}
