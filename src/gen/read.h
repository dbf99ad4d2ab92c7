// What the files that read streams share: where in the list they are, single values, and the one
// sentence for each mistake. Control thread.
#pragma once

#include "gen/stream.h"

#include <stddef.h>

struct stream_reader {
	const struct gen_port *ports; // NULL: unknown
	unsigned n_ports;
	const json_t *map; // the stream as it was written
	struct gen_streams *streams;
	struct gen_stream *stream; // the one that is filled
	char where[64];            // "streams[1] (east)"
	const char *key;           // the one that is read; NULL: the stream itself
	char inside[32];           // "dst_ip." while a map inside of the stream is read
	unsigned field;            // enum gen_field_name: the one that is read
	uint32_t weight;           // of the next size
	struct error *error;
};

// A key and what reads its value, which is NULL where the stream has none.
struct stream_key {
	const char *name;
	int (*read)(struct stream_reader *r, const json_t *value);
};

// "streams[1] (east): KEY VALUE: ...", KEY being r->key; without the value where it is NULL.
// Returns -EINVAL.
int read_mistake(struct stream_reader *r, const json_t *value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// Reads a map by its `n` keys, in their order; `inside` grows by the key that the map stands under.
// A key that is not among them is a mistake, which tells the nearest.
int read_map(struct stream_reader *r, const json_t *map, const struct stream_key keys[], size_t n);
// A whole number, written as such, as 1e6, or as digits in text.
struct read_range {
	uint64_t min, max;
};
int read_number(struct stream_reader *r, const json_t *value, struct read_range range,
	uint64_t *out);
int read_boolean(struct stream_reader *r, const json_t *value, bool *out);
// "" where the value is no text.
const char *read_text(const json_t *value);

// Readers of single keys, by file. Each takes NULL for a key that is not there.
// --- read_fields.c
int read_src_mac(struct stream_reader *r, const json_t *value);
int read_dst_mac(struct stream_reader *r, const json_t *value);
int read_src_ip(struct stream_reader *r, const json_t *value);
int read_dst_ip(struct stream_reader *r, const json_t *value); // after src_ip: both are settled
int read_src_port(struct stream_reader *r, const json_t *value);
int read_dst_port(struct stream_reader *r, const json_t *value);
int read_flows(struct stream_reader *r, const json_t *value); // after all fields
int read_distribution(struct stream_reader *r, const json_t *value);
int read_exponent(struct stream_reader *r, const json_t *value); // after distribution, as seed
int read_seed(struct stream_reader *r, const json_t *value);
// --- read_size.c: after the headers
int read_size(struct stream_reader *r, const json_t *value);
// A frame of so many bytes with FCS on the stream's ports; about the key that is read.
int read_check_ports(struct stream_reader *r, const json_t *value, unsigned bytes);
// --- read_capture.c
int read_pcap(struct stream_reader *r, const json_t *value); // after from, before all headers
int read_stamp(struct stream_reader *r, const json_t *value);
int read_loops(struct stream_reader *r, const json_t *value);
int read_capture(struct stream_reader *r); // after the MAC addresses, in place of sizes
// "as recorded" (also without a value) or "x2.5" of a capture. 1: it is another rate.
int read_speed(struct stream_reader *r, const json_t *value);
// --- rate.c: after from and size
int read_rate(struct stream_reader *r, const json_t *value);

// --- mix.c: the mixes of frame sizes that have a name.
struct gen_mix {
	const char *name;
	unsigned n_sizes;
	struct gen_size sizes[GEN_MAX_SIZES];
};
extern const struct gen_mix gen_mixes[];
extern const unsigned gen_n_mixes;
