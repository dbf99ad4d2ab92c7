// Any bytes as a frame with an open checksum or of several segments: nothing beyond its contiguous
// bytes is read, and its segments have the lengths and checksums that they claim.
#include "wire/checksum.h"
#include "wire/segment.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_segment(const struct wire_layout *layout, const uint8_t *segment, size_t n)
{
	struct wire_layout read;

	if (!wire_layout_read(&read, segment, n, n) || read.end != n ||
		read.payload_at != layout->payload_at)
		abort();
	if (wire_sum_finish_be(wire_sum(wire_layout_pseudo_sum(&read, segment),
		    segment + read.l4_at, n - read.l4_at)))
		abort();
}

static void cut(const struct wire_layout *layout, const uint8_t *frame, uint16_t size)
{
	const uint8_t *payload = frame + layout->payload_at;
	struct wire_segments plan;

	wire_segments_plan(&plan, layout, size);
	for (uint32_t i = 0; i < plan.n; i++) {
		const uint16_t bytes = wire_segment_bytes(&plan, i);
		uint8_t *made = malloc(layout->payload_at + bytes);

		memcpy(made + layout->payload_at, payload, bytes);
		wire_segment_headers(layout, &plan, i, frame, made, wire_sum(0, payload, bytes));
		check_segment(layout, made, layout->payload_at + bytes);
		payload += bytes;
		free(made);
	}
	if (payload != frame + layout->end)
		abort();
}

// The first three bytes are the size of segments and the contiguous length; the rest is the frame.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wire_layout layout;

	if (n < 3)
		return 0;
	const uint16_t size = data[0] << 8 | data[1];
	const size_t whole = n - 3,
		     contiguous = data[2] == 255 || data[2] > whole ? whole : data[2];
	uint8_t *piece = malloc(contiguous + 1); // its end is seen by sanitizers

	memcpy(piece, data + 3, contiguous);
	if (wire_layout_read(&layout, piece, contiguous, whole) && layout.proto == WIRE_PROTO_TCP &&
		size && layout.end > layout.payload_at)
		cut(&layout, data + 3, size);
	free(piece);
	return 0;
}
