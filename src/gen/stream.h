// Definition of a stream, as written by the user and as used by the rest of this module. Created by
// the control thread, read by workers.
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
	GEN_FLOWS_IN_ORDER = 65536, // with up to this many flows, reordering is checked per flow
	GEN_MAX_SIZES = 16,
	GEN_NAME_MAX = 32,
	GEN_PATH_MAX = 256,
	GEN_TEXT_MAX = 200,
	GEN_MAX_BURST = 64, // also the default for catch_up
	GEN_MAX_CATCH_UP = 16384,
	GEN_EXPECT_PORTS = 16,
	GEN_EXPECT_DSCPS = 64,
	GEN_MAX_LABELS = 4,
	GEN_MAX_LOGGED = 1 << 28, // 4 GiB
	GEN_MIN_SIZE = 64,        // frame sizes include the FCS
	GEN_MAX_SIZE = 9622,      // 9600 bytes of IP, Ethernet, a VLAN tag and the FCS
};

enum gen_field_name {
	GEN_SRC_MAC,
	GEN_DST_MAC,
	GEN_SRC_IP,
	GEN_DST_IP,
	GEN_SRC_PORT,
	GEN_DST_PORT,
	GEN_ENCAP_ID, // the last label, the VNI or the key
	GEN_INNER_SRC_MAC,
	GEN_INNER_DST_MAC,
	GEN_N_FIELDS
};

// One value, or `count` values from the first one (stored in the recipe or the encapsulation)
// upwards: the number is added to the last 32 bits of an address, the 16 bits of a port or the bits
// of an id, without overflow.
struct gen_field {
	uint32_t count; // 1: fixed
	bool is_random; // in scattered order, otherwise counting; all values equally frequent in
	                // both
};

// The flow of the next frame: in sequence, uniformly random, or with the first flow most frequent
// (Zipf's law: flow f as often as 1 / (f + 1)^exponent).
enum gen_distribution { GEN_SEQUENTIAL, GEN_UNIFORM, GEN_ZIPF };

// Identity and state of a file: if two are equal, the file was not written to in between, except
// within one tick of the file system's clock (10 ms or less). Includes mtime, which can be set
// back, and ctime, which cannot.
struct gen_file {
	uint64_t device, inode, n_bytes, modified_ns, changed_ns;
};

// A capture that a stream replays instead of generating frames.
struct gen_capture {
	char path[GEN_PATH_MAX]; // "": none
	struct gen_file file;    // the file all of this was read from
	double speed;            // multiple of the recorded speed; 0: at the stream's pps
	bool stamps;             // frames with enough space are stamped; otherwise none are
	bool sets_src_mac, sets_dst_mac;
	uint32_t n_frames, n_stamped, longest; // bytes without FCS
	uint64_t n_bytes;                      // of all frames, without FCS
	uint64_t lap_ns; // from the first frame to the first of the next lap; 0: all have the same
	                 // time
	uint32_t n_left_out;         // frames that are not Ethernet
	char left_out[GEN_TEXT_MAX]; // their interfaces
};

enum gen_encap_type { GEN_PLAIN, GEN_MPLS, GEN_MPLS_UDP, GEN_GRE, GEN_GRETAP, GEN_VXLAN };

// What surrounds the packet of the recipe, between it and the Ethernet header of the recipe. All
// numbers in host order.
struct gen_encap {
	uint8_t type;      // enum gen_encap_type; GEN_PLAIN: nothing, all else is unused
	uint8_t n_labels;  // MPLS, also in GRE; above the last one, which is `id`, are those of
	                   // label
	bool has_key;      // GRE
	bool has_checksum; // UDP; otherwise it is 0
	bool hashes_port;  // src_port is selected by the addresses and ports of the packet
	uint8_t ttl;       // of the outer packet and of the labels
	uint16_t src_port, dst_port;
	uint32_t label[GEN_MAX_LABELS - 1];   // the outermost first
	uint32_t id;                          // first value of GEN_ENCAP_ID
	uint32_t key;                         // of GRE with labels; without labels it is `id`
	struct wire_addr src, dst;            // of the outer packet; family 0: there is none
	struct wire_mac inner_src, inner_dst; // GRETAP, VXLAN
};

