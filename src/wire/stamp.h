// The stamp of a generated frame: 18 bytes that identify the frame and give its due time. UDP: the
// first bytes after the header. TCP: the sequence and acknowledgement fields contain 8 of them, the
// payload starts with the other 10. Network order. Worker; no state.
//
//   UDP payload   magic 2 | stream 1 | sequence 5 | due 5 | sent 5
//   TCP header    seq = sequence, low 32 bits | ack = due, low 32 bits
//   TCP payload   magic 2 | stream 1 | sequence, high byte 1 | due, high byte 1 | sent 5
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum {
	STAMP_BYTES = 18,
	STAMP_TCP_PAYLOAD_BYTES = 10,
	STAMP_MAGIC = 0xd300, // the low byte is the run number
	STAMP_RUN_MASK = 0x00ff,
};

// Times are the low 40 bits of the TSC: 423 s at 2.6 GHz, so shorter differences are exact.
#define STAMP_40_BITS 0xffffffffffull

struct stamp {
	uint16_t magic;
	uint8_t stream;    // the stream's id
	uint64_t sequence; // of the frame in its stream, from 0; 40 bits
	uint64_t due;      // scheduled time; low 40 bits of the TSC
	uint64_t sent;     // time when it was passed to the device; low 40 bits of the TSC
};

// Writes the 18 bytes of a UDP frame.
static inline void stamp_write(uint8_t *to, const struct stamp *s)
{
	uint64_t head = (uint64_t)s->magic << 48 | (uint64_t)s->stream << 40 |
	                (s->sequence & STAMP_40_BITS);
	uint64_t times = (s->due & STAMP_40_BITS) << 24 | (s->sent >> 16 & 0xffffff);
	uint64_t head_be = htobe64(head), times_be = htobe64(times);
	uint16_t tail_be = htobe16(s->sent & 0xffff);

	memcpy(to, &head_be, 8);
	memcpy(to + 8, &times_be, 8);
	memcpy(to + 16, &tail_be, 2);
}

static inline void stamp_read(const uint8_t *from, struct stamp *s)
{
	uint64_t head_be, times_be;
	uint16_t tail_be;

	memcpy(&head_be, from, 8);
	memcpy(&times_be, from + 8, 8);
	memcpy(&tail_be, from + 16, 2);
	s->magic = be64toh(head_be) >> 48;
	s->stream = be64toh(head_be) >> 40;
	s->sequence = be64toh(head_be) & STAMP_40_BITS;
	s->due = be64toh(times_be) >> 24;
	s->sent = (be64toh(times_be) & 0xffffff) << 16 | be16toh(tail_be);
}

// Reads the stamp of a TCP frame: from the header at `tcp` and the payload right after it.
static inline void stamp_read_tcp(const uint8_t *tcp, struct stamp *s)
{
	const uint8_t *payload = tcp + 20;
	uint32_t sequence_be, due_be;
	uint64_t tail_be;

	memcpy(&sequence_be, tcp + 4, 4);
	memcpy(&due_be, tcp + 8, 4);
	memcpy(&tail_be, payload + 2, 8); // stream, two high bytes, sent
	s->magic = payload[0] << 8 | payload[1];
	s->stream = payload[2];
	s->sequence = (uint64_t)payload[3] << 32 | be32toh(sequence_be);
	s->due = (uint64_t)payload[4] << 32 | be32toh(due_be);
	s->sent = be64toh(tail_be) & STAMP_40_BITS;
}

// Writes it; the rest of the header is unchanged.
static inline void stamp_write_tcp(uint8_t *tcp, const struct stamp *s)
{
	uint64_t tail_be = htobe64((uint64_t)s->stream << 56 | (s->sequence >> 32 & 0xff) << 48 |
				   (s->due >> 32 & 0xff) << 40 | (s->sent & STAMP_40_BITS));
	uint32_t sequence_be = htobe32(s->sequence), due_be = htobe32(s->due);
	uint16_t magic_be = htobe16(s->magic);

	memcpy(tcp + 4, &sequence_be, 4);
	memcpy(tcp + 8, &due_be, 4);
	memcpy(tcp + 20, &magic_be, 2);
	memcpy(tcp + 22, &tail_be, 8);
}
