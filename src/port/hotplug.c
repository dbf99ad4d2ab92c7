// Devices that vanish and return while their ports run. Workers may still be in the queues of a
// device that has vanished, so it is closed only after a grace period. Control thread.
#include "base/clock.h"
#include "base/log.h"
#include "port/eal.h"
#include "port/table.h"
#include "port/wait.h"

#include <errno.h>
#include <net/if.h>
#include <rte_dev.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUS_PATH_MAX = 128 };
static const uint64_t TRY_EVERY_NS = 1000000000;

// The device's name on its bus: auxiliary:NAME, otherwise NAME.
static const char *name_on_bus(const struct kind *kind)
{
	const char *colon = kind->bus == KIND_ALLOWED ? strchr(kind->name, ':') : NULL;

	return colon ? colon + 1 : kind->name;
}

static const char *bus_of(const struct kind *kind)
{
	return kind->bus == KIND_PCI ? "pci" : kind->bus == KIND_ALLOWED ? "auxiliary" : "vdev";
}

static bool is_on_bus(const struct kind *kind)
{
	char path[BUS_PATH_MAX];

	snprintf(path, sizeof(path), "/sys/bus/%s/devices/%s", bus_of(kind), name_on_bus(kind));
	return access(path, F_OK) == 0;
}

// The Linux interface that a virtual device uses or has made.
static int find_netdev(const struct port_device *device)
{
	if (device->kind.bus != KIND_VIRTUAL)
		return 0;
	return device->info.if_index ? (int)device->info.if_index
	                             : (int)if_nametoindex(device->kind.netdev);
}

void hotplug_note(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	device->was_on_bus = is_on_bus(&device->kind);
	device->netdev_index = find_netdev(device);
	device->n_sockets = device->netdev_index ? below_count_sockets(device->netdev_index) : 0;
}

// Most drivers do not report that their device has vanished. An interface that was deleted and made
// again has another index; one that was moved to another namespace and back has lost the driver's
// sockets.
static bool has_vanished(const struct port_table *ports, const struct port_device *device)
{
	if (__atomic_load_n(&device->is_gone, __ATOMIC_RELAXED))
		return true;
	if (device->was_on_bus && !is_on_bus(&device->kind))
		return true;
	if (!device->netdev_index)
		return false;
	if (device->n_sockets && !below_count_sockets(device->netdev_index))
		return true;
	return ports->link_socket >= 0 &&
	       below_runs(ports->link_socket, device->netdev_index) == -ENODEV;
}

// Its interface is made by its driver, so it never returns by itself.
static bool makes_netdev(const struct port_device *device)
{
	return device->netdev_index && !device->kind.netdev[0];
}

static void log_loss(const struct port_table *ports, unsigned port)
{
	const struct port_device *device = &ports->devices[port];

	log_warn("port %s: its device %s has vanished (removed or reset); the port is down, and "
		 "returns %s",
		ports->settings->ports[port].name, device->kind.name,
		makes_netdev(device) ? "with `dl3 reload`" : "with its device");
}

void hotplug_withdraw(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	device->phase = DEVICE_LEAVING;
	port_set_carrier(ports, port, false);
	workers_close(ports, port);
	wait_leave(ports, port);
	if (ports->grace.start)
		device->token = ports->grace.start(ports->grace.arg);
}

static void leave(struct port_table *ports, unsigned port)
{
	ports->devices[port].n_losses++;
	if (ports->grace.start)
		log_loss(ports, port);
	hotplug_withdraw(ports, port);
}

static void leave_for_reset(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	log_warn("port %s: its device %s asks for a reset; the port is down meanwhile",
		ports->settings->ports[port].name, device->kind.name);
	__atomic_store_n(&device->wants_reset, false, __ATOMIC_RELAXED);
	hotplug_withdraw(ports, port);
	device->phase = DEVICE_RESETTING;
}

void hotplug_detach(struct port_table *ports, unsigned port)
{
	const struct kind *kind = &ports->devices[port].kind;

	eal_hush();
	device_close(ports, port);
	rte_eal_hotplug_remove(bus_of(kind), name_on_bus(kind));
	eal_speak();
}

static bool is_unused(const struct port_table *ports, unsigned port)
{
	return ports->grace.has_passed &&
	       ports->grace.has_passed(ports->grace.arg, ports->devices[port].token);
}

static void give_up(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	device_add_errors(device, &device->errors);
	hotplug_detach(ports, port);
	device->phase = DEVICE_GONE;
	device->tried_ns = 0;
	device->refusal.text[0] = 0;
}

// The port is up again as soon as its link is.
static void come_back(struct port_table *ports, unsigned port, const char *how)
{
	struct port_device *device = &ports->devices[port];

	hotplug_note(ports, port);
	workers_open(ports, port);
	wait_return(ports, port);
	device->phase = DEVICE_PRESENT;
	log_info("port %s: its device %s %s", ports->settings->ports[port].name, device->kind.name,
		how);
}

