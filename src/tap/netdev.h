// A network interface in the namespace of the TAP interfaces. Control thread.
#pragma once

#include "wire/addr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

// Sockets opened inside the namespace; they stay bound to it whichever thread uses them.
struct netdev_sockets {
	int netlink, plain;
};

struct netdev {
	int index;
	char name[IFNAMSIZ];
	char kind[16]; // "tun" for TUN and TAP, "" for hardware
	bool is_tap, has_queues;
	uint32_t n_attached; // queues opened and attached by any program
	bool is_up, has_carrier;
	uint32_t mtu;
	struct wire_mac mac;
};

// Opens both in the namespace of the calling thread. 0 or -errno.
int netdev_open(struct netdev_sockets *sockets);
// Closes those that are open (-1: not open).
void netdev_close(struct netdev_sockets *sockets);

// Reads the interface of this name. 0, -ENODEV if it does not exist, or -errno.
int netdev_read(const struct netdev_sockets *sockets, const char *name, struct netdev *out);
// The current name of an interface index. 0, -ENODEV, or -errno.
int netdev_name(const struct netdev_sockets *sockets, int index, char name[IFNAMSIZ]);

int netdev_set_mac(const struct netdev_sockets *sockets, const char *name,
	const struct wire_mac *mac);
int netdev_set_mtu(const struct netdev_sockets *sockets, const char *name, unsigned mtu);
int netdev_set_up(const struct netdev_sockets *sockets, const char *name);

// Why Linux rejects this interface name, as the end of a sentence; NULL: it is valid.
const char *netdev_name_mistake(const char *name);
