// See shaper.h and qos_fast.h: between the control thread and the owners of shapers.
#include "qos/shaper.h"

#include "base/pages.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <time.h>

enum { NEWS_PER_CALL = 256, NAP_NS = 50000, FLUSH_SUBSCRIBERS = 4096, MOVE_AT_ONCE = 256 };
enum { MOST_ADDED = 1024 }; // packets that come while others move

// --- Control thread.

struct shape_config shaper_config(uint64_t hz, uint32_t most_held)
{
	return (struct shape_config){.hz = hz,
		.n_ports = QOS_LINKS + QOS_MOST_SHAPERS,
		.n_aggregates = 2 * SHAPER_AGGREGATES + QOS_MOST_SHAPERS,
		.n_subscribers = QOS_SHAPED,
		.most_held = most_held,
		.mtu = SHAPER_MTU};
}

// Subscribers without a parent share a link that is never full, one in each shaper.
static uint32_t implicit_link(const struct qos_shaper *s)
{
	return QOS_LINKS + s->index;
}

static uint32_t implicit_aggregate(const struct qos_shaper *s)
{
	return 2 * SHAPER_AGGREGATES + s->index;
}

static int add_implicit(struct qos_shaper *s, struct error *error)
{
	const struct shape_setting all = {.bits = SHAPE_MOST_RATE,
		.burst = SHAPE_MOST_RATE / 8 / 1000,
		.weight = SHAPE_MOST_WEIGHT};
	const uint64_t now = qos_shapers_now(s->all);
	const uint32_t link = implicit_link(s);
	struct shape_terms terms;
	int err = shape_terms_of(&s->all->config, &all, SHAPE_PORT, &terms, error);

	if (err)
		return err;
	shape_set(s->shape, SHAPE_PORT, link, &terms, now);
	terms.parent = link;
	shape_set(s->shape, SHAPE_AGGREGATE, implicit_aggregate(s), &terms, now);
	s->links[link / 64] |= 1ull << link % 64;
	s->next_link = link;
	return 0;
}

static int open_shape(struct qos_shaper *s, struct error *error)
{
	const uint64_t now = qos_shapers_now(s->all);

	return s->index ? shape_open_beside(&s->shape, s->all->one[0]->shape, now, error)
	                : shape_open(&s->shape, &s->all->config, now, error);
}

static int add_shaper(struct qos_shapers *all, unsigned owner, struct error *error)
{
	struct qos_shaper *s = pages_alloc(sizeof(*s));
	int err;

	if (!s)
		return error_set(error, -ENOMEM, "not enough memory for a shaper");
	s->all = all;
	s->index = all->n;
	s->owner = owner;
	all->one[all->n++] = s;
	s->news = pages_alloc(SHAPER_NEWS * sizeof(*s->news));
	if (!s->news)
		return error_set(error, -ENOMEM, "not enough memory for the settings of a shaper");
	err = open_shape(s, error);
	return err ? err : add_implicit(s, error);
}

int shapers_open(struct qos_shapers **out, const struct shapers_settings *settings,
	struct error *error)
{
	struct qos_shapers *all = pages_alloc(sizeof(*all));
	int err = all ? 0 : error_set(error, -ENOMEM, "not enough memory for shapers");

	if (err)
		return err;
	all->config = shaper_config(settings->hz, MAX_OF(settings->most_held / settings->n, 1u));
	all->clock = settings->clock;
	all->word = pages_alloc(QOS_SHAPED * sizeof(*all->word));
	all->has = pages_alloc(QOS_SHAPED);
	all->aggregate = pages_alloc(2 * SHAPER_AGGREGATES * sizeof(*all->aggregate));
	all->slot = pages_alloc(QOS_PROFILES * sizeof(*all->slot));
	if (!all->word || !all->has || !all->aggregate || !all->slot)
		err = error_set(error, -ENOMEM, "not enough memory for the settings of shapers");
	for (unsigned i = 0; i < settings->n && !err; i++)
		err = add_shaper(all, settings->owner[i], error);
	if (err)
		shapers_close(all);
	else
		*out = all;
	return err;
}

