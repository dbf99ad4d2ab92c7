// The socket file: created so that no unauthorised client can connect at any time, replaced only if
// its owner is dead. Control thread.
#include "rpc/socket.h"

#include "base/bits.h"
#include "rpc/rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BACKLOG = 32, FILE_MODE = 0660, FOLDER_MODE = 0755 };
enum { LOCK_TRIES = 50, LOCK_PAUSE_US = 20000, FOLDER_TRIES = 5 };
enum { ENDING_MS = 10000, ENDING_TRIES = 50, ENDING_PAUSE_US = 20000 };

static int set_path(struct rpc_socket *s, const char *path, struct error *error)
{
	size_t most = sizeof(s->addr.sun_path) - 1;

	if (!*path)
		return error_set(error, -EINVAL,
			"control socket: the path is empty; specify a file");
	if (strlen(path) > most)
		return error_set(error, -ENAMETOOLONG,
			"control socket %s: the path has %zu bytes, at most %zu are allowed; "
			"choose a shorter one",
			path, strlen(path), most);
	s->addr.sun_family = AF_UNIX;
	strcpy(s->addr.sun_path, path);
	return 0;
}

// The path of the directory, in `folder` of sizeof(sun_path) bytes.
static void folder_of(const struct rpc_socket *s, char *folder)
{
	char *slash;

	strcpy(folder, s->addr.sun_path);
	slash = strrchr(folder, '/');
	if (!slash)
		strcpy(folder, ".");
	else
		slash[slash == folder] = 0;
}

// The lock is released with the descriptor. -errno; also -ENOENT if the directory has been removed.
static int open_and_lock(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat file;

	if (fd < 0)
		return -errno;
	for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
		usleep(LOCK_PAUSE_US); // anyone who can read the directory can hold the lock, so do
		                       // not wait forever
	if (fstat(fd, &file) == 0 && file.st_nlink > 0)
		return fd;
	close(fd);
	return -ENOENT;
}

// Opens the directory, created if only the last part of its path is missing, and locks it: two
// programs starting at the same time must not both replace a dead socket. A program that ends may
// remove the directory before it is locked.
static int lock_folder(struct rpc_socket *s, struct error *error)
{
	char folder[sizeof(s->addr.sun_path)];
	int fd = -ENOENT;

	folder_of(s, folder);
	for (int i = 0; i < FOLDER_TRIES && fd == -ENOENT; i++) {
		s->made_folder = mkdir(folder, FOLDER_MODE) == 0;
		if (s->made_folder)
			chmod(folder, FOLDER_MODE); // regardless of the umask: the group needs
			                            // access
		else if (errno != EEXIST)
			return error_set(error, -errno,
				"control socket %s: cannot create folder %s: %s; create it first",
				s->addr.sun_path, folder, strerror(errno));
		fd = open_and_lock(folder);
	}
	if (fd < 0)
		error_set(error, fd, "control socket %s: cannot open folder %s: %s",
			s->addr.sun_path, folder, strerror(-fd));
	return fd;
}

// Whether a process that still has its files open is exiting: after SIGKILL the kernel first frees
// its memory, which takes seconds for many GiB. Also false if it cannot be determined.
static bool is_ending(pid_t pid)
{
	enum { PF_EXITING = 4 }; // include/linux/sched.h; field 9 of /proc/PID/stat
	unsigned long long pending = 0;
	unsigned flags = 0;
	char path[64], line[512], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(line, sizeof(line), file) && strrchr(line, ')'))
		sscanf(strrchr(line, ')'), ") %c %*d %*d %*d %*d %*d %u", &state, &flags);
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long long mask = 0;

		if (sscanf(line, "SigPnd: %llx", &mask) == 1 ||
			sscanf(line, "ShdPnd: %llx", &mask) == 1)
			pending |= mask;
	}
	if (file)
		fclose(file);
	return state == 'Z' || state == 'X' || flags & PF_EXITING ||
	       pending & 1ull << (SIGKILL - 1);
}

// If the process at the other end of `fd` is exiting, waits until it has ended. False: it is still
// running.
static bool wait_for_end(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct pollfd ended = {.fd = -1, .events = POLLIN};
	bool has_ended = false;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
		return false;
	ended.fd = syscall(SYS_pidfd_open, peer.pid, 0);
	if (ended.fd < 0)
		return errno == ESRCH;
	if (is_ending(peer.pid))
		has_ended = poll(&ended, 1, ENDING_MS) > 0;
	close(ended.fd);
	return has_ended;
}

// Whether a running program listens on the socket. A killed process still accepts connections until
// the kernel has closed its files, so wait for its end.
static bool answers(const struct rpc_socket *s)
{
	for (int i = 0; i < ENDING_TRIES; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool is_dead = false, has_ended = false;

		if (fd < 0)
			return true; // unknown: leave the file alone
		if (connect(fd, (const struct sockaddr *)&s->addr, sizeof(s->addr)) < 0)
			is_dead = errno == ECONNREFUSED || errno == ENOENT;
		else
			has_ended = wait_for_end(fd);
		close(fd);
		if (is_dead || !has_ended)
			return !is_dead;
		usleep(ENDING_PAUSE_US); // the process is gone, its files may still be open
	}
	return true;
}

