// Encapsulations: the headers around a stream's packets, and those around received packets. Frame
// contents are untrusted. Pure.
#pragma once

#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	ENCAP_LABELS = 16, // of a received frame, at most
	ENCAP_MPLS_PORT = 6635,
	ENCAP_VXLAN_PORT = 4789,
	ENCAP_UDP_CHECKSUM_AT = 6,
};

// What the frames of a stream have in common, and where that is which varies. Offsets in the frame.
struct encap_form {
	uint8_t type;  // enum gen_encap_type
	uint8_t id_at; // 32 bits: the id shifted, and the rest; 0: none
	uint8_t id_shift;
	uint8_t udp_at;   // 0: none
	uint8_t inner_at; // of the inner Ethernet header; without one, 14 bytes before the packet
	bool has_checksum, hashes_port, has_macs;
	uint16_t src_port;
	uint32_t id_rest;
};

// What surrounds the packet of a received frame. Offsets in the frame.
struct encap_found {
	uint8_t type;   // enum gen_encap_type; GEN_PLAIN: nothing, all else is unused
	uint8_t family; // of the outer packet; 0: there is none
	uint8_t n_labels;
	bool is_ethernet;
	uint16_t layer3, layer4; // of the outer packet
	uint16_t labels;         // the first one
	uint16_t inner;          // of the inner Ethernet header; without one, of the packet
	uint16_t inner_type_be;  // its EtherType, without an Ethernet header
	uint32_t id;             // the last label, the VNI, or the key (0 without one)
};

// Bytes that an encapsulation adds to a frame.
unsigned encap_bytes(const struct gen_encap *encap);
struct encap_form encap_form(const struct gen_stream *stream);
// Writes all that precedes the inner Ethernet header, or the packet, of a frame of `n_bytes`
// without FCS: with zeros as id, UDP source port and UDP checksum.
void encap_write(const struct gen_stream *stream, uint8_t *frame, unsigned n_bytes);
// Finds the encapsulation of a frame of which the first `n` bytes can be read; does not verify it.
// False: none that is known. Otherwise the outer headers end within n; the inner ones may not.
bool encap_find(const uint8_t *frame, unsigned n, struct encap_found *out);
