// Shared by the files that read streams: the current position in the list, single values, and the
// error message for each mistake. Control thread.
#pragma once

#include "gen/stream.h"

#include <stddef.h>

struct stream_reader {
	const struct gen_port *ports; // NULL: unknown
	unsigned n_ports;
	const json_t *map; // the stream as written
	struct gen_streams *streams;
	struct gen_stream *stream; // the stream being filled in
	char where[64];            // "streams[1] (east)"
	const char *key;           // being read; NULL: the stream itself
	char inside[32];           // "dst_ip." while reading a map inside the stream
	unsigned field;            // enum gen_field_name: being read
	uint32_t weight;           // of the next size
	struct gen_encap *encap;   // being read
	struct gen_field *ids;     // of its ids
	uint32_t most_id;
	struct error *error;
};

// A key and the reader of its value, which is NULL if the stream does not have the key.
struct stream_key {
	const char *name;
	int (*read)(struct stream_reader *r, const json_t *value);
};

// Sets "streams[1] (east): KEY VALUE: ...", with KEY from r->key; without the value if it is NULL.
// Returns -EINVAL.
int read_mistake(struct stream_reader *r, const json_t *value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// Reads a map by its `n` keys, in their order; the map's own key is appended to `inside`. Any other
// key is an error, which suggests the nearest known one.
int read_map(struct stream_reader *r, const json_t *map, const struct stream_key keys[], size_t n);
// An integer from min to max, written as such, as 1e6, or as digits in a string.
int read_number(struct stream_reader *r, const json_t *value, uint64_t min, uint64_t max,
	uint64_t *out);
// Index of a port, from its name; *out is unchanged if the ports are unknown. In read.c.
int read_port(struct stream_reader *r, const json_t *value, uint8_t *out);
int read_boolean(struct stream_reader *r, const json_t *value, bool *out);
// A value or a range of values of enum gen_field_name, other than GEN_ENCAP_ID. In read_fields.c.
int read_field(struct stream_reader *r, unsigned field, const json_t *value);
// "" if the value is not a string.
const char *read_text(const json_t *value);

// Readers of single keys, by file. Each accepts NULL for a missing key.
// --- read_fields.c
int read_src_mac(struct stream_reader *r, const json_t *value);
int read_dst_mac(struct stream_reader *r, const json_t *value);
int read_src_ip(struct stream_reader *r, const json_t *value);
int read_dst_ip(struct stream_reader *r, const json_t *value); // after src_ip: sets both
int read_src_port(struct stream_reader *r, const json_t *value);
int read_dst_port(struct stream_reader *r, const json_t *value);
int read_flows(struct stream_reader *r, const json_t *value); // after all fields
int read_distribution(struct stream_reader *r, const json_t *value);
int read_exponent(struct stream_reader *r, const json_t *value); // after distribution, like seed
int read_seed(struct stream_reader *r, const json_t *value);
// --- read_encap.c: after the ports
int read_encap(struct stream_reader *r, const json_t *value);
int read_expect_encap(struct stream_reader *r, const json_t *value);
// --- read_expect.c: after the flows and `to`
int read_count_flows(struct stream_reader *r, const json_t *value);
int read_log_arrivals(struct stream_reader *r, const json_t *value);
int read_expect(struct stream_reader *r, const json_t *value);
// --- read_size.c: after the headers
int read_size(struct stream_reader *r, const json_t *value);
// Checks a frame of `bytes` with FCS against the stream's ports; errors refer to the current key.
int read_check_ports(struct stream_reader *r, const json_t *value, unsigned bytes);
// --- read_capture.c
int read_pcap(struct stream_reader *r, const json_t *value); // after from, before all headers
int read_stamp(struct stream_reader *r, const json_t *value);
int read_loops(struct stream_reader *r, const json_t *value);
int read_capture(struct stream_reader *r); // after the MAC addresses, instead of sizes
// "as recorded" (also the default) or "x2.5" for a capture. 1: it is a different kind of rate.
int read_speed(struct stream_reader *r, const json_t *value);
// --- rate.c: after from and size
int read_rate(struct stream_reader *r, const json_t *value);
