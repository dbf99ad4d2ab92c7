// See fragment.h. RFC 791 leaves the sizes open; these are Linux's: the first fragments are as
// long as the MTU allows, and the last one has the rest.
#include "wire/fragment.h"

#include "wire/checksum.h"

#include <string.h>

enum { UNIT_BYTES = 8, OPTION_END = 0, OPTION_NOOP = 1, OPTION_IS_COPIED = 0x80 };

bool wire_fragment_plan(struct wire_fragments *plan, const struct wire_ip4 *ip, uint16_t mtu)
{
	const uint16_t flags_offset = be16toh(ip->fragment_be);
	const unsigned header_bytes = wire_ip4_header_bytes(ip);
	const unsigned payload_bytes = be16toh(ip->total_length_be) - header_bytes;
	const unsigned most = mtu - header_bytes, each = most & ~(UNIT_BYTES - 1u);

	if (flags_offset & WIRE_IP4_DONT_FRAGMENT)
		return false;
	unsigned n_before_last = (payload_bytes - most + each - 1) / each;
	unsigned last_unit =
		(flags_offset & WIRE_IP4_FRAGMENT_OFFSET) + n_before_last * (each / UNIT_BYTES);

	*plan = (struct wire_fragments){
		.n = n_before_last + 1,
		.header_bytes = header_bytes,
		.each_bytes = each,
		.last_bytes = payload_bytes - n_before_last * each,
	};
	return last_unit <= WIRE_IP4_FRAGMENT_OFFSET;
}

// Replaces options that belong to the first fragment only by padding (RFC 791, 3.1: the copied
// flag). What follows an option of impossible length is left as it is.
static void clear_options(uint8_t *option, const uint8_t *end)
{
	while (option < end && *option != OPTION_END) {
		if (*option == OPTION_NOOP) {
			option++;
			continue;
		}
		if (end - option < 2 || option[1] < 2 || option[1] > end - option)
			return;
		uint8_t bytes = option[1];

		if (!(*option & OPTION_IS_COPIED))
			memset(option, OPTION_NOOP, bytes);
		option += bytes;
	}
}

void wire_fragment_header(const struct wire_fragments *plan, unsigned i, const struct wire_ip4 *ip,
	struct wire_ip4 *to)
{
	const uint16_t was = be16toh(ip->fragment_be), before = was & WIRE_IP4_FRAGMENT_OFFSET;
	const unsigned start = wire_fragment_start(plan, i) / UNIT_BYTES;
	const bool more = i + 1 < plan->n || was & WIRE_IP4_MORE_FRAGMENTS;

	memmove(to, ip, plan->header_bytes);
	if (i > 0 && before == 0)
		clear_options((uint8_t *)(to + 1), (uint8_t *)to + plan->header_bytes);
	to->total_length_be = htobe16(plan->header_bytes + wire_fragment_bytes(plan, i));
	to->fragment_be = htobe16((before + start) | (more ? WIRE_IP4_MORE_FRAGMENTS : 0));
	to->checksum_be = wire_ip4_checksum_be(to);
}
