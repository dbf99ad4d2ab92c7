// The table of next-hop groups. Control thread; workers read `bucket` and `oifs`.
#include "fib/groups.h"

#include "base/pages.h"
#include "fib/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const size_t BUCKET_BYTES = GROUPS_MAX * FIB_GROUP_BUCKETS * sizeof(uint32_t);
static const size_t USED_BYTES = GROUPS_MAX * FIB_GROUP_BUCKETS * sizeof(uint32_t);

int groups_open(struct groups *groups)
{
	groups->n_groups = 0;
	groups->epoch = GROUPS_FIRST_EPOCH;
	groups->used = pages_alloc(USED_BYTES);
	groups->bucket = pages_alloc(BUCKET_BYTES);
	groups->oifs = pages_alloc(GROUPS_MAX * sizeof(*groups->oifs));
	groups->group = pages_alloc(GROUPS_MAX * sizeof(*groups->group));
	if (groups->bucket && groups->used && groups->oifs && groups->group)
		return 0;
	groups_close(groups);
	return -ENOMEM;
}

void groups_close(struct groups *groups)
{
	pages_free(groups->bucket, BUCKET_BYTES);
	pages_free(groups->used, USED_BYTES);
	pages_free(groups->oifs, GROUPS_MAX * sizeof(*groups->oifs));
	pages_free(groups->group, GROUPS_MAX * sizeof(*groups->group));
}

struct fib_hop groups_hop(uint16_t number)
{
	struct fib_hop hop = {.iface = IFACE_NONE, .kind = FIB_GROUP};

	memcpy(hop.via.bytes, &number, sizeof(number));
	return hop;
}

uint16_t groups_number(const struct fib_hop *hop)
{
	uint16_t number;

	memcpy(&number, hop->via.bytes, sizeof(number));
	return number;
}

bool groups_same_members(const struct group *a, const struct group *b)
{
	return a->n_members == b->n_members &&
	       !memcmp(a->member, b->member, a->n_members * sizeof(a->member[0])) &&
	       !memcmp(a->weight, b->weight, a->n_members);
}

static bool same_group(const struct group *a, const struct group *b)
{
	if (a->resilience.key || b->resilience.key)
		return a->resilience.key == b->resilience.key;
	return groups_same_members(a, b);
}

// Shares are rounded where they end, so that each bucket has a member.
void groups_share(const struct group *group, uint32_t end[GROUP_MAX_MEMBERS])
{
	uint32_t total = 0, sum = 0;

	for (unsigned i = 0; i < group->n_members; i++)
		total += group->weight[i];
	for (unsigned i = 0; i < group->n_members; i++) {
		sum += group->weight[i];
		end[i] = (sum * FIB_GROUP_BUCKETS + total / 2) / total;
	}
}

static void fill_buckets(uint32_t *bucket, const struct group *group)
{
	uint32_t end[GROUP_MAX_MEMBERS], from = 0;

	groups_share(group, end);
	for (unsigned i = 0; i < group->n_members; i++)
		while (from < end[i])
			bucket[from++] = group->member[i];
}

static uint16_t *first_of(struct groups *groups, const struct group *group)
{
	uint64_t hash = group->resilience.key ? group->resilience.key : group->n_members;

	for (unsigned i = 0; i < group->n_members && !group->resilience.key; i++)
		hash = (hash ^ (uint32_t)group->member[i] << 8 ^ group->weight[i]) *
		       1099511628211ull; // FNV-1a's prime
	return &groups->first[(hash ^ hash >> 29) % GROUPS_MAX];
}

static int take_number(struct groups *groups)
{
	for (int i = 0; i < groups->n_groups; i++)
		if (!groups->group[i].n_members)
			return i;
	return groups->n_groups < GROUPS_MAX ? groups->n_groups++ : -1;
}

int groups_get(struct groups *groups, const struct group *wanted, bool *is_new)
{
	uint16_t *first = first_of(groups, wanted);

	*is_new = false;
	for (unsigned i = *first; i; i = groups->group[i - 1].chain)
		if (same_group(&groups->group[i - 1], wanted))
			return i - 1;
	int number = take_number(groups);
	if (number < 0)
		return -1;
	groups->group[number] = *wanted;
	groups->group[number].chain = *first;
	*first = number + 1;
	fill_buckets(&groups->bucket[number * FIB_GROUP_BUCKETS], wanted);
	if (wanted->resilience.key)
		memset(&groups->used[number * FIB_GROUP_BUCKETS], 0,
			FIB_GROUP_BUCKETS * sizeof(*groups->used));
	*is_new = true;
	return number;
}

// Adds an interface to the first n, unless it is among them. Returns their number.
static unsigned add_oif(struct fib_group_oifs *oifs, unsigned n, uint16_t oif)
{
	for (unsigned i = 0; i < n; i++)
		if (oifs->oif[i] == oif)
			return n;
	if (n == FIB_GROUP_OIFS) {
		oifs->oif[n - 1] = FIB_MANY_OIFS;
		return n;
	}
	oifs->oif[n] = oif;
	return n + 1;
}

void groups_write_oifs(struct groups *groups, const struct hops *hops, uint16_t number)
{
	const struct group *group = &groups->group[number];
	struct fib_group_oifs oifs;
	unsigned n = 0;
	word16 word;

	memset(&oifs, 0xff, sizeof(oifs));
	for (unsigned i = 0; i < group->n_members; i++)
		n = add_oif(&oifs, n, hops->hop[group->member[i]].key.iface);
	memcpy(&word, &oifs, sizeof(word));
	word16_store(&groups->oifs[number], word);
}

