// Keeps the files of EAL's memory open. If DPDK's memif driver shares our own buffers with a peer
// (zero-copy=yes, role=client), it closes these files when a port is connected or its handshake
// fails, although they belong to EAL. The next port would pass its peer whatever file has that
// number by then, and close it, too. So we keep a duplicate of each and restore it. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum { SEGMENTS_MAX = 128 }; // DPDK's maximum number of memory segment lists

struct segments {
	unsigned n;
	struct segments_file {
		int number, copy;
		bool is_lost; // another file has its number now
	} file[SEGMENTS_MAX];
};

// Duplicates the files not duplicated yet. 0, or -errno with `error` set.
int segments_keep(struct segments *segments, struct error *error);
// Restores files that were closed, before another file gets their number; warns if one has.
void segments_mend(struct segments *segments);
// Closes the duplicates.
void segments_close(struct segments *segments);
