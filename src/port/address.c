// MAC address, MTU and receive filters of a device. Virtual devices that cannot change theirs are
// tolerated: they receive every frame, and our own settings apply. Control thread.
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

static int set_mac(struct port_table *ports, unsigned port, struct error *error)
{
	const struct port_settings *settings = &ports->settings->ports[port];
	struct port_device *device = &ports->devices[port];
	struct rte_ether_addr mac;
	char label[48];

	if (!settings->has_mac) {
		rte_eth_macaddr_get(device->id, &mac);
		memcpy(device->mac.bytes, mac.addr_bytes, sizeof(device->mac.bytes));
		return 0;
	}
	int err = tell_mac(device, &settings->mac);
	if (err)
		return error_set(error, err,
			"%s: its device refuses the MAC address: %s; choose a unicast address or "
			"leave mac out",
			plan_port_label(ports->settings, port, label), strerror(-err));
	device->mac = settings->mac;
	return 0;
}

int port_set_mac(struct port_table *ports, unsigned port, const struct wire_mac *mac,
	struct error *error)
{
	struct port_device *device = &ports->devices[port];
	char label[48], text[WIRE_MAC_TEXT];

	if (wire_mac_equal(mac, &device->mac))
		return 0;
	int err = mac->bytes[0] & 1 ? -EADDRNOTAVAIL : tell_mac(device, mac);
	if (err)
		return error_set(error, err,
			"%s: its device refuses the MAC address %s: %s; give its TAP interface the "
			"old one "
			"back",
			plan_port_label(ports->settings, port, label), wire_mac_print(mac, text),
			strerror(-err));
	device->mac = *mac;
	port_state_set_mac(&ports->states[port], mac);
	return 0;
}

int port_set_promiscuous(struct port_table *ports, unsigned port, bool promiscuous,
	struct error *error)
{
	const struct port_device *device = &ports->devices[port];
	char label[48];
	int err = 0;

	if (promiscuous)
		err = rte_eth_promiscuous_enable(device->id);
	else if (!device->takes_all)
		err = rte_eth_promiscuous_disable(device->id);
	if (!err || is_tolerant(device))
		return 0;
	return error_set(error, err, "%s: its device cannot be set %s: %s",
		plan_port_label(ports->settings, port, label),
		promiscuous ? "promiscuous" : "selective", strerror(-err));
}

int port_set_admin(struct port_table *ports, unsigned port, bool up, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	char label[48];

	if (device->is_set_down == !up)
		return 0;
	int err = up ? rte_eth_dev_set_link_up(device->id) : rte_eth_dev_set_link_down(device->id);
	if (err && err != -ENOTSUP && !is_tolerant(device))
		return error_set(error, err, "%s: its device cannot be set %s: %s",
			plan_port_label(ports->settings, port, label), up ? "up" : "down",
			strerror(-err));
	device->is_set_down = !up;
	__atomic_store_n(&ports->states[port].up, device->has_carrier && up, __ATOMIC_RELAXED);
	return 0;
}

// With the buffers and slots made at start.
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

int address_set_mtu(struct port_table *ports, unsigned port, uint16_t mtu, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	unsigned most = largest_mtu(ports, port);
	uint16_t now = 0;
	char label[48];

	plan_port_label(ports->settings, port, label);
	if (device->kind.slot_bytes && mtu + (unsigned)KIND_FRAME_AROUND > device->kind.slot_bytes)
		return error_set(error, -ENOTSUP,
			"%s: frames of mtu %u do not fit into its device's slots of %u bytes (mtu "
			"at most %u); it needs a restart with larger ones",
			label, mtu, device->kind.slot_bytes, most);
	if (mtu > most)
		return error_set(error, -ENOTSUP,
			"%s: mtu %u does not fit the buffers made at start (mtu at most %u); it "
			"needs a restart",
			label, mtu, most);
	int err = 0;
	if (rte_eth_dev_get_mtu(device->id, &now) != 0 || now != mtu)
		err = rte_eth_dev_set_mtu(device->id, mtu);
	if (err && !is_tolerant(device))
		return error_set(error, err, "%s: its device refuses mtu %u: %s%s", label, mtu,
			strerror(-err), err == -EBUSY ? "; it needs a restart" : "");
	err = below_carry_mtu(&device->kind, mtu);
	if (err)
		return error_set(error, err,
			"%s: interface %s does not take mtu %u: %s; give the port a smaller mtu",
			label, device->kind.netdev, mtu, strerror(-err));
	device->mtu = mtu;
	return 0;
}

int port_set_mtu(struct port_table *ports, unsigned port, uint16_t mtu, struct error *error)
{
	return mtu == ports->devices[port].mtu ? 0 : address_set_mtu(ports, port, mtu, error);
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
		log_warn("%s: its device does not take all multicast frames; neighbour discovery "
			 "may fail",
			label);
	if (settings->mode == PORT_XCONNECT && rte_eth_promiscuous_enable(device->id) != 0 &&
		!is_tolerant(device))
		log_warn("%s: its device does not become promiscuous; frames for other MAC "
			 "addresses are lost",
			label);
}

int address_set_up(struct port_table *ports, unsigned port, struct error *error)
{
	int err = set_mac(ports, port, error);

	if (!err)
		err = address_set_mtu(ports, port, ports->devices[port].mtu, error);
	if (err)
		return err;
	set_filters(ports, port);
	port_state_set_mac(&ports->states[port], &ports->devices[port].mac);
	return 0;
}
