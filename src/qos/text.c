// Subscribers as text. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int name_check(const char *name, const char *what, struct error *error)
{
	if (!name)
		return error_set(error, -EINVAL, "no name of a %s; expected one", what);
	if (strlen(name) >= QOS_NAME_MAX)
		return error_set(error, -EINVAL, "%s '%.60s': names have at most %d characters",
			what, name, QOS_NAME_MAX - 1);
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("\"\\#", *c))
			return error_set(error, -EINVAL,
				"%s '%.60s': names have printable ASCII characters, but no \", no "
				"\\ and no #",
				what, name);
	return 0;
}

// A subscriber while it is read.
struct reading {
	const struct qos *qos;
	const char *name;
	uint32_t number; // 0: none
	uint32_t profile[QOS_DIRECTIONS], parent[QOS_DIRECTIONS];
	struct prefix prefix[QOS_MAX_ADDRESSES];
	char iface[QOS_MAX_ADDRESSES][QOS_IFACE_MAX];
	unsigned n_prefixes, n_ifaces;
	bool may_be_without; // "without PREFIX"
	struct error *error;
};

static int too_many(const struct reading *reading, const char *what)
{
	return error_set(reading->error, -EINVAL, "subscriber '%s': more than %d %s", reading->name,
		QOS_MAX_ADDRESSES, what);
}

static int find_prefix(const struct reading *reading, const struct prefix *prefix)
{
	for (unsigned i = 0; i < reading->n_prefixes; i++)
		if (reading->prefix[i].key == prefix->key &&
			reading->prefix[i].family == prefix->family &&
			reading->prefix[i].length == prefix->length)
			return (int)i;
	return -1;
}

static int find_iface(const struct reading *reading, const char *name)
{
	for (unsigned i = 0; i < reading->n_ifaces; i++)
		if (!strcmp(reading->iface[i], name))
			return (int)i;
	return -1;
}

static int read_address(struct reading *reading, const char *value)
{
	struct error inner;
	struct prefix prefix;

	if (words_prefix(value, &prefix, &inner))
		return error_set(reading->error, -EINVAL, "subscriber '%s': %s", reading->name,
			inner.text);
	if (find_prefix(reading, &prefix) >= 0)
		return error_set(reading->error, -EINVAL,
			"subscriber '%s': address %.60s is given twice; remove one", reading->name,
			value);
	if (reading->n_prefixes == QOS_MAX_ADDRESSES)
		return too_many(reading, "addresses");
	reading->prefix[reading->n_prefixes++] = prefix;
	return 0;
}

static int read_iface(struct reading *reading, const char *value)
{
	if (strlen(value) >= QOS_IFACE_MAX)
		return error_set(reading->error, -EINVAL,
			"subscriber '%s': interface \"%.60s\": names have at most %d characters",
			reading->name, value, QOS_IFACE_MAX - 1);
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == '\x7f' || *c == '#')
			return error_set(reading->error, -EINVAL,
				"subscriber '%s': interface \"%.60s\": its name has a blank, a "
				"control character or #; rename it",
				reading->name, value);
	if (find_iface(reading, value) >= 0)
		return error_set(reading->error, -EINVAL,
			"subscriber '%s': interface %s is given twice; remove one", reading->name,
			value);
	if (reading->n_ifaces == QOS_MAX_ADDRESSES)
		return too_many(reading, "interfaces");
	strcpy(reading->iface[reading->n_ifaces++], value);
	return 0;
}

// Takes an address or an interface away.
static int read_without(struct reading *reading, const char *value)
{
	struct prefix prefix;
	int i = words_prefix(value, &prefix, NULL) ? -1 : find_prefix(reading, &prefix);

	if (i >= 0) {
		reading->prefix[i] = reading->prefix[--reading->n_prefixes];
		return 0;
	}
	i = find_iface(reading, value);
	if (i < 0)
		return error_set(reading->error, -EINVAL,
			"subscriber '%s': without \"%.60s\": it has no such address or interface",
			reading->name, value);
	memcpy(reading->iface[i], reading->iface[--reading->n_ifaces], QOS_IFACE_MAX);
	return 0;
}

static int read_profile(struct reading *reading, const char *key, const char *value, uint32_t *out)
{
	const struct profile *profile = profile_named(reading->qos, value);

	if (!strcmp(value, "none")) {
		*out = NO_PROFILE;
		return 0;
	}
	if (!profile)
		return error_set(reading->error, -EINVAL,
			"subscriber '%s': %s: there is no profile \"%.60s\"; add it first",
			reading->name, key, value);
	*out = profile->id;
	return tc_check_name(reading->qos, value, "profile", reading->error);
}

