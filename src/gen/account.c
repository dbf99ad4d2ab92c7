// Counts valid frames, stream by stream. Worker.
#include "gen/account.h"

#include "gen/per_flow.h"
#include "gen/timeline.h"
#include "wire/stamp.h"

#include <string.h>

// Cycles from a stamp to `now`; 0 if it is in the future because the cores' clocks differ.
static inline uint64_t cycles_since(uint64_t stamp, uint64_t now)
{
	uint64_t cycles = (now - stamp) & STAMP_40_BITS;

	return cycles >> 39 ? 0 : cycles;
}

// Moves frame `from` of one list to position `to` of another.
static inline void move(struct whole *into, uint16_t to, const struct whole *out, uint16_t from)
{
	into->id[to] = out->id[from];
	into->sequence[to] = out->sequence[from];
	into->due[to] = out->due[from];
	into->sent[to] = out->sent[from];
	into->bytes[to] = out->bytes[from];
}

// Moves `n` frames within the list from position `from` down to position `to`.
static inline void keep(struct whole *f, uint16_t to, uint16_t from, uint16_t n)
{
	if (to == from)
		return;
	for (uint16_t i = 0; i < n; i++)
		move(f, to + i, f, from + i);
}

// Length of the run of consecutive numbers starting at position `from`.
static inline uint16_t stretch_at(const struct whole *f, uint16_t from)
{
	uint16_t i = from + 1;

	while (i < f->n && !((f->sequence[i] - f->sequence[i - 1] - 1) & STAMP_40_BITS))
		i++;
	return i - from;
}

// Gaps: the number after the last one, and the longest outage. Called only if frames did not arrive
// in order.

// The frames before `number` are missing: it was received at `now`, the one before the gap at
// `before` (0: none).
static void gap_open(struct sink_counters *c, uint64_t number, uint64_t before, uint64_t now)
{
	stats_set(&c->gap_end, number);
	if (before && now > before && now - before > c->longest_outage)
		stats_set(&c->longest_outage, now - before);
}

// The highest missing number below `from`, plus one.
static uint64_t find_missing(const struct window *w, uint64_t from)
{
	uint64_t oldest = w->next > WINDOW_NUMBERS ? w->next - WINDOW_NUMBERS : 0;

	while (from > oldest) {
		uint64_t number = from - 1;
		uint64_t missing = ~w->seen[number / 64 % WINDOW_WORDS] << (63 - number % 64);

		if (missing)
			return from - __builtin_clzll(missing);
		from = number / 64 * 64;
	}
	return oldest;
}

// `number`, which was missing, has arrived late. Finds the previous gap among the last 2^20
// numbers; if there is none, it may be older, and only an upper bound is kept.
static void gap_fill(struct sink_counters *c, const struct window *w, uint64_t number)
{
	if (!w->missing)
		stats_set(&c->gap_end, 0);
	else if (number + 1 == c->gap_end)
		stats_set(&c->gap_end, find_missing(w, number));
}

// Advances to `number`, which is the next one or one after a gap.
static inline void go_on(struct sink_stream *s, uint64_t number, uint64_t before, uint64_t now)
{
	if (number == s->window->window.next)
		return;
	gap_open(&s->counters, number, before, now);
	window_skip(&s->window->window, number);
}

// Whether the frame is new. If not, it is counted as duplicated or too old.
static bool take_late(struct sink_stream *s, uint64_t number)
{
	struct window *w = &s->window->window;
	enum window_verdict verdict = window_take(w, number);
	bool is_new = verdict == WINDOW_NEW || verdict == WINDOW_NEW_REORDERED;

	if (is_new)
		gap_fill(&s->counters, w, number);
	stats_add(&s->counters.reordered, verdict == WINDOW_NEW_REORDERED);
	stats_add(&s->counters.duplicated, verdict == WINDOW_DUPLICATE);
	stats_add(&s->counters.too_old, verdict == WINDOW_TOO_OLD);
	return is_new;
}

// Classifies the frames, runs of consecutive numbers together, and keeps only new ones in the list.
// Returns true if these are in order.
static __attribute__((noinline)) bool take_with_gaps(struct sink_stream *s, struct whole *f,
	uint64_t now)
{
	struct window *w = &s->window->window;
	bool is_in_order = true;
	uint16_t kept = 0;

	for (uint16_t i = 0, n; i < f->n; i += n) {
		uint64_t number = window_whole(w, f->sequence[i]);

		n = 1;
		if (number >= w->next) {
			n = stretch_at(f, i);
			go_on(s, number, kept ? now : s->counters.last_tsc, now);
			window_take_next(w, n);
		} else if (take_late(s, number)) {
			is_in_order = false;
		} else {
			continue;
		}
		keep(f, kept, i, n);
		kept += n;
	}
	f->n = kept;
	return is_in_order;
}

