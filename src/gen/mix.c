// Named mixes of frame sizes: a new one needs a row here, and a name in MIXES of
// dl3/model/stream.py. Sizes include the FCS; weights are relative frequencies.
#include "gen/read.h"

#include "base/bits.h"

const struct gen_mix gen_mixes[] = {
	// 45, 23.5, 15, 11 and 5.5 % of the frames.
	{"imix", 5, {{64, 90}, {128, 47}, {256, 30}, {512, 22}, {1024, 11}}},
	// The mix of former Internet backbones.
	{"classic", 3, {{64, 7}, {570, 4}, {1518, 1}}},
};
const unsigned gen_n_mixes = ARRAY_LEN(gen_mixes);
