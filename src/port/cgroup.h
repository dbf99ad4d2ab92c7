// The memory that the cgroups of this process (or of its container) allow it to use. Control
// thread.
#pragma once

#include <stdint.h>

struct cgroup_limits {
	uint64_t limit_bytes;     // the lowest limit; UINT64_MAX: none
	uint64_t available_bytes; // left until a limit is reached; file cache counts as free
};

// Supports both versions of cgroups: `list` is /proc/self/cgroup, `mount` /sys/fs/cgroup. If a
// cgroup is not visible there (a container may see its path on the host), the mount's own files are
// used.
void cgroup_read(struct cgroup_limits *room, const char *list, const char *mount);