void shapers_close(struct qos_shapers *all)
{
	if (!all)
		return;
	for (unsigned i = all->n; i--;) {
		struct qos_shaper *s = all->one[i];

		if (s->shape)
			shape_close(s->shape);
		pages_free(s->news, SHAPER_NEWS * sizeof(*s->news));
		pages_free(s, sizeof(*s));
	}
	pages_free(all->word, QOS_SHAPED * sizeof(*all->word));
	pages_free(all->has, QOS_SHAPED);
	pages_free(all->aggregate, 2 * SHAPER_AGGREGATES * sizeof(*all->aggregate));
	pages_free(all->slot, QOS_PROFILES * sizeof(*all->slot));
	pages_free(all, sizeof(*all));
}

unsigned shapers_of_link(const struct qos_shapers *all, uint8_t link, uint32_t shaped)
{
	return link ? (link - 1u) % all->n : shaped % all->n;
}

static void tell(struct qos_shaper *s, uint32_t number)
{
	__atomic_store_n(&s->news[s->put % SHAPER_NEWS], number, __ATOMIC_RELAXED);
	__atomic_store_n(&s->put, s->put + 1, __ATOMIC_RELEASE); // partner: qos_shaper_follow
}

// Who has it is told, and gives it to another one if that is to be.
void shapers_set(struct qos_shapers *all, uint32_t shaped, uint64_t word)
{
	__atomic_store_n(&all->word[shaped], word, __ATOMIC_RELEASE); // partner: set_subscriber
	tell(all->one[__atomic_load_n(&all->has[shaped], __ATOMIC_ACQUIRE)], shaped);
}

void shapers_set_aggregate(struct qos_shapers *all, unsigned shaper, uint32_t number, uint32_t slot)
{
	__atomic_store_n(&all->aggregate[number], slot, __ATOMIC_RELEASE); // partner: set_aggregate
	tell(all->one[shaper], number | SHAPER_AGGREGATE);
}

bool shapers_are_behind(const struct qos_shapers *all)
{
	for (unsigned i = 0; i < all->n; i++)
		if (__atomic_load_n(&all->one[i]->is_running, __ATOMIC_ACQUIRE) &&
			qos_shaper_has_news(all->one[i]))
			return true;
	return false;
}

void shapers_wait(const struct qos_shapers *all)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	while (shapers_are_behind(all))
		nanosleep(&nap, NULL);
}

// --- Any worker.

unsigned qos_n_shapers(const struct qos_shapers *all)
{
	return all->n;
}

struct qos_shaper *qos_shaper(const struct qos_shapers *all, unsigned i)
{
	return all->one[i];
}

unsigned qos_shaper_owner(const struct qos_shaper *s)
{
	return s->owner;
}

unsigned qos_shaper_of(const struct qos_shapers *all, uint32_t shaped)
{
	return all->n == 1 ? 0 : __atomic_load_n(&all->has[shaped], __ATOMIC_ACQUIRE);
}

uint64_t qos_shapers_now(const struct qos_shapers *all)
{
	return all->clock ? __atomic_load_n(all->clock, __ATOMIC_RELAXED) : rte_rdtsc();
}

uint8_t qos_shapers_life(const struct qos_shapers *all, uint8_t port)
{
	return __atomic_load_n(&all->life[port], __ATOMIC_ACQUIRE); // partner: qos_port_gone
}

// --- Owner.

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

static uint32_t parent_of(uint64_t word)
{
	return word >> SHAPER_PARENT_SHIFT & 0xffff;
}

static unsigned owner_of(uint64_t word)
{
	return word >> SHAPER_OWNER_SHIFT & 0xff;
}