// 1: there is a socket, 0: there is nothing.
static int look_at(const char *path, struct error *error)
{
	struct stat file;

	if (lstat(path, &file) < 0)
		return errno == ENOENT ? 0
		                       : error_set(error, -errno, "control socket %s: %s", path,
						 strerror(errno));
	if (!S_ISSOCK(file.st_mode))
		return error_set(error, -EEXIST,
			"control socket %s: a file exists that is not a socket; remove it or "
			"choose another path",
			path);
	return 1;
}

static int remove_dead(const struct rpc_socket *s, struct error *error)
{
	const char *path = s->addr.sun_path;
	int found = look_at(path, error);

	if (found <= 0)
		return found;
	if (answers(s))
		return error_set(error, -EADDRINUSE,
			"control socket %s is in use by a running program; stop it or choose "
			"another path",
			path);
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set(error, -errno,
			"control socket %s: cannot remove the stale socket: %s", path,
			strerror(errno));
	return 0;
}

static int find_group(const char *name, gid_t *gid, struct error *error)
{
	const struct group *group = name ? getgrnam(name) : NULL;

	if (name && !group)
		return error_set(error, -ENOENT,
			"control socket: group '%s' does not exist; create it or specify another",
			name);
	*gid = group ? group->gr_gid : (gid_t)-1;
	return 0;
}

// As lock_folder would create it: everything except its last part must exist.
static int check_folder(const struct rpc_socket *s, struct error *error)
{
	char folder[sizeof(s->addr.sun_path)], above[sizeof(folder)];
	struct stat found;

	folder_of(s, folder);
	snprintf(above, sizeof(above), "%s", folder);
	char *slash = strrchr(above, '/');
	if (slash)
		slash[slash == above] = 0;
	if (stat(folder, &found) == 0
			? S_ISDIR(found.st_mode)
			: !slash || (stat(above, &found) == 0 && S_ISDIR(found.st_mode)))
		return 0;
	return error_set(error, -ENOTDIR,
		"control socket %s: cannot create folder %s: it is not a folder, or its parent "
		"does not exist; create it first",
		s->addr.sun_path, folder);
}

int rpc_check(const char *path, const char *group, struct error *error)
{
	struct rpc_socket s = {.fd = -1};
	gid_t gid;
	int err = set_path(&s, path, error);

	if (!err)
		err = find_group(group, &gid, error);
	if (!err)
		err = check_folder(&s, error);
	return err ? err : MIN_OF(look_at(path, error), 0);
}

// The file is created with the mode of the descriptor (0600), then gets its group and only then the
// group's permissions; nobody can connect before the final listen.
static int bind_and_listen(struct rpc_socket *s, gid_t gid, struct error *error)
{
	const char *path = s->addr.sun_path;
	struct stat file;

	if (fchmod(s->fd, 0600) < 0 ||
		bind(s->fd, (struct sockaddr *)&s->addr, sizeof(s->addr)) < 0)
		return error_set(error, -errno, "control socket %s: cannot create it: %s", path,
			strerror(errno));
	if (lstat(path, &file) < 0)
		return error_set(error, -errno, "control socket %s: %s", path, strerror(errno));
	s->device = file.st_dev;
	s->inode = file.st_ino;
	if (gid != (gid_t)-1 && lchown(path, -1, gid) < 0)
		return error_set(error, -errno, "control socket %s: cannot set its group: %s", path,
			strerror(errno));
	if (chmod(path, FILE_MODE) < 0 || listen(s->fd, BACKLOG) < 0)
		return error_set(error, -errno, "control socket %s: cannot listen on it: %s", path,
			strerror(errno));
	return 0;
}

int rpc_socket_open(struct rpc_socket *s, const char *path, const char *group, struct error *error)
{
	gid_t gid = -1;
	int folder, err;

	*s = (struct rpc_socket){.fd = -1};
	err = set_path(s, path, error);
	if (!err)
		err = find_group(group, &gid, error);
	if (err)
		return err;
	folder = lock_folder(s, error);
	if (folder < 0)
		return folder;
	err = remove_dead(s, error);
	if (!err)
		s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!err && s->fd < 0)
		err = error_set(error, -errno, "control socket %s: %s", path, strerror(errno));
	if (!err)
		err = bind_and_listen(s, gid, error);
	close(folder);
	if (err)
		rpc_socket_close(s);
	return err;
}

void rpc_socket_close(struct rpc_socket *s)
{
	char folder[sizeof(s->addr.sun_path)];
	struct stat file;

	if (s->inode && lstat(s->addr.sun_path, &file) == 0 && file.st_dev == s->device &&
		file.st_ino == s->inode)
		unlink(s->addr.sun_path);
	folder_of(s, folder);
	if (s->made_folder) {
		int fd = open_and_lock(folder);

		rmdir(folder); // fails, as intended, if it contains anything else
		if (fd >= 0)
			close(fd);
	}
	s->made_folder = false;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
