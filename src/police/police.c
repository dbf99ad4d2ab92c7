// See police.h. Tokens are the difference between the clock of the rate, which runs with time, and
// that of the bucket, which runs with what has passed, both modulo 1 << 63. The clock of a bucket
// is never ahead of that of the rate, but by what workers differ in time. So whatever seems to be
// further ahead was not used for long, and is full: an overflow gives nobody tokens.
#include "police/police.h"

// A worker may be behind by so many ticks: some 10 seconds.
#define AHEAD_SHIFT 35
#define MOST_AHEAD (1ull << 52) // units: more than a second at any rate
#define MASK ((1ull << POLICE_CLOCK_BITS) - 1)

static uint64_t clock_at(const struct police_terms *terms, uint64_t now)
{
	const uint64_t ticks = now > terms->epoch ? now - terms->epoch : 0;

	return (uint64_t)((unsigned __int128)ticks * terms->per_tick >> POLICE_TICK_SHIFT);
}

// Units by which the clock of a bucket may be ahead.
static uint64_t most_ahead(const struct police_terms *terms)
{
	return MIN_OF(terms->per_tick << (AHEAD_SHIFT - POLICE_TICK_SHIFT), MOST_AHEAD);
}

// Units that are left, less than 0 if the bucket is ahead.
static int64_t tokens_of(const struct police_terms *terms, uint64_t word, uint64_t clock)
{
	const uint64_t left = (clock - (word >> 1)) & MASK;

	if (likely(left <= terms->depth))
		return (int64_t)left;
	return left > MASK - most_ahead(terms) ? (int64_t)(left | ~MASK) : (int64_t)terms->depth;
}

static uint64_t word_of(uint64_t clock, int64_t tokens, unsigned slot)
{
	return (clock - (uint64_t)tokens) << 1 | slot;
}

// Takes from *tokens what the packets need that have a bit in `left`.
static uint64_t take(int64_t *tokens, const uint32_t cost[], uint64_t left)
{
	uint64_t passed = 0;

	for (; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		const int64_t need = (int64_t)((uint64_t)cost[i] << POLICE_UNIT_SHIFT);
		const bool passes = need <= *tokens;

		passed |= (uint64_t)passes << i;
		*tokens -= passes ? need : 0;
	}
	return passed;
}

