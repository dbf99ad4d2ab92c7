// IPv6 in bulk, for any CPU. Lane.
#include "fib/lookup.h"

#include "fib/layout.h"

static inline unsigned line_run(const struct line6 *line, unsigned slot)
{
	unsigned run = 0;

	for (unsigned i = 0; i < LINE_RUNS; i++)
		run += line->last[i] < slot;
	return run;
}

#include "fib/descend6.h"

void lookup6_scalar(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[], unsigned n)
{
	descend(view, dst, hop, n);
}
