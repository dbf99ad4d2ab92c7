// Any bytes as ARP or ND: nothing is read beyond them, and what parses can be built and parsed
// again.
#include "wire/neighbour.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *frame = malloc(n + 1), built[WIRE_NEIGHBOUR_BYTES]; // exact size, for ASan
	struct wire_neighbour got = {0}, again = {0};

	memcpy(frame + 1, data, n);
	bool is_right = !wire_neighbour_read(frame + 1, n, &got);
	want(!is_right || wire_is_neighbour(frame + 1, n));
	free(frame);
	if (!is_right)
		return 0;
	want(got.target.family == got.sender.family);
	want(!((got.is_reply ? got.about_mac : got.asker_mac).bytes[0] & 1));
	size_t n_built = wire_neighbour_build(&got, built);
	want(n_built <= sizeof(built) && wire_is_neighbour(built, n_built));
	if (wire_neighbour_read(built, n_built, &again))
		return 0; // for a group, or for an invalid sender address
	want(again.is_reply == got.is_reply && again.vlan_tag == got.vlan_tag);
	want(wire_addr_equal(&again.target, &got.target));
	return 0;
}
