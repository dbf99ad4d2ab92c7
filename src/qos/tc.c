// Subscribers that are Linux's qdiscs: what leaves by an interface passes the queues of one. Their
// names, and those of their profiles, begin with QOS_TC, and only the functions here change them.
// Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

bool tc_has_name(const char *name)
{
	return !strncmp(name, QOS_TC, sizeof(QOS_TC) - 1);
}

int tc_check_name(const struct qos *qos, const char *name, const char *what, struct error *error)
{
	if (qos->is_of_tc || !tc_has_name(name))
		return 0;
	return error_set(error, -EINVAL,
		"%s '%.60s': names that begin with " QOS_TC
		" are those of Linux's qdiscs; use tc, or another name",
		what, name);
}

static void name_subscriber(char out[QOS_NAME_MAX], const char *iface)
{
	snprintf(out, QOS_NAME_MAX, QOS_TC "%s", iface);
}

// Equal profiles have one name, so that there need not be as many as interfaces.
static void name_profile(char out[QOS_NAME_MAX], const char *text)
{
	uint64_t hash = 14695981039346656037u; // FNV-1a

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 1099511628211u;
	snprintf(out, QOS_NAME_MAX, QOS_TC "%016" PRIx64, hash);
}

static int stage_profile(struct qos *qos, const char *name, const char *text, struct error *error)
{
	char line[QOS_LINE_MAX];

	if (profile_named(qos, name))
		return 0;
	snprintf(line, sizeof(line), "profile %s %s", name, text);
	return qos_stage(qos, line, false, error);
}

static int drop_profile(struct qos *qos, uint32_t id, struct error *error)
{
	char line[QOS_NAME_MAX + sizeof("no-profile ")];

	if (id == NO_PROFILE || !qos->profile[id] || qos->n_users[id])
		return 0;
	snprintf(line, sizeof(line), "no-profile %s", qos->profile[id]->name);
	return qos_stage(qos, line, false, error);
}

static int stage(struct qos *qos, const char *iface, const char *profile, struct error *error)
{
	char name[QOS_NAME_MAX], profile_name[QOS_NAME_MAX], line[QOS_LINE_MAX];

	name_subscriber(name, iface);
	const struct subscriber *old = subscriber_named(qos, name);
	const uint32_t before = old ? old->profile[QOS_DOWN] : NO_PROFILE;
	int err = 0;

	if (profile) {
		name_profile(profile_name, profile);
		err = stage_profile(qos, profile_name, profile, error);
		snprintf(line, sizeof(line), "put %s down %s", name, profile_name);
	} else {
		snprintf(line, sizeof(line), "remove %s", name);
	}
	if (!err && (profile || old))
		err = qos_stage(qos, line, false, error);
	return err ? err : drop_profile(qos, before, error);
}

int qos_stage_tc(struct qos *qos, const char *iface, const char *profile, struct error *error)
{
	qos->is_of_tc = true;
	const int err = stage(qos, iface, profile, error);

	qos->is_of_tc = false;
	return err;
}

void qos_bind_tc(struct qos *qos, unsigned iface, const char *name)
{
	uint32_t *of = (uint32_t *)&qos->live.view.of_tc[iface];
	char subscriber[QOS_NAME_MAX];
	uint32_t index = QOS_NONE;

	if (name) {
		name_subscriber(subscriber, name);
		const struct subscriber *one = subscriber_named(qos, subscriber);

		index = one ? one->index : QOS_NONE;
	}
	qos->n_tc += (index != QOS_NONE) - (*of != QOS_NONE);
	// The buckets of the subscriber have been written. Partner: qos_of_tc.
	__atomic_store_n(of, index, __ATOMIC_RELEASE);
	__atomic_store_n(&qos->live.view.has_tc, qos->n_tc > 0, __ATOMIC_RELAXED);
}
