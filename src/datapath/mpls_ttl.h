// The TTL of a packet whose labels are popped. Worker.
#pragma once

#include "base/bits.h"
#include "wire/headers.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t mpls_inner_ttl(const uint8_t *packet, bool is_ip6)
{
	return packet[is_ip6 ? 7 : 8];
}

// With the checksum as Linux updates it (csum_replace2 in net/core/utils.c; RFC 1624).
static inline void mpls_set_ttl(uint8_t *packet, bool is_ip6, uint8_t ttl)
{
	if (is_ip6) {
		packet[7] = ttl;
		return;
	}
	uint32_t sum = (uint16_t)~load16(packet + 10) + (uint16_t)~packet[8] + (uint32_t)ttl;
	uint16_t check;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	check = ~sum;
	memcpy(packet + 10, &check, sizeof(check));
	packet[8] = ttl;
}
