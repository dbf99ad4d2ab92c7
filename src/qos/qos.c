// See qos.h: the tables of subscribers. Control thread.
#include "qos/inside.h"

#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>

// Names have as many buckets as there may be subscribers: a table that grows would keep the control
// loop. Their memory is touched as they are used.
enum { FIRST_BUCKETS = 1024, FIRST_ENTRIES = 1024, NAME_BUCKETS = QOS_MAX };

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
	uint32_t *of_tc = array(QOS_IFACES, sizeof(*of_tc));
	bool has_all = of_iface && of_tc && qos->terms;

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
	if (of_tc)
		memset(of_tc, 0xff, QOS_IFACES * sizeof(*of_tc));
	view->of_iface = of_iface;
	view->of_tc = of_tc;
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
	return shown_open(&qos->shown) && !hash_table_init(&qos->by_name, NAME_BUCKETS) &&
	       !hash_table_init(&qos->by_iface, QOS_IFACES) &&
	       !hash_table_init(&qos->profiles, FIRST_BUCKETS) &&
	       !hash_table_init(&qos->gone, NAME_BUCKETS);
}

// Without workers the settings are only checked.
static int open_shapers(struct qos *qos, struct error *error)
{
	const struct qos_settings *s = &qos->settings;
	struct shapers_settings all = {.hz = s->hz,
		.most_held = s->most_held,
		.n = MAX_OF(s->n_shapers, 1u),
		.owner = {(uint8_t)(s->n_workers - 1)},
		.clock = s->clock};

	if (!s->most_held || !s->n_workers)
		return 0;
	if (s->n_shapers)
		memcpy(all.owner, s->shaper, sizeof(all.owner));
	return shapers_open(&qos->live.shapers, &all, error);
}

int qos_open(struct qos **out, const struct qos_settings *settings, struct error *error)
{
	struct qos *qos = calloc(1, sizeof(*qos));

	if (qos) {
		qos->settings = *settings;
		if (open_all(qos)) {
			int err = open_shapers(qos, error);

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
	release(view->of_tc, QOS_IFACES, sizeof(*view->of_tc));
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
	shapers_close(qos->live.shapers);
	if (qos->by_name.bucket)
		hash_table_free(&qos->by_name, free_subscriber);
	if (qos->profiles.bucket)
		hash_table_free(&qos->profiles, free);
	free(qos->by_iface.bucket); // its entries are parts of subscribers
	free(qos->gone.bucket);
	shown_close(&qos->shown);
	growth_close(qos);
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
	if (qos->by_iface.n || qos->is_open)
		publish_ifaces(qos);
}

void qos_port_gone(struct qos *qos, unsigned port)
{
	if (qos->live.shapers)
		__atomic_add_fetch(&qos->live.shapers->life[port], 1, __ATOMIC_RELEASE);
}
