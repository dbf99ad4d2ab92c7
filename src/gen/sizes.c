// The order of frame sizes in a mix. Worker; creation: control thread.
#include "gen/sizes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t common_divisor_of_weights(const struct gen_stream *stream)
{
	uint32_t divisor = 0;

	for (unsigned i = 0; i < stream->n_sizes; i++)
		for (uint32_t weight = stream->sizes[i].weight; weight;) {
			uint32_t rest = divisor % weight;

			divisor = weight;
			weight = rest;
		}
	return divisor ? divisor : 1;
}

// Selects the size with the highest credit: each size earns its weight per frame and pays for a
// whole round when taken, so it is never a frame ahead or behind.
static uint8_t take_most_owed(const struct gen_stream *stream, int64_t credit[], int64_t total)
{
	unsigned most = 0;

	for (unsigned i = 0; i < stream->n_sizes; i++) {
		credit[i] += stream->sizes[i].weight;
		if (credit[i] > credit[most])
			most = i;
	}
	credit[most] -= total;
	return most;
}

int sizes_make(struct sizes *sizes, const struct gen_stream *stream)
{
	int64_t credit[GEN_MAX_SIZES] = {0};
	uint32_t total = 0;

	*sizes = (struct sizes){0};
	for (unsigned i = 0; i < stream->n_sizes; i++)
		total += stream->sizes[i].weight;
	sizes->n_round = stream->n_sizes > 1 ? total / common_divisor_of_weights(stream) : 1;
	sizes->round = calloc(1, sizes->n_round + GEN_MAX_BURST);
	if (!sizes->round)
		return -ENOMEM;
	if (stream->n_sizes > 1)
		for (uint32_t i = 0; i < sizes->n_round; i++)
			sizes->round[i] = take_most_owed(stream, credit, total);
	for (uint32_t i = 0; i < GEN_MAX_BURST; i++)
		sizes->round[sizes->n_round + i] = sizes->round[i];
	return 0;
}

void sizes_free(struct sizes *sizes)
{
	free(sizes->round);
	*sizes = (struct sizes){0};
}

const uint8_t *sizes_take(struct sizes *sizes, unsigned n)
{
	const uint8_t *taken = sizes->round + sizes->at;

	sizes->at += n;
	while (sizes->at >= sizes->n_round)
		sizes->at -= sizes->n_round;
	return taken;
}

void sizes_seek(struct sizes *sizes, uint64_t sequence)
{
	sizes->at = sequence % sizes->n_round;
}
