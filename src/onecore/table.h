// The frames that the source port "receives": one 64-byte frame and a table of destinations, of
// addresses and ports, or of MAC addresses, to be inserted; on request, in outer headers. Filled
// before any worker reads it, constant afterwards.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	TABLE_FRAME_BYTES = 64,   // without FCS
	TABLE_LINE_BYTES = 64,    // cache line
	TABLE_RECORD4_BYTES = 8,  // {be32 destination, be16 header checksum, u16 0}
	TABLE_RECORD6_BYTES = 16, // {16-byte destination}
	// {be32 source, destination, be16 source port, destination port, be16 header checksum, u16
	// 0}: of IPv4, if the source address of the frame is 0.0.0.0
	TABLE_FLOW_BYTES = 16,
	// {6-byte destination MAC address, source MAC address, be16 source port, destination port}:
	// of IPv4, if the source MAC address of the frame is 0
	TABLE_MACS_BYTES = 16,
	TABLE_SOURCE_MAC_AT = 6, // offset in the frame
	TABLE_CHECKSUM4_AT = 24, // Ethernet 14 + 10
	TABLE_SOURCE4_AT = 26,   // followed by destination and ports
	TABLE_DESTINATION4_AT = 30,
	TABLE_PORTS_AT = 34,
	TABLE_DESTINATION6_AT = 38,
	TABLE_OUTER_BYTES = 50, // Ethernet 14 + IPv4 20 + UDP 8 + VXLAN 8
	TABLE_MAX_BYTES = TABLE_OUTER_BYTES + TABLE_FRAME_BYTES,
};

struct table {
	uint8_t frame[TABLE_FRAME_BYTES] __attribute__((aligned(64)));
	const uint8_t *records;
	uint32_t mask; // number of records - 1; the number is a power of two
	uint32_t record_bytes;
	bool is_ip6, has_flows, has_macs; // at most one
	// With MAC addresses: where the first and the second one of a record, and of its ports, go.
	uint8_t mac_at[2], port_at[2];
	bool has_outer;
	uint8_t outer[TABLE_OUTER_BYTES];
	uint8_t spread_at; // where a record has two bytes from which an outer source port is made
};

// Reads the file `path` (a frame, followed by records) into memory that stays allocated until the
// process ends; a `mac` of 6 bytes, if not NULL, becomes the frame's destination. 0, or -errno:
// -EINVAL if the file is not a valid table.
int table_load(struct table *table, const char *path, const uint8_t *mac);

// The way back of a table with MAC addresses: the same frames, with the addresses and ports of
// sender and receiver exchanged. `back` uses the records of `table`.
void table_turn(const struct table *table, struct table *back);

// Puts all frames into VXLAN: the file `path` has TABLE_OUTER_BYTES, with lengths and checksum. The
// outer source port, 49152 to 65535, varies with the record. 0, or -errno: -EINVAL if the file has
// another length.
int table_wrap(struct table *table, const char *path);

// Prefetches the records of `n` frames from `index` on. A miss would cost the measured program up
// to a dozen cycles per frame if the next cache level is far away.
static inline void table_prefetch(const struct table *table, uint32_t index, unsigned n)
{
	size_t bytes = table->record_bytes;

	for (unsigned i = 0; i < n; i += TABLE_LINE_BYTES / bytes)
		__builtin_prefetch(table->records + (size_t)((index + i) & table->mask) * bytes);
}

// The length of each frame.
static inline uint16_t table_bytes(const struct table *table)
{
	return table->has_outer ? TABLE_MAX_BYTES : TABLE_FRAME_BYTES;
}

// Writes frame `index` (modulo the number of records) to `out`, which has space for
// TABLE_MAX_BYTES.
static inline void table_write(const struct table *table, uint32_t index, uint8_t *out)
{
	const uint8_t *record =
		table->records + (size_t)(index & table->mask) * table->record_bytes;

	if (table->has_outer) {
		memcpy(out, table->outer, TABLE_OUTER_BYTES);
		out[TABLE_PORTS_AT] = 0xc0 | record[table->spread_at];
		out[TABLE_PORTS_AT + 1] = record[table->spread_at + 1];
		out += TABLE_OUTER_BYTES;
	}
	memcpy(out, table->frame, TABLE_FRAME_BYTES);
	if (table->is_ip6) {
		memcpy(out + TABLE_DESTINATION6_AT, record, 16);
	} else if (table->has_flows) {
		memcpy(out + TABLE_SOURCE4_AT, record, 12);
		memcpy(out + TABLE_CHECKSUM4_AT, record + 12, 2);
	} else if (table->has_macs) {
		memcpy(out + table->mac_at[0], record, 6);
		memcpy(out + table->mac_at[1], record + 6, 6);
		memcpy(out + table->port_at[0], record + 12, 2);
		memcpy(out + table->port_at[1], record + 14, 2);
	} else {
		memcpy(out + TABLE_DESTINATION4_AT, record, 4);
		memcpy(out + TABLE_CHECKSUM4_AT, record + 4, 2);
	}
}
