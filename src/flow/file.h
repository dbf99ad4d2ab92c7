// The file of flows: a header, records of flows, records of actions, 64 bytes each; integers in
// little endian. docs/internals/flow.md describes it. No thread.
#pragma once

#include "flow/flow.h"

enum { FILE_VERSION = 1, FILE_RECORD_BYTES = FLOW_RECORD_BYTES };

struct file_header {
	uint8_t magic[8];
	uint32_t version;
	uint32_t n_actions;
	uint64_t n_flows;
	uint64_t saved_ms;    // since 1970
	uint32_t records_crc; // CRC32C of all records
	uint8_t zero[24];
	uint32_t header_crc; // CRC32C of the 60 bytes before
} __attribute__((packed));

// Addresses and ports in network order; an IPv4 address is in the first four bytes, the rest is 0.
struct file_flow {
	uint8_t src[16], dst[16];
	uint16_t src_port_be, dst_port_be;
	uint16_t vrf;
	uint8_t proto;
	uint8_t kind;     // enum flow_life in bits 0 to 3, FILE_IPV6
	uint32_t action;  // number of the record of its action in this file
	uint32_t time_ms; // when it was saved: idle for so long; with a fixed end: left
	uint64_t packets, bytes;
} __attribute__((packed));

_Static_assert(sizeof(struct file_header) == FILE_RECORD_BYTES, "");
_Static_assert(sizeof(struct file_flow) == FILE_RECORD_BYTES, "");

enum { FILE_IPV6 = 1 << 4 };

// CRC32C of `n` more bytes; start with 0.
uint32_t file_crc(uint32_t crc, const void *from, size_t n);

// Completes a header whose counts, time and records_crc are set.
void file_header_seal(struct file_header *header);
// 0, or -EINVAL with `error` set. `file_bytes`: the size of the file.
int file_header_check(const struct file_header *header, uint64_t file_bytes, const char *name,
	struct error *error);

// A record of a flow. `action`: its number in the file.
void file_flow_write(struct file_flow *record, const struct flow_info *info, uint32_t action);
// 0, or -EINVAL with the reason in `error`: then *change is undefined. The change is a FLOW_REPLACE
// whose action is the number in the file; times are those at saving.
int file_flow_read(const struct file_flow *record, uint32_t n_actions, struct flow_change *change,
	struct error *error);
