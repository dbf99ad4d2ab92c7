// Network namespaces: open, create, enter, remove.
#include "tap/netns.h"

#include "base/bits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/run/netns"
#define OF_THREAD "/proc/thread-self/ns/net"

enum { NETNS_PATH_MAX = 128 };

static const char *path_of(const char *name, char path[NETNS_PATH_MAX])
{
	snprintf(path, NETNS_PATH_MAX, FOLDER "/%s", name);
	return path;
}

static int do_nothing(void *arg)
{
	return 0;
}

int netns_open(const char *name, struct error *error)
{
	char path[NETNS_PATH_MAX];
	int netns = -1, err = -EINVAL;

	if (name[0] && name[0] != '.' && !strchr(name, '/')) {
		netns = open(path_of(name, path), O_RDONLY | O_CLOEXEC);
		err = netns < 0 ? -errno : netns_inside(netns, do_nothing, NULL, NULL);
	}
	if (!err)
		return netns;
	if (netns >= 0)
		close(netns);
	if (err == -ENOENT)
		return error_set(error, err,
			"linux: network namespace '%s' does not exist; create it (ip netns add %s) "
			"or remove namespace",
			name, name);
	if (err == -EPERM)
		return error_set(error, err,
			"linux: no permission to enter network namespace '%s'; start as root or "
			"with CAP_SYS_ADMIN and CAP_NET_ADMIN",
			name);
	return error_set(error, err,
		"linux: '%s' is not a network namespace: %s; specify one that `ip netns` lists",
		name, strerror(-err));
}

static int entry_error(int err, struct error *error)
{
	return error_set(error, err, "linux: cannot enter the network namespace: %s",
		strerror(-err));
}

int netns_inside(int netns, int (*call)(void *arg), void *arg, struct error *error)
{
	static __thread int inside = -1;

	if (netns >= 0 && inside == netns)
		return call(arg);
	int back = open(OF_THREAD, O_RDONLY | O_CLOEXEC), outer = inside;
	if (back < 0)
		return entry_error(-errno, error);
	int result = setns(netns, CLONE_NEWNET) == 0 ? 0 : entry_error(-errno, error);
	if (!result) {
		inside = netns;
		result = call(arg);
		inside = outer;
		// If the control thread could not return to its namespace, everything else would
		// run in the wrong one.
		if (setns(back, CLONE_NEWNET) != 0)
			abort();
	}
	close(back);
	return result;
}

bool netns_is_named(int netns, const char *name)
{
	char path[NETNS_PATH_MAX];
	struct stat open_one, named;

	return fstat(netns, &open_one) == 0 && stat(path_of(name, path), &named) == 0 &&
	       open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

// proc(5): a mount with a master receives mount events and propagates none.
bool netns_is_seen_by_others(void)
{
	FILE *mounts = fopen("/proc/thread-self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;
	bool is_seen = true;

	while (mounts && getline(&line, &room, mounts) > 0)
		if (strstr(line, " " FOLDER " "))
			is_seen = !strstr(line, " master:"); // the last mount is on top
	free(line);
	if (mounts)
		fclose(mounts);
	return is_seen;
}

// The directory must be a shared mount of its own, so that names appear and disappear in all mount
// namespaces.
static int share_folder(void)
{
	if (mkdir(FOLDER, 0755) != 0 && errno != EEXIST)
		return -errno;
	if (mount("", FOLDER, "none", MS_SHARED | MS_REC, NULL) == 0)
		return 0;
	if (mount(FOLDER, FOLDER, "none", MS_BIND | MS_REC, NULL) != 0 ||
		mount("", FOLDER, "none", MS_SHARED | MS_REC, NULL) != 0)
		return -errno;
	return 0;
}

static void write_word(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return; // a kernel without IPv6
	if (write(fd, word, strlen(word)) < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	close(fd);
}

static void prepare_new(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	write_word("/proc/sys/net/ipv6/conf/default/accept_ra", "0");
}

struct maker {
	char path[NETNS_PATH_MAX];
	int err;
};

// Runs in its own thread: it moves to the new namespace and never returns.
static void *make_there(void *arg)
{
	struct maker *m = arg;

	if (unshare(CLONE_NEWNET) != 0 || mount(OF_THREAD, m->path, "none", MS_BIND, NULL) != 0)
		m->err = -errno;
	else
		prepare_new();
	return NULL;
}

static int make_named(struct maker *m)
{
	pthread_t thread;
	int fd = open(m->path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	close(fd);
	m->err = -pthread_create(&thread, NULL, make_there, m);
	if (!m->err)
		pthread_join(thread, NULL);
	if (m->err)
		unlink(m->path);
	return m->err;
}

int netns_make(const char *name, struct error *error)
{
	struct maker m = {.err = 0};
	int err = name[0] && name[0] != '.' && !strchr(name, '/') ? share_folder() : -EINVAL;

	path_of(name, m.path);
	if (!err)
		err = make_named(&m);
	if (err)
		return error_set(error, err,
			"linux: cannot create network namespace '%s': %s; create one (ip netns "
			"add) and specify it (linux: {namespace: ...})",
			name, strerror(-err));
	return netns_open(name, error);
}

// Interfaces that every namespace has by default.
static bool is_native(const char *name)
{
	static const char *const names[] = {"lo", "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0",
		"erspan0", "ip6gre0", "ip_vti0", "ip6_vti0"};

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int has_interfaces(void *arg)
{
	struct if_nameindex *all = if_nameindex();
	int found = 0;

	for (struct if_nameindex *one = all; one && one->if_index; one++)
		found |= !is_native(one->if_name);
	if_freenameindex(all);
	return found;
}

static bool has_processes(int netns)
{
	struct stat ours, its;
	char path[64];
	DIR *proc = opendir("/proc");
	bool found = false;

	if (!proc || fstat(netns, &ours) != 0)
		found = true;
	for (struct dirent *entry; !found && (entry = readdir(proc));) {
		snprintf(path, sizeof(path), "/proc/%.20s/ns/net", entry->d_name);
		found = stat(path, &its) == 0 && its.st_ino == ours.st_ino &&
		        its.st_dev == ours.st_dev;
	}
	if (proc)
		closedir(proc);
	return found;
}

void netns_remove(int netns, const char *name)
{
	char path[NETNS_PATH_MAX];

	if (!netns_is_named(netns, name) || has_processes(netns) ||
		netns_inside(netns, has_interfaces, NULL, NULL) != 0)
		return;
	if (umount2(path_of(name, path), MNT_DETACH) == 0)
		unlink(path);
}
