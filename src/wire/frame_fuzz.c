// Any bytes as a frame: check and print read nothing beyond them, and a frame that passes the check
// has the lengths in its headers.
#include "wire/check.h"
#include "wire/headers.h"
#include "wire/print.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_claims(const uint8_t *frame, size_t n)
{
	const struct wire_ether *ether = (const void *)frame;
	const struct wire_ip4 *ip4 = (const void *)(frame + sizeof(*ether));
	const struct wire_ip6 *ip6 = (const void *)(frame + sizeof(*ether));

	if (ether->ethertype_be == htobe16(WIRE_ETHERTYPE_IP4)) {
		if (ip4->version_ihl != 0x45 || sizeof(*ether) + be16toh(ip4->total_length_be) > n)
			abort();
	} else if (sizeof(*ether) + sizeof(*ip6) + be16toh(ip6->payload_length_be) > n) {
		abort();
	}
}

// The first byte selects rules and the contiguous length; the rest is the frame.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wire_check_rules rules;
	char text[WIRE_FRAME_TEXT];
	size_t contiguous;
	uint8_t *piece;

	if (!n)
		return 0;
	rules = (struct wire_check_rules){.verify_ip4_checksum = data[0] & 1,
		.pass_martians = data[0] & 2};
	contiguous = data[0] >> 2 == 63 || data[0] >> 2 > n - 1 ? n - 1 : data[0] >> 2;
	piece = malloc(contiguous + 1); // exact size, so that sanitizers detect reads beyond it
	memcpy(piece + 1, data + 1, contiguous);
	if (wire_check(piece + 1, contiguous, n - 1, &rules) == WIRE_OK)
		check_claims(data + 1, n - 1);
	if (strlen(wire_frame_print(piece + 1, contiguous, text)) >= WIRE_FRAME_TEXT)
		abort();
	free(piece);
	return 0;
}
