// Maps frame numbers to flows, without division or logarithm. Worker; creation: control thread.
#include "gen/flows.h"

#include "base/bits.h"
#include "gen/mix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Ranks below 2 * NARROW have one bin each. Above, the width of a bin is 1/1024 of its first rank,
// so the relative error of a rank's share is at most exponent / 2048.
enum { NARROW = 1024 };

static uint32_t width_at(uint32_t rank, uint32_t n)
{
	return MIN_OF(MAX_OF(1u, rank / NARROW), n - rank);
}

static uint32_t count_bins(uint32_t n)
{
	uint32_t n_bins = 0;

	for (uint32_t rank = 0; rank < n; rank += width_at(rank, n))
		n_bins++;
	return n_bins;
}

// Shares of the bins, relative to an even share. The middle of a bin represents all of its ranks.
static void fill_shares(struct flows *flows, double exponent, double share[])
{
	double sum = 0;
	uint32_t rank = 0;

	for (uint32_t i = 0; i < flows->n_bins; i++) {
		uint32_t width = width_at(rank, flows->n);

		flows->bin[i].first = rank;
		flows->bin[i].width = width;
		share[i] = width * pow(1 + rank + (width - 1) / 2.0, -exponent);
		sum += share[i];
		rank += width;
	}
	for (uint32_t i = 0; i < flows->n_bins; i++)
		share[i] *= flows->n_bins / sum;
}

static void set_other(struct flows_bin *bin, double share, const struct flows_bin *other)
{
	bin->threshold = MIN_OF(share * 0x1p32, 0xffffffffp0);
	bin->other = other->first;
	bin->other_width = other->width;
}

// Bins with less than an even share are filled up from those with more.
static void fill_table(struct flows *flows, double share[])
{
	struct flows_bin *bin = flows->bin;
	uint32_t n_lower = 0, n_upper = 0;
	uint32_t *lower = malloc(2 * flows->n_bins * sizeof(*lower));
	uint32_t *upper = lower ? lower + flows->n_bins : NULL;

	if (!lower) {
		flows->n_bins = 0;
		return;
	}
	for (uint32_t i = 0; i < flows->n_bins; i++) {
		set_other(&bin[i], 1, &bin[i]);
		if (share[i] < 1)
			lower[n_lower++] = i;
		else
			upper[n_upper++] = i;
	}
	while (n_lower && n_upper) {
		uint32_t less = lower[--n_lower], more = upper[n_upper - 1];

		set_other(&bin[less], share[less], &bin[more]);
		share[more] -= 1 - share[less];
		if (share[more] < 1) {
			n_upper--;
			lower[n_lower++] = more;
		}
	}
	free(lower);
}

static int make_bins(struct flows *flows, double exponent)
{
	flows->n_bins = count_bins(flows->n);
	flows->bin = calloc(flows->n_bins, sizeof(*flows->bin));
	double *share = calloc(flows->n_bins, sizeof(*share));

	if (flows->bin && share) {
		fill_shares(flows, exponent, share);
		fill_table(flows, share);
	} else {
		flows->n_bins = 0;
	}
	free(share);
	return flows->n_bins ? 0 : -ENOMEM;
}

int flows_make(struct flows *flows, const struct gen_stream *stream, struct error *error)
{
	*flows = (struct flows){
		.kind = stream->distribution,
		.n = MAX_OF(stream->n_flows, 1u),
		.seed = mix(stream->seed),
	};
	if (flows->n > 1)
		flows->reciprocal = UINT64_MAX / flows->n + 1;
	if (flows->kind == GEN_ZIPF && make_bins(flows, stream->exponent))
		return error_set(error, -ENOMEM,
			"stream %s: not enough memory for the distribution of its flows; use fewer "
			"streams",
			stream->name);
	return 0;
}

void flows_free(struct flows *flows)
{
	free(flows->bin);
	*flows = (struct flows){0};
}

static inline uint64_t dice(const struct flows *flows, uint64_t number)
{
	return mix(flows->seed + number * MIX_STEP);
}

static inline uint32_t even(const struct flows *flows, uint64_t dice)
{
	return (unsigned __int128)dice * flows->n >> 64;
}

// The upper half selects the bin and the alias, the lower half a rank within it.
static inline uint32_t ranked(const struct flows *flows, uint64_t dice)
{
	uint64_t place = (dice >> 32) * flows->n_bins;
	const struct flows_bin *bin = &flows->bin[place >> 32];
	bool is_own = (uint32_t)place < bin->threshold;
	uint32_t first = is_own ? bin->first : bin->other;
	uint32_t width = is_own ? bin->width : bin->other_width;

	return first + ((dice & 0xffffffff) * width >> 32);
}

// number mod n. The product with the reciprocal is less than n too large, so the quotient is at
// most one too large.
static inline uint32_t in_turn(const struct flows *flows, uint64_t number)
{
	uint64_t round = (unsigned __int128)number * flows->reciprocal >> 64;

	if (flows->n == 1) // its reciprocal does not fit
		return 0;
	return number - round * flows->n + (round * flows->n > number ? flows->n : 0);
}

uint32_t flows_of(const struct flows *flows, uint64_t number)
{
	switch (flows->kind) {
	case GEN_UNIFORM:
		return even(flows, dice(flows, number));
	case GEN_ZIPF:
		return ranked(flows, dice(flows, number));
	default:
		return in_turn(flows, number);
	}
}

void flows_fill(const struct flows *flows, uint64_t number, uint32_t flow[], unsigned n)
{
	uint64_t word[GEN_MAX_BURST];

	for (unsigned i = 0; i < GEN_MAX_BURST; i++)
		word[i] = dice(flows, number + i);
	if (flows->kind == GEN_ZIPF)
		for (unsigned i = 0; i < n; i++)
			flow[i] = ranked(flows, word[i]);
	else if (flows->kind == GEN_UNIFORM)
		for (unsigned i = 0; i < n; i++)
			flow[i] = even(flows, word[i]);
	else
		for (unsigned i = 0; i < n; i++)
			flow[i] = flows_of(flows, number + i);
}
