// Combines several descriptors into one with epoll. Control thread.
#include "base/wake.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

int wake_open(struct error *error)
{
	int wake = epoll_create1(EPOLL_CLOEXEC);

	return wake >= 0 ? wake
	                 : error_set(error, -errno, "cannot create an epoll instance: %s",
				   strerror(errno));
}

int wake_add(int wake, int fd, struct error *error)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (!epoll_ctl(wake, EPOLL_CTL_ADD, fd, &event))
		return 0;
	return error_set(error, -errno, "cannot wait for file descriptor %d: %s", fd,
		strerror(errno));
}
