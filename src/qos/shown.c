// What there is without the batch that is under way: what is displayed and exported. A batch that
// takes several turns of the control loop changes the other tables before it is applied, or given
// up. Control thread.
#include "qos/inside.h"

#include "base/pages.h"

bool shown_open(struct shown *shown)
{
	shown->at = pages_alloc(QOS_MAX * sizeof(*shown->at));
	shown->profile = pages_alloc(QOS_PROFILES * sizeof(*shown->profile));
	shown->n_users = pages_alloc(QOS_PROFILES * sizeof(*shown->n_users));
	return shown->at && shown->profile && shown->n_users;
}

static void release(void *memory, size_t n, size_t each)
{
	if (memory)
		pages_free(memory, n * each);
}

void shown_close(struct shown *shown)
{
	release(shown->at, QOS_MAX, sizeof(*shown->at));
	release(shown->profile, QOS_PROFILES, sizeof(*shown->profile));
	release(shown->n_users, QOS_PROFILES, sizeof(*shown->n_users));
}

// Counts one more or one less subscriber.
static void count(struct shown *shown, const struct subscriber *one, uint32_t more)
{
	if (!one)
		return;
	shown->n_subscribers += more;
	shown->n_addresses += more * one->n_prefixes;
	shown->n_ifaces += more * one->n_ifaces;
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		shown->n_users[one->profile[d]] += more;
		shown->n_users[one->parent[d]] += more;
	}
}

void shown_change(struct qos *qos, const struct change *change)
{
	const struct subscriber *any = change->new ? change->new : change->old;

	if (!any)
		return;
	if (qos->export)
		export_keep(qos->export, any->index);
	count(&qos->shown, change->old, -1);
	count(&qos->shown, change->new, 1);
	qos->shown.at[any->index] = change->new;
}

void shown_change_profile(struct qos *qos, const struct profile_change *change)
{
	struct shown *shown = &qos->shown;

	if (qos->export)
		export_profiles(qos->export);
	if (change->old) {
		shown->n_users[change->old->parent]--;
		shown->n_profiles--;
	}
	if (!change->new)
		return;
	shown->n_users[change->new->parent]++;
	shown->n_profiles++;
	shown->profile[change->new->id] = change->new;
}

void shown_forget_profile(struct qos *qos, const struct profile_change *change)
{
	if (change->old && qos->shown.profile[change->old->id] == change->old)
		qos->shown.profile[change->old->id] = NULL;
}

void qos_usage(const struct qos *qos, struct qos_usage *out)
{
	const uint64_t of_each = sizeof(struct subscriber) + sizeof(struct police) * QOS_DIRECTIONS;
	const struct shown *shown = &qos->shown;

	*out = (struct qos_usage){.n_subscribers = shown->n_subscribers,
		.n_profiles = shown->n_profiles,
		.n_addresses = shown->n_addresses,
		.n_ifaces = shown->n_ifaces,
		.n_batches = qos->n_batches,
		.n_changes = qos->n_applied};
	for (unsigned f = 0; f < QOS_FAMILIES; f++)
		for (unsigned k = 0; k < QOS_LENGTHS; k++)
			out->length[f][k] = qos->live.view.length[f][k];
	out->n_bytes = qos->registry->n_bytes + qos->index->n_bytes +
	               shown->n_subscribers * of_each + shown->n_addresses * sizeof(struct prefix);
}

static void add_counts(struct qos_count *to, const struct qos_count *from)
{
	for (unsigned colour = 0; colour < POLICE_COLOURS; colour++) {
		to->packets[colour] += stats_read(&from->packets[colour]);
		to->bytes[colour] += stats_read(&from->bytes[colour]);
	}
}

static const char *name_of(const struct qos *qos, uint32_t id)
{
	const struct profile *profile = qos->shown.profile[id];

	return profile ? profile->name : NULL;
}

