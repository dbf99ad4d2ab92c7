// What the memory cgroups of this process, a container's too, leave of the machine's memory.
// Control thread.
#pragma once

#include <stdint.h>

struct cgroup_limits {
	uint64_t limit_bytes;     // the lowest limit; UINT64_MAX: none
	uint64_t available_bytes; // until one of them is reached, file cache counted as free
};

// Reads both versions of cgroups: `list` is /proc/self/cgroup, `mount` /sys/fs/cgroup. A cgroup
// that is not to be seen there (a container may be told its path in the host) counts as the mount's
// own.
void cgroup_read(struct cgroup_limits *room, const char *list, const char *mount);
