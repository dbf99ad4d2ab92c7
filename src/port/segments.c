// Control thread.
#include "port/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_memory.h>

static int keep_one(const struct rte_memseg_list *list, const struct rte_memseg *segment, void *arg)
{
	struct segments *segments = arg;
	int number = rte_memseg_get_fd_thread_unsafe(segment); // its lock is held around the walk

	(void)list;
	for (unsigned i = 0; i < segments->n; i++)
		if (segments->file[i].number == number)
			return 0;
	if (number < 0 || segments->n == SEGMENTS_MAX)
		return 0;
	int copy = fcntl(number, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -1;
	segments->file[segments->n++] = (struct segments_file){.number = number, .copy = copy};
	return 0;
}

int segments_keep(struct segments *segments, struct complaint *why)
{
	if (rte_memseg_walk(keep_one, segments) == 0)
		return 0;
	return complain(why, -errno, "DPDK's memory files cannot be kept open: %s",
		strerror(errno));
}

void segments_mend(const struct segments *segments)
{
	struct stat found;

	for (unsigned i = 0; i < segments->n; i++)
		if (fstat(segments->file[i].number, &found) < 0)
			dup2(segments->file[i].copy, segments->file[i].number);
}

void segments_close(struct segments *segments)
{
	while (segments->n)
		close(segments->file[--segments->n].copy);
}
