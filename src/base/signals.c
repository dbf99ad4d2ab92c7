// Signals, read by the control loop. Control thread.
#include "base/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t signals_of_ours;

void signals_block(int number)
{
	sigaddset(&signals_of_ours, number);
	sigprocmask(SIG_BLOCK, &signals_of_ours, NULL);
}

int signals_open(struct error *error)
{
	signal(SIGPIPE, SIG_IGN);
	signals_block(SIGINT);
	signals_block(SIGTERM);
	int fd = signalfd(-1, &signals_of_ours, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd >= 0 ? fd
	               : error_set(error, -errno, "cannot create a signalfd: %s", strerror(errno));
}

int signals_next(int signals)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	return info.ssi_signo;
}
