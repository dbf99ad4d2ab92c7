// Reads the packets of a pcapng file (draft-ietf-opsawg-pcapng), with any number of sections, each
// in its byte order, and of interfaces, each with its link type. libpcap refuses files whose
// interfaces differ in link type or snapshot length, and ignores a captured FCS. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	PCAPNG_MAGIC = 0x0a0d0d0a,
	PCAPNG_NAME_MAX = 32
}; // the magic is the same in both byte orders

// A packet as its file describes it, pcap or pcapng.
struct capture_packet {
	const uint8_t *bytes;     // until the next packet is read
	uint32_t n_bytes, n_wire; // captured; when it was captured; both with FCS if has_fcs
	uint32_t iface;           // index into pcapng.iface
	bool has_fcs, has_time;
	uint64_t s;
	uint64_t ns; // below 10^9, or the time is malformed
};

struct pcapng_iface {
	uint32_t number;     // in its section
	uint32_t n_packets;  // read so far
	uint16_t link_type;  // LINKTYPE_
	uint32_t snap_bytes; // 0: no limit
	bool has_fcs;
	uint64_t ticks_per_s;
	uint64_t offset_s;          // added to each time; two's complement
	char name[PCAPNG_NAME_MAX]; // "": none; cut if too long
};

struct pcapng {
	FILE *file;      // owner: caller
	bool is_swapped; // the section is in the other byte order
	uint8_t *block;
	size_t block_capacity, iface_capacity;
	struct pcapng_iface *iface; // of all sections
	uint32_t n_ifaces, first;   // first: of the current section
};

// Reads on to the next packet: 1; 0 at the end of the file; -errno with `error` set, a clause about
// the file. Initially all of `reader` is 0 except `file`, which is at its beginning. Owner: caller,
// pcapng_free.
int pcapng_next(struct pcapng *reader, struct capture_packet *out, struct error *error);
void pcapng_free(struct pcapng *reader);