static bool swap(struct police *police, uint64_t *word, uint64_t changed)
{
	return __atomic_compare_exchange_n(&police->word, word, changed, true, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
}

static uint64_t take_of(struct police *police, uint64_t now, const uint32_t cost[], uint64_t left)
{
	uint64_t word = __atomic_load_n(&police->word, __ATOMIC_ACQUIRE); // partner: police_change

	for (;;) {
		const struct police_terms *terms = &police->terms[word & 1];
		const uint64_t clock = clock_at(terms, now);
		int64_t tokens = tokens_of(terms, word, clock);
		const uint64_t passed = take(&tokens, cost, left);

		if (!passed || swap(police, &word, word_of(clock, tokens, word & 1)))
			return passed;
	}
}

static uint64_t first_bits(unsigned n)
{
	return n < 64 ? (1ull << n) - 1 : UINT64_MAX;
}

uint64_t police_take(struct police *police, uint64_t now, const uint32_t cost[], unsigned n)
{
	return take_of(police, now, cost, first_bits(n));
}

// The same; *spilt: units for which the bucket had no room. Whoever swaps the word has them, so
// that they are there once.
static uint64_t take_and_spill(struct police *police, uint64_t now, const uint32_t cost[],
	uint64_t left, uint64_t *spilt)
{
	uint64_t word = __atomic_load_n(&police->word, __ATOMIC_ACQUIRE); // partner: police_change

	for (;;) {
		const struct police_terms *terms = &police->terms[word & 1];
		const uint64_t clock = clock_at(terms, now);
		const uint64_t room = (clock - (word >> 1)) & MASK;
		int64_t tokens = tokens_of(terms, word, clock);

		*spilt = tokens >= 0 && room > terms->depth ? room - terms->depth : 0;
		const uint64_t passed = take(&tokens, cost, left);
		if ((!passed && !*spilt) || swap(police, &word, word_of(clock, tokens, word & 1)))
			return passed;
	}
}

// Adds tokens, as far as there is room for them.
static void give(struct police *police, uint64_t now, uint64_t units)
{
	uint64_t word = __atomic_load_n(&police->word, __ATOMIC_ACQUIRE); // partner: police_change

	for (;;) {
		const struct police_terms *terms = &police->terms[word & 1];
		const uint64_t clock = clock_at(terms, now);
		const int64_t tokens = tokens_of(terms, word, clock);
		const uint64_t room = terms->depth - (uint64_t)tokens; // tokens may be below 0

		if (swap(police, &word,
			    word_of(clock, tokens + (int64_t)MIN_OF(units, room), word & 1)))
			return;
	}
}

static struct police_colours mark2697(struct police *commit, struct police *excess, uint64_t now,
	const struct police_packets *packets)
{
	const uint64_t left = first_bits(packets->n) & ~packets->red;
	struct police_colours out;
	uint64_t spilt;

	out.green = take_and_spill(commit, now, packets->cost, left & ~packets->yellow, &spilt);
	if (spilt)
		give(excess, now, spilt);
	out.yellow = left & ~out.green ? take_of(excess, now, packets->cost, left & ~out.green) : 0;
	return out;
}

// The buckets do not depend on each other, so that each may judge the whole burst.
struct police_colours police_mark(enum police_marker marker, struct police *commit,
	struct police *excess, uint64_t now, const struct police_packets *packets)
{
	const uint64_t left = first_bits(packets->n) & ~packets->red;
	struct police_colours out = {0, 0};

	if (marker == POLICE_ONE_RATE) {
		out.green = take_of(commit, now, packets->cost, left);
	} else if (marker == POLICE_RFC2697) {
		out = mark2697(commit, excess, now, packets);
	} else if (marker == POLICE_RFC2698) {
		const uint64_t passed = take_of(excess, now, packets->cost, left);

		out.green = take_of(commit, now, packets->cost, passed & ~packets->yellow);
		out.yellow = passed & ~out.green;
	} else {
		out.green = take_of(commit, now, packets->cost, left & ~packets->yellow);
		out.yellow = take_of(excess, now, packets->cost, left & ~out.green);
	}
	return out;
}

static struct police_terms terms_of(const struct police_rate *rate, uint64_t now)
{
	const unsigned shift = POLICE_UNIT_SHIFT + POLICE_TICK_SHIFT - 3; // 8 bits are a byte

	return (struct police_terms){
		.per_tick = (uint64_t)((((unsigned __int128)rate->bits << shift) + rate->hz / 2) /
				       rate->hz),
		.epoch = now,
		.depth = rate->burst << POLICE_UNIT_SHIFT,
	};
}

void police_start(struct police *police, const struct police_rate *rate, uint64_t now)
{
	*police = (struct police){.terms = {terms_of(rate, now)}};
	police->word = word_of(0, (int64_t)police->terms[0].depth, 0);
}

static bool is_same(const struct police_terms *a, const struct police_terms *b)
{
	return a->per_tick == b->per_tick && a->depth == b->depth;
}

// The terms and the word with which a bucket goes on from `word`. If a worker has already taken
// what was due after `now`, the new rate begins when that was due: nothing is due twice.
static uint64_t go_on(const struct police_terms *old, uint64_t word, struct police_terms *next,
	unsigned slot)
{
	const int64_t tokens = tokens_of(old, word, clock_at(old, next->epoch));

	if (tokens >= 0)
		return word_of(0, MIN_OF(tokens, (int64_t)next->depth), slot);
	next->epoch +=
		(uint64_t)(((unsigned __int128)-tokens << POLICE_TICK_SHIFT) / old->per_tick) + 1;
	return word_of(0, 0, slot);
}

bool police_change(struct police *police, const struct police_rate *rate, uint64_t now)
{
	const struct police_terms next = terms_of(rate, now);
	uint64_t word = __atomic_load_n(&police->word, __ATOMIC_RELAXED), changed;
	const unsigned slot = word & 1; // only this thread changes it
	const struct police_terms *terms = &police->terms[slot];

	if (is_same(terms, &next))
		return false;
	do {
		police->terms[!slot] = next;
		changed = go_on(terms, word, &police->terms[!slot], !slot);
	} while (!__atomic_compare_exchange_n(&police->word, &word, changed, true, __ATOMIC_RELEASE,
		__ATOMIC_RELAXED)); // partner: police_take
	return true;
}

uint64_t police_left(const struct police *police, uint64_t now)
{
	const uint64_t word = __atomic_load_n(&police->word, __ATOMIC_ACQUIRE);
	const struct police_terms *terms = &police->terms[word & 1];
	const int64_t tokens = tokens_of(terms, word, clock_at(terms, now));

	return tokens < 0 ? 0 : (uint64_t)tokens >> POLICE_UNIT_SHIFT;
}
