// Names, numbers, interfaces and prefixes of subscribers. Prefixes of different subscribers must
// not overlap: a prefix must not be within a shorter one of another, which takes a lookup for each
// shorter length in use, nor contain a longer one, which covers count. Control thread.
#include "qos/inside.h"

#include <errno.h>

enum { PER_PREFIX = QOS_LENGTHS }; // entries: itself, and a cover for each other length

unsigned registry_place(const struct qos *qos, const struct prefix *prefix)
{
	unsigned place = 0;

	while (qos->length[prefix->family][place] != prefix->length)
		place++;
	return place;
}

static bool is_in_use(const struct qos *qos, const struct prefix *prefix)
{
	for (unsigned k = 0; k < QOS_LENGTHS; k++)
		if (qos->length[prefix->family][k] == prefix->length)
			return true;
	return false;
}

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "not enough memory for more subscribers");
}

static int reserve(struct qos *qos, uint64_t more, struct error *error)
{
	const uint64_t n = qos->n_registered + more;

	if (index_has_space(qos->registry, n))
		return 0;
	if (qos->is_deferring) {
		qos->deferred = (struct deferred){.n = 2 * n};
		return error_set(error, -EAGAIN, "a larger table first");
	}
	struct qos_index *other = index_create(2 * n);

	if (!other)
		return no_memory(error);
	index_copy(other, qos->registry);
	index_free(qos->registry);
	qos->registry = other;
	return 0;
}

static uint32_t n_covered(const struct qos *qos, const struct prefix *prefix, unsigned place)
{
	const uint32_t n = index_find(qos->registry,
		prefix->key & prefix_bits(qos->length[prefix->family][place]),
		cover_kind(prefix->family, place));

	return n == QOS_NONE ? 0 : n;
}

// One more or one less prefix is within those of a length.
static void cover(struct qos *qos, const struct prefix *prefix, unsigned place, int more)
{
	const uint32_t kind = cover_kind(prefix->family, place);
	const uint64_t key = prefix->key & prefix_bits(qos->length[prefix->family][place]);
	const uint32_t n = n_covered(qos, prefix, place);

	if (!n) {
		index_add(qos->registry, key, kind, 1);
		qos->n_registered++;
	} else if (n + more) {
		index_set(qos->registry, key, kind, n + more);
	} else {
		index_remove(qos->registry, key, kind);
		qos->n_registered--;
	}
}

static void cover_all(struct qos *qos, const struct prefix *prefix, int more)
{
	for (unsigned k = 0; k < QOS_LENGTHS; k++) {
		const uint8_t length = qos->length[prefix->family][k];

		if (length != FREE_LENGTH && length < prefix->length)
			cover(qos, prefix, k, more);
	}
}

// Calls `each` for the entries of a family in a line of the registry, until it returns false.
static bool for_entries_of_line(struct qos *qos, uint64_t at, uint8_t family,
	bool (*each)(struct qos *qos, const struct prefix *prefix, uint32_t value, void *arg),
	void *arg)
{
	const struct qos_line *line = &qos->registry->line[at];

	for (unsigned i = 0; i < QOS_LINE_KEYS; i++) {
		const uint32_t tag = line->tag[i], kind = tag >> QOS_VALUE_BITS;
		const uint32_t place = kind - entry_kind(family, 0);

		if (kind < entry_kind(family, 0) || place >= QOS_LENGTHS)
			continue;
		const struct prefix prefix = {line->key[i], family, qos->length[family][place]};

		if (!each(qos, &prefix, tag & ((1u << QOS_VALUE_BITS) - 1), arg))
			return false;
	}
	return true;
}

static bool cover_by_new(struct qos *qos, const struct prefix *prefix, uint32_t value, void *arg)
{
	if (prefix->length > qos->deferred.length)
		cover(qos, prefix, qos->deferred.place, 1);
	return true;
}

