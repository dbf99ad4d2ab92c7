// See qos.h: the table of subscribers and what it tells. Control thread.
#include "qos/inside.h"

#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 1024, FIRST_ENTRIES = 1024 };

uint32_t name_hash(const char *name)
{
	uint32_t hash = 0x811c9dc5; // FNV-1a

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x01000193;
	return hash ^ hash >> 15;
}

struct subscriber *subscriber_named(const struct qos *qos, const char *name)
{
	struct subscriber *one = hash_table_find(&qos->by_name, name_hash(name));

	while (one && strcmp(one->name, name))
		one = hash_table_find_next(&one->node);
	return one;
}

struct profile *profile_named(const struct qos *qos, const char *name)
{
	struct profile *one = hash_table_find(&qos->profiles, name_hash(name));

	while (one && strcmp(one->name, name))
		one = hash_table_find_next(&one->node);
	return one;
}

static void *array(size_t n, size_t each)
{
	return pages_alloc(n * each);
}

static bool open_workers_part(struct qos *qos)
{
	struct qos_view *view = &qos->live.view;
	uint32_t *of_iface = array(QOS_IFACES, sizeof(*of_iface));
	bool has_all = of_iface && qos->terms;

	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		view->buckets[d].commit = array(QOS_MAX, sizeof(struct police));
		view->buckets[d].excess = array(QOS_MAX, sizeof(struct police));
		has_all &= view->buckets[d].commit && view->buckets[d].excess;
		for (unsigned w = 0; w < qos->settings.n_workers; w++) {
			qos->live.count[w][d] = array(QOS_MAX, sizeof(struct qos_count));
			has_all &= !!qos->live.count[w][d];
		}
	}
	if (of_iface)
		memset(of_iface, 0xff, QOS_IFACES * sizeof(*of_iface));
	view->of_iface = of_iface;
	view->terms = qos->terms;
	view->index = qos->index;
	return has_all;
}

// What packets without a profile get.
static const struct qos_terms no_terms = {.marker = POLICE_MARKERS,
	.counts = QOS_ETHERNET,
	.act = {{false, QOS_KEEP, QOS_KEEP}}};

static bool open_all(struct qos *qos)
{
	qos->registry = index_create(FIRST_ENTRIES);
	qos->index = index_create(FIRST_ENTRIES);
	qos->at = array(QOS_MAX, sizeof(*qos->at));
	qos->taken = array(QOS_MAX / 64, sizeof(*qos->taken));
	qos->profile = array(QOS_PROFILES, sizeof(struct profile *));
	qos->n_users = array(QOS_PROFILES, sizeof(*qos->n_users));
	qos->slot_in_use = array(QOS_PROFILES, sizeof(*qos->slot_in_use));
	qos->terms = array(QOS_PROFILES, sizeof(*qos->terms));
	if (!qos->registry || !qos->index || !qos->at || !qos->taken || !qos->profile ||
		!qos->n_users || !qos->slot_in_use || !open_workers_part(qos))
		return false;
	qos->terms[0] = no_terms;
	return !hash_table_init(&qos->by_name, FIRST_BUCKETS) &&
	       !hash_table_init(&qos->by_iface, FIRST_BUCKETS) &&
	       !hash_table_init(&qos->profiles, FIRST_BUCKETS) &&
	       !hash_table_init(&qos->gone, FIRST_BUCKETS);
}

// Without workers the settings are only checked. The last worker is the owner.
static int open_shaper(struct qos *qos, struct error *error)
{
	const struct qos_settings *s = &qos->settings;

	if (!s->most_held || !s->n_workers)
		return 0;
	return shaper_open(&qos->live.shaper,
		&(struct shaper_settings){s->hz, s->most_held, s->n_workers - 1, s->clock}, error);
}

int qos_open(struct qos **out, const struct qos_settings *settings, struct error *error)
{
	struct qos *qos = calloc(1, sizeof(*qos));

	if (qos) {
		qos->settings = *settings;
		if (open_all(qos)) {
			int err = open_shaper(qos, error);

			if (err)
				qos_close(qos);
			else
				*out = qos;
			return err;
		}
	}
	qos_close(qos);
	return error_set(error, -ENOMEM, "not enough memory for subscribers");
}

static void release(const void *memory, size_t n, size_t each)
{
	if (memory)
		pages_free((void *)memory, n * each);
}

static void close_workers_part(struct qos *qos)
{
	const struct qos_view *view = &qos->live.view;

	release(view->of_iface, QOS_IFACES, sizeof(*view->of_iface));
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		release(view->buckets[d].commit, QOS_MAX, sizeof(struct police));
		release(view->buckets[d].excess, QOS_MAX, sizeof(struct police));
		for (unsigned w = 0; w < qos->settings.n_workers; w++)
			release(qos->live.count[w][d], QOS_MAX, sizeof(struct qos_count));
	}
}

static void free_subscriber(void *one)
{
	subscriber_free(one);
}

