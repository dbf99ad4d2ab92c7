// Looks up destinations: one bulk lookup per family. Worker.
#include "datapath/steps.h"

void datapath_lookup4(const struct fib_view *view, struct burst *b)
{
	fib_lookup4(view, b->dst4, b->hop, b->n);
}

void datapath_lookup6(const struct fib_view *view, struct burst *b)
{
	fib_lookup6(view, b->dst6, b->hop, b->n);
}
