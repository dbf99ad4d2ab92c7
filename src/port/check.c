// Checks the files, directories and interfaces of devices and plugins.
#include "port/check.h"

#include "base/bits.h"
#include "base/log.h"
#include "port/kind.h"
#include "port/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <net/if.h>
#include <rte_build_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

// EAL loads no file that another user could have placed there.
static int check_owner_only(const char *plugin, char *path, struct error *error)
{
	struct stat st;

	for (;;) {
		if (stat(path, &st) == 0 && (st.st_mode & S_IWOTH))
			return error_set(error, -EPERM,
				"plugin %s: %s is world-writable, and DPDK does not load plugins "
				"from there; move it to a folder that only its owner can write to",
				plugin, path);
		char *slash = strrchr(path, '/');

		if (!slash || strcmp(path, "/") == 0)
			return 0;
		slash[slash == path] = 0;
	}
}

// Directories are allowed: EAL loads all libraries in them.
static int check_library(const char *plugin, struct error *error)
{
	static const char magic[] = {0x7f, 'E', 'L', 'F'};
	char begin[sizeof(magic)] = "";
	int fd = open(plugin, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, begin, sizeof(begin));
	bool is_folder = n < 0 && errno == EISDIR;

	if (fd >= 0)
		close(fd);
	if (is_folder || (n == sizeof(magic) && !memcmp(begin, magic, sizeof(magic))))
		return 0;
	return error_set(error, -ENOEXEC,
		"plugin %s: not a shared library; expected one, or a folder of them", plugin);
}

static int check_plugin(const char *plugin, struct error *error)
{
	char path[PATH_MAX];

	if (!realpath(plugin, path)) {
		// A bare name is searched in the system's library directories.
		if (errno == ENOENT && !strchr(plugin, '/'))
			return 0;
		return error_set(error, -errno, "plugin %s: %s; check its path", plugin,
			strerror(errno));
	}
	if (access(path, R_OK) != 0)
		return error_set(error, -errno, "plugin %s: %s; check its permissions", plugin,
			strerror(errno));
	int err = check_owner_only(plugin, path, error);
	return err ? err : check_library(plugin, error);
}

