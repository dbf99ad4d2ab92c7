// IPv4 lookup in a further VRF: destinations are the top bits of IPv6 keys, with a root of their
// own. Worker.
#include "fib/lookup.h"

enum { BURST = 64 };

void lookup4_small(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	struct fib_key6 key[BURST];
	struct fib_view other = *view;

	other.root6 = view->root4;
	for (unsigned done = 0, now; done < n; done += now) {
		now = MIN_OF(n - done, BURST);
		for (unsigned i = 0; i < now; i++)
			key[i] = (struct fib_key6){.high = (uint64_t)dst[done + i] << 32};
		view->lookup6(&other, key, hop + done, now);
	}
}
