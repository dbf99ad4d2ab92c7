// The files behind EAL's memory, kept open. DPDK's memif driver, where it gives a peer our own
// buffers (zero-copy=yes, role=client), closes these files once a port is connected or its
// handshake broken off, though they are EAL's: the next port would hand its peer whatever has that
// number by then, and closes it too. So we keep a copy of each and put it back. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum { SEGMENTS_MAX = 128 }; // DPDK's most lists of memory segments

struct segments {
	unsigned n;
	struct segments_file {
		int number, copy;
		bool is_lost; // something else has its number
	} file[SEGMENTS_MAX];
};

// Copies files that are not copied yet. 0, or a negative errno and why.
int segments_keep(struct segments *segments, struct error *error);
// Puts back files that were closed, before something else takes their number: warns if it has.
void segments_mend(struct segments *segments);
// Closes the copies.
void segments_close(struct segments *segments);
