// The Internet checksum (RFC 1071). Sums are 64 bits wide, not folded, and in memory order, so
// results are stored unchanged into fields named checksum_be. Any thread, workers too; no state.
#pragma once

#include "wire/headers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Adds `n` bytes to `sum`. Only the last part of a sum may have an odd number of bytes.
uint64_t wire_sum(uint64_t sum, const void *bytes, size_t n);

// Converts a sum to the 16-bit checksum of a header: folded and complemented.
static inline uint16_t wire_sum_finish_be(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

// True if the header checksum is correct; reads all wire_ip4_header_bytes(ip), which the caller has
// checked to be present.
bool wire_ip4_checksum_good(const struct wire_ip4 *ip);
// The correct value of checksum_be; the field's own value is ignored.
uint16_t wire_ip4_checksum_be(const struct wire_ip4 *ip);

// Sums of the pseudo headers (RFC 9293 3.1, RFC 8200 8.1) for `n` bytes of `protocol`.
uint64_t wire_sum_pseudo4(const struct wire_ip4 *ip, uint8_t protocol, uint32_t n);
uint64_t wire_sum_pseudo6(const struct wire_ip6 *ip, uint8_t protocol, uint32_t n);

// RFC 1624, equation 3: the checksum after a 16-bit word of the header has changed from `old_be` to
// `new_be`. A correct checksum stays correct, a wrong one wrong.
static inline uint16_t wire_checksum_update_be(uint16_t checksum_be, uint16_t old_be,
	uint16_t new_be)
{
	uint32_t sum = (uint16_t)~checksum_be + (uint32_t)(uint16_t)~old_be + new_be;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

// Decrements the TTL, which must not be 0, and updates the checksum.
static inline void wire_ip4_decrement_ttl(struct wire_ip4 *ip)
{
	uint16_t old_be = htobe16(ip->ttl << 8 | ip->protocol);

	ip->ttl--;
	ip->checksum_be = wire_checksum_update_be(ip->checksum_be, old_be,
		htobe16(ip->ttl << 8 | ip->protocol));
}
