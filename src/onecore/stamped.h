// Frames that dl3gen's sink recognises: those of an IPv4 table, cut to 64 bytes with FCS, each with
// a stamp and a valid UDP checksum. Prepared before any worker runs, constant afterwards.
#pragma once

#include "onecore/table.h"
#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

enum {
	STAMPED_UDP_AT = WIRE_ETHER_BYTES + WIRE_IP4_BYTES,
	STAMPED_AT = STAMPED_UDP_AT + WIRE_UDP_BYTES,
	STAMPED_FRAME_BYTES = STAMPED_AT + STAMP_BYTES, // 60: without FCS
};

struct stamped {
	uint64_t sum; // of the constant bytes covered by the UDP checksum; memory order, unfolded
};

// Modifies `table` so that its frames have that length and the header checksums in its records are
// still valid. 0, or -EINVAL for an IPv6 table: there a stamp requires a frame of 84 bytes; or for
// a table of flows, whose ports are not covered by the checksum.
int stamped_prepare(struct stamped *stamped, struct table *table);

static inline uint64_t stamped_fold(uint64_t sum)
{
	return (sum & 0xffffffff) + (sum >> 32);
}

// Writes the stamp into `frame`, which was created by table_write from the prepared table, and the
// UDP checksum over it. Worker.
static inline void stamped_write(const struct stamped *stamped, const struct stamp *stamp,
	uint8_t *frame)
{
	uint64_t head, times;
	uint16_t tail, checksum;
	uint32_t destination;

	stamp_write(frame + STAMPED_AT, stamp);
	memcpy(&head, frame + STAMPED_AT, 8);
	memcpy(&times, frame + STAMPED_AT + 8, 8);
	memcpy(&tail, frame + STAMPED_AT + 16, 2);
	memcpy(&destination, frame + TABLE_DESTINATION4_AT, 4);
	checksum = wire_sum_finish_be(
		stamped->sum + stamped_fold(head) + stamped_fold(times) + tail + destination);
	if (checksum == 0) // would mean: no checksum
		checksum = 0xffff;
	memcpy(frame + STAMPED_UDP_AT + 6, &checksum, 2);
}
