// A channel's stages, one after the other, then a ring for one putting and one taking thread.
#include "channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRACTION_BITS = 16, // of a cycle, in the token bucket
	MOST_AT_ONCE = 3,   // a frame, its duplicate, and one that was held back
};

struct slot {
	uint64_t ready; // TSC from which on it can be taken
	uint32_t bytes;
	uint8_t frame[];
};

// Says yes to every `every`th question; 0: never.
struct every {
	uint64_t every, left;
};

struct channel {
	struct channel_settings is;
	struct channel_account *account;
	uint64_t delay, lateness; // cycles
	struct every drop, corrupt, swap, duplicate, late;
	uint64_t started, interval, earliest; // of the limit; the last two in parts of cycles
	uint64_t after, lost_until;           // of the limit, in cycles and as a TSC
	uint64_t turn;                        // TSC at which the frame leaves the limit's buffer
	uint64_t tsc_hz, dead_until;
	uint64_t held_left;       // frames until the held one follows; 0: none is held
	struct slot *held, *copy; // copy: the frame on its way through the stages
	uint8_t *slots;
	size_t stride;
	uint64_t mask;
	uint64_t head __attribute__((aligned(64))); // next to put
	uint64_t tail __attribute__((aligned(64))); // next to take
};

static const char *const names[CHANNEL_N_COUNTS] = {
	[CHANNEL_OFFERED] = "offered",
	[CHANNEL_REFUSED] = "refused",
	[CHANNEL_DEAD] = "dead",
	[CHANNEL_OVER_LIMIT] = "over_limit",
	[CHANNEL_AFTER_LIMIT] = "after_limit",
	[CHANNEL_DROPPED] = "dropped",
	[CHANNEL_CORRUPTED] = "corrupted",
	[CHANNEL_SWAPPED] = "swapped",
	[CHANNEL_DUPLICATED] = "duplicated",
	[CHANNEL_TOO_LONG] = "too_long",
	[CHANNEL_RING_FULL] = "ring_full",
	[CHANNEL_TAKEN] = "taken",
	[CHANNEL_DIE_NS] = "die_ns",
	[CHANNEL_HOLD] = "hold",
};

static const struct {
	const char *name;
	size_t at;
} words_known[] = {
	{"from", offsetof(struct channel_settings, from)},
	{"to", offsetof(struct channel_settings, to)},
	{"limit_pps", offsetof(struct channel_settings, limit_pps)},
	{"limit_depth", offsetof(struct channel_settings, limit_depth)},
	{"queues", offsetof(struct channel_settings, queues)},
	{"due_at", offsetof(struct channel_settings, due_at)},
	{"after_ns", offsetof(struct channel_settings, after_ns)},
	{"drop_every", offsetof(struct channel_settings, drop_every)},
	{"corrupt_every", offsetof(struct channel_settings, corrupt_every)},
	{"corrupt_at", offsetof(struct channel_settings, corrupt_at)},
	{"corrupt_with", offsetof(struct channel_settings, corrupt_with)},
	{"swap_every", offsetof(struct channel_settings, swap_every)},
	{"swap_by", offsetof(struct channel_settings, swap_by)},
	{"duplicate_every", offsetof(struct channel_settings, duplicate_every)},
	{"delay_ns", offsetof(struct channel_settings, delay_ns)},
	{"late_every", offsetof(struct channel_settings, late_every)},
	{"late_ns", offsetof(struct channel_settings, late_ns)},
	{"ring", offsetof(struct channel_settings, ring)},
	{"refuses", offsetof(struct channel_settings, refuses)},
	{"slot", offsetof(struct channel_settings, slot)},
	{"dump", offsetof(struct channel_settings, dump)},
};

static bool read_word(struct channel_settings *out, const char *word)
{
	for (size_t i = 0; i < sizeof(words_known) / sizeof(words_known[0]); i++) {
		size_t length = strlen(words_known[i].name);
		char *end;

		if (strncmp(word, words_known[i].name, length) || word[length] != '=')
			continue;
		uint64_t value = strtoull(word + length + 1, &end, 0);

		memcpy((char *)out + words_known[i].at, &value, sizeof(value));
		return end != word + length + 1 && !*end;
	}
	return false;
}

