// Decides when compacting the workers' copy pays. Control thread.
#include "fib/fib.h"

#include "fib/table.h"

enum { UNTIDY_LEAST = 4096, UNTIDY_SHARE = 4, QUIET_CALLS = 10, UNTIDY_MOST_TIMES = 4 };

void fib_tidy(struct fib *fib)
{
	uint32_t n = fib->n_untidy, n_routes = fib->n_routes[RIB4];
	bool is_quiet = n == fib->n_untidy_seen;

	fib->n_untidy_seen = n;
	fib->n_quiet = is_quiet ? fib->n_quiet + 1 : 0;
	if (n < UNTIDY_LEAST || n < n_routes / UNTIDY_SHARE)
		return;
	if (fib->n_quiet < QUIET_CALLS && n / UNTIDY_MOST_TIMES < n_routes)
		return;
	publish4_tidy(fib);
	fib->n_untidy = fib->n_untidy_seen = fib->n_quiet = 0;
}
