// Settings before anything is created: defaults, and checks.
#include "tap/netns.h"
#include "tap/tap.h"
#include "tap/tap_device.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void tap_settings_default(struct tap_settings *out)
{
	memset(out, 0, sizeof(*out));
	out->keep = true;
	snprintf(out->own_namespace, sizeof(out->own_namespace), "dl3d");
	for (unsigned c = 0; c < N_CLASSES; c++) {
		const struct class_row *row = class_row(c);

		out->class[c] = (struct tap_class_settings){row->rate, row->burst, row->forwards};
	}
}

// Creating interfaces requires the former, entering namespaces the latter.
static int check_rights(struct error *error)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	uint32_t wanted = 1u << CAP_NET_ADMIN | 1u << CAP_SYS_ADMIN;

	if (syscall(SYS_capget, &header, data) == 0 && (data[0].effective & wanted) == wanted)
		return 0;
	return error_set(error, -EPERM,
		"linux: creating the ports' TAP interfaces requires %s; start as root, or give the "
		"program that capability",
		data[0].effective & 1u << CAP_NET_ADMIN ? "CAP_SYS_ADMIN (to enter their namespace)"
							: "CAP_NET_ADMIN");
}

struct look {
	const struct port_table_settings *ports;
	const char *namespace_name;
	struct error *error;
};

static int look_at_names(void *arg)
{
	const struct look *look = arg;
	struct netdev_sockets sockets;
	int err = netdev_open(&sockets);

	if (err)
		return error_set(look->error, err,
			"linux: cannot create a socket in namespace '%s': %s", look->namespace_name,
			strerror(-err));
	for (unsigned p = 0; p < look->ports->n_ports && !err; p++) {
		struct tap_request request = {.name = look->ports->ports[p].name,
			.namespace_name = look->namespace_name,
			.may_be_used = true};

		err = tap_device_check(&request, &sockets, look->error);
	}
	netdev_close(&sockets);
	return err;
}

int tap_check(const struct tap_settings *settings, const struct port_table_settings *ports,
	struct error *error)
{
	bool is_own = !settings->namespace_name[0];
	struct look look = {ports, is_own ? settings->own_namespace : settings->namespace_name,
		error};
	int err = 0;

	for (unsigned p = 0; p < ports->n_ports && !err; p++)
		err = tap_device_check_name(ports->ports[p].name, error);
	if (!err)
		err = check_rights(error);
	if (!err)
		err = tap_device_check_device(error);
	if (err)
		return err;
	int netns = netns_open(look.namespace_name, error);

	if (netns == -ENOENT && is_own) // it will be created, so names here cannot conflict
		return 0;
	if (netns < 0)
		return netns;
	err = netns_inside(netns, look_at_names, &look, error);
	close(netns);
	return err;
}
