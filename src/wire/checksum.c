// The Internet checksum (RFC 1071). Any thread; no state.
#include "wire/checksum.h"

#include <string.h>

uint64_t wire_sum(uint64_t sum, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint16_t last = 0;

	// 32 bits at a time: 2^32 words can be added before 64 bits overflow.
	for (; n >= 4; at += 4, n -= 4) {
		uint32_t word;

		memcpy(&word, at, sizeof(word));
		sum += word;
	}
	if (n >= 2) {
		memcpy(&last, at, sizeof(last));
		sum += last;
		at += 2;
		n -= 2;
	}
	if (n) {
		last = 0;
		memcpy(&last, at, 1); // the pad byte follows it in memory order
		sum += last;
	}
	return sum;
}

bool wire_ip4_checksum_good(const struct wire_ip4 *ip)
{
	return wire_sum_finish_be(wire_sum(0, ip, wire_ip4_header_bytes(ip))) == 0;
}

uint16_t wire_ip4_checksum_be(const struct wire_ip4 *ip)
{
	uint64_t sum = wire_sum(0, ip, wire_ip4_header_bytes(ip));

	return wire_sum_finish_be(sum + (uint16_t)~ip->checksum_be);
}

uint64_t wire_sum_pseudo4(const struct wire_ip4 *ip, uint8_t protocol, uint32_t n)
{
	uint64_t sum = wire_sum(0, ip->src, sizeof(ip->src) + sizeof(ip->dst));

	return sum + htobe16(protocol) + htobe16(n);
}

uint64_t wire_sum_pseudo6(const struct wire_ip6 *ip, uint8_t protocol, uint32_t n)
{
	uint64_t sum = wire_sum(0, ip->src, sizeof(ip->src) + sizeof(ip->dst));

	return sum + htobe32(n) + htobe32(protocol);
}
