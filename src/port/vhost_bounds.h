// Limits to what DPDK's vhost-user library does when a peer's rings are not sound: what cannot be
// checked before, since the peer writes to them at any time.
#pragma once

#include <stdbool.h>

// Before the first device. False: the library's functions are not found. Control thread.
bool vhost_bounds_begin(void);

// The library maps a peer's memory on this thread until vhost_bounds_end_mapping: each mapping is
// followed by bytes that may be written to, and one that fails is zeros. / Whether one has failed.
void vhost_bounds_begin_mapping(void);
bool vhost_bounds_end_mapping(void);

// For the library's connection number `vid`, before its queues run: whether its buffers may be
// merged. Any thread.
void vhost_bounds_set_merged(int vid, bool is_merged);
