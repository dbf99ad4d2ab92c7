// The mixes of frame sizes that have a name: a new one is a row here, and a name in MIXES of
// dl3/model/stream.py. Sizes are with FCS; weights say how many frames of each come among their
// sum.
#include "gen/read.h"

#include "base/bits.h"

const struct gen_mix gen_mixes[] = {
	// 45, 23.5, 15, 11 and 5.5 % of the frames.
	{"imix", 5, {{64, 90}, {128, 47}, {256, 30}, {512, 22}, {1024, 11}}},
	// The mix of old Internet backbones.
	{"classic", 3, {{64, 7}, {570, 4}, {1518, 1}}},
};
const unsigned gen_n_mixes = ARRAY_LEN(gen_mixes);
