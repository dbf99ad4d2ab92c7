// The schedule of a stream. Worker; creation: control thread.
#include "gen/pace.h"

#include "base/bits.h"

#include <math.h>

enum { FRACTION_BITS = 32 };

typedef unsigned __int128 fine; // a pace_time as a single number

static fine to_fine(struct pace_time time)
{
	return (fine)time.cycles << FRACTION_BITS | time.fraction;
}

static struct pace_time from_fine(fine value)
{
	return (struct pace_time){value >> FRACTION_BITS, (uint32_t)value};
}

void pace_make(struct pace *pace, const struct gen_stream *stream, uint64_t hz)
{
	*pace = (struct pace){
		.burst = stream->burst ? stream->burst : 1,
		.n_frames = stream->n_frames ? stream->n_frames : UINT64_MAX,
		.catch_up = MAX_OF(stream->catch_up, (uint32_t)GEN_MAX_BURST),
		.is_max = !(stream->pps > 0),
	};
	if (pace->is_max)
		return;
	long double step = (long double)hz / stream->pps * pace->burst;

	// Rounded up: otherwise the first frame of the next second would be due just before this
	// one ends.
	pace->step = from_fine(ceill(step * (1ll << FRACTION_BITS)));
	pace->long_gap = step * (pace->catch_up / pace->burst);
}

void pace_begin(struct pace *pace, uint64_t start, uint64_t end)
{
	pace->due = (struct pace_time){.cycles = start};
	pace->end = end ? end : UINT64_MAX;
	pace->left = pace->n_frames;
	pace->left_of_burst = pace->burst;
	pace->late = 0;
}

static inline void to_next_burst(struct pace *pace)
{
	uint64_t fraction = pace->due.fraction + pace->step.fraction;

	pace->due.cycles += pace->step.cycles + (fraction >> FRACTION_BITS);
	pace->due.fraction = (uint32_t)fraction;
	pace->left_of_burst = pace->burst;
}

// Skips to the most recent frames due until then.
static __attribute__((noinline)) void skip_late(struct pace *pace, uint64_t until)
{
	fine due = to_fine(pace->due), step = to_fine(pace->step);
	fine gap = ((fine)until << FRACTION_BITS) - MIN_OF(due, (fine)until << FRACTION_BITS);
	fine n_due = pace->left_of_burst + gap / MAX_OF(step, (fine)1) * pace->burst;

	n_due = MIN_OF(n_due, (fine)pace->left);
	if (n_due <= pace->catch_up)
		return;
	uint64_t skipped = n_due - pace->catch_up;
	uint64_t from_burst = pace->burst - pace->left_of_burst + skipped;

	pace->due = from_fine(due + step * (from_burst / pace->burst));
	pace->left_of_burst = pace->burst - from_burst % pace->burst;
	pace->left -= skipped;
	pace->late += skipped;
}

static unsigned take_max(struct pace *pace, uint64_t now, uint64_t due[])
{
	unsigned n = MIN_OF(pace->left, (uint64_t)GEN_MAX_BURST);

	if (now < pace->due.cycles || now >= pace->end)
		return 0;
	for (unsigned i = 0; i < GEN_MAX_BURST; i++)
		due[i] = now;
	pace->left -= n;
	return n;
}

unsigned pace_take(struct pace *pace, uint64_t now, uint64_t due[])
{
	uint64_t until = MIN_OF(now, pace->end - 1);
	unsigned n = 0;

	if (pace->is_max)
		return take_max(pace, now, due);
	if (pace->due.cycles > until)
		return 0;
	if (unlikely(until - pace->due.cycles >= pace->long_gap))
		skip_late(pace, until);
	const unsigned most = MIN_OF(pace->left, (uint64_t)GEN_MAX_BURST);

	for (; n < most && pace->due.cycles <= until; n++) {
		due[n] = pace->due.cycles;
		if (!--pace->left_of_burst)
			to_next_burst(pace);
	}
	pace->left -= n;
	return n;
}

void pace_refuse(struct pace *pace, unsigned n)
{
	if (pace->is_max)
		pace->left += n;
	else
		pace->late += n;
}

bool pace_is_over(const struct pace *pace, uint64_t now)
{
	return !pace->left || (pace->is_max ? now : pace->due.cycles) >= pace->end;
}