// Differences between the delays of consecutive frames, of which there is at least one; delay[0] is
// that of the previous frame.
static inline void count_jitter(struct sink_stream *s, uint64_t delay[], uint16_t n)
{
	struct sink_window *own = s->window;
	uint64_t sum = 0, max = s->counters.jitter_max;

	stats_add(&s->counters.n_jitter, own->has_last ? n : n - 1);
	delay[0] = own->has_last ? own->last_delay : delay[1];
	for (uint16_t i = 0; i < n; i++) {
		uint64_t a = delay[i], b = delay[i + 1], difference = a > b ? a - b : b - a;
		sum += difference;
		max = MAX_OF(max, difference);
	}
	stats_add(&s->counters.jitter_sum, sum);
	stats_set(&s->counters.jitter_max, max);
	own->last_delay = delay[n];
	own->has_last = true;
}

static __attribute__((noinline)) void note_silence(struct sink_counters *c, uint64_t now)
{
	if (c->received)
		stats_set(&c->longest_silence, now - c->last_tsc);
}

static __attribute__((noinline)) void count_flows(struct sink_stream *s, const struct whole *f,
	const uint64_t since_due[], uint64_t now)
{
	uint64_t number[RECOGNISE_MAX];

	for (uint16_t i = 0; i < f->n; i++)
		number[i] = window_whole(&s->window->window, f->sequence[i]);
	per_flow_count(s->per_flow, f, number, since_due, now);
}

static inline void count_new(struct sink_stream *s, const struct whole *f, uint64_t now)
{
	uint64_t since_due[RECOGNISE_MAX], since_sent[1 + RECOGNISE_MAX], bytes = 0;
	struct sink_counters *c = &s->counters;

	for (uint16_t i = 0; i < f->n; i++) {
		since_due[i] = cycles_since(f->due[i], now);
		since_sent[i + 1] = cycles_since(f->sent[i], now);
		bytes += f->bytes[i];
	}
	if (unlikely(now - c->last_tsc > c->longest_silence))
		note_silence(c, now);
	if (unlikely(!c->received))
		stats_set(&c->first_tsc, now);
	stats_set(&c->last_tsc, now);
	stats_set(&c->highest, s->window->window.next); // before received: results are read so
	stats_add(&c->received, f->n);
	stats_add(&c->received_bytes, bytes);
	stats_set(&c->missing, s->window->window.missing);
	histogram_add_burst(&s->due, since_due, f->n);
	histogram_add_burst(&s->sent, since_sent + 1, f->n);
	count_jitter(s, since_sent, f->n);
	if (unlikely(s->per_flow != NULL))
		count_flows(s, f, since_due, now);
}

static void account_stream(struct sink_stream *s, struct whole *f, uint64_t now)
{
	bool is_in_order = window_is_next(&s->window->window, f->sequence, f->n);

	if (likely(is_in_order))
		window_take_next(&s->window->window, f->n);
	else
		is_in_order = take_with_gaps(s, f, now);
	if (unlikely(!f->n))
		return;
	count_new(s, f, now);
	if (likely(is_in_order && s->timeline))
		timeline_add(s->timeline, f->due, f->n, now);
	else if (s->timeline)
		timeline_add_each(s->timeline, f->due, f->n, now);
}

static inline bool has_one_stream(const struct whole *f)
{
	uint8_t difference = 0;

	for (uint16_t i = 0; i < f->n; i++)
		difference |= f->id[i] ^ f->id[0];
	return !difference;
}

// The frames of a burst as one chain of positions per stream, in order of arrival.
struct chains {
	unsigned n;
	uint8_t chain_of[GEN_MAX_IDS]; // by stream id
	uint8_t first[RECOGNISE_MAX], last[RECOGNISE_MAX];
	uint8_t next[RECOGNISE_MAX]; // by position in the burst
};

static inline void chain_up(struct chains *c, const struct whole *f)
{
	enum { NONE = RECOGNISE_MAX };

	c->n = 0;
	memset(c->chain_of, NONE, sizeof(c->chain_of));
	for (uint16_t i = 0; i < f->n; i++) {
		uint8_t *chain = &c->chain_of[f->id[i]];

		if (*chain == NONE) {
			*chain = c->n++;
			c->first[*chain] = i;
		} else {
			c->next[c->last[*chain]] = i;
		}
		c->last[*chain] = i;
	}
}

static __attribute__((noinline)) void account_several(const struct sink *sink,
	const struct whole *frames, uint64_t now)
{
	struct chains c;
	struct whole one;

	chain_up(&c, frames);
	for (unsigned chain = 0; chain < c.n; chain++) {
		uint8_t last = c.last[chain], i = c.first[chain];

		for (one.n = 0; i != last; i = c.next[i])
			move(&one, one.n++, frames, i);
		move(&one, one.n++, frames, last);
		account_stream(sink->by_id[one.id[0]], &one, now);
	}
}

void account(const struct sink *sink, struct whole *frames, uint64_t now)
{
	if (unlikely(!frames->n))
		return;
	if (likely(has_one_stream(frames)))
		account_stream(sink->by_id[frames->id[0]], frames, now);
	else
		account_several(sink, frames, now);
}