bool channel_read(struct channel_settings *out, char *words, char error[], size_t size)
{
	char *rest = NULL;

	*out = (struct channel_settings){.limit_depth = 128,
		.corrupt_with = 255,
		.swap_by = 1,
		.ring = 4096,
		.slot = 2048};
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (read_word(out, word))
			continue;
		snprintf(error, size, "'%s' is no NAME=NUMBER of a channel", word);
		return false;
	}
	if (out->swap_every && (out->swap_every <= out->swap_by || !out->swap_by)) {
		snprintf(error, size, "swap_every has to be larger than swap_by, and that than 0");
		return false;
	}
	return true;
}

static struct slot *slot_at(const struct channel *channel, uint64_t index)
{
	return (struct slot *)(channel->slots + (index & channel->mask) * channel->stride);
}

static uint64_t cycles(uint64_t ns, uint64_t tsc_hz)
{
	return (__uint128_t)ns * tsc_hz / 1000000000;
}

struct channel *channel_create(const struct channel_settings *settings, uint64_t tsc_hz,
	struct channel_account *account)
{
	struct channel *channel = aligned_alloc(64, sizeof(*channel));
	uint64_t n_slots = 1;

	if (!channel)
		return NULL;
	memset(channel, 0, sizeof(*channel));
	while (n_slots < settings->ring)
		n_slots *= 2;
	channel->is = *settings;
	channel->account = account;
	channel->tsc_hz = tsc_hz;
	channel->after = cycles(settings->after_ns, tsc_hz);
	channel->delay = cycles(settings->delay_ns, tsc_hz);
	channel->lateness = cycles(settings->late_ns, tsc_hz);
	channel->drop = (struct every){settings->drop_every, settings->drop_every};
	channel->corrupt = (struct every){settings->corrupt_every, settings->corrupt_every};
	channel->swap = (struct every){settings->swap_every, settings->swap_every};
	channel->duplicate = (struct every){settings->duplicate_every, settings->duplicate_every};
	channel->late = (struct every){settings->late_every, settings->late_every};
	if (settings->limit_pps)
		channel->interval = (tsc_hz << FRACTION_BITS) / settings->limit_pps;
	channel->stride = (sizeof(struct slot) + settings->slot + 63) / 64 * 64;
	channel->mask = n_slots - 1;
	channel->slots = calloc(n_slots, channel->stride);
	channel->held = calloc(1, channel->stride);
	channel->copy = calloc(1, channel->stride);
	for (int i = 0; i < CHANNEL_N_COUNTS; i++)
		strcpy(account->rows[i].name, names[i]);
	if (channel->slots && channel->held && channel->copy)
		return channel;
	channel_destroy(channel);
	return NULL;
}

void channel_destroy(struct channel *channel)
{
	free(channel->slots);
	free(channel->held);
	free(channel->copy);
	free(channel);
}

static void count(struct channel *channel, enum channel_count what, uint64_t n)
{
	uint64_t *at = &channel->account->rows[what].n;

	__atomic_store_n(at, *at + n, __ATOMIC_RELAXED);
}

static bool is_it(struct every *every)
{
	if (!every->every || --every->left)
		return false;
	every->left = every->every;
	return true;
}

// When the limit says that the frame came.
static uint64_t time_for_limit(const struct channel *channel, const uint8_t *frame, uint32_t bytes,
	uint64_t now)
{
	enum { BITS = 40 };
	uint64_t due = 0, at = channel->is.due_at;

	if (!at || at + BITS / 8 > bytes)
		return now;
	for (unsigned i = 0; i < BITS / 8; i++)
		due = due << 8 | frame[at + i];
	return now - ((now - due) & ((1ull << BITS) - 1));
}

// A token bucket told by one time: the next frame's, if all came evenly (the virtual scheduling
// algorithm of ITU-T I.371).
static bool is_within_limit(struct channel *channel, uint64_t now)
{
	if (!channel->interval)
		return true;
	if (!channel->started)
		channel->started = now;
	uint64_t time = (now - channel->started) << FRACTION_BITS;

	if (channel->earliest > time + channel->is.limit_depth * channel->interval)
		return false;
	uint64_t turn = channel->earliest > time ? channel->earliest : time;

	channel->turn = channel->is.queues ? channel->started + (turn >> FRACTION_BITS) : 0;
	channel->earliest = turn + channel->interval;
	return true;
}

// One that is above the limit makes those lost that follow within a time; they count for the limit
// like all others.
static bool is_after_limit(struct channel *channel, bool is_within, uint64_t now)
{
	if (!is_within)
		channel->lost_until = now + channel->after;
	return now < channel->lost_until;
}

