// Token bucket arithmetic; 64 bits hold 1,000 s of the highest rate.
#include "tap/bucket.h"

#include "base/bits.h"

static const uint64_t longest_ns = 1000000000000;

void bucket_start(struct bucket *bucket, uint32_t burst, uint64_t now_ns)
{
	bucket->credit = (uint64_t)burst * BUCKET_FRAME;
	bucket->at_ns = now_ns;
}

void bucket_fill(struct bucket *bucket, uint32_t rate, uint32_t burst, uint64_t now_ns)
{
	uint64_t elapsed_ns = MIN_OF(now_ns - bucket->at_ns, longest_ns);

	bucket->at_ns = now_ns;
	bucket->credit = MIN_OF(bucket->credit + elapsed_ns * rate, (uint64_t)burst * BUCKET_FRAME);
	if (!rate)
		bucket->credit = 0;
}
