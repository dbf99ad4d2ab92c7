// The Internet checksum (RFC 1071). Sums are kept unfolded in 64 bits and are in memory order, so
// results are stored as they are into fields named checksum_be. Any thread, workers too; no state.
#pragma once

#include "wire/headers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Adds `n` bytes to `sum`. Only the last piece of a sum may have an odd number of bytes.
uint64_t wire_sum(uint64_t sum, const void *bytes, size_t n);

// A sum as the 16 bits that stand in a header: folded and complemented.
static inline uint16_t wire_sum_finish_be(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

// True when the header checksum is right; reads all wire_ip4_header_bytes(ip), which the caller has
// checked to be there.
bool wire_ip4_checksum_good(const struct wire_ip4 *ip);
// What checksum_be has to be; the field's own value does not count.
uint16_t wire_ip4_checksum_be(const struct wire_ip4 *ip);

// Sums of the pseudo headers (RFC 9293 3.1, RFC 8200 8.1) for `n` bytes of `protocol`.
uint64_t wire_sum_pseudo4(const struct wire_ip4 *ip, uint8_t protocol, uint32_t n);
uint64_t wire_sum_pseudo6(const struct wire_ip6 *ip, uint8_t protocol, uint32_t n);

// RFC 1624, equation 3: the checksum after one 16-bit word of the header changed from `old_be` to
// `new_be`. It keeps a right checksum right and a wrong one wrong.
static inline uint16_t wire_checksum_update_be(uint16_t checksum_be, uint16_t old_be,
	uint16_t new_be)
{
	uint32_t sum = (uint16_t)~checksum_be + (uint32_t)(uint16_t)~old_be + new_be;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

// Takes one from the TTL, which must not be 0, and keeps the checksum right.
static inline void wire_ip4_decrement_ttl(struct wire_ip4 *ip)
{
	uint16_t old_be = htobe16(ip->ttl << 8 | ip->protocol);

	ip->ttl--;
	ip->checksum_be = wire_checksum_update_be(ip->checksum_be, old_be,
		htobe16(ip->ttl << 8 | ip->protocol));
}
