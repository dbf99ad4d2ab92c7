// MAC address, MTU and receive filters of a device. Virtual devices that cannot change theirs are
// tolerated: they receive every frame, and our own settings apply. What is set while the device is
// gone applies to the one that returns. Control thread.
#include "base/log.h"
#include "port/table.h"

#include <errno.h>
#include <string.h>

enum { FRAME_AROUND = 14 + 8 + 4, MTU_MAX = 9600 };

static bool is_tolerant(const struct port_device *device)
{
	return device->kind.bus == KIND_VIRTUAL;
}

// Sets the device's MAC address; a virtual device that refuses becomes promiscuous instead.
static int tell_mac(struct port_device *device, const struct wire_mac *mac)
{
	struct rte_ether_addr address;

	memcpy(address.addr_bytes, mac->bytes, sizeof(address.addr_bytes));
	int err = rte_eth_dev_default_mac_addr_set(device->id, &address);
	if (err == 0 || !is_tolerant(device))
		return err;
	// The underlying interface may consider frames to this address as addressed to another
	// host.
	device->takes_all = true;
	rte_eth_promiscuous_enable(device->id);
	return 0;
}

// The address that the port has already, or that of the file, or else the device's own.
static int set_mac(struct port_table *ports, unsigned port, struct error *error)
{
	const struct port_settings *settings = &ports->settings->ports[port];
	struct port_device *device = &ports->devices[port];
	struct wire_mac wanted = device->has_mac ? device->mac : settings->mac, own;
	struct rte_ether_addr mac;
	char label[48];

	rte_eth_macaddr_get(device->id, &mac);
	memcpy(own.bytes, mac.addr_bytes, sizeof(own.bytes));
	if (!device->has_mac)
		device->mac_is_own = !settings->has_mac;
	if (!device->has_mac && !settings->has_mac)
		wanted = own;
	int err = wire_mac_equal(&wanted, &own) ? 0 : tell_mac(device, &wanted);
	if (err)
		return error_set(error, err,
			"%s: the device rejected the MAC address: %s; choose a unicast address or "
			"remove mac",
			plan_port_label(ports->settings, port, label), strerror(-err));
	device->mac = wanted;
	device->has_mac = true;
	return 0;
}

static bool is_present(const struct port_table *ports, unsigned port)
{
	return ports->devices[port].phase == DEVICE_PRESENT;
}

int port_set_mac(struct port_table *ports, unsigned port, const struct wire_mac *mac,
	struct error *error)
{
	struct port_device *device = &ports->devices[port];
	char label[48], text[WIRE_MAC_TEXT];

	if (wire_mac_equal(mac, &device->mac))
		return 0;
	int err = 0;
	if (mac->bytes[0] & 1)
		err = -EADDRNOTAVAIL;
	else if (is_present(ports, port))
		err = tell_mac(device, mac);
	if (err)
		return error_set(error, err,
			"%s: the device rejected the MAC address %s: %s; restore the previous "
			"address of the TAP interface",
			plan_port_label(ports->settings, port, label), wire_mac_print(mac, text),
			strerror(-err));
	device->mac = *mac;
	device->mac_is_own = false;
	port_state_set_mac(&ports->states[port], mac);
	return 0;
}

int port_set_promiscuous(struct port_table *ports, unsigned port, bool promiscuous,
	struct error *error)
{
	struct port_device *device = &ports->devices[port];
	char label[48];
	int err = 0;

	device->is_promiscuous = promiscuous;
	if (!is_present(ports, port))
		return 0;
	if (promiscuous)
		err = rte_eth_promiscuous_enable(device->id);
	else if (!device->takes_all)
		err = rte_eth_promiscuous_disable(device->id);
	if (!err || is_tolerant(device))
		return 0;
	return error_set(error, err, "%s: cannot set the device %s: %s",
		plan_port_label(ports->settings, port, label),
		promiscuous ? "promiscuous" : "non-promiscuous", strerror(-err));
}

void port_set_bridged(struct port_table *ports, unsigned port, bool is_bridged)
{
	__atomic_store_n(&ports->states[port].is_bridged, is_bridged, __ATOMIC_RELAXED);
}

static int set_link(const struct port_device *device, bool up)
{
	return up ? rte_eth_dev_set_link_up(device->id) : rte_eth_dev_set_link_down(device->id);
}

int port_set_admin(struct port_table *ports, unsigned port, bool up, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	char label[48];

	if (device->is_set_down == !up)
		return 0;
	int err = is_present(ports, port) ? set_link(device, up) : 0;
	if (err && err != -ENOTSUP && !is_tolerant(device))
		return error_set(error, err, "%s: cannot set the device %s: %s",
			plan_port_label(ports->settings, port, label), up ? "up" : "down",
			strerror(-err));
	device->is_set_down = !up;
	__atomic_store_n(&ports->states[port].up, device->has_carrier && up, __ATOMIC_RELEASE);
	return 0;
}

