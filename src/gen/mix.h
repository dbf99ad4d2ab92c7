// Mixes all bits of a word (Stafford's variant 13, as in SplitMix64). Pure.
#pragma once

#include <stdint.h>

// What is added to a word per step of a sequence of mixed words: 2^64 divided by the golden ratio.
#define MIX_STEP 0x9e3779b97f4a7c15ull

static inline uint64_t mix(uint64_t word)
{
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
	word = (word ^ word >> 27) * 0x94d049bb133111eb;
	return word ^ word >> 31;
}
