// What a stream is, as a person wrote it and as everything else in this room reads it. Control
// thread makes it; workers read it.
#pragma once

#include "base/error.h"
#include "wire/build.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	GEN_MAX_STREAMS = 64,
	GEN_MAX_IDS = 256,
	GEN_MAX_FLOWS = 1 << 24,
	GEN_FLOWS_IN_ORDER = 65536, // up to so many flows, reordering is judged in each flow
	GEN_MAX_SIZES = 16,
	GEN_NAME_MAX = 32,
	GEN_PATH_MAX = 256,
	GEN_MAX_BURST = 64, // also what is caught up with, unless a stream says more
	GEN_MAX_CATCH_UP = 16384,
	GEN_MIN_SIZE = 64,   // frame sizes count the FCS
	GEN_MAX_SIZE = 9622, // 9600 bytes of IP, Ethernet, a VLAN tag and the FCS
};

enum gen_field_name {
	GEN_SRC_MAC,
	GEN_DST_MAC,
	GEN_SRC_IP,
	GEN_DST_IP,
	GEN_SRC_PORT,
	GEN_DST_PORT,
	GEN_N_FIELDS
};

// One value, or `count` values from the first one (which stands in the recipe) upwards: the number
// is added to the last 32 bits of an address, to the 16 bits of a port, and never overflows them.
struct gen_field {
	uint32_t count; // 1: fixed
	bool is_random; // in scattered order, else counting; each value equally often in both
};

// Which flow the next frame is of: each in turn, any with the same chance, or the first of them
// with the greatest (Zipf's law: flow f as often as 1 / (f + 1)^exponent).
enum gen_distribution { GEN_SEQUENTIAL, GEN_UNIFORM, GEN_ZIPF };

// Which file, in which state: of two that are alike, nobody wrote to the file in between, but
// within one tick of the file system's clock (10 ms and less). Times of the content and of the
// inode: the first can be set back, the second cannot.
struct gen_file {
	uint64_t device, inode, n_bytes, modified_ns, changed_ns;
};

// What a stream replays instead of frames of its own making.
struct gen_capture {
	char path[GEN_PATH_MAX]; // "": nothing
	struct gen_file file;    // that all of this was read of
	double speed;            // times the capture's own; 0: at the stream's pps
	bool stamps;             // frames with room get a stamp; else none does
	bool sets_src_mac, sets_dst_mac;
	uint32_t n_frames, n_stamped, longest; // bytes without FCS
	uint64_t n_bytes;                      // of all frames, without FCS
	uint64_t lap_ns; // from the first frame to the first again; 0: all have the same time
};

enum gen_rate_unit { GEN_MAX_RATE, GEN_PPS, GEN_PERCENT, GEN_BPS_L1, GEN_BPS_L2 };

struct gen_size {
	uint16_t bytes;  // with FCS
	uint32_t weight; // 1 to 1000; the frames of a mix come in a fixed order, mixed evenly
};

struct gen_stream {
	char name[GEN_NAME_MAX];
	uint8_t id;           // in the stamp; no two streams share one
	uint8_t from, to;     // port indices; they may be equal
	bool is_receive_only; // the frames come from another program; any run number is taken
	bool wants_mac;       // the recipe's dst_mac is that of the next hop: ask for it
	struct gen_capture capture;
	struct wire_recipe recipe; // first values of all fields; frame_bytes is that of sizes[0]
	struct gen_field fields[GEN_N_FIELDS];
	uint32_t n_flows;     // 1 to GEN_MAX_FLOWS
	uint8_t distribution; // enum gen_distribution; GEN_SEQUENTIAL: flow s mod n_flows
	double exponent;      // of GEN_ZIPF
	uint64_t seed;        // of the others than GEN_SEQUENTIAL
	unsigned n_sizes;
	struct gen_size sizes[GEN_MAX_SIZES];
	uint8_t rate_unit; // enum gen_rate_unit
	double rate;       // as written
	double pps;        // what that means on this port; 0: as fast as can be
	uint16_t burst;    // frames that are due together; 1 to GEN_MAX_BURST
	uint32_t
		catch_up; // frames that are made up for after a pause, the newest; the rest is late
	uint64_t n_frames; // 0: until the time is over
};

// What the reader must know of the generator's ports.
struct gen_port {
	const char *name;
	struct wire_mac mac;
	double line_bps; // layer 1; 0: unknown, then percent is refused and no rate is too high;
	                 // below 0: not known yet, then percent is taken and means 0 pps
	uint16_t mtu;    // IP bytes; 0: unknown, then no frame is too large for the port
};

struct gen_streams {
	unsigned n;
	struct gen_stream stream[GEN_MAX_STREAMS];
};

// Reads a list of streams (their keys: docs/guide/generator.md). 0, or -EINVAL and one sentence
// that names the stream and the key: "streams[1] (east): ...". *out is then unspecified. `ports`
// NULL: all is checked but names of ports and rates.
int gen_read_streams(struct gen_streams *out, const json_t *list, const struct gen_port ports[],
	unsigned n_ports, struct error *error);

// Mean frame bytes with FCS over the mix; rates at layer 1 add 20 bytes a frame, layer 2 none.
double gen_mean_bytes(const struct gen_stream *stream);
// The smallest frame, with FCS, that holds headers and stamp.
unsigned gen_smallest_bytes(const struct gen_stream *stream);
// "sequential", "uniform" or "zipf".
const char *gen_distribution_word(unsigned distribution);
// How many distinct flows the fields can make, at most GEN_MAX_FLOWS.
uint32_t gen_most_flows(const struct gen_stream *stream);
