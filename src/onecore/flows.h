// The flows of measurements: UDP over IPv4, all different, each a function of its number; and the
// order in which their frames arrive. Any thread.
#pragma once

#include "onecore/table.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum flows_kind {
	// Random source (10.0.0.0/8), destination (48.0.0.0/8) and source port: the three are the
	// 64 bits of a bijection of the number, so that no two flows are the same.
	FLOWS_RANDOM,
	// Only the destination varies: 101.C.B.A for even numbers, 201.C.B.A for odd ones, in which
	// C.B.A is half the number; from 100.10.0.1, ports 11 to 101. China Telecom DPDK white
	// paper, V1.2, appendix 5.
	FLOWS_WHITE_PAPER,
};
enum {
	FLOWS_MAX_BITS = 26, // log2 of the number of flows
	FLOWS_WHITE_PAPER_BITS = 25,
};

struct flows_tuple {
	uint32_t src, dst;
	uint16_t src_port, dst_port;
};

// A bijection of 64-bit numbers: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static inline uint64_t flows_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline struct flows_tuple flows_tuple(enum flows_kind kind, uint64_t number)
{
	if (kind == FLOWS_WHITE_PAPER)
		return (struct flows_tuple){.src = 100u << 24 | 10 << 16 | 1,
			.dst = (number & 1 ? 201u : 101u) << 24 | (number >> 1 & 0xffffff),
			.src_port = 11,
			.dst_port = 101};
	uint64_t z = flows_mix(20261127 + number * 0x9e3779b97f4a7c15);

	return (struct flows_tuple){.src = 10u << 24 | (z & 0xffffff),
		.dst = 48u << 24 | (z >> 24 & 0xffffff),
		.src_port = z >> 48,
		.dst_port = flows_mix(z)};
}

// The flow of frame `i` of 2^bits: a permutation without a pattern that a CPU could predict, so
// that neither the flows nor what a program keeps for each are accessed in the order of their
// numbers.
static inline uint32_t flows_order(uint32_t i, unsigned bits)
{
	const uint32_t mask = (1u << bits) - 1, odd[] = {0x9e3779b1, 0x85ebca6b, 0xc2b2ae35};
	const unsigned half = (bits + 1) / 2;

	for (int round = 0; round < 3; round++) {
		i = (i * odd[round] + 0x7f4a7c15) & mask;
		i ^= i >> half;
	}
	return i;
}

// The record of a table (table.h) for this flow; `frame`: that of the table.
static inline void flows_record(const struct flows_tuple *flow, const uint8_t *frame,
	uint8_t record[TABLE_FLOW_BYTES])
{
	struct wire_ip4 ip;
	const uint32_t src_be = htobe32(flow->src), dst_be = htobe32(flow->dst);
	const uint16_t ports_be[] = {htobe16(flow->src_port), htobe16(flow->dst_port)};

	memcpy(&ip, frame + WIRE_ETHER_BYTES, sizeof(ip));
	memcpy(ip.src, &src_be, 4);
	memcpy(ip.dst, &dst_be, 4);
	ip.checksum_be = wire_ip4_checksum_be(&ip);
	memset(record, 0, TABLE_FLOW_BYTES);
	memcpy(record, &src_be, 4);
	memcpy(record + 4, &dst_be, 4);
	memcpy(record + 8, ports_be, 4);
	memcpy(record + 12, &ip.checksum_be, 2);
}
