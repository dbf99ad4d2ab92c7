// Private to capture: writes pcapng blocks (draft-ietf-opsawg-pcapng) into memory. Each port is an
// interface, and so is each verdict of dropped ("drop:no_route") and of punted packets; an
// interface is described before its first packet. Capture thread.
#pragma once

#include "capture/capture.h"
#include "capture/ring.h"

#include <stddef.h>

// The space that is reserved for one packet with the description of its interface.
enum { PCAPNG_PACKET_MOST = CAPTURE_SNAP_MOST + 2048 };

struct pcapng {
	const struct capture_settings *settings;
	uint8_t *block; // what was written and not taken yet
	size_t n, room;
	uint32_t n_ifaces;
	uint32_t iface_of_port[STATS_MAX_PORTS + 1]; // id + 1; 0: not described yet; the last one
	                                             // is of unknown ports
	uint32_t iface_of_drop[N_VERDICTS], iface_of_punt[N_VERDICTS];
};

// `room` is at least PCAPNG_PACKET_MOST; `settings` is borrowed. -ENOMEM: nothing is allocated.
int pcapng_open(struct pcapng *out, const struct capture_settings *settings, size_t room);
void pcapng_close(struct pcapng *out);

// Writes the header of the file.
void pcapng_begin(struct pcapng *out);
// Whether there is space for another packet.
bool pcapng_has_space(const struct pcapng *out);
// Writes a packet. `time_ns`: since 1970. Requires space.
void pcapng_add(struct pcapng *out, const struct capture_record *record, uint64_t time_ns);
