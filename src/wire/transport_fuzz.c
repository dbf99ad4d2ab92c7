// Any bytes as extension headers: nothing is read beyond them, and what is found is within them.
#include "wire/transport.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wire_transport found;
	uint8_t *packet;

	if (n < WIRE_IP6_BYTES)
		return 0;
	packet = malloc(n); // exact size, so that sanitizers detect reads beyond it
	memcpy(packet, data, n);
	wire_transport6(&found, packet, n);
	free(packet);
	want(found.offset >= WIRE_IP6_BYTES && found.offset <= n);
	want(found.offset <= WIRE_IP6_BYTES + WIRE_TRANSPORT_BYTES);
	want(found.verdict <= WIRE_TRANSPORT_TOO_MANY);
	want((found.fragment == WIRE_FRAGMENT_LATER) == (found.fragment_units > 0));
	return 0;
}