static int read_number(struct reading *reading, const char *value)
{
	char *end;
	const unsigned long number = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || !number || number > QOS_MAX)
		return error_set(reading->error, -EINVAL,
			"subscriber '%s': number is \"%.60s\"; expected 1 to %d", reading->name,
			value, QOS_MAX);
	reading->number = number;
	return 0;
}

static int read_pair(struct reading *reading, const char *key, const char *value)
{
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		if (!strcmp(key, direction_words[d]))
			return read_profile(reading, key, value, &reading->profile[d]);
		if (!strcmp(key, parent_words[d]))
			return read_profile(reading, key, value, &reading->parent[d]);
	}
	if (!strcmp(key, "address"))
		return read_address(reading, value);
	if (!strcmp(key, "interface"))
		return read_iface(reading, value);
	if (!strcmp(key, "number") && !reading->may_be_without)
		return read_number(reading, value);
	if (!strcmp(key, "without") && reading->may_be_without)
		return read_without(reading, value);
	return error_set(reading->error, -EINVAL,
		"subscriber '%s': unknown key \"%.60s\"; expected up, down, parent, up_parent, "
		"address, interface or %s",
		reading->name, key, reading->may_be_without ? "without" : "number");
}

static void start(struct reading *reading, const struct subscriber *base)
{
	if (!base)
		return;
	reading->may_be_without = true;
	memcpy(reading->profile, base->profile, sizeof(base->profile));
	memcpy(reading->parent, base->parent, sizeof(base->parent));
	reading->n_prefixes = base->n_prefixes;
	memcpy(reading->prefix, base->prefix, base->n_prefixes * sizeof(*base->prefix));
	reading->n_ifaces = base->n_ifaces;
	for (unsigned i = 0; i < base->n_ifaces; i++)
		memcpy(reading->iface[i], base->iface[i].name, QOS_IFACE_MAX);
}

void subscriber_free(struct subscriber *subscriber)
{
	if (!subscriber)
		return;
	free(subscriber->prefix);
	free(subscriber->iface);
	free(subscriber);
}

static struct subscriber *make(const struct reading *reading)
{
	const size_t n = strlen(reading->name) + 1;
	struct subscriber *out = calloc(1, sizeof(*out) + n);

	if (!out)
		return NULL;
	memcpy(out->name, reading->name, n);
	memcpy(out->profile, reading->profile, sizeof(out->profile));
	memcpy(out->parent, reading->parent, sizeof(out->parent));
	out->has_number = reading->number;
	out->index = reading->number ? reading->number - 1 : QOS_NONE;
	out->n_prefixes = reading->n_prefixes;
	out->n_ifaces = reading->n_ifaces;
	out->prefix = malloc(MAX_OF(reading->n_prefixes, 1u) * sizeof(*out->prefix));
	out->iface = reading->n_ifaces ? calloc(reading->n_ifaces, sizeof(*out->iface)) : NULL;
	if (!out->prefix || (reading->n_ifaces && !out->iface)) {
		subscriber_free(out);
		return NULL;
	}
	memcpy(out->prefix, reading->prefix, reading->n_prefixes * sizeof(*out->prefix));
	for (unsigned i = 0; i < reading->n_ifaces; i++)
		memcpy(out->iface[i].name, reading->iface[i], QOS_IFACE_MAX);
	return out;
}

int subscriber_read(const struct qos *qos, struct subscriber **out, const char *name, char **rest,
	const struct subscriber *base, struct error *error)
{
	struct reading reading;
	int err = 0;

	memset(&reading, 0, offsetof(struct reading, prefix));
	reading.n_prefixes = reading.n_ifaces = 0;
	reading.may_be_without = false;
	reading.qos = qos;
	reading.name = name;
	reading.error = error;
	start(&reading, base);
	for (char *key = strtok_r(NULL, " \t", rest); key && !err;
		key = strtok_r(NULL, " \t", rest)) {
		const char *value = strtok_r(NULL, " \t", rest);

		err = value ? read_pair(&reading, key, value)
		            : error_set(error, -EINVAL,
				      "subscriber '%s': \"%.60s\" has no value; expected one after "
				      "it",
				      name, key);
	}
	if (err)
		return err;
	*out = make(&reading);
	return *out ? 0 : error_set(error, -ENOMEM, "not enough memory for subscriber '%s'", name);
}