bool fib_group_leads_to(const struct fib_view *view, const struct fib_hop_entry *group,
	uint16_t iface, bool *is_known)
{
	word16 word = word16_load(&view->oifs[fib_entry_group(group) / FIB_GROUP_BUCKETS]);
	struct fib_group_oifs oifs;

	memcpy(&oifs, &word, sizeof(oifs));
	*is_known = oifs.oif[FIB_GROUP_OIFS - 1] != FIB_MANY_OIFS;
	for (unsigned i = 0; i < FIB_GROUP_OIFS; i++)
		if (oifs.oif[i] == iface)
			return true;
	return false;
}

void groups_retire(struct groups *groups, uint16_t number)
{
	uint16_t *iface = first_of(groups, &groups->group[number]);

	while (*iface != number + 1)
		iface = &groups->group[*iface - 1].chain;
	*iface = groups->group[number].chain;
}

void groups_free(struct groups *groups, struct hops *hops, uint16_t number)
{
	struct group *group = &groups->group[number];

	for (unsigned i = 0; i < group->n_members; i++)
		hops_release(hops, group->member[i]);
	group->n_members = 0;
}

// Whether a hop leads to one neighbour.
static bool is_box(const struct fib_hop *hop)
{
	return hop->kind == FIB_VIA || hop->kind == FIB_PEER;
}

static int check_members(const struct fib_member *members, unsigned n, struct error *error)
{
	if (n < 1 || n > GROUP_MAX_MEMBERS)
		return error_set(error, -EINVAL, "a route with %u next hops: expected 1 to %u", n,
			GROUP_MAX_MEMBERS);
	for (unsigned i = 0; i < n; i++)
		if (!members[i].weight || !is_box(&members[i].hop) ||
			members[i].hop.n_labels > FIB_MAX_PUSHED ||
			members[i].hop.iface >= IFACE_MAX)
			return error_set(error, -EINVAL,
				"next hop %u of %u needs a neighbour, a port, and a weight of 1 to "
				"255",
				i + 1, n);
	return 0;
}

static int compare_members(const void *a, const void *b)
{
	const struct fib_member *one = a, *other = b;

	return memcmp(&one->hop, &other->hop, sizeof(one->hop));
}

// Acquires all members; releases them again if no hop id is left for one.
static int acquire_members(struct fib *fib, const struct fib_member *members, unsigned n,
	struct group *group)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t id = change_acquire_hop(fib, &members[i].hop);

		if (!id) {
			while (group->n_members)
				hops_release(&fib->hops, group->member[--group->n_members]);
			return -ENOSPC;
		}
		group->member[group->n_members] = id;
		group->weight[group->n_members++] = members[i].weight;
	}
	return 0;
}

static int find_or_create(struct fib *fib, const struct fib_resilience *resilience,
	const struct fib_member *members, unsigned n, struct fib_hop *out, struct error *error)
{
	struct fib_member sorted[GROUP_MAX_MEMBERS];
	struct group group = {.resilience = *resilience};
	bool is_new;
	int err = check_members(members, n, error);

	if (err)
		return err;
	memcpy(sorted, members, n * sizeof(*members));
	for (unsigned i = 0; i < n; i++)
		hops_normalise(&sorted[i].hop);
	qsort(sorted, n, sizeof(*sorted), compare_members);
	if (acquire_members(fib, sorted, n, &group))
		return error_set(error, -ENOSPC,
			"no space for a route with %u next hops; the table holds %u", n,
			FIB_MAX_HOPS);
	int number = groups_get(&fib->groups, &group, &is_new);
	if (number >= 0 && !is_new && resilience->key) {
		resilient_change(&fib->groups, &fib->hops, number, &group);
		fib->hops.under_changed = true; // for the fib_change that follows
	} else
		for (unsigned i = 0; i < n && !is_new; i++)
			hops_release(&fib->hops, group.member[i]);
	if (number < 0)
		return error_set(error, -ENOSPC,
			"no space for another next-hop set; the table holds %u", GROUPS_MAX);
	groups_write_oifs(&fib->groups, &fib->hops, number);
	*out = groups_hop(number);
	uint32_t id = change_acquire_hop(fib, out);
	if (id) {
		hops_release(&fib->hops, id); // unreferenced until a route uses it
		return 0;
	}
	if (is_new) {
		groups_retire(&fib->groups, number);
		groups_free(&fib->groups, &fib->hops, number);
	}
	return error_set(error, -ENOSPC,
		"no space for another next-hop set; the table holds %u hops", FIB_MAX_HOPS);
}

int fib_group(struct fib *fib, const struct fib_member *members, unsigned n, struct fib_hop *out,
	struct error *error)
{
	return find_or_create(fib, &(struct fib_resilience){0}, members, n, out, error);
}

int fib_resilient_group(struct fib *fib, const struct fib_resilience *resilience,
	const struct fib_member *members, unsigned n, struct fib_hop *out, struct error *error)
{
	return find_or_create(fib, resilience, members, n, out, error);
}

void fib_set_layer3_hash(struct fib *fib, uint8_t family, bool is_layer3)
{
	const uint8_t flag = family == 4 ? FIB_LAYER3_IP4 : FIB_LAYER3_IP6;
	const uint8_t others = fib->groups.layer3_hash & ~flag;

	__atomic_store_n(&fib->groups.layer3_hash, is_layer3 ? others | flag : others,
		__ATOMIC_RELAXED);
}

unsigned fib_group_members(const struct fib *fib, const struct fib_hop *hop, struct fib_member *out,
	unsigned max)
{
	const struct group *group = &fib->groups.group[groups_number(hop)];

	for (unsigned i = 0; i < group->n_members && i < max; i++)
		out[i] = (struct fib_member){fib->hops.hop[group->member[i]].key, group->weight[i]};
	return group->n_members;
}
