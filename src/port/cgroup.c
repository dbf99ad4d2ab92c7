// Reads the limits of the process's cgroup and all its parents.
#include "port/cgroup.h"

#include "base/bits.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// The files of one cgroup version.
struct version {
	const char *folder; // below the mount
	const char *limit, *usage, *cache;
};

static const struct version versions[] = {
	{"", "memory.max", "memory.current", "inactive_file"},
	{"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

static FILE *open_in(const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

// The number in a file, or after `word` in it; `otherwise` if there is none ("max" is not a
// number).
static uint64_t read_bytes(const char *folder, const char *name, const char *word,
	uint64_t otherwise)
{
	FILE *file = open_in(folder, name);
	char line[128], found[64];
	uint64_t bytes = otherwise, value;

	while (file && fgets(line, sizeof(line), file)) {
		if (word ? sscanf(line, "%63s %lu", found, &value) == 2 && !strcmp(found, word)
			 : sscanf(line, "%lu", &value) == 1)
			bytes = value;
	}
	if (file)
		fclose(file);
	return bytes;
}

static void take(struct cgroup_limits *room, const struct version *version, const char *folder)
{
	uint64_t limit = read_bytes(folder, version->limit, NULL, UINT64_MAX);
	uint64_t usage = read_bytes(folder, version->usage, NULL, 0);
	uint64_t cache = read_bytes(folder, "memory.stat", version->cache, 0);

	if (limit > INT64_MAX / 2) // version 1 represents no limit by a large number
		return;
	usage -= MIN_OF(cache, usage);
	room->limit_bytes = MIN_OF(room->limit_bytes, limit);
	room->available_bytes = MIN_OF(room->available_bytes, limit - MIN_OF(usage, limit));
}

static void climb(struct cgroup_limits *room, const struct version *version, const char *mount,
	const char *path)
{
	char folder[PATH_MAX];
	struct stat st;
	size_t root = strlen(mount) + strlen(version->folder);

	if (snprintf(folder, sizeof(folder), "%s%s%s", mount, version->folder, path) >=
		(int)sizeof(folder))
		return;
	if (stat(folder, &st) != 0)
		folder[root] = 0;
	for (;;) {
		take(room, version, folder);
		char *last = strrchr(folder + root, '/');
		if (!last)
			return;
		*last = 0;
	}
}

// Whether a comma-separated list of controllers contains memory.
static bool has_memory(char *controllers)
{
	for (char *one; (one = strsep(&controllers, ","));)
		if (!strcmp(one, "memory"))
			return true;
	return false;
}

void cgroup_read(struct cgroup_limits *room, const char *list, const char *mount)
{
	char line[PATH_MAX];
	FILE *file = fopen(list, "re");

	*room = (struct cgroup_limits){UINT64_MAX, UINT64_MAX};
	while (file && fgets(line, sizeof(line), file)) {
		char *path = line, *number = strsep(&path, ":"), *controllers = strsep(&path, ":");

		if (!path)
			continue;
		path[strcspn(path, "\n")] = 0;
		if (!strcmp(number, "0") && !*controllers)
			climb(room, &versions[0], mount, path);
		else if (has_memory(controllers))
			climb(room, &versions[1], mount, path);
	}
	if (file)
		fclose(file);
}