void qos_close(struct qos *qos)
{
	if (!qos)
		return;
	close_workers_part(qos);
	shaper_close(qos->live.shaper);
	if (qos->by_name.bucket)
		hash_table_free(&qos->by_name, free_subscriber);
	if (qos->profiles.bucket)
		hash_table_free(&qos->profiles, free);
	free(qos->by_iface.bucket); // its entries are parts of subscribers
	free(qos->gone.bucket);
	index_free(qos->registry);
	index_free(qos->index);
	release(qos->at, QOS_MAX, sizeof(*qos->at));
	release(qos->taken, QOS_MAX / 64, sizeof(*qos->taken));
	release(qos->profile, QOS_PROFILES, sizeof(struct profile *));
	release(qos->n_users, QOS_PROFILES, sizeof(*qos->n_users));
	release(qos->slot_in_use, QOS_PROFILES, sizeof(*qos->slot_in_use));
	release(qos->terms, QOS_PROFILES, sizeof(*qos->terms));
	free(qos->change);
	free(qos->profile_change);
	free(qos->place);
	free(qos->left);
	free(qos->left_slot);
	free(qos);
}

const struct qos_live *qos_live(const struct qos *qos)
{
	return &qos->live;
}

void qos_refresh(struct qos *qos)
{
	if (qos->by_iface.n)
		publish_ifaces(qos);
}

void qos_usage(const struct qos *qos, struct qos_usage *out)
{
	const uint64_t of_each = sizeof(struct subscriber) + sizeof(struct police) * QOS_DIRECTIONS;

	*out = (struct qos_usage){.n_subscribers = qos->n_subscribers,
		.n_profiles = qos->n_profiles,
		.n_addresses = qos->n_addresses,
		.n_ifaces = qos->by_iface.n,
		.n_batches = qos->n_batches,
		.n_changes = qos->n_applied};
	for (unsigned f = 0; f < QOS_FAMILIES; f++)
		for (unsigned k = 0; k < QOS_LENGTHS; k++)
			out->length[f][k] = qos->live.view.length[f][k];
	out->n_bytes = qos->registry->n_bytes + qos->index->n_bytes + qos->n_subscribers * of_each +
	               qos->n_addresses * sizeof(struct prefix);
}

static void add_counts(struct qos_count *to, const struct qos_count *from)
{
	for (unsigned colour = 0; colour < POLICE_COLOURS; colour++) {
		to->packets[colour] += stats_read(&from->packets[colour]);
		to->bytes[colour] += stats_read(&from->bytes[colour]);
	}
}

static void fill(const struct qos *qos, const struct subscriber *one, struct qos_info *out)
{
	*out = (struct qos_info){.number = one->index + 1,
		.name = one->name,
		.is_of_file = one->is_of_file,
		.n_addresses = one->n_prefixes,
		.n_ifaces = one->n_ifaces};
	out->parent = one->parent ? qos->profile[one->parent]->name : NULL;
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		const struct profile *profile = qos->profile[one->profile[d]];

		out->profile[d] = profile ? profile->name : NULL;
		for (unsigned w = 0; w < qos->settings.n_workers; w++)
			add_counts(&out->count[d], &qos->live.count[w][d][one->index]);
	}
}

bool qos_find_name(const struct qos *qos, const char *name, struct qos_info *out)
{
	const struct subscriber *one = subscriber_named(qos, name);

	if (one)
		fill(qos, one, out);
	return one;
}

bool qos_next(const struct qos *qos, uint32_t *number, struct qos_info *out)
{
	for (uint32_t index = MAX_OF(*number, 1u) - 1; index < qos->end; index++)
		if (qos->at[index]) {
			fill(qos, qos->at[index], out);
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

bool qos_shaping(const struct qos *qos, uint32_t number, struct qos_shaping *out)
{
	const uint32_t index = number - 1;
	const struct qos_shaper *shaper = qos->live.shaper;
	const struct subscriber *one = index < QOS_MAX ? qos->at[index] : NULL;
	const struct profile *down = one ? qos->profile[one->profile[QOS_DOWN]] : NULL;

	if (!shaper || !down || down->kind != PROFILE_SHAPES)
		return false;
	for (unsigned i = 0; i < SHAPE_CLASSES; i++)
		read_class(&out->class[i], shape_class_stats(shaper->shape, index, i));
	out->held = shape_held(shaper->shape, index);
	for (unsigned i = 0; i < SHAPE_DELAYS - 1; i++)
		out->delay_us[i] = shape_delay_bound(shaper->shape, i) * 1000000 / qos->settings.hz;
	return true;
}

void qos_port_gone(struct qos *qos, unsigned port)
{
	if (qos->live.shaper)
		__atomic_add_fetch(&qos->live.shaper->life[port], 1, __ATOMIC_RELEASE);
}

struct wire_prefix qos_address(const struct qos *qos, uint32_t number, unsigned i)
{
	return words_of_prefix(&qos->at[number - 1]->prefix[i]);
}

const char *qos_iface(const struct qos *qos, uint32_t number, unsigned i)
{
	return qos->at[number - 1]->iface[i].name;
}

bool qos_next_profile(const struct qos *qos, uint32_t *number, char text[QOS_PROFILE_TEXT],
	uint32_t *n_users)
{
	for (uint32_t id = MAX_OF(*number, 1u); id < QOS_PROFILES; id++)
		if (qos->profile[id]) {
			profile_print(qos->profile[id], text);
			*n_users = qos->n_users[id];
			*number = id + 1;
			return true;
		}
	return false;
}
