// Finds or starts the holder and communicates with it. Control thread.
#include "tap/hold.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// A service manager that listens for the holder starts it only then.
enum { PATIENCE_S = 20 };

int hold_address(const char *path, struct sockaddr_un *out)
{
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if (!path[0] || strlen(path) >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	strcpy(out->sun_path, path);
	return 0;
}

int hold_connect(const char *path)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un address;
	int err = hold_address(path, &address);
	int fd = err ? err : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err ? err : -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

// A new session, no inherited files, no blocked signals. Does not fork, because huge pages must not
// be copied.
static int spawn(const char *path, pid_t *child)
{
	char *const argv[] = {"dl3d", "--hold", (char *)path, NULL}, *const environment[] = {NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t signals;

	posix_spawn_file_actions_init(&files);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", 2, 0);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how,
		POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&how, &signals);
	sigaddset(&signals, SIGPIPE);
	posix_spawnattr_setsigdefault(&how, &signals);
	int err = -posix_spawn(child, "/proc/self/exe", &files, &how, argv, environment);

	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return err;
}

// The first process of the holder exits when its child is listening.
static int run_holder(const char *path)
{
	pid_t child;
	int status, err = spawn(path, &child);

	if (err)
		return err;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int hold_start(const char *path, struct error *error)
{
	int fd = hold_connect(path);

	if (fd >= 0)
		return fd;
	int err = run_holder(path);

	if (!err) {
		fd = hold_connect(path);
		if (fd >= 0)
			return fd;
		err = fd;
	}
	return error_set(error, err,
		"linux: cannot start dl3d-hold on %s: %s; free that path, or set linux: {keep: "
		"false}",
		path, strerror(-err));
}

static int ask(int holder, const char *word, const char *key, int fd)
{
	char message[HOLD_MESSAGE_MAX], answer[8] = "";
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec part = {message, 0};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};

	part.iov_len = snprintf(message, sizeof(message), "%s%s", word, key);
	if (part.iov_len >= sizeof(message))
		return -ENAMETOOLONG;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		packet.msg_control = &control;
		packet.msg_controllen = sizeof(control);
	}
	if (holder < 0 || sendmsg(holder, &packet, MSG_NOSIGNAL) < 0)
		return holder < 0 ? -ENOTCONN : -errno;
	ssize_t n = recv(holder, answer, sizeof(answer) - 1, 0);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	return strcmp(answer, HOLD_OK) == 0 ? 0 : -ENOSPC;
}

int hold_give(int holder, const char *key, int fd)
{
	return ask(holder, HOLD_WORD, key, fd);
}

int hold_release(int holder, const char *key)
{
	return ask(holder, HOLD_RELEASE_WORD, key, -1);
}

bool hold_has_ended(int holder)
{
	struct pollfd one = {.fd = holder, .events = POLLIN};

	return holder < 0 || (poll(&one, 1, 0) > 0 && one.revents & (POLLHUP | POLLERR));
}
