// A TAP and its queues. `held` comes first, so that frames from Linux find no queue but ours.
#include "tap/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef IFF_NO_CARRIER
#define IFF_NO_CARRIER 0x0040 // Linux 6.4; older ones attach with carrier
#endif

int twin_open_blank(void)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int complain_of_device(int err, struct complaint *why)
{
	if (err == -EACCES || err == -EPERM)
		return complain(why, err, "linux: no right to open /dev/net/tun; start as root");
	return complain(why, err,
		"linux: no /dev/net/tun: %s; twins are TAP interfaces: load the module tun, and "
		"give a container the device",
		strerror(-err));
}

// What stands in the way of adopting the interface, as the end of a sentence.
static const char *find_obstacle(const struct twin_wish *wish, const struct iface *found)
{
	if (!found->is_tap)
		return "another interface has its twin's name; rename that one, or the port";
	if (!found->has_queues)
		return "a TAP without multi_queue has its twin's name; delete it, or rename the "
		       "port";
	if (found->n_attached && !wish->may_be_used)
		return "another program uses the TAP of its twin's name; stop that program, or "
		       "rename the port";
	return NULL;
}

int twin_check_name(const char *name, struct complaint *why)
{
	const char *mistake = iface_name_mistake(name);

	if (!mistake)
		return 0;
	return complain(why, -EINVAL,
		"port '%s': its name %s, so its twin in Linux cannot have it; rename the port",
		name, mistake);
}

// 0: can be adopted; -ENODEV: can be made; else a mistake.
static int look(const struct twin_wish *wish, const struct iface_sockets *sockets,
	struct iface *found, struct complaint *why)
{
	int err = twin_check_name(wish->name, why);

	if (err)
		return err;
	err = iface_read(sockets, wish->name, found);
	if (err == -ENODEV)
		return err;
	if (err)
		return complain(why, err, "port '%s': Linux does not tell of interfaces: %s",
			wish->name, strerror(-err));
	const char *obstacle = find_obstacle(wish, found);

	if (obstacle)
		return complain(why, -EEXIST, "port '%s' in namespace '%s': %s", wish->name,
			wish->namespace_name, obstacle);
	return 0;
}

int twin_check(const struct twin_wish *wish, const struct iface_sockets *sockets,
	struct complaint *why)
{
	struct iface found;
	int err = look(wish, sockets, &found, why);

	return err == -ENODEV ? 0 : err;
}

int twin_check_device(struct complaint *why)
{
	int fd = twin_open_blank();

	if (fd < 0)
		return complain_of_device(fd, why);
	close(fd);
	return 0;
}

static int attach(const char *name, unsigned flags)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | flags};
	int fd = twin_open_blank();

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

int twin_hold_again(struct twin *twin)
{
	if (twin->held >= 0)
		return 0;
	twin->held = attach(twin->name, twin->has_carrier ? 0 : IFF_NO_CARRIER);
	return twin->held < 0 ? twin->held : detach(twin->held);
}

static int attach_both(struct twin *twin, const struct twin_wish *wish)
{
	int err = wish->keep ? twin_hold_again(twin) : 0;

	if (err)
		return err;
	twin->fd = attach(wish->name, twin->has_carrier ? 0 : IFF_NO_CARRIER);
	if (twin->fd < 0)
		return twin->fd;
	// Linux then finishes checksums and cuts segments itself.
	return ioctl(twin->fd, TUNSETOFFLOAD, 0ul) == 0 ? 0 : -errno;
}

static int equip(const struct twin *twin, const struct twin_wish *wish,
	const struct iface_sockets *sockets)
{
	int err = iface_set_mac(sockets, twin->name, &wish->mac);

	if (!err)
		err = iface_set_mtu(sockets, twin->name, wish->mtu);
	return err ? err : iface_set_up(sockets, twin->name);
}

// Linux let us look, not touch.
static int complain_of_making(const struct twin_wish *wish, int err, struct complaint *why)
{
	if (err == -EPERM)
		return complain(why, err,
			"port '%s': no right to make its twin in namespace '%s'; start as root or "
			"with CAP_NET_ADMIN",
			wish->name, wish->namespace_name);
	return complain(why, err, "port '%s': its twin in namespace '%s' cannot be made: %s",
		wish->name, wish->namespace_name, strerror(-err));
}

int twin_make(struct twin *out, const struct twin_wish *wish, const struct iface_sockets *sockets,
	struct complaint *why)
{
	struct twin twin = {.fd = -1, .held = -1};
	struct iface found = {0};
	int err = look(wish, sockets, &found, why);

	if (err && err != -ENODEV)
		return err;
	twin.adopted = !err;
	twin.has_carrier = found.has_carrier;
	snprintf(twin.name, sizeof(twin.name), "%s", wish->name);
	err = attach_both(&twin, wish);
	if (!err && !twin.adopted)
		err = equip(&twin, wish, sockets);
	if (!err)
		err = iface_read(sockets, wish->name, &found);
	if (!err && wish->keep)
		err = set_persistent(twin.fd, true);
	if (err) {
		twin_close(&twin, true);
		return complain_of_making(wish, err, why);
	}
	twin.index = found.index;
	twin.has_carrier = found.has_carrier;
	*out = twin;
	return 0;
}

void twin_close(struct twin *twin, bool undo)
{
	if (undo && !twin->adopted)
		twin_forget(twin);
	if (twin->held >= 0)
		close(twin->held);
	if (twin->fd >= 0)
		close(twin->fd);
	twin->fd = twin->held = -1;
	twin->index = 0;
}

void twin_forget(struct twin *twin)
{
	if (twin->fd >= 0)
		set_persistent(twin->fd, false);
}

int twin_set_carrier(struct twin *twin, bool carrier)
{
	int wanted = carrier;

	if (ioctl(twin->fd, TUNSETCARRIER, &wanted) != 0)
		return -errno;
	twin->has_carrier = carrier;
	return 0;
}
