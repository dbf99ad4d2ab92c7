// See shaper.h and qos_fast.h: between the control thread and the shaper's owner.
#include "qos/shaper.h"

#include "base/pages.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <time.h>

enum { NEWS_PER_CALL = 256, NAP_NS = 50000, IMPLICIT = 0, FLUSH_SUBSCRIBERS = 4096 };

// --- Control thread.

struct shape_config shaper_config(uint64_t hz, uint32_t most_held)
{
	return (struct shape_config){.hz = hz,
		.n_ports = QOS_LINKS,
		.n_aggregates = SHAPER_AGGREGATES,
		.n_subscribers = QOS_MAX,
		.most_held = most_held,
		.mtu = SHAPER_MTU};
}

// Subscribers without a parent share a link that is never full.
static int add_implicit(struct qos_shaper *shaper, struct error *error)
{
	const struct shape_setting all = {.bits = SHAPE_MOST_RATE,
		.burst = SHAPE_MOST_RATE / 8 / 1000,
		.weight = SHAPE_MOST_WEIGHT};
	struct shape_terms terms;
	int err = shape_terms_of(&shaper->config, &all, SHAPE_PORT, &terms, error);

	if (err)
		return err;
	shape_set(shaper->shape, SHAPE_PORT, IMPLICIT, &terms, qos_shaper_now(shaper));
	shape_set(shaper->shape, SHAPE_AGGREGATE, IMPLICIT, &terms, qos_shaper_now(shaper));
	shaper->links[0] = 1;
	return 0;
}

int shaper_open(struct qos_shaper **out, const struct shaper_settings *settings,
	struct error *error)
{
	struct qos_shaper *s = pages_alloc(sizeof(*s));
	int err = s ? 0 : error_set(error, -ENOMEM, "not enough memory for a shaper");

	if (err)
		return err;
	s->config = shaper_config(settings->hz, settings->most_held);
	s->owner = settings->owner;
	s->clock = settings->clock;
	s->word = pages_alloc(QOS_MAX * sizeof(*s->word));
	s->aggregate = pages_alloc(SHAPER_AGGREGATES * sizeof(*s->aggregate));
	s->slot = pages_alloc(QOS_PROFILES * sizeof(*s->slot));
	s->news = pages_alloc(SHAPER_NEWS * sizeof(*s->news));
	if (!s->word || !s->aggregate || !s->slot || !s->news)
		err = error_set(error, -ENOMEM, "not enough memory for the settings of a shaper");
	if (!err)
		err = shape_open(&s->shape, &s->config, qos_shaper_now(s), error);
	if (!err)
		err = add_implicit(s, error);
	if (err)
		shaper_close(s);
	else
		*out = s;
	return err;
}

void shaper_close(struct qos_shaper *s)
{
	if (!s)
		return;
	if (s->shape)
		shape_close(s->shape);
	pages_free(s->word, QOS_MAX * sizeof(*s->word));
	pages_free(s->aggregate, SHAPER_AGGREGATES * sizeof(*s->aggregate));
	pages_free(s->slot, QOS_PROFILES * sizeof(*s->slot));
	pages_free(s->news, SHAPER_NEWS * sizeof(*s->news));
	pages_free(s, sizeof(*s));
}

static void tell(struct qos_shaper *s, uint32_t number)
{
	__atomic_store_n(&s->news[s->put % SHAPER_NEWS], number, __ATOMIC_RELAXED);
	__atomic_store_n(&s->put, s->put + 1, __ATOMIC_RELEASE); // partner: qos_shaper_follow
}

void shaper_set(struct qos_shaper *s, uint32_t index, uint64_t word)
{
	__atomic_store_n(&s->word[index], word, __ATOMIC_RELEASE); // partner: set_subscriber
	tell(s, index);
}

void shaper_set_aggregate(struct qos_shaper *s, uint32_t number, uint32_t slot)
{
	__atomic_store_n(&s->aggregate[number], slot, __ATOMIC_RELEASE); // partner: set_aggregate
	tell(s, number | SHAPER_AGGREGATE);
}

bool shaper_is_behind(const struct qos_shaper *s)
{
	return __atomic_load_n(&s->is_running, __ATOMIC_ACQUIRE) && qos_shaper_has_news(s);
}

void shaper_wait(const struct qos_shaper *s)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	while (shaper_is_behind(s))
		nanosleep(&nap, NULL);
}

// --- Owner.

unsigned qos_shaper_owner(const struct qos_shaper *s)
{
	return s->owner;
}

uint64_t qos_shaper_now(const struct qos_shaper *s)
{
	return s->clock ? *s->clock : rte_rdtsc();
}

void qos_shaper_begin(struct qos_shaper *s)
{
	__atomic_store_n(&s->is_running, true, __ATOMIC_RELEASE);
}

void qos_shaper_end(struct qos_shaper *s)
{
	__atomic_store_n(&s->is_running, false, __ATOMIC_RELEASE);
}

