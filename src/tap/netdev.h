// A network interface of the TAP interfaces' namespace, as Linux tells of it. Control thread.
#pragma once

#include "wire/addr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

// Sockets made inside the namespace; they stay there whoever uses them.
struct netdev_sockets {
	int netlink, plain;
};

struct netdev {
	int index;
	char name[IFNAMSIZ];
	char kind[16]; // "tun" of TUN and TAP, "" of hardware
	bool is_tap, has_queues;
	uint32_t n_attached; // queues that some program has open and attached
	bool is_up, has_carrier;
	uint32_t mtu;
	struct wire_mac mac;
};

// Opens both where the calling thread is. 0 or -errno. / Closes what is open (-1: is not).
int netdev_open(struct netdev_sockets *sockets);
void netdev_close(struct netdev_sockets *sockets);

// Reads the interface of this name. 0, -ENODEV: there is none, or -errno.
int netdev_read(const struct netdev_sockets *sockets, const char *name, struct netdev *out);
// The name that the index stands for now. 0, -ENODEV, or -errno.
int netdev_name(const struct netdev_sockets *sockets, int index, char name[IFNAMSIZ]);

int netdev_set_mac(const struct netdev_sockets *sockets, const char *name,
	const struct wire_mac *mac);
int netdev_set_mtu(const struct netdev_sockets *sockets, const char *name, unsigned mtu);
int netdev_set_up(const struct netdev_sockets *sockets, const char *name);

// Why Linux takes no interface of this name, as the end of a sentence; NULL: it does.
const char *netdev_name_mistake(const char *name);