static int forget_covers(struct qos *qos, size_t at, struct error *error)
{
	const uint32_t kind = cover_kind(qos->deferred.family, qos->deferred.place);

	for (unsigned i = 0; i < QOS_LINE_KEYS; i++)
		if (qos->registry->line[at].tag[i] >> QOS_VALUE_BITS == kind) {
			qos->registry->line[at].tag[i] = 0;
			qos->n_registered--;
		}
	return 0;
}

static int set_length(struct qos *qos, size_t at, struct error *error)
{
	qos->length[qos->deferred.family][qos->deferred.place] = qos->deferred.length;
	return 0;
}

// The registry may be read while covers are added: they are no entries.
static int add_covers(struct qos *qos, size_t at, struct error *error)
{
	(void)for_entries_of_line(qos, at, qos->deferred.family, cover_by_new, NULL);
	return 0;
}

static size_t n_lines(const struct qos *qos)
{
	return qos->registry->mask + 1;
}

static size_t n_lines_to_forget(const struct qos *qos)
{
	return qos->length[qos->deferred.family][qos->deferred.place] == FREE_LENGTH ? 0
	                                                                             : n_lines(qos);
}

static bool has_longer(const struct qos *qos)
{
	const uint8_t family = qos->deferred.family;

	for (unsigned k = 0; k < QOS_LENGTHS; k++)
		if (qos->n_prefixes[family][k] && qos->length[family][k] > qos->deferred.length)
			return true;
	return false;
}

static size_t n_lines_to_cover(const struct qos *qos)
{
	return has_longer(qos) ? n_lines(qos) : 0;
}

const struct work_row length_rows[LENGTH_ROWS] = {
	{n_lines_to_forget, forget_covers},
	{NULL, set_length},
	{n_lines_to_cover, add_covers},
};

static int begin_length(struct qos *qos, const struct prefix *prefix, unsigned k,
	struct error *error)
{
	int err = reserve(qos, qos->n_registered, error);

	if (err)
		return err;
	qos->deferred =
		(struct deferred){.family = prefix->family, .place = k, .length = prefix->length};
	if (qos->is_deferring)
		return error_set(error, -EAGAIN, "a prefix length first");
	return work_all(qos, length_rows, LENGTH_ROWS, error);
}

// A place for the length of a prefix: a free one, or that of a length that nobody has any more.
static int use_length(struct qos *qos, const struct prefix *prefix, struct error *error)
{
	const uint8_t family = prefix->family;
	int free = -1;

	if (is_in_use(qos, prefix))
		return 0;
	for (unsigned k = 0; k < QOS_LENGTHS; k++)
		if (qos->length[family][k] == FREE_LENGTH ||
			(free < 0 && !qos->n_prefixes[family][k] && !qos->n_published[family][k]))
			free = (int)k;
	if (free >= 0)
		return begin_length(qos, prefix, free, error);
	return error_set(error, -ENOSPC,
		"/%u is a fifth prefix length of IPv%d; expected /%u, /%u, /%u or /%u, or first a "
		"batch that removes the last prefix of one of them",
		prefix->length, family == QOS_IP4 ? 4 : 6, qos->length[family][0],
		qos->length[family][1], qos->length[family][2], qos->length[family][3]);
}

static int overlap(const struct qos *qos, const struct subscriber *one, const struct prefix *prefix,
	uint32_t other, struct error *error)
{
	const struct wire_prefix shown = words_of_prefix(prefix);
	char text[WIRE_PREFIX_TEXT];

	return error_set(error, -EEXIST,
		"subscriber '%s': address %s overlaps with one of subscriber '%s'; a packet can "
		"have one subscriber only",
		one->name, wire_prefix_print(&shown, text), qos->at[other]->name);
}

static bool find_within(struct qos *qos, const struct prefix *prefix, uint32_t value, void *arg)
{
	struct search *search = &qos->deferred.search;
	const bool is_within =
		prefix->length > search->within.length &&
		(prefix->key & prefix_bits(search->within.length)) == search->within.key;

	if (is_within && value != search->not )
		search->found = value;
	return search->found == QOS_NONE;
}

static int search_line(struct qos *qos, size_t at, struct error *error)
{
	(void)for_entries_of_line(qos, at, qos->deferred.search.within.family, find_within, NULL);
	return 0;
}

