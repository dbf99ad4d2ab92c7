// Checksums that vhost-user guests leave open, and that DPDK's library would finish.
#pragma once

// Finds the function that this file overrides. Before the first vhost-user device is configured.
// Control thread.
void vhost_open_find(void);
