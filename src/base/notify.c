// See notify.h. The protocol is one datagram per message, and stable.
#include "base/notify.h"

#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	struct sockaddr_un to;
	socklen_t n; // 0: nobody listens
	uint64_t every_ns, told_ns;
} notify;

static uint64_t number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

void notify_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const size_t length = path ? strlen(path) : 0;
	const uint64_t pid = number_of("WATCHDOG_PID");

	memset(&notify, 0, sizeof(notify));
	notify.to.sun_family = AF_UNIX;
	if (length > 1 && length < sizeof(notify.to.sun_path) && strchr("/@", path[0])) {
		memcpy(notify.to.sun_path, path, length);
		if (path[0] == '@') // in the abstract namespace
			notify.to.sun_path[0] = 0;
		notify.n = offsetof(struct sockaddr_un, sun_path) + length;
	}
	if (!pid || pid == (uint64_t)getpid())
		notify.every_ns = number_of("WATCHDOG_USEC") * 1000 / 4;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

// A message that systemd does not take is lost: it asks for nothing that this program could do.
static void tell(const char *text)
{
	if (!notify.n)
		return;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&notify.to, notify.n);
	close(fd);
}

void notify_ready(void)
{
	tell("READY=1");
}

void notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)(clock_now_ns() / 1000));
	tell(text);
}

void notify_stopping(void)
{
	tell("STOPPING=1");
}

void notify_alive(uint64_t now_ns)
{
	if (!notify.every_ns || now_ns - notify.told_ns < notify.every_ns)
		return;
	notify.told_ns = now_ns;
	tell("WATCHDOG=1");
}