static size_t n_lines_to_search(const struct qos *qos)
{
	return qos->deferred.search.found == QOS_NONE ? n_lines(qos) : 0;
}

const struct work_row search_rows[SEARCH_ROWS] = {{n_lines_to_search, search_line}};

// Another subscriber has a longer prefix within this one: whose is it?
static int overlap_within(struct qos *qos, const struct subscriber *one,
	const struct prefix *prefix, struct error *error)
{
	struct deferred *deferred = &qos->deferred;

	if (!qos->is_deferring || !deferred->searches) {
		*deferred = (struct deferred){.searches = true,
			.search = {*prefix, one->index, QOS_NONE}};
		if (qos->is_deferring)
			return error_set(error, -EAGAIN, "a search first");
		work_all(qos, search_rows, SEARCH_ROWS, NULL);
	}
	return overlap(qos, one, prefix, deferred->search.found, error);
}

// How many of the first n prefixes are longer ones within this one.
static uint32_t n_own_within(const struct subscriber *one, const struct prefix *prefix, unsigned n)
{
	uint32_t own = 0;

	for (unsigned i = 0; i < n; i++)
		own += one->prefix[i].family == prefix->family &&
		       one->prefix[i].length > prefix->length &&
		       (one->prefix[i].key & prefix_bits(prefix->length)) == prefix->key;
	return own;
}

static int check_prefix(struct qos *qos, const struct subscriber *one, unsigned i,
	struct error *error)
{
	const struct prefix *prefix = &one->prefix[i];

	for (unsigned k = 0; k < QOS_LENGTHS; k++) {
		const uint8_t length = qos->length[prefix->family][k];

		if (length == FREE_LENGTH || length > prefix->length)
			continue;
		const uint32_t other = index_find(qos->registry, prefix->key & prefix_bits(length),
			entry_kind(prefix->family, k));

		if (other != QOS_NONE && other != one->index)
			return overlap(qos, one, prefix, other, error);
	}
	if (n_covered(qos, prefix, registry_place(qos, prefix)) == n_own_within(one, prefix, i))
		return 0;
	return overlap_within(qos, one, prefix, error);
}

static void add_prefix(struct qos *qos, const struct subscriber *one, unsigned i)
{
	const struct prefix *prefix = &one->prefix[i];
	const unsigned place = registry_place(qos, prefix);

	index_add(qos->registry, prefix->key, entry_kind(prefix->family, place), one->index);
	qos->n_registered++;
	qos->n_prefixes[prefix->family][place]++;
	cover_all(qos, prefix, 1);
}

static void remove_prefix(struct qos *qos, const struct subscriber *one, unsigned i)
{
	const struct prefix *prefix = &one->prefix[i];
	const unsigned place = registry_place(qos, prefix);

	index_remove(qos->registry, prefix->key, entry_kind(prefix->family, place));
	qos->n_registered--;
	qos->n_prefixes[prefix->family][place]--;
	cover_all(qos, prefix, -1);
}

static int add_prefixes(struct qos *qos, const struct subscriber *one, struct error *error)
{
	struct error inner;
	unsigned i = 0;
	int err = 0;

	for (; i < one->n_prefixes; i++) {
		err = use_length(qos, &one->prefix[i], &inner);
		if (err)
			error_set(error, err, "subscriber '%s': %s", one->name, inner.text);
		if (!err)
			err = reserve(qos, PER_PREFIX, error);
		if (!err)
			err = check_prefix(qos, one, i, error);
		if (err)
			break;
		add_prefix(qos, one, i);
	}
	while (err && i--)
		remove_prefix(qos, one, i);
	return err;
}

static const struct iface_use *find_iface(const struct qos *qos, const char *name)
{
	const struct iface_use *use = hash_table_find(&qos->by_iface, name_hash(name));

	while (use && strcmp(use->name, name))
		use = hash_table_find_next(&use->node);
	return use;
}

