// The files behind EAL's memory, kept open. DPDK's memif driver, where it gives a peer our own
// buffers (zero-copy=yes, the client's end), closes these files once a port is connected, though
// they are EAL's: the next port would hand its peer whatever has that number by then, and closes
// it too. So we keep a copy of each and put it back. Control thread.
#pragma once

#include "base/complaint.h"

enum { SEGMENTS_MAX = 128 }; // DPDK's most lists of memory segments

struct segments {
	unsigned n;
	struct segments_file {
		int number, copy;
	} file[SEGMENTS_MAX];
};

// Copies files that are not copied yet. 0, or a negative errno and why.
int segments_keep(struct segments *segments, struct complaint *why);
// Puts back the files that were closed.
void segments_mend(const struct segments *segments);
// Closes the copies.
void segments_close(struct segments *segments);
