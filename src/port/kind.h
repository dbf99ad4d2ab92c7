// What the text of a device reveals before DPDK probes it. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIND_BUS_NAME_MAX = 64, KIND_PATH_MAX = 108 };

// KIND_FRAME_AROUND: bytes around an IP packet in a slot (Ethernet header, two VLAN tags).
// KIND_PACKET_IN_FRONT: bytes of a net_af_packet slot that are not available to the frame.
enum { KIND_FRAME_AROUND = 14 + 8, KIND_PACKET_IN_FRONT = 66 };

enum kind_bus {
	KIND_UNKNOWN, // neither an address nor a device string
	KIND_PCI,
	KIND_ALLOWED, // an address on another bus, passed to EAL with -a (auxiliary:...)
	KIND_VIRTUAL,
};

// How many transmit queues a virtual device needs.
enum kind_tx {
	KIND_TX_PER_WORKER,
	KIND_TX_LIKE_RX, // the driver fails or loses frames unless both numbers are equal
};

struct kind {
	enum kind_bus bus;
	char name[KIND_BUS_NAME_MAX]; // the device's name in DPDK: net_null0, 0000:03:00.0
	char netdev[KIND_PATH_MAX];   // Linux interface that must exist; "": none
	char socket[KIND_PATH_MAX];   // socket whose directory must exist; "": none
	bool socket_is_long;          // its path is longer than `socket` holds, and was cut
	bool serves;                  // creates that socket
	bool is_vhost;                // the device end of vhost-user: net_vhost
	bool has_offloads;            // and its peer may leave checksums and segmentation to it
	uint16_t n_rx;                // receive queues given by the text; 0: the device decides
	uint16_t n_rx_most;           // maximum useful number; 0: the device decides
	enum kind_tx tx;
	bool has_link;         // the driver's link state is valid from the start
	bool may_chain;        // may receive frames in several mbufs
	bool has_backpressure; // refuses frames only because its peer's ring is full
	uint32_t ring_slots;   // frames that a ring holds, by the text; 0: same as descriptors
	bool is_zero_copy;     // the rings contain our own buffers, not copies
	uint32_t slot_bytes;   // maximum frame length, by the text; 0: no limit
	bool cuts_frames;      // delivers the first slot_bytes of a longer frame
	uint32_t buffer_bytes; // minimum buffer size that the driver needs, by the text
};

// Parses `device` as given in the settings.
void kind_read(const char *device, struct kind *out);

// Copies the value of `key` in "name,key=value,..."; false if it is missing. Truncated to `size` -
// 1 bytes.
bool kind_argument(const char *device, const char *key, char *value, size_t size);