static int check_ifaces(const struct qos *qos, const struct subscriber *one, struct error *error)
{
	for (unsigned i = 0; i < one->n_ifaces; i++) {
		const struct iface_use *use = find_iface(qos, one->iface[i].name);

		if (use)
			return error_set(error, -EEXIST,
				"subscriber '%s': interface %s is that of subscriber '%s'; it can "
				"have one subscriber only",
				one->name, use->name, qos->at[use->index]->name);
	}
	return 0;
}

static int full(struct error *error)
{
	return error_set(error, -ENOSPC, "there are %d subscribers already; remove some", QOS_MAX);
}

// An index that no worker uses.
static int find_index(struct qos *qos, struct error *error)
{
	const uint32_t words = QOS_MAX / 64;

	for (uint32_t i = 0; i < words; i++) {
		const uint32_t word = (qos->next_free + i) % words;

		if (qos->taken[word] == UINT64_MAX)
			continue;
		qos->next_free = word;
		return (int)(word * 64 + (uint32_t)__builtin_ctzll(~qos->taken[word]));
	}
	return full(error);
}

// The last one, so that those of Linux's qdiscs have no number that a file gives to others.
static int find_last_index(const struct qos *qos, struct error *error)
{
	for (uint32_t word = QOS_MAX / 64; word-- > 0;)
		if (qos->taken[word] != UINT64_MAX)
			return (int)(word * 64 + 63 - (uint32_t)__builtin_clzll(~qos->taken[word]));
	return full(error);
}

static int take_index(struct qos *qos, struct subscriber *one, struct error *error)
{
	const uint32_t i = one->index;

	if (i == QOS_NONE) {
		const int found = tc_has_name(one->name) ? find_last_index(qos, error)
		                                         : find_index(qos, error);

		if (found < 0)
			return found;
		one->index = found;
	} else if (qos->at[i]) {
		return error_set(error, -EEXIST,
			"subscriber '%s': number %u is that of subscriber '%s'; expected another "
			"one, or none",
			one->name, i + 1, qos->at[i]->name);
	}
	return 0;
}

// All but its prefixes.
static void enter(struct qos *qos, struct subscriber *one)
{
	hash_table_insert(&qos->by_name, &one->node, name_hash(one->name));
	for (unsigned i = 0; i < one->n_ifaces; i++) {
		one->iface[i].index = one->index;
		hash_table_insert(&qos->by_iface, &one->iface[i].node,
			name_hash(one->iface[i].name));
	}
	qos->at[one->index] = one;
	qos->taken[one->index / 64] |= 1ull << one->index % 64;
	qos->end = MAX_OF(qos->end, one->index + 1);
	qos->n_subscribers++;
	qos->n_addresses += one->n_prefixes;
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		qos->n_users[one->profile[d]]++;
		qos->n_users[one->parent[d]]++;
	}
	qos->has_names |= one->n_ifaces;
}

// Lengths of prefixes that workers know keep their places, so there is one for each.
void registry_restore(struct qos *qos, struct subscriber *one)
{
	(void)reserve(qos, PER_PREFIX * (uint64_t)one->n_prefixes, NULL);
	for (unsigned i = 0; i < one->n_prefixes; i++)
		add_prefix(qos, one, i);
	enter(qos, one);
}

int registry_add(struct qos *qos, struct subscriber *one, struct error *error)
{
	int err = take_index(qos, one, error);

	if (!err)
		err = check_ifaces(qos, one, error);
	if (!err)
		err = add_prefixes(qos, one, error);
	if (!err)
		enter(qos, one);
	return err;
}

void registry_remove(struct qos *qos, struct subscriber *one)
{
	hash_table_remove(&qos->by_name, &one->node);
	for (unsigned i = 0; i < one->n_ifaces; i++)
		hash_table_remove(&qos->by_iface, &one->iface[i].node);
	for (unsigned i = one->n_prefixes; i--;)
		remove_prefix(qos, one, i);
	qos->at[one->index] = NULL;
	qos->n_subscribers--;
	qos->n_addresses -= one->n_prefixes;
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		qos->n_users[one->profile[d]]--;
		qos->n_users[one->parent[d]]--;
	}
	qos->has_names |= one->n_ifaces;
}