static int check_folder(const char *label, const char *device, const char *socket,
	struct error *error)
{
	char folder[KIND_PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%s", socket);
	char *slash = strrchr(folder, '/');

	if (!slash)
		return 0;
	slash[slash == folder] = 0;
	if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return error_set(error, -ENOENT,
		"%s: %s needs its socket in %s, which is not a folder; create it or specify "
		"another",
		label, device, folder);
}

static int check_socket(const char *label, const struct kind *kind, struct error *error)
{
	struct stat st;

	if (kind->socket_is_long)
		return error_set(error, -ENAMETOOLONG,
			"%s: %s has a socket whose path is longer than %d bytes; use a shorter one",
			label, kind->name, KIND_PATH_MAX - 1);
	if (stat(kind->socket, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return error_set(error, -ENOTSOCK,
			"%s: %s needs its socket at %s, where a file or folder exists; specify "
			"another path",
			label, kind->name, kind->socket);
	return check_folder(label, kind->name, kind->socket, error);
}

static int check_slots(const char *label, const struct port_settings *port, const struct kind *kind,
	struct error *error)
{
	unsigned mtu = port->mtu ? port->mtu : PORT_DEFAULT_MTU, bytes = mtu + KIND_FRAME_AROUND;
	unsigned wanted = round_up(bytes, CACHE_LINE_BYTES);
	unsigned pages = round_up(bytes + KIND_PACKET_IN_FRONT, PAGE_BYTES);

	if (!kind->slot_bytes || bytes <= kind->slot_bytes)
		return 0;
	if (kind->netdev[0])
		return error_set(error, -EINVAL,
			"%s: frames with mtu %u do not fit into the slots of net_af_packet, %u "
			"bytes; add \"framesz=%u,blocksz=%u\" to the device, or lower the mtu",
			label, mtu, kind->slot_bytes, pages, pages);
	return error_set(error, -EINVAL,
		"%s: frames with mtu %u do not fit into memif's buffers of %u bytes; add "
		"\"bsize=%u\" to the device here and at the other end, or lower the mtu",
		label, mtu, kind->slot_bytes, wanted);
}

// The driver library of virtual devices, for those not named net_DRIVER.
static const struct {
	const char *prefix, *library;
} libraries[] = {{"net_virtio_user", "net_virtio"}, {"net_bonding", "net_bond"}};

// Packages install librte_X.so.23, and librte_X.so only those for developers; DPDK loads either.
static bool has_library(const char *path)
{
	char pattern[sizeof(RTE_EAL_PMD_PATH) + KIND_BUS_NAME_MAX + 33];
	glob_t found = {0};

	snprintf(pattern, sizeof(pattern), "%s*", path);
	const bool is_there = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;

	globfree(&found);
	return is_there;
}

// DPDK loads its drivers from one directory; a virtual device without a driver is detected only at
// start.
static void warn_of_driver(const char *label, const struct kind *kind)
{
	char driver[KIND_BUS_NAME_MAX], path[sizeof(RTE_EAL_PMD_PATH) + sizeof(driver) + 32];
	struct stat st;

	snprintf(driver, sizeof(driver), "%s", kind->name);
	driver[strcspn(driver, "0123456789")] = 0;
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		if (strcmp(driver, libraries[i].prefix) == 0)
			snprintf(driver, sizeof(driver), "%s", libraries[i].library);
	snprintf(path, sizeof(path), "%s/librte_%s.so", RTE_EAL_PMD_PATH, driver);
	if (stat(RTE_EAL_PMD_PATH, &st) != 0 || has_library(path))
		return;
	log_warn("%s: DPDK has no driver (PMD) for %s (%s does not exist); check the name, or load "
		 "a plugin that provides it (eal: plugins)",
		label, kind->name, path);
}

static int check_device(const struct port_table_settings *settings, unsigned port,
	struct error *error)
{
	struct kind kind;
	struct stat st;
	char path[128], label[48];

	plan_port_label(settings, port, label);
	kind_read(settings->ports[port].device, &kind);
	if (kind.bus == KIND_PCI) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", kind.name);
		if (stat(path, &st) != 0)
			return error_set(error, -ENODEV,
				"%s: PCI device %s does not exist; `dpdk-devbind.py --status` "
				"lists those that do",
				label, kind.name);
	}
	if (kind.netdev[0] && if_nametoindex(kind.netdev) == 0)
		return error_set(error, -ENODEV,
			"%s: interface %s does not exist in this network namespace; `ip link` "
			"lists those that do",
			label, kind.netdev);
	int err = kind.socket[0] ? check_socket(label, &kind, error) : 0;

	return err ? err : check_slots(label, &settings->ports[port], &kind, error);
}

static bool is_served(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	// EAGAIN: too many connections are waiting there.
	bool found = fd >= 0 &&
	             (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN);
	if (fd >= 0)
		close(fd);
	return found;
}

// A program that was killed has left its socket behind, and no driver replaces it.
static int check_server(const struct port_table_settings *settings, unsigned port,
	struct error *error)
{
	struct kind kind;
	struct stat st;
	char label[48];

	kind_read(settings->ports[port].device, &kind);
	if (!kind.serves || stat(kind.socket, &st) != 0 || !S_ISSOCK(st.st_mode))
		return 0;
	if (!is_served(kind.socket)) {
		unlink(kind.socket);
		return 0;
	}
	return error_set(error, -EADDRINUSE,
		"%s: another program is listening on %s; stop it or specify another path",
		plan_port_label(settings, port, label), kind.socket);
}

int check_served(const struct port_table_settings *settings, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < settings->n_ports && !err; i++)
		err = check_server(settings, i, error);
	return err;
}

int check_added(const struct port_table_settings *settings, unsigned port, struct error *error)
{
	int err = check_device(settings, port, error);

	return err ? err : check_server(settings, port, error);
}

// EAL accepts unambiguous prefixes of options, and single letters combined in one argument.
static bool wants_help(const char *arg)
{
	size_t n = strlen(arg);

	if (arg[0] == '-' && arg[1 + strspn(arg + 1, "v")] == 'h')
		return true;
	return n >= strlen("--he") && strncmp(arg, "--help", n) == 0;
}

// A secondary process waits forever for a primary one, and polls none of our ports.
static bool names_process_type(const char *arg)
{
	return strncmp(arg, "--pr", strlen("--pr")) == 0;
}

int check_eal_args(const struct port_table_settings *settings, struct error *error)
{
	for (unsigned i = 0; i < settings->n_eal_args; i++) {
		const char *arg = settings->eal_args[i];

		if (wants_help(arg))
			return error_set(error, -EINVAL,
				"eal: args: with \"%s\" DPDK exits instead of starting; remove it",
				arg);
		if (names_process_type(arg))
			return error_set(error, -EINVAL,
				"eal: args: \"%s\": this program is always a primary process; "
				"remove it",
				arg);
	}
	return 0;
}

int check_files(const struct port_table_settings *settings, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < settings->n_plugins && !err; i++)
		err = check_plugin(settings->plugins[i], error);
	for (unsigned i = 0; i < settings->n_ports && !err; i++)
		err = check_device(settings, i, error);
	return err;
}

void port_warn_of_drivers(const struct port_table_settings *settings)
{
	struct kind kind;
	char label[48];

	for (unsigned i = 0; i < settings->n_ports && !settings->n_plugins; i++) {
		kind_read(settings->ports[i].device, &kind);
		if (kind.bus == KIND_VIRTUAL && strncmp(kind.name, "net_", 4) == 0)
			warn_of_driver(plan_port_label(settings, i, label), &kind);
	}
}