static void reset(struct port_table *ports, unsigned port)
{
	struct error error;

	eal_hush();
	int err = device_reset(ports, port, &error);
	eal_speak();
	if (!err) {
		come_back(ports, port, "was reset");
		return;
	}
	log_warn("%s; the device is closed and opened again", error.text);
	give_up(ports, port);
}

// Whether an attempt to open it may succeed.
static bool is_back(const struct port_device *device, bool by_request)
{
	char driver[32];

	if (device->kind.netdev[0])
		return if_nametoindex(device->kind.netdev);
	if (makes_netdev(device))
		return by_request;
	if (!device->was_on_bus)
		return true;
	if (!is_on_bus(&device->kind))
		return false;
	device_kernel_driver(device->kind.name, driver, sizeof(driver));
	return device->kind.bus != KIND_PCI || strcmp(driver, "none") != 0;
}

int hotplug_probe(struct port_table *ports, unsigned port, struct error *error)
{
	const struct kind *kind = &ports->devices[port].kind;
	const char *text = ports->settings->ports[port].device;
	char devargs[PORT_DEVICE_MAX + KIND_BUS_NAME_MAX], label[48];

	snprintf(devargs, sizeof(devargs), "%s%s", kind->name, text + strcspn(text, ","));
	eal_words_forget();
	int err = rte_dev_probe(devargs);
	if (err)
		return error_set(error, err, "%s: DPDK cannot attach its device %s: %s",
			plan_port_label(ports->settings, port, label), kind->name,
			eal_words()[0] ? eal_words() : strerror(-err));
	return 0;
}

static int open_again(struct port_table *ports, unsigned port, struct error *error)
{
	int err = hotplug_probe(ports, port, error);

	if (!err)
		err = device_find(ports, port, error);
	if (!err)
		err = device_set_up(ports, port, error);
	if (!err)
		err = device_start(ports, port, error);
	if (err)
		hotplug_detach(ports, port);
	else if (ports->devices[port].is_set_down)
		rte_eth_dev_set_link_down(ports->devices[port].id);
	return err;
}

static void log_refusal(struct port_device *device, const struct error *error, bool by_request)
{
	if (by_request || strcmp(error->text, device->refusal.text) != 0)
		log_warn("%s; the port stays down, and this is tried again every second",
			error->text);
	device->refusal = *error;
}

static void attach(struct port_table *ports, unsigned port, bool by_request)
{
	struct port_device *device = &ports->devices[port];
	uint64_t now_ns = clock_now_ns();
	struct error error;

	if (!by_request && device->tried_ns && now_ns - device->tried_ns < TRY_EVERY_NS)
		return;
	if (!is_back(device, by_request))
		return;
	device->tried_ns = now_ns;
	eal_hush();
	int err = open_again(ports, port, &error);
	eal_speak();
	if (err) {
		log_refusal(device, &error, by_request);
		return;
	}
	come_back(ports, port, "is back");
	below_warn_of_merging(ports, port);
}

bool hotplug_follow(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	if (device->phase == DEVICE_PRESENT && has_vanished(ports, device))
		leave(ports, port);
	if (device->phase == DEVICE_PRESENT &&
		__atomic_load_n(&device->wants_reset, __ATOMIC_RELAXED))
		leave_for_reset(ports, port);
	if (device->phase == DEVICE_LEAVING && is_unused(ports, port))
		give_up(ports, port);
	if (device->phase == DEVICE_RESETTING && is_unused(ports, port))
		reset(ports, port);
	if (device->phase == DEVICE_GONE)
		attach(ports, port, false);
	return device->phase == DEVICE_PRESENT;
}

void port_restore(struct port_table *ports)
{
	for (unsigned i = port_next(ports->settings, 0); i < ports->settings->n_ports;
		i = port_next(ports->settings, i + 1))
		if (!hotplug_follow(ports, i) && ports->devices[i].phase == DEVICE_GONE)
			attach(ports, i, true);
}

void port_set_grace(struct port_table *ports, const struct port_grace *grace)
{
	ports->grace = *grace;
}

int port_check_devices(const struct port_table *ports, struct error *error)
{
	char label[48];

	for (unsigned i = port_next(ports->settings, 0); i < ports->settings->n_ports;
		i = port_next(ports->settings, i + 1))
		if (ports->devices[i].phase != DEVICE_PRESENT)
			return error_set(error, -ENODEV,
				"%s: its device %s is gone (removed or reset); bring it back and "
				"start again",
				plan_port_label(ports->settings, i, label),
				ports->devices[i].kind.name);
	return 0;
}
