// A TAP and its queues. `held` comes first, so that Linux uses no queue but ours for its frames.
#include "tap/tap_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef IFF_NO_CARRIER
#define IFF_NO_CARRIER 0x0040 // Linux 6.4; older kernels attach with carrier
#endif

int tap_device_open_blank(void)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int device_error(int err, struct error *error)
{
	if (err == -EACCES || err == -EPERM)
		return error_set(error, err,
			"linux: no permission to open /dev/net/tun; start as root");
	return error_set(error, err,
		"linux: cannot open /dev/net/tun: %s; load the module tun, and give a container "
		"the device",
		strerror(-err));
}

// Why the interface cannot be adopted, as the end of a sentence.
static const char *find_obstacle(const struct tap_request *request, const struct netdev *found)
{
	if (!found->is_tap)
		return "another interface has the name of its TAP interface; rename that interface "
		       "or the port";
	if (!found->has_queues)
		return "a TAP interface without multi_queue already has this name; delete it or "
		       "rename the port";
	if (found->n_attached && !request->may_be_used)
		return "another program uses the TAP interface of this name; stop that program or "
		       "rename the port";
	return NULL;
}

int tap_device_check_name(const char *name, struct error *error)
{
	const char *mistake = netdev_name_mistake(name);

	if (!mistake)
		return 0;
	return error_set(error, -EINVAL,
		"port '%s': its name %s, so the TAP interface cannot have this name; rename the "
		"port",
		name, mistake);
}

// 0: can be adopted; -ENODEV: can be created; otherwise an error.
static int look(const struct tap_request *request, const struct netdev_sockets *sockets,
	struct netdev *found, struct error *error)
{
	int err = tap_device_check_name(request->name, error);

	if (err)
		return err;
	err = netdev_read(sockets, request->name, found);
	if (err == -ENODEV)
		return err;
	if (err)
		return error_set(error, err, "port '%s': cannot query interfaces: %s",
			request->name, strerror(-err));
	const char *obstacle = find_obstacle(request, found);

	if (obstacle)
		return error_set(error, -EEXIST, "port '%s' in namespace '%s': %s", request->name,
			request->namespace_name, obstacle);
	return 0;
}

int tap_device_check(const struct tap_request *request, const struct netdev_sockets *sockets,
	struct error *error)
{
	struct netdev found;
	int err = look(request, sockets, &found, error);

	return err == -ENODEV ? 0 : err;
}

int tap_device_check_device(struct error *error)
{
	int fd = tap_device_open_blank();

	if (fd < 0)
		return device_error(fd, error);
	close(fd);
	return 0;
}

static int attach(const char *name, unsigned flags)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | flags};
	int fd = tap_device_open_blank();

	if (fd < 0)
		return fd;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) == 0)
		return fd;
	int err = -errno;
	close(fd);
	return err;
}

static int detach(int fd)
{
	struct ifreq request = {.ifr_flags = IFF_DETACH_QUEUE};

	return ioctl(fd, TUNSETQUEUE, &request) == 0 ? 0 : -errno;
}

static int set_persistent(int fd, bool persistent)
{
	return ioctl(fd, TUNSETPERSIST, persistent ? 1ul : 0ul) == 0 ? 0 : -errno;
}

int tap_device_hold_again(struct tap_device *tap)
{
	if (tap->held >= 0)
		return 0;
	tap->held = attach(tap->name, tap->has_carrier ? 0 : IFF_NO_CARRIER);
	return tap->held < 0 ? tap->held : detach(tap->held);
}

static int attach_both(struct tap_device *tap, const struct tap_request *request)
{
	int err = request->keep ? tap_device_hold_again(tap) : 0;

	if (err)
		return err;
	tap->fd = attach(request->name, tap->has_carrier ? 0 : IFF_NO_CARRIER);
	if (tap->fd < 0)
		return tap->fd;
	// Linux then completes checksums and segments packets itself.
	return ioctl(tap->fd, TUNSETOFFLOAD, 0ul) == 0 ? 0 : -errno;
}

static int equip(const struct tap_device *tap, const struct tap_request *request,
	const struct netdev_sockets *sockets)
{
	int err = netdev_set_mac(sockets, tap->name, &request->mac);

	if (!err)
		err = netdev_set_mtu(sockets, tap->name, request->mtu);
	return err ? err : netdev_set_up(sockets, tap->name);
}

// Reading was permitted, creating was not.
static int making_error(const struct tap_request *request, int err, struct error *error)
{
	if (err == -EPERM)
		return error_set(error, err,
			"port '%s': no permission to create its TAP interface in namespace '%s'; "
			"start as root or with CAP_NET_ADMIN",
			request->name, request->namespace_name);
	return error_set(error, err,
		"port '%s': cannot create its TAP interface in namespace '%s': %s", request->name,
		request->namespace_name, strerror(-err));
}

int tap_device_make(struct tap_device *out, const struct tap_request *request,
	const struct netdev_sockets *sockets, struct error *error)
{
	struct tap_device tap = {.fd = -1, .held = -1};
	struct netdev found = {0};
	int err = look(request, sockets, &found, error);

	if (err && err != -ENODEV)
		return err;
	tap.adopted = !err;
	tap.has_carrier = found.has_carrier;
	snprintf(tap.name, sizeof(tap.name), "%s", request->name);
	err = attach_both(&tap, request);
	if (!err && !tap.adopted)
		err = equip(&tap, request, sockets);
	if (!err)
		err = netdev_read(sockets, request->name, &found);
	if (!err && request->keep)
		err = set_persistent(tap.fd, true);
	if (err) {
		tap_device_close(&tap, true);
		return making_error(request, err, error);
	}
	tap.index = found.index;
	tap.has_carrier = found.has_carrier;
	*out = tap;
	return 0;
}

void tap_device_close(struct tap_device *tap, bool undo)
{
	if (undo && !tap->adopted)
		tap_device_forget(tap);
	if (tap->held >= 0)
		close(tap->held);
	if (tap->fd >= 0)
		close(tap->fd);
	tap->fd = tap->held = -1;
	tap->index = 0;
}

void tap_device_forget(struct tap_device *tap)
{
	if (tap->fd >= 0)
		set_persistent(tap->fd, false);
}

int tap_device_set_carrier(struct tap_device *tap, bool carrier)
{
	int wanted = carrier;

	if (ioctl(tap->fd, TUNSETCARRIER, &wanted) != 0)
		return -errno;
	tap->has_carrier = carrier;
	return 0;
}
