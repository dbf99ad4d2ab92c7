// Destinations to next hops: one bulk lookup per family. Lane.
#include "path/steps.h"

void path_lookup4(const struct fib_view *view, struct burst *b)
{
	for (uint16_t i = 0; i < b->n; i++)
		fib_prefetch4(view, b->dst4[i]);
	view->lookup4(view, b->dst4, b->hop, b->n);
}

void path_lookup6(const struct fib_view *view, struct burst *b)
{
	view->lookup6(view, b->dst6, b->hop, b->n);
}
