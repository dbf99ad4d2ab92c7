// What can be told of a device from its text alone, before DPDK has seen it. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIND_BUS_NAME_MAX = 64, KIND_PATH_MAX = 108 };

// Around an IP packet in a slot: Ethernet header, two VLAN tags. / Of a slot of net_af_packet these
// bytes are not for the frame.
enum { KIND_FRAME_AROUND = 14 + 8, KIND_PACKET_IN_FRONT = 66 };

enum kind_bus {
	KIND_UNKNOWN, // neither an address nor a device string
	KIND_PCI,
	KIND_ALLOWED, // another bus's address, given to EAL with -a (auxiliary:...)
	KIND_VIRTUAL,
};

// How many transmit queues a virtual device wants.
enum kind_tx {
	KIND_TX_PER_WORKER,
	KIND_TX_LIKE_RX, // the driver refuses or loses frames unless both numbers are equal
};

struct kind {
	enum kind_bus bus;
	char name[KIND_BUS_NAME_MAX]; // as DPDK will call the device: net_null0, 0000:03:00.0
	char netdev[KIND_PATH_MAX]; // Linux interface that must exist; "" where the driver has none
	char socket[KIND_PATH_MAX]; // socket whose folder must exist; "" where the driver has none
	bool serves;                // makes that socket, and deletes what it finds there
	uint16_t n_rx;              // receive queues that the text gives; 0: the device decides
	uint16_t n_rx_most;         // more than these make no sense; 0: the device decides
	enum kind_tx tx;
	bool has_link;         // link reports of the driver mean something from the first on
	bool may_chain;        // may receive frames in several mbufs
	bool has_backpressure; // refuses a frame only because its peer's ring is full
	uint32_t ring_slots;   // frames that a ring holds, by the text; 0: as many as descriptors
	bool is_zero_copy;     // the rings hold our own buffers, not copies of them
	uint32_t slot_bytes;   // a frame must not be longer, by the text; 0: any length
	uint32_t buffer_bytes; // the driver wants buffers that hold so many, by the text
};

// Reads `device` as it stands in the settings.
void kind_read(const char *device, struct kind *out);

// The value of `key` in "name,key=value,..."; false when it is not there. Cut at `size` - 1 bytes.
bool kind_argument(const char *device, const char *key, char *value, size_t size);
