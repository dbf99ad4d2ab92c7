// Destinations to next hops: one bulk lookup per family. Lane.
#include "path/steps.h"

void path_lookup4(const struct fib_view *view, struct burst *b)
{
	fib_lookup4(view, b->dst4, b->hop, b->n);
}

void path_lookup4_two(const struct fib_view *view, struct burst *first, struct burst *second)
{
	uint32_t dst[2 * BURST_MAX] LINE_ALIGNED;
	uint16_t hop[2 * BURST_MAX] LINE_ALIGNED;

	memcpy(dst, first->dst4, sizeof(first->dst4));
	memcpy(dst + BURST_MAX, second->dst4, sizeof(second->dst4));
	fib_lookup4(view, dst, hop, 2 * BURST_MAX);
	memcpy(first->hop, hop, sizeof(first->hop));
	memcpy(second->hop, hop + BURST_MAX, sizeof(second->hop));
}

void path_lookup6(const struct fib_view *view, struct burst *b)
{
	fib_lookup6(view, b->dst6, b->hop, b->n);
}
