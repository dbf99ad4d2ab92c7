// MAC address, MTU and receive filters of a device. Virtual devices that cannot change theirs are
// tolerated: they take every frame, and what counts is our own idea. Control thread.
#include "base/log.h"
#include "port/room.h"

#include <errno.h>
#include <string.h>

enum { FRAME_AROUND = 14 + 8 + 4 };

static bool is_tolerant(const struct port_device *device)
{
	return device->kind.bus == KIND_VIRTUAL;
}

static int set_mac(struct port_room *room, unsigned port, struct complaint *why)
{
	const struct port_settings *settings = &room->settings->ports[port];
	struct port_device *device = &room->devices[port];
	struct rte_ether_addr mac;
	char label[48];

	if (!settings->has_mac) {
		rte_eth_macaddr_get(device->id, &mac);
		memcpy(device->mac.bytes, mac.addr_bytes, sizeof(device->mac.bytes));
		return 0;
	}
	device->mac = settings->mac;
	memcpy(mac.addr_bytes, settings->mac.bytes, sizeof(mac.addr_bytes));
	int err = rte_eth_dev_default_mac_addr_set(device->id, &mac);
	if (err == 0)
		return 0;
	if (!is_tolerant(device))
		return complain(why, err,
			"%s: its device refuses the MAC address: %s; choose a unicast address or "
			"leave mac out",
			plan_port_label(room->settings, port, label), strerror(-err));
	// Frames for the wanted address may be for another host in the eyes of the interface below.
	rte_eth_promiscuous_enable(device->id);
	return 0;
}

int address_set_mtu(struct port_room *room, unsigned port, uint16_t mtu, struct complaint *why)
{
	struct port_device *device = &room->devices[port];
	const struct pools_node *node =
		&room->pools.nodes[pools_of_port(&room->pools, &room->plan, port)];
	uint16_t now = 0;
	char label[48];

	plan_port_label(room->settings, port, label);
	if (mtu + (unsigned)FRAME_AROUND + POOLS_HEADROOM > node->data_room)
		return complain(why, -ENOTSUP,
			"%s: mtu %u does not fit the buffers made at start; it needs a restart",
			label, mtu);
	if (rte_eth_dev_get_mtu(device->id, &now) == 0 && now == mtu) {
		device->mtu = mtu;
		return 0;
	}
	int err = rte_eth_dev_set_mtu(device->id, mtu);
	if (err && !is_tolerant(device))
		return complain(why, err, "%s: its device refuses mtu %u: %s%s", label, mtu,
			strerror(-err), err == -EBUSY ? "; it needs a restart" : "");
	device->mtu = mtu;
	return 0;
}

static void set_filters(struct port_room *room, unsigned port)
{
	const struct port_settings *settings = &room->settings->ports[port];
	const struct port_device *device = &room->devices[port];
	char label[48];

	plan_port_label(room->settings, port, label);
	// Without it neighbour discovery, OSPF and VRRP fail on real devices, and no virtual one
	// shows it.
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

int address_set_up(struct port_room *room, unsigned port, struct complaint *why)
{
	int err = set_mac(room, port, why);

	if (!err)
		err = address_set_mtu(room, port, room->devices[port].mtu, why);
	if (err)
		return err;
	set_filters(room, port);
	memcpy(room->faces[port].mac, room->devices[port].mac.bytes, sizeof(room->faces[port].mac));
	return 0;
}