static const struct shaper_slot *slot_of_aggregate(const struct qos_shaper *s, uint32_t number)
{
	return &s->all->slot[__atomic_load_n(&s->all->aggregate[number], __ATOMIC_ACQUIRE)];
}

// One without a parent is a link, too, so that it may have both aggregates and subscribers.
static void set_aggregate(struct qos_shaper *s, uint32_t number, uint64_t now)
{
	if (!__atomic_load_n(&s->all->aggregate[number], __ATOMIC_ACQUIRE)) {
		shape_remove(s->shape, SHAPE_AGGREGATE, number);
		return;
	}
	const struct shaper_slot *slot = slot_of_aggregate(s, number);
	struct shape_terms terms = slot->terms;

	terms.owes = slot->is_moved;
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
static bool clear(struct qos_shaper *s, uint32_t shaped, struct shape_drops *drops)
{
	if (!shape_flush(s->shape, shaped, drops))
		return false;
	shape_remove(s->shape, SHAPE_SUBSCRIBER, shaped);
	return true;
}

static void give(struct qos_shaper *s, uint32_t shaped, unsigned to)
{
	// Partner: qos_shaper_of. The other one finds the bucket and the counters as they are.
	__atomic_store_n(&s->all->has[shaped], (uint8_t)to, __ATOMIC_RELEASE);
}

static void append(struct qos_shaper *s, struct shape_packet *packet)
{
	packet->next = NULL;
	if (s->moving.first)
		s->moving.last->next = packet;
	else
		s->moving.first = packet;
	s->moving.last = packet;
}

bool qos_shaper_add_moving(struct qos_shaper *s, struct shape_packet *packet)
{
	s->moving.is_full |= s->moving.n_added == MOST_ADDED;
	if (s->moving.is_full)
		return false;
	s->moving.n_added++;
	shape_hold(s->shape, 1);
	append(s, packet);
	return true;
}

// All its packets: younger ones come behind them.
static void move(struct qos_shaper *s, uint32_t shaped, unsigned to)
{
	struct shape_packet *packet[MOVE_AT_ONCE];
	unsigned n;

	s->moving.to = (uint8_t)to;
	do {
		n = shape_hand(s->shape, shaped, packet, MOVE_AT_ONCE);
		for (unsigned i = 0; i < n; i++) {
			packet[i]->since = shaped;
			append(s, packet[i]);
		}
	} while (n == MOVE_AT_ONCE);
	give(s, shaped, to);
}

// One that holds nothing, also while others move.
static void give_early(struct qos_shaper *s, uint32_t shaped, unsigned to)
{
	struct shape_packet *none;

	if (!shape_hand(s->shape, shaped, &none, 1))
		give(s, shaped, to);
}

int qos_shaper_moving_to(const struct qos_shaper *s)
{
	return s->moving.first ? s->moving.to : -1;
}

unsigned qos_shaper_take_moving(struct qos_shaper *s, struct shape_packet *out[], unsigned most)
{
	unsigned n = 0;

	for (; n < most && s->moving.first; n++) {
		out[n] = s->moving.first;
		s->moving.first = out[n]->next;
	}
	if (!s->moving.first) {
		s->moving.n_added = 0;
		s->moving.is_full = false;
	}
	shape_moved(s->shape, n);
	return n;
}

// False: `drops` is full. NULL: it holds nothing.
static bool set_subscriber(struct qos_shaper *s, uint32_t shaped, uint64_t now,
	struct shape_drops *drops)
{
	const uint64_t word = __atomic_load_n(&s->all->word[shaped], __ATOMIC_ACQUIRE);
	const uint32_t number = word & (QOS_PROFILES - 1);

	if (qos_shaper_of(s->all, shaped) != s->index)
		return true; // set_early has given it away
	struct shape_drops none = {.n = 0};

	if ((!number || word & SHAPER_IS_NEW) && !clear(s, shaped, drops ? drops : &none))
		return false;
	if (!number)
		return true;
	if (word & SHAPER_IS_NEW) {
		shape_clear_stats(s->shape, shaped);
		__atomic_fetch_and(&s->all->word[shaped], ~SHAPER_IS_NEW, __ATOMIC_RELAXED);
	}
	if (owner_of(word) != s->index) {
		if (drops)
			move(s, shaped, owner_of(word));
		else
			give_early(s, shaped, owner_of(word));
		return true;
	}
	const struct shaper_slot *slot = &s->all->slot[number];
	struct shape_terms terms = slot->terms;

	terms.profile = (uint16_t)number;
	terms.parent = parent_of(word) ? parent_of(word) : implicit_aggregate(s);
	shape_set_profile(s->shape, terms.profile, &slot->rules, NULL);
	shape_set(s->shape, SHAPE_SUBSCRIBER, shaped, &terms, now);
	return true;
}

void qos_shaper_follow(struct qos_shaper *s, uint64_t now, struct shape_drops *drops)
{
	const uint64_t put = __atomic_load_n(&s->put, __ATOMIC_ACQUIRE);
	uint64_t done = s->done;

	for (unsigned i = 0; i < NEWS_PER_CALL && done != put && qos_shaper_moving_to(s) < 0; i++) {
		const uint32_t number =
			__atomic_load_n(&s->news[done % SHAPER_NEWS], __ATOMIC_RELAXED);

		if (number & SHAPER_AGGREGATE)
			set_aggregate(s, number & ~SHAPER_AGGREGATE, now);
		else if (!set_subscriber(s, number, now, drops))
			break;
		done++;
	}
	__atomic_store_n(&s->done, done, __ATOMIC_RELEASE); // partner: shapers_wait
}

// A packet may come before the setting that it needs has had its turn, or after another shaper has
// given it away. It holds nothing.
static void set_early(struct qos_shaper *s, uint32_t shaped, uint64_t now)
{
	const uint64_t word = __atomic_load_n(&s->all->word[shaped], __ATOMIC_ACQUIRE);
	const uint32_t parent = parent_of(word);
	const uint32_t above = parent ? slot_of_aggregate(s, parent)->parent : 0;

	if (!word)
		return;
	if (above && owner_of(word) == s->index)
		set_aggregate(s, above, now);
	if (parent && owner_of(word) == s->index)
		set_aggregate(s, parent, now);
	set_subscriber(s, shaped, now, NULL);
}

void qos_shaper_expect(struct qos_shaper *s, uint64_t now, const uint32_t shaped[], unsigned n)
{
	uint64_t missing = shape_missing(s->shape, shaped, n);

	for (; unlikely(missing); missing &= missing - 1)
		set_early(s, shaped[__builtin_ctzll(missing)], now);
}

void qos_shaper_put(struct qos_shaper *s, uint64_t now, const uint32_t shaped[],
	struct shape_packet *const packet[], unsigned n, struct shape_drops *drops)
{
	shape_enqueue(s->shape, now, shaped, packet, n, drops);
}

// The next link in use, from this one on, in turns; one is always in use.
static unsigned next_link(const struct qos_shaper *s, unsigned from)
{
	for (unsigned i = from / 64; i < ARRAY_LEN(s->links); i++) {
		const uint64_t left =
			i == from / 64 ? s->links[i] >> from % 64 << from % 64 : s->links[i];

		if (left)
			return i * 64 + (unsigned)__builtin_ctzll(left);
	}
	return next_link(s, 0);
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
	for (unsigned i = 0; i < FLUSH_SUBSCRIBERS && *next < QOS_SHAPED; i++, ++*next)
		if (qos_shaper_of(s->all, *next) == s->index &&
			!shape_flush(s->shape, *next, drops))
			return false;
	return *next == QOS_SHAPED || !qos_shaper_totals(s)->held;
}

const struct shape_totals *qos_shaper_totals(const struct qos_shaper *s)
{
	return shape_totals(s->shape);
}