// The encapsulation with which frames are expected; what is 0 or false here may be anything.
struct gen_expect_encap {
	bool is_checked;
	bool has_checksum, has_no_checksum; // which of both is expected
	uint8_t type;
	uint8_t n_labels;
	uint32_t label[GEN_MAX_LABELS - 1];
	uint32_t id, n_ids;
	struct wire_addr src, dst;
};

// The port and the DSCP with which the frames of each flow are expected: gen/expect.h.
struct gen_expect {
	uint64_t secret, other_secret;
	uint32_t every;                 // flows divisible by it may use other_secret; 0: none
	unsigned n_ports, n_dscps;      // n_ports 0: nothing is expected
	uint8_t port[GEN_EXPECT_PORTS]; // indices; one of them is `to`
	uint8_t dscp[GEN_EXPECT_DSCPS];
	struct gen_expect_encap encap;
};

enum gen_rate_unit { GEN_MAX_RATE, GEN_PPS, GEN_PERCENT, GEN_BPS_L1, GEN_BPS_L2 };

struct gen_size {
	uint16_t bytes;  // with FCS
	uint32_t weight; // 1 to 1000; the frames of a mix are sent in a fixed order, evenly
	                 // interleaved
};

struct gen_stream {
	char name[GEN_NAME_MAX];
	uint8_t id;           // in the stamp; unique
	uint8_t from, to;     // port indices; may be equal
	bool is_receive_only; // frames are sent by another program; any run number is accepted
	bool wants_mac;       // the recipe's dst_mac must be resolved for the next hop
	struct gen_capture capture;
	struct wire_recipe recipe; // first values of all fields; frame_bytes is that of sizes[0]
	struct gen_encap encap;    // around the recipe's packet
	struct gen_field fields[GEN_N_FIELDS];
	uint32_t n_flows;     // 1 to GEN_MAX_FLOWS
	uint8_t distribution; // enum gen_distribution; GEN_SEQUENTIAL: flow s mod n_flows
	double exponent;      // of GEN_ZIPF
	uint64_t seed;        // of distributions other than GEN_SEQUENTIAL
	bool counts_flows;    // received frames are also counted by flow
	uint32_t n_logged;    // the arrival of so many frames is logged; 0: of none
	struct gen_expect expect;
	unsigned n_sizes;
	struct gen_size sizes[GEN_MAX_SIZES];
	uint8_t rate_unit; // enum gen_rate_unit
	double rate;       // as written
	double pps;        // converted for this port; 0: as fast as possible
	uint16_t burst;    // frames due at the same time; 1 to GEN_MAX_BURST
	uint32_t catch_up; // most recent frames sent after a stall; older ones are late
	uint64_t n_frames; // 0: until the time has elapsed
};

// Properties of the generator's ports used by the parser.
struct gen_port {
	const char *name;
	struct wire_mac mac;
	double line_bps; // layer 1; 0: unknown, percentages are rejected and no rate is too high;
	                 // negative: not known yet, percentages are accepted and mean 0 pps
	uint16_t mtu;    // of IP packets; 0: unknown, no frame is too large for the port
};

struct gen_streams {
	unsigned n;
	struct gen_stream stream[GEN_MAX_STREAMS];
};

// Reads a list of streams (keys: see docs/guide/generator.md). 0, or -EINVAL with `error` set to a
// message that names the stream and the key: "streams[1] (east): ...". *out is then unspecified.
// `ports` NULL: everything is checked except port names and rates.
int gen_read_streams(struct gen_streams *out, const json_t *list, const struct gen_port ports[],
	unsigned n_ports, struct error *error);

// Mean frame size with FCS over the mix; at layer 1, rates include 20 more bytes per frame, at
// layer 2 none.
double gen_mean_bytes(const struct gen_stream *stream);
// The smallest frame size, with FCS, that fits headers and stamp.
unsigned gen_smallest_bytes(const struct gen_stream *stream);
// "sequential", "uniform" or "zipf".
const char *gen_distribution_word(unsigned distribution);
// The word for an encapsulation, such as "mpls-udp"; "none" for GEN_PLAIN.
const char *gen_encap_word(unsigned type);
// Number of distinct flows that the fields can form, at most GEN_MAX_FLOWS.
uint32_t gen_most_flows(const struct gen_stream *stream);
