// Any bytes as a frame: nothing beyond them is read, and another VLAN tag does not change the flow.
#include "wire/innermost.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool holds)
{
	if (!holds)
		abort();
}

// The same bytes behind a VLAN tag are the same flow, unless there is no space for another tag.
static void check_tagged(const struct wire_innermost *plain, const uint8_t *frame, size_t n)
{
	static const uint8_t tag[] = {0x81, 0, 0, 7};
	const uint16_t type = frame[12] << 8 | frame[13];
	struct wire_innermost found;
	uint8_t *tagged = malloc(n + sizeof(tag));

	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, tag, sizeof(tag));
	memcpy(tagged + 12 + sizeof(tag), frame + 12, n - 12);
	wire_innermost_read(&found, tagged, n + sizeof(tag));
	free(tagged);
	if (type != WIRE_ETHERTYPE_VLAN && type != WIRE_ETHERTYPE_QINQ)
		want(!memcmp(&found, plain, sizeof(found)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wire_innermost found, again;
	uint8_t *frame = malloc(n + !n); // exact size, so that sanitizers detect reads beyond it

	if (n)
		memcpy(frame, data, n);
	memset(&found, 0xff, sizeof(found));
	wire_innermost_read(&found, frame, n);
	wire_innermost_read(&again, frame, n);
	want(found.family == 0 || found.family == 4 || found.family == 6);
	want(!found.family || !found.ethertype_be);
	want(found.protocol || !found.ports);
	want(wire_innermost_hash(&found) == wire_innermost_hash(&again));
	if (n >= WIRE_ETHER_BYTES)
		check_tagged(&found, frame, n);
	free(frame);
	return 0;
}
