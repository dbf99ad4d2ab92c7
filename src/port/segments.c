// Control thread.
#include "port/segments.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_memory.h>

static int keep_one(const struct rte_memseg_list *list, const struct rte_memseg *segment, void *arg)
{
	struct segments *segments = arg;
	int number = rte_memseg_get_fd_thread_unsafe(segment); // rte_memseg_walk holds the lock

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

int segments_keep(struct segments *segments, struct error *error)
{
	if (rte_memseg_walk(keep_one, segments) == 0)
		return 0;
	return error_set(error, -errno, "cannot keep DPDK's memory files open: %s",
		strerror(errno));
}

// Never replaces an open file: another thread may have reused the number.
static void put_back(struct segments_file *file)
{
	struct stat found, wanted;
	int got;

	if (fstat(file->number, &found) < 0) {
		got = fcntl(file->copy, F_DUPFD, file->number);
		if (got >= 0 && got != file->number)
			close(got);
		return;
	}
	if (fstat(file->copy, &wanted) < 0 ||
		(found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino))
		return;
	file->is_lost = true;
	log_warn("memif closed a file of DPDK's memory (descriptor %d): ports that connect from "
		 "now on may not get a link; restart",
		file->number);
}

void segments_mend(struct segments *segments)
{
	for (unsigned i = 0; i < segments->n; i++)
		if (!segments->file[i].is_lost)
			put_back(&segments->file[i]);
}

void segments_close(struct segments *segments)
{
	while (segments->n)
		close(segments->file[--segments->n].copy);
}
