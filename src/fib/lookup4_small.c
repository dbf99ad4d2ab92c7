// IPv4 in a further VRF: its destinations as the top bits of keys, through a root of their own and
// then the way of IPv6. Lane.
#include "fib/lookup.h"

enum { BURST = 64 };

void lookup4_small(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	struct fib_key6 key[BURST];
	struct fib_view other = *view;

	for (unsigned i = 0; i < n; i++)
		key[i] = (struct fib_key6){.high = (uint64_t)dst[i] << 32};
	other.root6 = view->root4;
	view->lookup6(&other, key, hop, n);
}
