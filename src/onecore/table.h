// The frames that the source port "receives": one 64-byte frame and a table of destinations to be
// inserted. Filled before any worker reads it, constant afterwards.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	TABLE_FRAME_BYTES = 64,   // without FCS
	TABLE_LINE_BYTES = 64,    // cache line
	TABLE_RECORD4_BYTES = 8,  // {be32 destination, be16 header checksum, u16 0}
	TABLE_RECORD6_BYTES = 16, // {16-byte destination}
	TABLE_CHECKSUM4_AT = 24,  // offset in the frame: Ethernet 14 + 10
	TABLE_DESTINATION4_AT = 30,
	TABLE_DESTINATION6_AT = 38,
};

struct table {
	uint8_t frame[TABLE_FRAME_BYTES] __attribute__((aligned(64)));
	const uint8_t *records;
	uint32_t mask; // number of records - 1; the number is a power of two
	bool is_ip6;
};

// Reads the file `path` (a frame, followed by records) into memory that stays allocated until the
// process ends; a `mac` of 6 bytes, if not NULL, becomes the frame's destination. 0, or -errno:
// -EINVAL if the file is not a valid table.
int table_load(struct table *table, const char *path, const uint8_t *mac);

// Prefetches the records of `n` frames from `index` on. A miss would cost the measured program up
// to a dozen cycles per frame if the next cache level is far away.
static inline void table_prefetch(const struct table *table, uint32_t index, unsigned n)
{
	size_t bytes = table->is_ip6 ? TABLE_RECORD6_BYTES : TABLE_RECORD4_BYTES;

	for (unsigned i = 0; i < n; i += TABLE_LINE_BYTES / bytes)
		__builtin_prefetch(table->records + (size_t)((index + i) & table->mask) * bytes);
}

// Writes frame `index` (modulo the number of records) to `out`, which has space for
// TABLE_FRAME_BYTES.
static inline void table_write(const struct table *table, uint32_t index, uint8_t *out)
{
	size_t record = index & table->mask;

	memcpy(out, table->frame, TABLE_FRAME_BYTES);
	if (table->is_ip6) {
		memcpy(out + TABLE_DESTINATION6_AT, table->records + record * TABLE_RECORD6_BYTES,
			16);
		return;
	}
	const uint8_t *destination = table->records + record * TABLE_RECORD4_BYTES;
	memcpy(out + TABLE_DESTINATION4_AT, destination, 4);
	memcpy(out + TABLE_CHECKSUM4_AT, destination + 4, 2);
}