static void fill(const struct qos *qos, const struct subscriber *one, struct qos_info *out)
{
	*out = (struct qos_info){.number = one->index + 1,
		.name = one->name,
		.is_of_file = one->is_of_file,
		.n_addresses = one->n_prefixes,
		.n_ifaces = one->n_ifaces};
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		out->profile[d] = name_of(qos, one->profile[d]);
		out->parent[d] = name_of(qos, one->parent[d]);
		for (unsigned w = 0; w < qos->settings.n_workers; w++)
			add_counts(&out->count[d], &qos->live.count[w][d][one->index]);
	}
}

// A batch may have another one of this name, with the same index or not.
static const struct subscriber *shown_named(const struct qos *qos, const char *name)
{
	const struct subscriber *next = subscriber_named(qos, name),
				*one = next ? qos->shown.at[next->index] : NULL;

	if (one && !strcmp(one->name, name))
		return one;
	one = subscriber_gone(qos, name);
	return one && qos->shown.at[one->index] == one ? one : NULL;
}

bool qos_find_name(const struct qos *qos, const char *name, struct qos_info *out)
{
	const struct subscriber *one = shown_named(qos, name);

	if (one)
		fill(qos, one, out);
	return one;
}

bool qos_next(const struct qos *qos, uint32_t *number, struct qos_info *out)
{
	for (uint32_t index = MAX_OF(*number, 1u) - 1; index < qos->end; index++)
		if (qos->shown.at[index]) {
			fill(qos, qos->shown.at[index], out);
			*number = index + 2;
			return true;
		}
	return false;
}

static void read_class(struct shape_class_stats *out, const struct shape_class_stats *from)
{
	out->packets = stats_read(&from->packets);
	out->bytes = stats_read(&from->bytes);
	for (unsigned i = 0; i < SHAPE_DROPS_OF_CLASS; i++)
		out->dropped[i] = __atomic_load_n(&from->dropped[i], __ATOMIC_RELAXED);
	for (unsigned i = 0; i < SHAPE_DELAYS; i++)
		out->delays[i] = __atomic_load_n(&from->delays[i], __ATOMIC_RELAXED);
}

bool qos_shaping(const struct qos *qos, uint32_t number, enum qos_direction direction,
	struct qos_shaping *out)
{
	const uint32_t index = number - 1, shaped = qos_shaped(direction, index);
	const struct qos_shapers *all = qos->live.shapers;
	const struct subscriber *one = index < QOS_MAX ? qos->shown.at[index] : NULL;
	const struct profile *profile = one ? qos->shown.profile[one->profile[direction]] : NULL;

	if (!all || !profile || profile->kind != PROFILE_SHAPES)
		return false;
	const struct qos_shaper *shaper = all->one[qos_shaper_of(all, shaped)];

	for (unsigned i = 0; i < SHAPE_CLASSES; i++)
		read_class(&out->class[i], shape_class_stats(shaper->shape, shaped, i));
	out->held = shape_held(shaper->shape, shaped);
	out->worker = shaper->owner;
	for (unsigned i = 0; i < SHAPE_DELAYS - 1; i++)
		out->delay_us[i] = shape_delay_bound(shaper->shape, i) * 1000000 / qos->settings.hz;
	return true;
}

struct wire_prefix qos_address(const struct qos *qos, uint32_t number, unsigned i)
{
	return words_of_prefix(&qos->shown.at[number - 1]->prefix[i]);
}

const char *qos_iface(const struct qos *qos, uint32_t number, unsigned i)
{
	return qos->shown.at[number - 1]->iface[i].name;
}

bool qos_next_profile(const struct qos *qos, uint32_t *number, char text[QOS_PROFILE_TEXT],
	uint32_t *n_users)
{
	for (uint32_t id = MAX_OF(*number, 1u); id < QOS_PROFILES; id++)
		if (qos->shown.profile[id]) {
			profile_print(qos->shown.profile[id], text);
			*n_users = qos->shown.n_users[id];
			*number = id + 1;
			return true;
		}
	return false;
}