bool qos_shaper_has_news(const struct qos_shaper *s)
{
	return __atomic_load_n(&s->put, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
}

static const struct shaper_slot *slot_of_aggregate(const struct qos_shaper *s, uint32_t number)
{
	return &s->slot[__atomic_load_n(&s->aggregate[number], __ATOMIC_ACQUIRE)];
}

// One without a parent is a link, too, so that it may have both aggregates and subscribers.
static void set_aggregate(struct qos_shaper *s, uint32_t number, uint64_t now)
{
	if (!__atomic_load_n(&s->aggregate[number], __ATOMIC_ACQUIRE)) {
		shape_remove(s->shape, SHAPE_AGGREGATE, number);
		return;
	}
	const struct shaper_slot *slot = slot_of_aggregate(s, number);
	struct shape_terms terms = slot->terms;

	if (slot->link) {
		shape_set(s->shape, SHAPE_PORT, slot->link, &terms, now);
		s->links[slot->link / 64] |= 1ull << slot->link % 64;
		terms.parent = slot->link;
	} else {
		terms.parent = slot_of_aggregate(s, slot->parent)->link;
	}
	shape_set(s->shape, SHAPE_AGGREGATE, number, &terms, now);
}

// Who is not shaped any more, or has become another one, holds no packets.
static bool clear(struct qos_shaper *s, uint32_t index, struct shape_drops *drops)
{
	if (!shape_flush(s->shape, index, drops))
		return false;
	shape_remove(s->shape, SHAPE_SUBSCRIBER, index);
	return true;
}

// False: `drops` is full.
static bool set_subscriber(struct qos_shaper *s, uint32_t index, uint64_t now,
	struct shape_drops *drops)
{
	const uint64_t word = __atomic_load_n(&s->word[index], __ATOMIC_ACQUIRE);
	const uint32_t number = word & (QOS_PROFILES - 1);

	if ((!number || word & SHAPER_IS_NEW) && !clear(s, index, drops))
		return false;
	if (!number)
		return true;
	if (word & SHAPER_IS_NEW) {
		shape_clear_stats(s->shape, index);
		__atomic_fetch_and(&s->word[index], ~SHAPER_IS_NEW, __ATOMIC_RELAXED);
	}
	const struct shaper_slot *slot = &s->slot[number];
	struct shape_terms terms = slot->terms;

	terms.profile = (uint16_t)number;
	terms.parent = (word & ~SHAPER_IS_NEW) >> SHAPER_PARENT_SHIFT;
	shape_set_profile(s->shape, terms.profile, &slot->rules, NULL);
	shape_set(s->shape, SHAPE_SUBSCRIBER, index, &terms, now);
	return true;
}

void qos_shaper_follow(struct qos_shaper *s, uint64_t now, struct shape_drops *drops)
{
	const uint64_t put = __atomic_load_n(&s->put, __ATOMIC_ACQUIRE);
	uint64_t done = s->done;

	for (unsigned i = 0; i < NEWS_PER_CALL && done != put; i++) {
		const uint32_t number =
			__atomic_load_n(&s->news[done % SHAPER_NEWS], __ATOMIC_RELAXED);

		if (number & SHAPER_AGGREGATE)
			set_aggregate(s, number & ~SHAPER_AGGREGATE, now);
		else if (!set_subscriber(s, number, now, drops))
			break;
		done++;
	}
	__atomic_store_n(&s->done, done, __ATOMIC_RELEASE); // partner: shaper_wait
}

// A packet may come before the setting that it needs has had its turn.
static void set_early(struct qos_shaper *s, uint32_t index, uint64_t now, struct shape_drops *drops)
{
	const uint64_t word = __atomic_load_n(&s->word[index], __ATOMIC_ACQUIRE);
	const uint32_t parent = (word & ~SHAPER_IS_NEW) >> SHAPER_PARENT_SHIFT;
	const uint32_t above = parent ? slot_of_aggregate(s, parent)->parent : 0;

	if (!word)
		return;
	if (above)
		set_aggregate(s, above, now);
	if (parent)
		set_aggregate(s, parent, now);
	set_subscriber(s, index, now, drops); // it holds nothing, so nothing is dropped
}

void qos_shaper_put(struct qos_shaper *s, uint64_t now, const uint32_t subscriber[],
	struct shape_packet *const packet[], unsigned n, struct shape_drops *drops)
{
	uint64_t missing = shape_missing(s->shape, subscriber, n);

	for (; unlikely(missing); missing &= missing - 1)
		set_early(s, subscriber[__builtin_ctzll(missing)], now, drops);
	shape_enqueue(s->shape, now, subscriber, packet, n, drops);
}

// The next link in use, from this one on; the first one is always in use.
static unsigned next_link(const struct qos_shaper *s, unsigned from)
{
	for (unsigned i = from / 64; i < QOS_LINKS / 64; i++) {
		const uint64_t left =
			i == from / 64 ? s->links[i] >> from % 64 << from % 64 : s->links[i];

		if (left)
			return i * 64 + (unsigned)__builtin_ctzll(left);
	}
	return IMPLICIT;
}

unsigned qos_shaper_take(struct qos_shaper *s, uint64_t now, struct shape_packet *sent[],
	struct shape_drops *drops)
{
	const unsigned first = next_link(s, s->next_link);
	struct shape_round round = {.now = now, .port = first};
	unsigned n = 0;

	do {
		round.most = SHAPE_BURST - n;
		n += shape_dequeue(s->shape, &round, &sent[n], drops);
		round.port = next_link(s, round.port + 1);
	} while (n < SHAPE_BURST && round.port != first);
	s->next_link = round.port;
	return n;
}

bool qos_shaper_flush(struct qos_shaper *s, uint32_t *next, struct shape_drops *drops)
{
	for (unsigned i = 0; i < FLUSH_SUBSCRIBERS && *next < QOS_MAX; i++, ++*next)
		if (!shape_flush(s->shape, *next, drops))
			return false;
	return *next == QOS_MAX || !qos_shaper_totals(s)->held;
}

const struct shape_totals *qos_shaper_totals(const struct qos_shaper *s)
{
	return shape_totals(s->shape);
}

uint8_t qos_shaper_life(const struct qos_shaper *s, uint8_t port)
{
	return __atomic_load_n(&s->life[port], __ATOMIC_ACQUIRE); // partner: qos_port_gone
}