static bool is_dead(struct channel *channel, uint64_t now)
{
	uint64_t *order = &channel->account->rows[CHANNEL_DIE_NS].n;

	if (__atomic_load_n(order, __ATOMIC_RELAXED))
		channel->dead_until = now + cycles(__atomic_exchange_n(order, 0, __ATOMIC_RELAXED),
						    channel->tsc_hz);
	return now < channel->dead_until;
}

static uint64_t count_free(const struct channel *channel)
{
	return channel->is.ring -
	       (channel->head - __atomic_load_n(&channel->tail, __ATOMIC_ACQUIRE));
}

static void fill(struct slot *slot, const void *frame, uint32_t bytes)
{
	slot->bytes = bytes;
	memcpy(slot->frame, frame, bytes);
}

static void push(struct channel *channel, const struct slot *from, uint64_t now)
{
	if (!count_free(channel)) {
		count(channel, CHANNEL_RING_FULL, 1);
		return;
	}
	struct slot *slot = slot_at(channel, channel->head);

	fill(slot, from->frame, from->bytes);
	slot->ready = (channel->turn > now ? channel->turn : now) + channel->delay +
	              (is_it(&channel->late) ? channel->lateness : 0);
	__atomic_store_n(&channel->head, channel->head + 1, __ATOMIC_RELEASE);
}

static void pass(struct channel *channel, uint64_t now)
{
	struct slot *slot = channel->copy;

	if (is_it(&channel->corrupt) && channel->is.corrupt_at < slot->bytes) {
		slot->frame[channel->is.corrupt_at] ^= channel->is.corrupt_with;
		count(channel, CHANNEL_CORRUPTED, 1);
	}
	if (is_it(&channel->swap)) {
		fill(channel->held, slot->frame, slot->bytes);
		channel->held_left = channel->is.swap_by;
		count(channel, CHANNEL_SWAPPED, 1);
		return;
	}
	push(channel, slot, now);
	if (is_it(&channel->duplicate)) {
		push(channel, slot, now);
		count(channel, CHANNEL_DUPLICATED, 1);
	}
	if (channel->held_left && !--channel->held_left)
		push(channel, channel->held, now);
}

bool channel_put(struct channel *channel, const void *frame, uint32_t bytes, uint64_t now)
{
	if (channel->is.refuses && count_free(channel) < MOST_AT_ONCE)
		return false;
	bool is_lost = is_dead(channel, now),
	     is_within = is_lost ||
	                 is_within_limit(channel, time_for_limit(channel, frame, bytes, now));

	if (channel->is.refuses && !is_within)
		return false;
	bool is_after = is_after_limit(channel, is_within, now);
	count(channel, CHANNEL_OFFERED, 1);
	if (is_lost) {
		count(channel, CHANNEL_DEAD, 1);
	} else if (!is_within) {
		count(channel, CHANNEL_OVER_LIMIT, 1);
	} else if (is_after) {
		count(channel, CHANNEL_AFTER_LIMIT, 1);
	} else if (bytes > channel->is.slot) {
		count(channel, CHANNEL_TOO_LONG, 1);
	} else if (is_it(&channel->drop)) {
		count(channel, CHANNEL_DROPPED, 1);
	} else {
		fill(channel->copy, frame, bytes);
		pass(channel, now);
	}
	return true;
}

void channel_refuse(struct channel *channel, unsigned n)
{
	count(channel, CHANNEL_OFFERED, n);
	count(channel, CHANNEL_REFUSED, n);
}

bool channel_has(const struct channel *channel, uint64_t now)
{
	uint64_t head = __atomic_load_n(&channel->head, __ATOMIC_ACQUIRE);

	return head != channel->tail && slot_at(channel, channel->tail)->ready <= now &&
	       !__atomic_load_n(&channel->account->rows[CHANNEL_HOLD].n, __ATOMIC_RELAXED);
}

uint32_t channel_take(struct channel *channel, void *to, uint32_t room, uint64_t now)
{
	if (!channel_has(channel, now))
		return 0;
	const struct slot *slot = slot_at(channel, channel->tail);
	uint32_t bytes = slot->bytes <= room ? slot->bytes : 0;

	memcpy(to, slot->frame, bytes);
	count(channel, CHANNEL_TAKEN, 1);
	__atomic_store_n(&channel->tail, channel->tail + 1, __ATOMIC_RELEASE);
	return bytes;
}