// With the buffers and slots allocated at start.
static unsigned largest_mtu(const struct port_table *ports, unsigned port)
{
	const struct pools_node *node =
		&ports->pools.nodes[pools_of_port(&ports->pools, &ports->plan, port)];
	uint32_t slot_bytes = ports->devices[port].kind.slot_bytes;
	int most = MIN_OF((int)MTU_MAX, (int)node->data_room - POOLS_HEADROOM - FRAME_AROUND);

	if (slot_bytes)
		most = MIN_OF(most, (int)slot_bytes - KIND_FRAME_AROUND);
	return MAX_OF(most, 0);
}

static int check_mtu(const struct port_table *ports, unsigned port, uint16_t mtu,
	struct error *error)
{
	const struct port_device *device = &ports->devices[port];
	unsigned most = largest_mtu(ports, port);
	char label[48];

	plan_port_label(ports->settings, port, label);
	if (device->kind.slot_bytes && mtu + (unsigned)KIND_FRAME_AROUND > device->kind.slot_bytes)
		return error_set(error, -ENOTSUP,
			"%s: frames with mtu %u do not fit into the device's slots of %u bytes "
			"(mtu at most %u); restart with larger slots",
			label, mtu, device->kind.slot_bytes, most);
	if (mtu > most)
		return error_set(error, -ENOTSUP,
			"%s: mtu %u exceeds the buffers allocated at start (mtu at most %u); "
			"restart to apply it",
			label, mtu, most);
	return 0;
}

static void keep_mtu(struct port_table *ports, unsigned port, uint16_t mtu)
{
	ports->devices[port].mtu = mtu;
	__atomic_store_n(&ports->states[port].mtu, mtu, __ATOMIC_RELAXED);
}

static int set_mtu(struct port_table *ports, unsigned port, uint16_t mtu, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	uint16_t now = 0;
	char label[48];
	int err = check_mtu(ports, port, mtu, error);

	if (err)
		return err;
	plan_port_label(ports->settings, port, label);
	if (rte_eth_dev_get_mtu(device->id, &now) != 0 || now != mtu)
		err = rte_eth_dev_set_mtu(device->id, mtu);
	if (err && !is_tolerant(device))
		return error_set(error, err, "%s: the device rejected mtu %u: %s%s", label, mtu,
			strerror(-err), err == -EBUSY ? "; a restart is required" : "");
	err = below_carry_mtu(&device->kind, mtu);
	if (err)
		return error_set(error, err,
			"%s: interface %s rejected mtu %u: %s; use a smaller mtu", label,
			device->kind.netdev, mtu, strerror(-err));
	keep_mtu(ports, port, mtu);
	return 0;
}

int port_set_mtu(struct port_table *ports, unsigned port, uint16_t mtu, struct error *error)
{
	struct port_device *device = &ports->devices[port];

	if (mtu == device->mtu)
		return 0;
	if (is_present(ports, port))
		return set_mtu(ports, port, mtu, error);
	int err = check_mtu(ports, port, mtu, error);
	if (!err)
		keep_mtu(ports, port, mtu);
	return err;
}

static void set_filters(struct port_table *ports, unsigned port)
{
	const struct port_settings *settings = &ports->settings->ports[port];
	const struct port_device *device = &ports->devices[port];
	char label[48];

	plan_port_label(ports->settings, port, label);
	// Without it neighbour discovery, OSPF and VRRP fail on real devices; virtual ones do not
	// show the problem.
	if (rte_eth_allmulticast_enable(device->id) != 0 && !is_tolerant(device))
		log_warn("%s: cannot enable all-multicast mode on the device; neighbour discovery "
			 "may fail",
			label);
	if ((settings->mode == PORT_XCONNECT || device->is_promiscuous) &&
		rte_eth_promiscuous_enable(device->id) != 0 && !is_tolerant(device))
		log_warn("%s: cannot enable promiscuous mode on the device; frames to other MAC "
			 "addresses are lost",
			label);
}

int address_set_up(struct port_table *ports, unsigned port, struct error *error)
{
	int err = set_mac(ports, port, error);

	if (!err)
		err = set_mtu(ports, port, ports->devices[port].mtu, error);
	if (err)
		return err;
	set_filters(ports, port);
	port_state_set_mac(&ports->states[port], &ports->devices[port].mac);
	return 0;
}
