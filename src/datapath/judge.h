// What may pass, defined once: the route's verdict, TTL and length. Each condition has a scalar
// form and, where a fast predicate needs it, one for vectors next to it. judge() gives the verdict
// of one packet; the fast predicates over bursts (check.c, hop_limits_avx512.c) only tell whether
// all pass as they are, and send the burst to judge() otherwise. hop_limits_test.c compares them.
// Worker.
#pragma once

#include "datapath/hop_limits.h"

#include <stdbool.h>

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

// A packet that arrives with this TTL or hop limit, or less, is not forwarded.
enum { JUDGE_TTL_LAST = 1 };

static inline bool judge_is_expired(uint8_t ttl)
{
	return ttl <= JUDGE_TTL_LAST;
}

// `most`: the longest frame that may be sent to the hop, without what encap adds.
static inline bool judge_is_too_long(uint16_t length, uint16_t most)
{
	return length > most;
}

// Whether packets to all of these hops leave as they are; `all`: their kinds ORed.
static inline bool judge_are_plain(uint8_t all)
{
	return all == FIB_HOP_PLAIN;
}
_Static_assert(FIB_HOP_PLAIN == 0, "an OR of kinds is plain only if all are");

// Whether packets with this verdict of their hop (fib_entry_verdict) leave, TTL and length aside:
// at once or when its neighbour is resolved.
static inline bool judge_leaves(uint8_t hop_verdict)
{
	return hop_verdict == VERDICT_FORWARD || hop_verdict == VERDICT_NEIGHBOUR_UNRESOLVED;
}

// Whether packets with this verdict of their hop are for the router itself, not in transit.
static inline bool judge_is_for_router(uint8_t hop_verdict)
{
	return hop_verdict == VERDICT_LOCAL || hop_verdict == VERDICT_MULTICAST ||
	       hop_verdict == VERDICT_LINK_LOCAL_DESTINATION;
}

#if defined(__AVX512BW__)
static inline __mmask64 judge_are_expired(__m512i ttl)
{
	return _mm512_cmple_epu8_mask(ttl, _mm512_set1_epi8(JUDGE_TTL_LAST));
}

static inline __mmask32 judge_are_too_long(__m512i length, __m512i most)
{
	return _mm512_cmpgt_epu16_mask(length, most);
}
#endif

// The verdict of a packet whose hop is not a group, and has these limits. The route comes first:
// TTL and length do not matter for packets that are not forwarded.
static inline enum verdict judge(uint32_t limits, uint16_t most, uint16_t length, uint8_t ttl)
{
	if (limits_kind(limits) == FIB_HOP_STOP)
		return limits_verdict(limits);
	if (judge_is_expired(ttl))
		return VERDICT_TTL_EXPIRED;
	return judge_is_too_long(length, most) ? VERDICT_MTU_EXCEEDED : VERDICT_FORWARD;
}
